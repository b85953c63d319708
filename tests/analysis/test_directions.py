"""Whether higher or lower is better: as the tasks declare it, as a result records it, and for files without this record."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from analysis import load
from analysis.answer import answer
from analysis.quantities import lower_is_better
from analysis.result import Result
from made_up import sweep

TASKS = Path(__file__).resolve().parents[2] / "experiments/tasks"
_METRIC = re.compile(r'\{\.name = "(\w+)", \.unit = "[^"]*"(, \.higher_is_better = false)?')


def declared() -> dict[str, bool]:
    """Whether lower is better, by metric of all tasks."""
    found: dict[str, set[bool]] = {}
    for path in TASKS.glob("*.cpp"):
        for name, lower in _METRIC.findall(path.read_text("utf-8")):
            found.setdefault(name, set()).add(bool(lower))
    assert len(found) >= 20 and all(len(one) == 1 for one in found.values()), found
    return {name: lower for name, (lower,) in found.items()}


def test_files_without_a_record_get_what_the_tasks_declare():
    data, every = sweep(1, ["a"], 1), declared()
    assert sum(every.values()) >= 8
    assert {name: lower_is_better(Result(data), f"metric_{name}") for name in every} == every


def test_a_record_decides_before_a_name():
    data = sweep(1, ["a", "b"], 8, effect=1, noise=1e-3)
    for better, best in (("lower", "a"), ("higher", "b")):
        data["metric_odd"] = data["heldout_expected_loss"].assign_attrs(better=better)
        assert lower_is_better(Result(data), "metric_odd") == (better == "lower")
        found = answer(data, "metric_odd")
        assert found["estimator"].iloc[0] == best and set(found["lower_is_better"]) == {better == "lower"}


@pytest.mark.parametrize("task", ["puzzle", "glimpse", "transduce", "translation"])
def test_a_result_records_what_the_task_declares(task, tmp_path):
    program, every = os.environ["HARDGRAD_BINARY"], declared()
    listed = {one["name"]: one for one in json.loads(subprocess.run([program, "list", "--json"], capture_output=True, check=True).stdout)["tasks"]}
    (tmp_path / "s.toml").write_text(f"""name = "s"
[grid]
task = "{task}"
model = "{listed[task]['default_model']}"
estimator = ["reinforce"]
seed = [1]
[train]
steps = 1
batch = 1
evaluate_examples = 2
""")
    for arguments in (["run", "s.toml", "--out", "s"], ["merge", "s", "--out", "s.h5"]):
        done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    data = load(tmp_path / "s.h5")
    metrics = [str(name) for name in data.data_vars if str(name).startswith("metric_") and np.isfinite(data[name].values).any()]
    assert metrics and {name: data[name].attrs["better"] for name in metrics} == {name: "lower" if every[name.removeprefix("metric_")] else "higher" for name in metrics}
    assert all(data[name].attrs["better"] == "lower" for name in data.data_vars if str(name).startswith("heldout_"))
