"""Estimators with one thing changed, built as plugins beside the program that judges them. Not optimised: compiling is what takes time."""
import json
import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def changed(text, old, new):
    """A text with the one place changed that says `old`."""
    assert text.count(old) == 1, old
    return text.replace(old, new)


def renamed(text, suffix):
    """An estimator's source under a name that clashes with nothing."""
    name = re.search(r'\.name = "\w+', text)[0]
    return text.replace(name + '"', f'{name}_{suffix}"', 1)


def name_of(text):
    return re.search(r'\.name = "(\w+)"', text)[1]


def side_by_side(path, texts):
    """One source of several variants of an estimator, {suffix: text}: each in a namespace of its own. What the compiler says of one
    names `suffix/path`."""
    whole = []
    for suffix, text in texts.items():
        lines = renamed(text, suffix).split("\n")
        opened = lines.index("namespace hardgrad {")
        includes = [line for line in lines[:opened] if line.startswith("#include")]
        closed = len(lines) - 1 - lines[::-1].index("}  // namespace hardgrad")
        whole += includes + [f"namespace hardgrad {{ namespace {suffix} {{", f'#line {opened + 2} "{suffix}/{path}"']
        whole += lines[opened + 1:closed] + ["} }"]
    return "\n".join(whole) + "\n"


def compiling(build, source):
    """How the build compiles a source, without what it is made into; where; and what that is."""
    for entry in json.loads((Path(build) / "compile_commands.json").read_text()):
        if entry["file"] == str(source):
            words = shlex.split(entry["command"])
            words = words[1:] if words[0].endswith("ccache") else words
            at = words.index("-o")
            return [w for w in words[:at] + words[at + 2:] if w not in ("-c", str(source))], entry["directory"], words[at + 1]
    raise SystemExit(f"{build} does not build {source}")


def plugin(build, folder, sources):
    """A library of `sources`, {path in the tree: text}. Its own definitions are its own: what it was built of is what it runs.
    Returns the path; CalledProcessError if it does not compile."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for i, (path, text) in enumerate(sources.items()):
        flags, directory, _ = compiling(build, ROOT / path)
        source = folder / f"{i}_{Path(path).name}"
        marker = '#include "core/plugin.hpp"\n' if i == 0 else ""
        source.write_text(marker + f'#line 1 "{path}"\n' + text)
        objects.append(source.with_suffix(".o"))
        subprocess.run([*flags, f"-I{Path(build).resolve()}/generated", "-O0", "-fPIC", "-c", str(source), "-o",
                        str(objects[-1])], cwd=directory, check=True, capture_output=True, text=True, timeout=900)
    library = folder / "mutant.so"
    subprocess.run([flags[0], "-shared", "-Wl,-Bsymbolic-functions", *map(str, objects), "-o", str(library)], check=True,
                   capture_output=True, text=True)
    return library


def judged(build, library, *names, **options):
    """The verdicts of `hardgrad test` on these (all) estimators of the library, or None if it died or did not end."""
    return verdicts(Path(build).resolve() / "hardgrad", "--plugin", str(library), *names, **options)


def verdicts(program, *arguments, timeout=900):
    """What the program's verb `test` says, or None if it died or did not end."""
    try:
        done = subprocess.run([str(program), "test", "-x", "--json", *arguments], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else None  # nothing is said of a bug
