#!/usr/bin/python3
"""Faults: kills, lost power, full disks and crowds, and what they leave of a sweep.

    /usr/bin/python3 tests/faults --binary build/release/hardgrad --layer build/release/tests/faults/libfaults.so \\
        --seed 1 --count 100 [--minutes 60] [--kinds 'kill*'] [--but '*report']

`--count` strikes of each kind; of those that strike the n-th change of a file, n goes through all from a random one on. `--all`
strikes each n once. Exit status 1 at the first finding, whose folder stays.
"""
import argparse
import fnmatch
import random
import shutil
import sys
import tempfile
import time

from kinds import KINDS
from sandbox import Finding, Sandbox


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--layer", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--kinds", default="*", help="a pattern of their names")
    parser.add_argument("--but", default="", help="a pattern of those to leave out")
    options = parser.parse_args()
    begun = time.monotonic()
    box = Sandbox(options.binary, options.layer, tempfile.mkdtemp(prefix="hardgrad-faults-"))
    box.seconds = time.monotonic() - begun
    total = 0
    for name, kind in KINDS.items():
        if not fnmatch.fnmatch(name, options.kinds) or fnmatch.fnmatch(name, options.but):
            continue
        dice = random.Random(f"{options.seed} {name}")
        last = kind.operations(box) if kind.operations else 0
        first = dice.randrange(last) if last else 0
        count = last if options.all and last else options.count
        done = 0
        while done < count and (time.monotonic() - begun) / 60 < options.minutes:
            n = (first + done * (1 if count >= last else 7)) % last + 1 if last else 0
            try:
                kind.strike(box, dice, n)
            except Finding as finding:
                print(f"{name}: strike {done} (n = {n} of {last}, seed {options.seed}): {finding}\nleft: {box.out}")
                return 1
            done += 1
        total += done
        print(f"{name}: {done} strikes, all well" + (f"; {last} changes of files" if last else ""), flush=True)
    shutil.rmtree(box.folder)
    print(f"seed {options.seed}: {total} strikes in {time.monotonic() - begun:.0f} s")
    return 0 if total else 2


if __name__ == "__main__":
    sys.exit(main())
