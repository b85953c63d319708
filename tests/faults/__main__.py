#!/usr/bin/python3
"""Faults: kills, power loss, full disks and concurrent runs, and the state in which they leave a sweep.

    /usr/bin/python3 tests/faults --binary build/release/hardgrad --layer build/release/tests/faults/libfaults.so \\
        --seed 1 --count 100 [--minutes 60] [--kinds 'kill*'] [--but '*report']

`--count` faults of each kind are injected. Kinds that act at the n-th change of a file start at a random n and cycle through all
n; `--all` tries each n once. The exit status is 1 at the first failure, whose folder is kept.
"""

import argparse
import fnmatch
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass

from kinds import KINDS, Kind
from sandbox import Finding, Sandbox


@dataclass
class Struck:
    """A kind and its progress. `last`: the number of file changes that it counts; 0 if it counts none."""

    name: str
    kind: Kind
    dice: random.Random
    last: int
    first: int
    count: int
    done: int = 0

    def at(self, strike):
        return (self.first + strike * (1 if self.count >= self.last else 7)) % self.last + 1 if self.last else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--kinds", default="*", help="a pattern of their names")
    parser.add_argument("--but", default=[], nargs="*", help="patterns of names to exclude")
    options = parser.parse_args()
    begun = time.monotonic()
    box = Sandbox(options.binary, options.layer, tempfile.mkdtemp(prefix="hardgrad-faults-"))
    box.seconds = time.monotonic() - begun
    struck = []
    for name, kind in KINDS.items():
        if fnmatch.fnmatch(name, options.kinds) and not any(fnmatch.fnmatch(name, but) for but in options.but):
            dice = random.Random(f"{options.seed} {name}")
            last = kind.operations(box) if kind.operations else 0
            count = last if options.all and last else options.count
            struck.append(Struck(name, kind, dice, last, dice.randrange(last) if last else 0, count))
    for strike in range(max(one.count for one in struck)):  # alternating, so a time limit reduces all kinds equally
        for one in struck:
            if strike < one.count and (time.monotonic() - begun) / 60 < options.minutes:
                n = one.at(strike)
                try:
                    one.kind.strike(box, one.dice, n)
                except Finding as finding:
                    print(
                        f"{one.name}: strike {strike} (n = {n} of {one.last}, seed {options.seed}): {finding}\nleft: {box.out}"
                    )
                    return 1
                one.done += 1
    for one in struck:
        print(f"{one.name}: {one.done} strikes, all well" + (f"; {one.last} changes of files" if one.last else ""))
    total = sum(one.done for one in struck)
    shutil.rmtree(box.folder)
    print(f"seed {options.seed}: {total} strikes in {time.monotonic() - begun:.0f} s")
    return 0 if total else 2


if __name__ == "__main__":
    sys.exit(main())
