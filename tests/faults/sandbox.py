"""A small sweep in a temporary folder, programs that run on it with or without faults, and checks of the files they leave."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from merged import arrays  # noqa: E402

DOCUMENTED = {0, 1, 2, 3}
SWEEP = """name = "faults"
[grid]
task = "bits"
model = "bits[bits=3]"
estimator = ["rloo[samples=2]", "nvil"]
seed = [1, 2]
[train]
steps = 40
log_every = 20
evaluate_every = 40
checkpoint = true
[measure]
at = ["end"]
replicates = 8
"""


class Finding(Exception):
    """A violation: a fault had an effect that it must not have."""


def must(holds, *words):
    if not holds:
        raise Finding(" ".join(map(str, words)))


class Sandbox:
    def __init__(self, binary, layer, folder):
        self.binary, self.layer, self.folder = Path(binary).resolve(), Path(layer).resolve(), Path(folder)
        self.sweep, self.used, self.out = self.folder / "faults.toml", 0, None
        self.sweep.write_text(SWEEP)
        self.fresh()
        self.well("run", *self.what())
        self.well("merge", self.out, "--out", self.merged)
        self.reference = arrays(self.merged)
        must(
            len(self.reference) > 40 and self.reference["cell_hash"][0] == (4,), "the undisturbed sweep has unexpected contents"
        )

    def fresh(self, half=False):
        """Makes a new folder for the sweep; `half`: half of its cells are already done."""
        if self.out:
            shutil.rmtree(self.out.parent, ignore_errors=True)
        self.used += 1
        base = self.folder / f"{self.used}"
        self.out, self.merged = base / "here/run", base / "here/all.h5"
        self.out.parent.mkdir(parents=True)
        if half:
            self.well("run", *self.what(), "--only", "estimator=nvil")

    def what(self):
        return [self.sweep, "--out", self.out, "--jobs", "1", "--progress", "none"]

    def start(self, *arguments, command=None, **faults):
        env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        if faults:
            env |= {"LD_PRELOAD": str(self.layer), "FAULTS_ROOT": str(self.out.parent)}
            env |= {f"FAULTS_{name.upper()}": str(value) for name, value in faults.items()}
        return subprocess.Popen(
            [*(command or [str(self.binary)]), *map(str, arguments)],
            env=env,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ended(self, process, killed=False):
        """Waits for a process. It must end with a documented status and, for an error, one clear line; or, if `killed`, by SIGKILL."""
        out, err = process.communicate()
        if killed and process.returncode == -9:
            return process.returncode, out
        must(process.returncode in DOCUMENTED, "exit status", process.returncode, err[-2000:])
        lines = [line for line in err.splitlines() if not line.startswith("hardgrad: warning: ")]
        errors = [line for line in lines if line.startswith("hardgrad: ")]
        must("bug" not in err and "Traceback" not in err, err[-2000:])
        must(process.returncode < 2 or len(errors) == 1 or out, "no clear line:", err[-2000:], out[-2000:])
        return process.returncode, out

    def run(self, *arguments, **faults):
        return self.ended(self.start(*arguments, **faults), killed=True)[0]

    def well(self, *arguments):
        status, out = self.ended(self.start(*arguments))
        must(status == 0, "exit status", status, "of", *arguments, out[-1000:])
        return out

    def operations(self, *arguments):
        """The number of changes that a command makes in the folder."""
        file = self.folder / "count"
        must(self.run(*arguments, count=file) == 0, *arguments, "fails undisturbed")
        return int(file.read_text())

    def whole(self, working=None):
        """{hash: record} of the completed cells. `working`: the expected number of cells that a run is working on."""
        if not (self.out / "plan.json").exists():
            return {}
        status, out = self.ended(self.start("status", self.out, "--json"))
        if not out:  # a damaged plan, reported in one line
            return {}
        must(
            status in (0, 1), "status reports", out[-1000:]
        )  # 1: failed cells, such as one whose checkpoint did not fit on the disk
        must(working is None or json.loads(out)["running"] == working, "claims without a running holder remain")
        text = b"".join(path.read_bytes() for path in sorted((self.out / "cells").glob("*.cells")))
        records = {words.split(b"hash=", 1)[1][:16].decode(): words for words in text.split(b"HARDGRAD-CELL version=")[1:]}
        return {cell["hash"]: records[cell["hash"]] for cell in json.loads(out)["cells"] if cell["state"] == "ok"}

    def settles(self, before):
        """A second run completes the sweep with the undisturbed arrays. No complete cell is lost or run again."""
        now = self.whole(working=0)
        for name, cell in before.items():
            must(now.get(name) == cell, "cell", name, "is lost")
        self.well("run", *self.what())
        then = self.whole()
        must(len(then) == 4, "cells are missing")
        for name, cell in now.items():
            must(then[name] == cell, "cell", name, "was complete and has changed")
        left = [p.name for p in self.out.rglob("*") if p.name.endswith((".partial", ".claim"))]
        must(not left, "left behind:", left)
        self.well("check", self.out)
        self.merges()

    def merges(self):
        self.well("merge", self.out, "--out", self.merged)
        self.well("check", self.merged)
        found = arrays(self.merged)
        differing = [k for k in self.reference | found if self.reference.get(k) != found.get(k)]
        must(not differing, "arrays differ:", differing)

    def computed(self):
        """The number of times that each cell ended."""
        ends = [json.loads(line) for line in (self.out / "journal.jsonl").read_text().splitlines()]
        cells = [event["cell"] for event in ends if event.get("event") == "end"]
        return {cell: cells.count(cell) for cell in cells}


PYTHON = [sys.executable]
