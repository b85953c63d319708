"""The array scripts of experiments/install/cluster, without their engines: every task of an array, with the variable in which its engine
passes the task's number. Together the tasks compute every cell once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

TREE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests/experiments/cli"), str(TREE / "tests/support")]
from merged import arrays  # noqa: E402
from program import BINARY, run  # noqa: E402

CLUSTER = TREE / "experiments" / "install" / "cluster"
CELLS = 9
SWEEP = """name = "array"
out = "array-run"
[grid]
task = "bits"
estimator = ["rloo[samples=4]", "arm", "exact"]
seed = [1, 2, 3]
[train]
steps = 2
"""


class Engine(NamedTuple):
    variable: str  # the environment variable with a task's number
    array: str  # a pattern of the array's declaration: its first number, if it is written there, and its last, or their number
    first: int = 1
    environment: dict[str, str] = {}


ENGINES = {
    "pbs.sh": Engine("PBS_ARRAY_INDEX", r"^#PBS -J 1-(\d+)$", environment={"PBS_O_WORKDIR": "."}),
    "sge.sh": Engine("SGE_TASK_ID", r"^#\$ -t 1-(\d+)$"),
    "lsf.sh": Engine("LSB_JOBINDEX", r"^#BSUB -J \"\w+\[1-(\d+)\]\"$"),
    "kubernetes.yaml": Engine("JOB_COMPLETION_INDEX", r"^  completions: (\d+)$", first=0),
}


def commands(script):
    """The commands of a task, for bash."""
    text = script.read_text()
    if script.suffix == ".sh":
        return text
    assert re.search(r"^ +command: \[bash, -c\]$", text, re.M)
    (line,) = re.findall(r"^ +args:\n +- (.*)$", text, re.M)
    return line


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    (folder / "sweep.toml").write_text(SWEEP)
    run("run", "sweep.toml", "--progress", "none", cwd=folder)
    run("merge", "array-run", "--out", "alone.h5", cwd=folder)
    return arrays(folder / "alone.h5")


def test_every_script_is_run():
    assert {path.name for path in CLUSTER.iterdir()} == ENGINES.keys()


@pytest.mark.parametrize("name", ENGINES)
def test_the_tasks_of_an_array_compute_every_cell(name, tmp_path, alone):
    engine, script = ENGINES[name], CLUSTER / name
    (tasks,) = map(int, re.findall(engine.array, script.read_text(), re.M))
    assert 2 <= tasks < CELLS
    (tmp_path / "sweep.toml").write_text(SWEEP)
    program = tmp_path / "hardgrad" / "bin" / "hardgrad"  # below the user's home, or on the image's path
    program.parent.mkdir(parents=True)
    program.symlink_to(os.path.abspath(BINARY))
    environment = os.environ | engine.environment | {"HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}

    for number in range(engine.first, engine.first + tasks):
        done = subprocess.run(
            ["bash", "-c", commands(script)],
            cwd=tmp_path,
            env=environment | {engine.variable: str(number)},
            capture_output=True,
            text=True,
            timeout=3000,
        )
        assert done.returncode == 0, (number, done.stderr[-2000:])

    journal = map(json.loads, (tmp_path / "array-run" / "journal.jsonl").read_text().splitlines())
    events = [(event["event"], event.get("cell"), event.get("shard")) for event in journal]
    ended = [cell for event, cell, _ in events if event == "end"]
    assert len(ended) == len(set(ended)) == CELLS
    assert [shard for event, _, shard in events if event == "run"] == [f"{k}/{tasks}" for k in range(1, tasks + 1)]
    run("merge", "array-run", "--out", "array.h5", cwd=tmp_path)
    assert arrays(tmp_path / "array.h5") == alone
