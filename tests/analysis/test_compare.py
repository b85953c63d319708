"""Comparison of results: planted changes are detected; noise and rounding are not reported as changes."""

import json

import numpy as np
import pytest

from analysis import InputError
from analysis.compare import as_json, compare, format_comparison
from made_up import made_up, spelled, sweep


def test_a_result_has_not_changed_against_itself():
    comparison = compare(sweep(2, ["a", "b"], 3), sweep(2, ["a", "b"], 3))
    assert set(comparison.cells["verdict"]) == {"same"} and (comparison.cells["difference"] == 0).all()
    assert comparison.only_first == comparison.only_second == [] and comparison.provenance == {}


def test_a_planted_change_is_found_and_only_that():
    before, after = sweep(3, ["a", "b"], 6, noise=0.1), sweep(3, ["a", "b"], 6, noise=0.1)
    random = np.random.default_rng(1)
    loss = after["heldout_expected_loss"].values
    loss += 0.1 * random.normal(size=loss.shape)  # another run: noise everywhere
    loss[(after["task"] == "t1") & (after["estimator"] == "b")] += 2
    found = compare(before, after).cells
    changed = found[found["verdict"] == "changed"]
    assert changed[["task", "estimator", "quantity"]].values.tolist() == [["t1", "b", "heldout_expected_loss"]]
    row = changed.iloc[0]
    assert row["low"] < 2 < row["high"] and row["low"] > 1 and row["method"] == "paired" and row["count"] == 6
    assert (found[(found["quantity"] == "variance")]["verdict"] == "same").all()


def test_noise_alone_rarely_counts_as_a_change():
    alarms = 0
    for i in range(60):
        before, after = sweep(2, ["a", "b", "c"], 7), sweep(2, ["a", "b", "c"], 7)
        after["heldout_expected_loss"].values += np.random.default_rng(i).normal(size=(42, 1))
        alarms += (compare(before, after).cells["verdict"] == "changed").any()
    assert alarms <= 9  # at most 3 of 60 expected


def intervals(half):
    values = np.array([[1.0, 9], [3, 9], [0, 9], [0, 9]])
    return {"variance_interval": (("run", "measurement_step", "bound"), np.stack([values - half, values + half], axis=-1))}


def test_measured_quantities_have_noise_of_their_own():
    before, after = made_up(**intervals(0.5)), made_up(**intervals(0.5))
    after["variance"].values[:2, 0] += 0.2
    after["variance_interval"].values[:2, 0] += 0.2
    row = compare(before, after).cells.set_index(["estimator", "quantity"]).loc[("rloo", "variance")]
    assert row["verdict"] == "within noise" and row["method"] == "measured"
    assert row["high"] - row["low"] == pytest.approx(
        2 * 0.5
    )  # four intervals of half-width 0.5, added in squares, over two seeds
    before, after = made_up(**intervals(0.05)), made_up(**intervals(0.05))
    after["variance"].values[:2, 0] += 0.2
    after["variance_interval"].values[:2, 0] += 0.2
    assert compare(before, after).cells.set_index(["estimator", "quantity"]).loc[("rloo", "variance"), "verdict"] == "changed"


def test_other_seeds_are_compared_as_independent_and_few_seeds_say_nothing():
    before, after = sweep(1, ["a"], 4), sweep(1, ["a"], 4)
    after = after.assign_coords(seed=after["seed"] + 10)
    after["heldout_expected_loss"].values += 0.5
    row = compare(before, after).cells.set_index("quantity").loc["heldout_expected_loss"]
    assert row["method"] == "independent" and row["verdict"] == "within noise"
    one = compare(before.isel(run=[0]), sweep(1, ["a"], 4, noise=3).isel(run=[0])).cells.set_index("quantity")
    assert one.loc["heldout_expected_loss", "verdict"] == "few seeds"


def test_rounding_is_no_change():
    before, after = sweep(1, ["a", "b"], 3), sweep(1, ["a", "b"], 3)
    norm = ("run", "measurement_step"), np.ones((6, 1))
    before, after = (
        data.assign(
            estimand_norm=norm,
            variance_interval=(("run", "measurement_step", "bound"), data["variance"].values[..., None] * [1.0, 1]),
        )
        for data in (before, after)
    )  # exact moments
    after["squared_bias"].values += 1e-14
    after["variance"].values *= 1 + 1e-11
    assert set(compare(before, after).cells["verdict"]) == {"same"}
    after["variance"].values *= 1 + 1e-6
    after["variance_interval"].values *= 1 + 1e-6
    assert "changed" in set(compare(before, after).cells["verdict"])


