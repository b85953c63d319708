"""Estimators with one change each, built as plugins for the program that judges them. They are compiled without optimisation, because
compilation takes most of the time."""

import json
import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def renamed(text, suffix):
    """An estimator's source with the suffix appended to its registered name, which avoids clashes."""
    name = re.search(r'\.name = "\w+', text)[0]
    return text.replace(name + '"', f'{name}_{suffix}"', 1)


def name_of(text):
    return re.search(r'\.name = "(\w+)"', text)[1]


def side_by_side(path, texts):
    """One source with several variants of an estimator, {suffix: text}, each in a separate namespace. Compiler messages about a variant
    refer to `suffix/path`."""
    whole, inside = [], f"namespace hardgrad::estimators::{Path(path).stem}"
    for suffix, text in texts.items():
        lines = renamed(text, suffix).split("\n")
        opened, closed = lines.index(inside + " {"), lines.index("}  // " + inside)
        whole += [line for line in lines[:opened] if line.startswith("#include")]
        whole += [f"{inside}_{suffix} {{", f'#line {opened + 2} "{suffix}/{path}"', *lines[opened + 1 : closed], "}"]
    return "\n".join(whole) + "\n"


def compile_commands(build):
    return json.loads((Path(build) / "compile_commands.json").read_text())


def compiling(build, source):
    """The build's command to compile a source, without its output; the command's folder; and the output."""
    for entry in compile_commands(build):
        if entry["file"] == str(source):
            words = shlex.split(entry["command"])
            words = words[1:] if words[0].endswith("ccache") else words
            at = words.index("-o")
            return [w for w in words[:at] + words[at + 2 :] if w not in ("-c", str(source))], entry["directory"], words[at + 1]
    raise SystemExit(f"{build} does not compile {source} separately: use a build of the preset `develop`")


def compiled_in(build, source):
    """The file that the build compiles for this source: the source, or the unit that includes it."""
    for entry in compile_commands(build):
        if entry["file"] == str(source) or "/Unity/" in entry["file"] and f'"{source}"' in Path(entry["file"]).read_text():
            return entry["file"]
    raise SystemExit(f"{build} does not build {source}")


def plugin(build, folder, sources):
    """Builds a library of `sources`, {path in the tree: text}, as one unit. It runs exactly the definitions it was built from. Returns its
    path; CalledProcessError if it does not compile."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    whole, library = folder / "mutants.cpp", folder / "mutant.so"
    whole.write_text('#include "core/plugin.hpp"\n' + "".join(f'#line 1 "{path}"\n{text}' for path, text in sources.items()))
    flags, directory, _ = compiling(build, compiled_in(build, ROOT / next(iter(sources))))
    subprocess.run(
        [
            *flags,
            f"-I{Path(build).resolve()}/include",
            "-O0",
            "-fPIC",
            "-shared",
            "-Wl,-Bsymbolic-functions",
            str(whole),
            "-o",
            str(library),
        ],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
        timeout=900,
    )
    return library


def judged(build, library, *names, **options):
    """The verdicts of `hardgrad test` on the named estimators of the library (default: all); None after a crash or a timeout."""
    return verdicts(Path(build).resolve() / "hardgrad", "--plugin", str(library), *names, **options)


def verdicts(program, *arguments, timeout=900):
    """The verdicts of the program's verb `test`; None after a crash or a timeout."""
    try:
        done = subprocess.run(
            [str(program), "test", "-x", "--json", *arguments], capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else None  # no output: a bug
