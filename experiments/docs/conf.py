"""The pages of this tree and its API reference as one site: `cmake --build --preset release --target docs`.

Sources are the Markdown pages where they stand, the comments of the C++ headers and the docstrings of the Python packages. A page may
link to any file of the tree; the site links to pages and shows other files by their path.
"""
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path[:0] = [os.environ["HARDGRAD_PACKAGE"], str(TREE)]  # the built package `hardgrad`; `analysis`
from analysis.program import head_of  # noqa: E402

project = "Hardgrad"
author = "the Hardgrad developers"
version = release = re.search(r"project\(\w+ VERSION ([\d.]+)", (TREE / "CMakeLists.txt").read_text())[1]
project_copyright = author

extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
root_doc = "README"
include_patterns = ["*.md", "core/**.md", "estimators/**.md", "experiments/**.md", "results/**.md", "tests/**.md"]
exclude_patterns = ["build", "**/build"]
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
html_theme = "furo"
html_title = f"Hardgrad {version}"
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
default_role = "code"  # of docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_mock_imports = [name for name in ("torch", "jax") if not importlib.util.find_spec(name)]
suppress_warnings = ["myst.header"]  # a page may begin below its title

# The headers on the page `cpp.md`, which an estimator, a model or a task includes.
INTERFACE = {
    "Choices": ["core/choice/structure.hpp", "core/choice/choice.hpp", "core/choice/episode.hpp",
                "core/choice/handlers.hpp", "core/choice/distribution.hpp"],
    "Estimators": ["core/estimator/estimator.hpp", "core/estimator/target.hpp", "core/estimator/needs.hpp",
                   "core/estimator/promises.hpp", "core/estimator/evaluations.hpp", "core/estimator/choices.hpp",
                   "core/estimator/at_logits.hpp"],
    "Models": ["core/models/model.hpp", "core/models/batch.hpp"],
    "Tasks": ["experiments/tasks/task.hpp"],
    "Automatic differentiation": ["core/autodiff/tape.hpp", "core/autodiff/parameter.hpp", "core/autodiff/elementwise.hpp",
                                  "core/autodiff/product.hpp", "core/autodiff/reduce.hpp", "core/autodiff/softmax.hpp"],
    "Random numbers": ["core/random/key.hpp", "core/random/randomness.hpp"],
    "Measurement": ["experiments/measurement/measure.hpp", "experiments/measurement/exact_moments.hpp",
                    "experiments/measurement/reference_gradient.hpp"],
    "Registry": ["core/registry/registry.hpp", "core/registry/settings.hpp", "core/registry/plugins.hpp"],
}
XML = Path(os.environ["HARDGRAD_XML"])
breathe_projects = {"hardgrad": str(XML)}
breathe_default_project = "hardgrad"
breathe_default_members = ("members", "undoc-members")

SITE = """
```{toctree}
:hidden:
:caption: Guides

experiments/install/README
experiments/tutorial
estimators/choosing
experiments/configs/README
experiments/cli/README
experiments/python/README
results/README
results/measuring
results/files
```

```{toctree}
:hidden:
:caption: Reference

estimators/README
core/models/README
experiments/tasks/README
experiments/docs/equations
experiments/docs/python
experiments/docs/torch
experiments/docs/jax
experiments/docs/cpp
results/reference/README
results/reference/translation
results/reference/questions
results/reference/glimpses
results/reference/thinking
results/reference/captions
results/reference/reading
results/reference/belief_networks
results/reference/codes
results/reference/algorithms
results/reference/programs
results/reference/subsets
results/reference/policies
results/reference/own_network
results/reference/toys
results/reference/every_estimator
results/reference/trained
results/reference/coverage
results/reference/literature
```

```{toctree}
:hidden:
:caption: Development

core/README
core/decisions
core/autodiff/README
CONTRIBUTING
CHANGELOG
tests/README
tests/peers/README
tests/peers/causes
tests/measured
```
"""


def headed(folder: str) -> str:
    """One section per source of a folder: the comment at its head."""
    heads = [(path.stem, head_of(path)) for path in sorted((TREE / folder).glob("*.cpp"))]
    return "\n".join(f"### {name}\n\n```{{code-block}} text\n:class: equations\n\n{text}```\n" for name, text in heads if text)


