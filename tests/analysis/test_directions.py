"""Whether higher or lower is better, and which loss is preferred: as the program states it in a result."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from analysis import InputError, answer, load, restart_table
from analysis.answer_words import format_answer
from analysis.quantities import evaluation_names
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


@pytest.mark.parametrize("name", ["metric_steps", "metric_length", "metric_regret", "metric_error", "heldout_odd"])
def test_the_file_says_which_end_of_an_axis_is_better(name):
    """Of tasks' metrics, of a plugin's, and of losses: no name decides."""
    data = sweep(1, ["a", "b"], 8, effect=1, noise=1e-3)
    for better, best, end in (("lower", "a", np.min), ("higher", "b", np.max)):
        data[name] = data["heldout_expected_loss"].assign_attrs(better=better)
        assert Result(data).lower_is_better(name) == (better == "lower")
        answers = answer(data, name)
        assert answers["estimator"].iloc[0] == best and set(answers["lower_is_better"]) == {better == "lower"}
        by = [data[name].values[data["estimator"].values == one] for one in "ab"]
        assert restart_table(data, name)[name].tolist() == list(map(end, by))


def test_a_quantity_without_a_direction_does_not_rank():
    data = sweep(1, ["a", "b"], 8)
    data["metric_error"] = data["heldout_expected_loss"].copy()
    del data["metric_error"].attrs["better"]
    for rank in (answer, restart_table):
        with pytest.raises(InputError, match="^result: metric_error has no attribute better"):
            rank(data, "metric_error")


def test_the_file_says_which_loss_is_preferred_and_what_is_a_share():
    data = sweep(1, ["a", "b"], 8)
    for name, place in (("heldout_b", 1), ("heldout_a", 2)):
        data[name] = data["heldout_expected_loss"].assign_attrs(preference=place)
    data["heldout_expected_loss"].attrs["preference"] = 3
    assert evaluation_names(Result(data), "heldout") == ["heldout_b", "heldout_a", "heldout_expected_loss"]
    data["metric_odd"] = data["heldout_expected_loss"].assign_attrs(better="higher")
    assert "%" not in format_answer(answer(data)).split("\n\n")[0]
    data["metric_odd"].attrs["share"] = 1
    assert "%" in format_answer(answer(data)).split("\n\n")[0]


@pytest.mark.parametrize("task", ["puzzle", "glimpse", "transduce", "translation"])
def test_a_result_records_what_the_task_declares(task, tmp_path):
    program, every = os.environ["HARDGRAD_BINARY"], declared()
    listed = {
        one["name"]: one
        for one in json.loads(subprocess.run([program, "list", "--json"], capture_output=True, check=True).stdout)["tasks"]
    }
    (tmp_path / "s.toml").write_text(f"""name = "s"
[grid]
task = "{task}"
model = "{listed[task]["default_model"]}"
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
    assert metrics and {name: data[name].attrs["better"] for name in metrics} == {
        name: "lower" if every[name.removeprefix("metric_")] else "higher" for name in metrics
    }
    assert all(data[name].attrs["better"] == "lower" for name in data.data_vars if str(name).startswith("heldout_"))
