"""Settings tuned beforehand: reported runs give the answer, trials are shown separately."""

import numpy as np
import pytest
import xarray as xr

from analysis import InputError, answer, tried
from analysis.answer_words import caption, format_answer
from analysis.report import report
from analysis.result import Result
from analysis.table import readable, table
from analysis.tried import chosen, said
from made_up import stated, sweep

FLAGS = {"flag_meanings": "ok failed skipped"}


def reported(edges=("train.learning_rate 0.1 is the largest tried (0.01 to 0.1)", "")) -> xr.Dataset:
    """Two estimators that were tuned, four seeds each."""
    data = sweep(1, ["rloo", "soft"], 8)
    place = (data["estimator"].values == "soft").astype(int)
    data = data.assign(
        {"tuning_edge": ("run", np.array(edges, object)[place]), "tuning_estimator": ("run", data["estimator"].values)}
    )
    data = data.assign_coords(
        {"train.learning_rate": ("run", np.array(["0.1", "0.05"], object)[place], {"tuned_axis": "train.learning_rate"})}
    )
    data.attrs.update({"tuned_axes": ["train.learning_rate"], "status": "complete"})
    return data


def trials(scores) -> xr.Dataset:
    """For each estimator three settings x as many seeds, with the `scores` [estimator, setting, seed] (NaN: failed); then a second round of the
    first two settings, in which the second is chosen."""
    rows = [
        (e, k, s, 1, scores[i][k][s], k < 2)
        for i, e in enumerate(("rloo", "soft"))
        for k in range(3)
        for s in range(len(scores[0][0]))
    ]
    rows += [(e, k, s, 2, 5.0 - k, k == 1) for e in ("rloo", "soft") for k in range(2) for s in range(len(scores[0][0]))]
    estimator, number, seed, rounds, score, kept = map(list, zip(*rows))
    n = len(rows)
    data = xr.Dataset(
        {
            "status": ("run", np.array(np.isnan(score), np.uint8), FLAGS),
            "reason": ("run", [""] * n),
            "tuning_estimator": ("run", estimator),
            "tuning_setting": ("run", number),
            "tuning_round": ("run", rounds),
            "tuning_score": ("run", score),
            "tuning_kept": ("run", np.array(kept, np.uint8)),
            "tuning_quantity": ("run", ["heldout_expected_loss"] * n),
            "heldout_expected_loss": (("run", "evaluation_step"), [[s, s] for s in score]),
            "metric_accuracy": (("run", "evaluation_step"), [[np.nan, np.nan]] * n),
            "evaluated": (("run", "evaluation_step"), [[r == 1, r == 2] for r in rounds]),
        },
        coords={"evaluation_step": [10, 50], "run": range(n)},
    )
    labels = {
        "task": ["t0"] * n,
        "model": ["m"] * n,
        "estimator": estimator,
        "seed": seed,
        "train.learning_rate": [f"{0.01 * (k + 1):g}" for k in number],
    }
    data = data.assign_coords({name: ("run", values, {"grid_axis": name}) for name, values in labels.items()})
    data.attrs["tuned_axes"] = "train.learning_rate"  # a list of one text is read as that text
    return stated(data)


SCORES = [[[1, 2], [3, 3], [9, np.nan]], [[2, 2], [1, 1], [4, 4]]]


def test_what_was_tuned_is_no_axis_but_a_setting_of_its_estimator():
    data = reported()
    assert Result(data).other_axes == []
    assert [(g.label, g.tuned, bool(g.edge)) for g in Result(data).groups] == [
        ("rloo", {"train.learning_rate": "0.1"}, True),
        ("soft", {"train.learning_rate": "0.05"}, False),
    ]
    answers = answer(data)
    assert len(answers) == 2 and answers["setting"].tolist() == ["train.learning_rate=0.1", "train.learning_rate=0.05"]
    assert answers["edge"].tolist() == ["train.learning_rate 0.1 is the largest tried (0.01 to 0.1)", ""]
    assert answers["seeds"].tolist() == [8, 8] and answers["verdict"].tolist() == ["best", "worse"]
    assert answers["tests"].tolist() == [1, 1] and answers["reference"].tolist() == ["rloo", "rloo"]
    assert len(readable(table(data))) == 2


