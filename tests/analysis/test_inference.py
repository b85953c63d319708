"""Selection, tidy frames, and inference beyond noise."""

import numpy as np
import pandas as pd
import pytest

from analysis import InputError, answer, load, select, table, tidy
from analysis.compare import compare
from analysis.frames import per_run
from analysis.inference import aggregates, bias_tests, improvement_probabilities, pareto
from analysis.result import Result
from analysis.table import format_table
from made_up import made_up, sweep


def test_without_any_one_variable_a_result_is_read_or_refused(sample):
    whole = select(load(sample / "result.h5"), task="qa")
    functions = [
        table,
        tidy,
        answer,
        pareto,
        bias_tests,
        aggregates,
        improvement_probabilities,
        lambda data: compare(whole, data),
        lambda data: compare(data, whole),
    ]
    refused = set()
    for name in set(map(str, whole.variables)) - {"run", "task", "model", "estimator", "status", "reason"}:
        damaged = [whole.drop_vars(name)]
        if name in whole.data_vars and whole[name].dtype.kind == "f":
            damaged.append(whole.assign({name: whole[name] * np.nan}))
        for data in damaged:
            for function in functions:
                try:
                    function(data)
                except InputError as error:
                    assert "\n" not in str(error)
                    refused.add(name)
    assert {"bias_p_value", "variance", "rows"} <= refused and "seed" not in refused


def test_select_by_name_spec_and_list(sample):
    data = load(sample / "result.h5")
    assert select(data, task="qa").sizes["run"] == 18
    assert set(select(data, estimator="rloo")["estimator"].values) == {"rloo[samples=4]"}
    both = select(data, estimator=["soft", "rloo[samples=4]"], seed=1, status="ok")
    assert set(both["estimator"].values) == {"soft", "rloo[samples=4]"} and set(both["seed"].values) == {1}
    with pytest.raises(InputError, match=r"no run has estimator rlo \(did you mean rloo\?\)"):
        select(data, estimator="rlo")
    with pytest.raises(InputError, match=r"runs have no tusk \(did you mean task\?\)"):
        select(data, tusk="qa")
    with pytest.raises(InputError, match="no run has task=t, seed=1, estimator=soft in combination"):
        select(made_up().isel(run=[0, 3]), task="t", seed=1, estimator="soft")


def test_tidy_has_a_row_per_measurement_and_a_column_per_setting():
    settings = np.array(['{"samples": 4, "credit": true}'] * 2 + ["{}"] * 2, object)
    ds = made_up(
        estimator_settings=("run", settings),
        variance_interval=(("run", "measurement_step", "bound"), np.arange(16.0).reshape(4, 2, 2)),
    )
    ds["variance"][0, 1] = ds["squared_bias"][0, 1] = ds["variance_interval"][0, 1] = np.nan
    frame = tidy(ds)
    assert len(frame) == 7 and frame["measurement_step"].tolist() == [0, 0, 5, 0, 5, 0, 5]
    row = frame[(frame.estimator == "rloo") & (frame.seed == 2) & (frame.measurement_step == 0)].iloc[0]
    assert (row["variance"], row["variance_low"], row["variance_high"], row["setting_samples"], row["status"]) == (
        3,
        4,
        5,
        4,
        "ok",
    )
    assert pd.isna(frame[frame.estimator == "soft"]["setting_samples"]).all()
    assert tidy(ds, "run")["run"].tolist() == [0, 1, 2, 3]
    assert tidy(ds, "evaluation_step")["heldout_expected_loss"].tolist() == [9, 2, 9, 4, 1, 1]
    with pytest.raises(InputError, match="tidy: target is not an axis"):
        tidy(ds, "target")
    with pytest.raises(InputError, match="has no variable step"):
        tidy(ds, "step")


