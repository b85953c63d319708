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