def test_every_setting_that_was_tried_the_best_first_and_failures_last():
    frame = tried(trials(SCORES))
    rloo = frame[(frame["estimator"] == "rloo") & (frame["round"] == 1)]
    assert rloo["number"].tolist() == [0, 1, 2] and rloo["failed"].tolist() == [0, 0, 1]
    assert rloo["score"].tolist()[:2] == [1.5, 3] and np.isnan(rloo["score"].iloc[2])
    assert rloo["setting"].tolist() == [f"train.learning_rate=0.0{k}" for k in (1, 2, 3)] and set(rloo["steps"]) == {10}
    soft = frame[(frame["estimator"] == "soft") & (frame["round"] == 1)]
    assert soft["number"].tolist() == [1, 0, 2]
    assert frame[frame["round"] == 2]["kept"].tolist() == [True, False] * 2
    accuracy = trials(SCORES).assign(tuning_quantity=("run", ["metric_accuracy"] * 20))
    assert tried(accuracy)["number"].iloc[0] == 1, "the largest accuracy is the best"
    with pytest.raises(InputError, match="no trials were made"):
        tried(trials(SCORES).isel(run=[]))


def test_the_search_is_told_beside_the_answer():
    data, tries = reported(), trials(SCORES)
    found = chosen(Result(data), Result(tries))
    assert found["setting"].tolist() == ["train.learning_rate=0.02"] * 2 and found["settings"].tolist() == [3, 3]
    assert found["score"].tolist() == [4, 4] and found["failed"].tolist() == [1, 0] and found["trials"].tolist() == [10, 10]
    close = "; 1 of 1 others in the last round not distinguishable from it (next train.learning_rate=0.01 +1 [too few seeds])"
    assert said(found) == [
        f"rloo: train.learning_rate=0.02, the best of 3 settings{close}; train.learning_rate 0.1 is the largest tried (0.01 to "
        "0.1): extend the range; 1 of 10 trials failed; a setting with failed trials is never chosen.",
        f"soft: train.learning_rate=0.02, the best of 3 settings{close}.",
    ]
    words = format_answer(answer(data), found)
    assert "Tuned beforehand:" in words and "rloo: train.learning_rate=0.02" in words
    assert "beforehand" in caption(answer(data), True) and "beforehand" not in caption(answer(data))
    assert chosen(Result(data), None) is None
    page = report(data, trials=tries)
    assert page.count("<details><summary>rloo</summary>") == 1 and "1 of 2</td>" in page and "at the edge of the range" in page
    assert "Tuned settings" not in report(data)


def test_how_near_the_settings_of_the_last_round_were_is_said():
    noisy = trials([[each * 4 for each in one] for one in SCORES])  # eight seeds
    last = noisy["tuning_round"].values == 2
    score = noisy["tuning_score"].values.copy()
    score[last] = [5.2, 4.0] * 4 + [4, 4.1] * 4 + [5, 5.1] * 4 + [4, 4.1] * 4  # rloo: +1.2 and -0.1; soft: +1
    noisy["tuning_score"] = ("run", score)
    found = chosen(Result(reported()), Result(noisy))
    assert found["others"].tolist() == [1, 1] and found["close"].tolist() == [1, 0]
    assert (
        found["difference"].tolist() == pytest.approx([0.55, 1])
        and found["low"].iloc[0] < found["low"].iloc[1]
        and found["low"].iloc[1] > 0
    )
    rloo, soft = said(found)
    assert "1 of 1 others in the last round not distinguishable from it (next train.learning_rate=0.01 +0.55 [" in rloo
    assert "told apart" not in soft
    assert "do not include the uncertainty of this choice" in caption(
        answer(reported()), True
    ) and "of this choice" not in caption(answer(reported()))