def test_tidy_of_a_file(sample):
    data = load(sample / "result.h5")
    frame = tidy(data, "step")
    one = frame[(frame.run == 5) & (frame.step == 100)]["train_loss"].item()
    assert one == float(data["train_loss"].sel(run=5, step=100))
    assert {"variance_low", "variance_high", "own_target"} <= set(tidy(data).columns)


def test_per_run():
    assert per_run(Result(made_up()), "variance").tolist() == [1, 3, 0, 0]
    assert per_run(Result(made_up()), "variance", "last").tolist() == [9, 9, 9, 9]
    assert per_run(Result(made_up()), "heldout_expected_loss").tolist() == [2, 4, 1, 1]
    with pytest.raises(InputError, match=r"no quantity varience \(did you mean variance\?\)"):
        per_run(Result(made_up()), "varience")


def test_bias_tests_correct_for_their_number():
    p = [[0.02, 1], [1e-9, 1], [0.04, 1], [np.nan, 1]]
    frame = bias_tests(made_up(bias_p_value=(("run", "measurement_step"), p)))
    assert frame["p_value"].tolist() == [0.02, 1e-9, 0.04]
    assert np.allclose(frame["p_holm"], [0.04, 3e-9, 0.04]) and frame["biased"].all()
    assert bias_tests(made_up(bias_p_value=(("run", "measurement_step"), p)), level=1e-3)["biased"].tolist() == [
        False,
        True,
        False,
    ]


def test_what_replicates_do_not_support_is_marked_and_finds_no_bias():
    warned = np.array([["", ""], ["5 carry", ""], ["", ""], ["", ""]], object)
    p = (("run", "measurement_step"), np.full((4, 2), 1e-9))
    data = made_up(bias_p_value=p, measurement_unsupported=(("run", "measurement_step"), warned))
    assert bias_tests(data)["biased"].tolist() == [True, False, True, True]
    text = format_table(table(data))
    assert [line.count("?") for line in text.splitlines() if line.startswith(("1", "2", "–"))] in ([2, 0], [0, 2]), text
    assert "replicates do not support it" in " ".join(text.split())
    known = data.assign(exact_variance=(("run", "measurement_step"), [[2.5, 9], [3.5, 9], [np.nan, 9], [np.nan, 9]]))
    frame = table(known).set_index("estimator")
    assert (
        frame.loc["rloo", "variance"] == 3
        and not frame.loc["rloo", "variance_unsupported"]
        and frame.loc["rloo", "squared_bias_unsupported"]
    )
    assert frame.loc["soft", "variance"] == 0  # sampled


def test_aggregates():
    data = sweep(3, ["a", "b", "c"], 5, effect=1, noise=0.01)
    means = aggregates(data)
    assert means["estimator"].tolist() == ["a", "b", "c"] and (means["panels"] == 3).all()
    assert (means["iqm_low"] <= means["iqm"]).all() and 0 <= means["iqm"].min() and means["iqm"].max() <= 1
    chances = improvement_probabilities(sweep(2, ["a", "b"], 4, effect=100)).iloc[0]
    assert chances["probability"] == 1 and chances["panels"] == 2


def test_pareto_front_of_a_result():
    data = sweep(1, ["a", "b", "c"], 2)
    data["rows"].values[:2] = 8  # a: least variance, highest cost; b: lower cost; c: cost of b with more variance
    data["squared_bias"].values[2:4] = 0.3  # not significant
    assert pareto(data).set_index("estimator")["front"].to_dict() == {"a": True, "b": True, "c": False}
    noisy = data.copy(deep=True)
    noisy["variance"].values[4:] = [[2.1], [2.9]]  # c: 0.1 and 0.9 above b, not significant with two seeds
    assert pareto(noisy).set_index("estimator")["front"].to_dict() == {"a": True, "b": True, "c": True}
    data["bias_p_value"].values[2] = 1e-8  # now significant: c is less biased
    frame = pareto(data).set_index("estimator")
    assert frame["front"].to_dict() == {"a": True, "b": True, "c": True} and frame.loc["b", "bias"] == np.sqrt(0.3)
