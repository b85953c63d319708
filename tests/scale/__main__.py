"""Simulates a sweep of up to 10^6 cells over up to 1,000 Slurm nodes from costs measured here.

    /usr/bin/python3 tests/scale --binary build/release/hardgrad --folder /dev/shm

Two sweeps of trivial cells, of 8,000 and 24,000, are planned, run as 50 shares, looked at and merged. Each cost is a straight line
through the two points. The first share writes the plan. Planning in a task is the first share once more, when all cells are done and in
the journal. File operations (strace) are those of a share without and with the files of 400 other tasks. In the simulation a cell works
for a minute, and a task has a core.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

SIZES, SHARES, OTHERS, CELL_SECONDS = (8000, 24000), 50, 400, 60
SWEEP = """name = "scale"
precision = "double"
[grid]
task = "bits"
model = "bits[bits=3]"
estimator = ["reinforce", "rloo[samples=2]", "moving_baseline", "nvil", "exact"]
seed = {seeds}
[train]
steps = 1
log_every = 1
[measure]
at = ["end"]
method = "exact"
"""


def line(points):
    """The straight line through two points, as a function."""
    (x, y), (x2, y2) = points
    slope = (y2 - y) / (x2 - x)
    return lambda at: max(0.0, y + slope * (at - x))


class Measured:
    def __init__(self, binary, folder):
        self.binary, self.folder = Path(binary).resolve(), Path(folder)
        self.env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}

    def spent(self, *arguments):
        """(processor seconds, bytes of memory)"""
        process = subprocess.Popen([self.binary, *map(str, arguments)], stdout=subprocess.DEVNULL, env=self.env)
        _, status, usage = os.wait4(process.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, arguments
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024

    def operations(self, *arguments):
        """File operations that a shared file system sees: names that are looked up, opened, made or removed, folders that are read, fsync."""
        counts = self.folder / "counts"
        subprocess.run(
            [
                "strace",
                "-f",
                "-c",
                "-o",
                counts,
                "-e",
                "trace=openat,newfstatat,access,link,rename,unlink,mkdir,getdents64,fsync",
                self.binary,
                *map(str, arguments),
            ],
            stdout=subprocess.DEVNULL,
            check=True,
            env=self.env,
        )
        return int(re.findall(r"(\d+)\s+(?:\d+\s+)?total", counts.read_text())[-1])

    def sweep(self, cells):
        """{name: cost} of a sweep of this size."""
        out, file = self.folder / "run", self.folder / "scale.toml"
        shutil.rmtree(out, ignore_errors=True)
        file.write_text(SWEEP.format(seeds=list(range(cells // 5))))
        run = ("run", file, "--out", out, "--jobs", "1", "--progress", "none")
        found = {}
        first = self.spent(*run, "--shard", f"1/{SHARES}")
        found["plan.json"] = (out / "plan.json").stat().st_size
        for k, name in ((2, "operations alone"), (3, "operations among others")):
            if k == 3:  # files of other tasks; a share's file is known by its name
                own = next((out / "cells").glob("*.cells"))
                stem, numbering = own.name.split(".")[0], own.name.split(".")[2].split("-")[0]
                for i in range(OTHERS):
                    shutil.copy(own, out / "cells" / f"{stem}.{i:016x}.{numbering}-{4 + i % (SHARES - 3)}-{SHARES}.cells")
            found[name] = self.operations(*run, "--shard", f"{k}/{SHARES}") / (cells / SHARES)
        for extra in (out / "cells").glob("*.0000000000000*.cells"):
            extra.unlink()
        others = [self.spent(*run, "--shard", f"{k}/{SHARES}")[0] for k in range(4, SHARES + 1)]
        done = self.spent(*run, "--shard", f"1/{SHARES}")
        found |= {
            "first task seconds": first[0],
            "task seconds": done[0],
            "task memory": max(first[1], done[1]),
            "cell seconds": (statistics.median(others) - done[0]) / (cells / SHARES),
        }
        found["bytes"] = sum(path.stat().st_size for path in (out / "cells").glob("*.cells"))
        found["journal"] = (out / "journal.jsonl").stat().st_size
        for verb in (("status", out), ("merge", out, "--out", self.folder / "all.h5")):
            found[f"{verb[0]} seconds"], found[f"{verb[0]} memory"] = self.spent(*verb)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--folder", help="where the sweeps are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measured = Measured(options.binary, folder)
        found = [measured.sweep(cells) for cells in SIZES]
    costs = {name: line(list(zip(SIZES, (one[name] for one in found)))) for name in found[0]}
    print("measured:", *(f"  {name}: " + ", ".join(f"{one[name]:.6g}" for one in found) for name in found[0]), sep="\n")
    alone, among = found[-1]["operations alone"], found[-1]["operations among others"]
    per_file = max(0.0, among - alone) / OTHERS
    print(f"\nfile operations per cell: {alone:.1f}, and {per_file:.4f} more for each other task\n")
    print(
        "| cells | tasks | each task: plan s | memory GB | files | cells GB | plan.json MB | journal MB | operations per s | a day's share of "
        "overhead | status s | merge s | merge GB |\n|" + "---|" * 13
    )
    for cells, tasks in ((10**4, 10), (10**4, 1000), (10**5, 100), (10**5, 1000), (10**6, 1000)):
        plan = costs["task seconds"](cells)
        each = found[-1]["cell seconds"]
        work = CELL_SECONDS * cells / tasks
        print(
            f"| {cells:,} | {tasks:,} | {plan:.1f} | {costs['task memory'](cells) / 1e9:.2f} | {tasks:,} "
            f"| {costs['bytes'](cells) / 1e9:.3f} | {costs['plan.json'](cells) / 1e6:.0f} "
            f"| {costs['journal'](cells) / 1e6:.0f} | {tasks * (alone + per_file * tasks) / CELL_SECONDS:.0f} "
            f"| {(plan + each * cells / tasks) / (work + plan):.2%} | {costs['status seconds'](cells):.1f} "
            f"| {costs['merge seconds'](cells):.0f} | {costs['merge memory'](cells) / 1e9:.2f} |"
        )


if __name__ == "__main__":
    main()
