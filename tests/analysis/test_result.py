"""A result is prepared once, and every view takes it in place of its dataset."""

import json

import numpy as np
import pytest

from analysis import (
    Result,
    aggregates,
    answer,
    bias_tests,
    improvement_probabilities,
    pareto,
    restart_table,
    restarts,
    table,
    tidy,
)
from analysis.compare import compare
from analysis.report import report
from made_up import made_up, stated, sweep


@pytest.fixture()
def data():
    found = sweep(2, ["a", "b"], 6)
    settings = [json.dumps({"train.steps": 100, "train.evaluate_split": "test"})] * found.sizes["run"]
    found["train_loss"] = (("run", "step"), found["heldout_expected_loss"].values)
    return stated(
        found.assign(
            run_settings=("run", np.array(settings, object)), estimator_settings=("run", np.array(settings, object))
        ).assign_coords(step=[100])
    )


def test_a_view_takes_a_dataset_or_a_result(data):
    result = Result(data)
    assert Result.of(result) is result and Result.of(data).data is data
    for view in (aggregates, answer, bias_tests, improvement_probabilities, pareto, restart_table, table, tidy):
        assert view(result).equals(view(data)), view.__name__
    assert restarts(result).equals(restarts(data))
    assert compare(result, result).cells.equals(compare(data, data).cells)


def test_settings_are_parsed_once(data, monkeypatch):
    texts, parse = [], json.loads
    monkeypatch.setattr(json, "loads", lambda text: texts.append(text) or parse(text))
    result = Result(data)
    for view in (answer, table, tidy, pareto, report):
        view(result)
    assert len(texts) == 2 * result.count, "of the runs and of their estimators"


def test_the_file_names_the_exact_twin():
    known = [[2.5, 9], [3.5, 9], [np.nan, 9], [np.nan, 9]]
    data = made_up(true_variance=(("run", "measurement_step"), known))
    assert table(data).set_index("estimator").loc["rloo", "variance"] == 2
    data["variance"].attrs["exact_twin"] = "true_variance"
    assert table(data).set_index("estimator").loc["rloo", "variance"] == 3


def test_the_runs_of_one_network_keep_the_labels_of_the_file(data):
    """`rloo` names its samples where another network's `vimco` does."""
    runs, tasks = data.sizes["run"], np.array(data["task"].values, object)
    names = np.where(np.array(data["estimator"].values) == "a", "rloo", "straight_through").astype(object)
    last = np.arange(runs) >= runs - 6
    tasks[last], names[last] = "other", "vimco[samples=8]"
    settings = [json.dumps({"samples": 8 if alone else 4}) for alone in last]
    whole = Result(
        data.assign(estimator_settings=("run", np.array(settings, object))).assign_coords(
            task=("run", tasks), estimator=("run", names)
        )
    )
    for network, members in whole.panels.items():
        part = whole.network(network)
        assert [group.label for group in part.groups] == [group.label for group in members]
        assert all("samples=" in group.label for group in part.groups)