def test_what_only_one_has_and_what_ran_differently():
    before, after = sweep(1, ["a", "b"], 2), sweep(1, ["b", "c"], 2)
    before.attrs["cpu"], after.attrs["cpu"] = "one", "another"
    comparison = compare(before, after)
    assert comparison.only_first == [("t0", "m", "a")] and comparison.only_second == [("t0", "m", "c")]
    text = format_comparison(comparison)
    assert "only in the first:\n  a on t0 · m" in text and "cpu: one | another" in text
    parsed = json.loads(json.dumps(as_json(comparison), allow_nan=False))
    assert set(parsed) == {"changed", "cells", "only_first", "only_second", "settings", "provenance"}
    assert parsed["only_second"] == [{"task": "t0", "model": "m", "estimator": "c"}] and parsed["provenance"]["cpu"] == [
        "one",
        "another",
    ]
    assert {
        "task",
        "model",
        "estimator",
        "quantity",
        "first",
        "second",
        "difference",
        "low",
        "high",
        "p_value",
        "p_holm",
        "verdict",
        "method",
        "count",
    } == set(parsed["cells"][0])
    with pytest.raises(InputError, match="no task, model and estimator in common"):
        compare(sweep(1, ["a"], 2), sweep(1, ["b"], 2))


def test_two_spellings_of_the_same_settings_are_compared():
    first = spelled(sweep(1, ["a", "b"], 3), "t[words=4]", "m[hidden=8]", samples=4)
    second = spelled(sweep(1, ["a[samples=4]", "b[samples=4]"], 3), "t", "m[unit=lstm]", samples=4)
    found = compare(first, second)
    assert set(found.cells["verdict"]) == {"same"} and len(found.cells) == 6 and found.settings == {}
    assert found.only_first == found.only_second == [] and set(found.cells["task"]) == {"t[words=4]"}
    with pytest.raises(InputError, match="nothing|in common"):
        compare(first, spelled(sweep(1, ["a[samples=4]"], 3), "t", "m", samples=8))


def test_other_settings_behind_one_name_are_told():
    first, second = spelled(sweep(1, ["a", "b"], 3)), spelled(sweep(1, ["a", "b"], 3), steps=300, log_every=5)
    second["model_settings"].values[3:] = json.dumps({"hidden": 16, "unit": "lstm", "tying": "none"})
    found = compare(first, second)
    assert found.settings == {
        "model.hidden": ("8", "16"),
        "train.steps": ("100", "300"),
        "model.tying": ("not recorded in one or both",) * 2,
    }
    text = format_comparison(found)
    assert "set differently:\n  model.hidden: 8 | 16\n  train.steps: 100 | 300" in text
    assert as_json(found)["settings"]["train.steps"] == ["100", "300"]


def test_a_setting_that_was_added_has_the_value_that_programs_without_it_had():
    first, second = spelled(sweep(1, ["a", "b"], 3)), spelled(sweep(1, ["a", "b"], 3), parts=1)
    assert compare(first, second).settings == {"train.parts": ("not recorded in one or both",) * 2}
    assert compare(first, second, absent={"train.parts": 1}).settings == {}
    assert compare(first, second, absent={"train.parts": 2}).settings == {"train.parts": ("2", "1")}


def test_swapped_settings_are_seen_although_both_files_have_the_same_values():
    first, second = spelled(sweep(1, ["a", "b"], 2)), spelled(sweep(1, ["a", "b"], 2))
    rates = [json.dumps({"train.learning_rate": rate}) for rate in (0.1, 0.1, 0.01, 0.01)]
    first["run_settings"].values[:], second["run_settings"].values[:] = rates, rates[::-1]
    assert compare(first, second).settings == {"train.learning_rate": ("0.01/0.1", "0.01/0.1")}


def test_digits_that_packing_lost_are_no_change():
    first, second = sweep(1, ["a", "b"], 8), sweep(1, ["a", "b"], 8)
    second["heldout_expected_loss"].values *= 1 + 2.0**-21
    assert "same" not in set(compare(first, second).cells.query("quantity == 'heldout_expected_loss'")["verdict"])
    second.attrs["significant_bits"] = 21
    assert set(compare(first, second).cells["verdict"]) == {"same"}
    second["heldout_expected_loss"].values *= 1 + 2.0**-18
    assert "same" not in set(compare(first, second).cells.query("quantity == 'heldout_expected_loss'")["verdict"])
