"""A program of the build with something changed in one of its files: what the change reaches is compiled anew and linked with the
rest, and neither the tree nor the build is touched."""
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
    """All of the tree's headers that a file includes, and how far away: 1 those that it names itself."""
    found, at = {}, [str(path)]
    for distance in count(1):
        names = {n for p in at for n in re.findall(r'#include "([^"]+)"', (ROOT / p).read_text()) if (ROOT / n).exists()}
        at = sorted(names - found.keys())
        if not at:
            return found
        found |= {name: distance for name in at}


@lru_cache(maxsize=None)
def commands(build, target):
    """All that is run to make a target from nothing."""
    return subprocess.run(["ninja", "-t", "commands", target], cwd=build, capture_output=True, text=True, check=True).stdout.splitlines()


@lru_cache(maxsize=None)
def sources(build, target):
    """The tree's sources that go into a target, as paths in the tree."""
    found = (re.search(r" -c (\S+)$", command) for command in commands(build, target))
    return [str(Path(m[1]).relative_to(ROOT)) for m in found if m and Path(m[1]).is_relative_to(ROOT)]


def relinked(build, target, path, text, folder, without=lambda source: False):
    """`target` of the build with `text` in place of the tree's file `path`, made in `folder`. Of a header, the sources that include it
    are compiled anew but those for which `without` says so. CalledProcessError if something does not compile."""
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
        subprocess.run([words[0], f"-I{folder}/tree", *words[1:], "-O1", "-c", str(file), "-o", str(thing)], cwd=directory, check=True,
                       capture_output=True, text=True, timeout=900)
        return made, str(thing)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = dict(pool.map(lambda job: compiled(job[0], *job[1]), enumerate(anew.items())))
    linking = next(c for c in reversed(commands(build, target)) if f"-o {target} " in c)
    words = shlex.split(re.search(r"\S*c\+\+ .*?(?= &&|$)", linking)[0])
    first = [thing for made, thing in objects.items() if made not in words]  # of an archive: the first definition counts
    words = [objects.get(word, word) for word in words]
    at, program = words.index("-o") + 1, folder / Path(target).name
    words[at:at + 1] = [str(program), "-Wl,--allow-multiple-definition", *first]
    subprocess.run(words, cwd=build, check=True, capture_output=True, text=True)
    return program
