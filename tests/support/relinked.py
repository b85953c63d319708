"""A program of the build with a change in one file. The affected sources are recompiled and linked with the other objects; neither the
tree nor the build changes."""

import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import count
from pathlib import Path

from mutants import ROOT, compiling


@lru_cache(maxsize=None)
def includes(path):
    """{header: distance} of the tree's headers that a file includes; 1 for direct includes."""
    found, at = {}, [str(path)]
    for distance in count(1):
        names = {n for p in at for n in re.findall(r'#include "([^"]+)"', (ROOT / p).read_text()) if (ROOT / n).exists()}
        at = sorted(names - found.keys())
        if not at:
            return found
        found |= {name: distance for name in at}


@lru_cache(maxsize=None)
def commands(build, target):
    """All commands that build a target from scratch."""
    return subprocess.run(
        ["ninja", "-t", "commands", target], cwd=build, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@lru_cache(maxsize=None)
def sources(build, target):
    """The sources of a target, as paths in the tree."""
    found = (re.search(r" -c (\S+)$", command) for command in commands(build, target))
    return [str(Path(m[1]).relative_to(ROOT)) for m in found if m and Path(m[1]).is_relative_to(ROOT)]


def relinked(build, target, path, text, folder, without=lambda source: False):
    """Builds `target` in `folder`, with `text` in place of the tree's file `path`. For a header, the sources that include it are recompiled,
    except those for which `without` is true. CalledProcessError if a source does not compile."""
    build, folder = Path(build).resolve(), Path(folder)
    changed = folder / "tree" / path
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.write_text(text)
    if path.endswith(".hpp"):
        anew = {s: ROOT / s for s in sources(build, target) if path in includes(s) and not without(s)}
    else:
        anew = {path: changed}

    def compiled(i, source, file):
        words, directory, made = compiling(build, ROOT / source)
        thing = folder / f"{i}.o"
        subprocess.run(
            [words[0], f"-I{folder}/tree", *words[1:], "-O1", "-c", str(file), "-o", str(thing)],
            cwd=directory,
            check=True,
            capture_output=True,
            text=True,
            timeout=900,
        )
        return made, str(thing)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = dict(pool.map(lambda job: compiled(job[0], *job[1]), enumerate(anew.items())))
    linking = next(c for c in reversed(commands(build, target)) if f"-o {target} " in c)
    words = shlex.split(re.search(r"\S*c\+\+ .*?(?= &&|$)", linking)[0])
    first = [
        thing for made, thing in objects.items() if made not in words
    ]  # objects of an archive: the linker takes the first definition
    words = [objects.get(word, word) for word in words]
    at, program = words.index("-o") + 1, folder / Path(target).name
    words[at : at + 1] = [str(program), "-Wl,--allow-multiple-definition", *first]
    subprocess.run(words, cwd=build, check=True, capture_output=True, text=True)
    return program