def interface() -> str:
    return "\n".join(f"## {title}\n\n" + "\n".join(f"```{{doxygenfile}} {header}\n```\n" for header in group)
                     for title, group in INTERFACE.items())


def linked(text: str, page: Path) -> str:
    """Links that lead to a file that is not a page, or to a folder: the folder's page if it has one, otherwise the text alone."""
    def replaced(found: re.Match) -> str:
        label, target = found[1], found[2]
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path or path.endswith((".md", ".png")):
            return found[0]
        at = (page.parent / path).resolve()
        if (at / "README.md").exists():
            return f"[{label}]({path.rstrip('/')}/README.md{'#' + anchor if anchor else ''})"
        return label
    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", replaced, text)


def read(app, name: str, source: list[str]) -> None:
    page = TREE / f"{name}.md"
    text = linked(source[0], page)
    text = re.sub(r"^```(\w+) guide$", r"```\1", text, flags=re.M)  # commands that a test runs
    if name == root_doc:
        text += SITE
    text = re.sub(r"^<!-- equations of (\S+) -->$", lambda found: headed(found[1]), text, flags=re.M)
    source[0] = text.replace("<!-- interface -->", interface())


# Names without the project's namespace, and inherited overloads only where they are declared.
FILTER = r"'s/^namespace hardgrad[a-z:]* \{$//; s#^}  // namespace hardgrad.*##; /^ *using [A-Za-z]+::[a-z_]+;$/d'"


def run_doxygen() -> None:
    XML.mkdir(parents=True, exist_ok=True)
    options = {"INPUT": " ".join(str(TREE / header) for group in INTERFACE.values() for header in group), "XML_OUTPUT": XML,
               "OUTPUT_DIRECTORY": XML.parent, "STRIP_FROM_PATH": TREE, "GENERATE_XML": "YES", "GENERATE_HTML": "NO",
               "GENERATE_LATEX": "NO", "EXTRACT_ALL": "YES", "QUIET": "YES", "WARN_AS_ERROR": "FAIL_ON_WARNINGS",
               "WARN_IF_UNDOCUMENTED": "NO",
               "MACRO_EXPANSION": "YES", "EXPAND_ONLY_PREDEF": "YES", "PREDEFINED": "__restrict=",  # no C++ for Sphinx
               "INPUT_FILTER": f'"sed -E {FILTER}"'}
    subprocess.run(["doxygen", "-"], input="\n".join(f"{name} = {value}" for name, value in options.items()), text=True, check=True)


def documented(app, what, name, object, options, lines: list[str]) -> None:
    """Docstrings list arguments as `name: text`, which becomes a field list, and show code as indented lines between blank ones.
    `|bias|` is an absolute value."""
    try:
        arguments = set(inspect.signature(object).parameters)
    except (TypeError, ValueError):  # no function or class of Python's
        arguments = set()

    def field(found: re.Match) -> str:
        names = found[1].split(", ")
        return f":{'param' if names[0] in arguments else 'var'} {','.join(names)}: "

    written: list[str] = []
    for line in lines:
        last = written[-1] if written else ""
        if line.startswith("    ") and not last.strip() and opens_code(written):
            written += ["::", ""]
        elif not line.startswith(" "):
            if not last.strip() or last.startswith((" ", ":")):  # not within a paragraph
                line = re.sub(r"^([a-z_]+(?:, [a-z_]+)*): ", field, line)
            line = line.replace("|", r"\|")
        written.append(line)
    lines[:] = written


def short(app, what, name, object, options, signature: str, returned: str) -> tuple[str, str]:
    """Types without their modules, also where Sphinx cannot parse a default value."""
    return tuple(re.sub(r"~[\w.]*\.", "", text) if text and "<" in text else text for text in (signature, returned))


def opens_code(lines: list[str]) -> bool:
    """Whether indented text after these and a blank line is code that nothing announces yet."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return bool(last) and not last.startswith("    ") and not last.endswith("::")


def index(app, exception) -> None:
    """The front page under the name that a browser opens in a folder."""
    if not exception:
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app) -> None:
    run_doxygen()
    app.connect("build-finished", index)
    app.connect("autodoc-process-docstring", documented)
    app.connect("autodoc-process-signature", short)
    app.connect("source-read", read)
