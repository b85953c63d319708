"""The sentences that a report begins with, on results with planted differences."""

import numpy as np
import pytest
import xarray as xr

from analysis import InputError, format_table, table
from analysis.answer import answer, unranked
from analysis.answer_words import format_answer
from analysis.findings import MOST, findings
from analysis.report import report
from analysis.result import Result
from made_up import stated, sweep

AIMS = {
    "exact": "expected_loss",
    "rloo": "expected_loss",
    "reinforce": "expected_loss",
    "moving_baseline": "expected_loss",
    "straight_through": "expected_loss",
    "exact_marginal": "marginal_likelihood",
}
VARIANCE = {
    "exact": 0.0,
    "exact_marginal": 0.0,
    "rloo": 0.5,
    "reinforce": 20.0,
    "moving_baseline": 5.0,
    "straight_through": 0.25,
}


def trained(scores: dict[str, float], seeds: int = 6, noise: float = 0.01, task: str = "t0", seed: int = 3) -> xr.Dataset:
    """One task: estimators that end with these shares of exact matches, give or take the noise. straight_through has a relative bias of 0.5;
    the others are known to be unbiased."""
    data, random = sweep(1, list(scores), seeds), np.random.default_rng(seed)
    names = [str(name) for name in data["estimator"].values]
    data["metric_exact_match"] = (
        ("run", "evaluation_step"),
        np.array([scores[n] for n in names])[:, None] + noise * random.normal(size=(len(names), 1)),
    )
    at = ("run", "measurement_step")
    data["own_target"] = (at, np.array([[AIMS[n]] for n in names], object))
    data["known_unbiased"] = (at, np.array([["no" if n == "straight_through" else "yes"] for n in names], object))
    data["variance"] = (at, np.array([[VARIANCE[n]] for n in names]) * (1 + 1e-3 * random.normal(size=(len(names), 1))))
    data["squared_bias"] = (at, np.array([[0.25 if n == "straight_through" else 0.0] for n in names]))
    data["relative_bias"], data["estimand_norm"] = np.sqrt(data["squared_bias"]), data["squared_bias"] * 0 + 1
    return stated(data.assign_coords(task=("run", [task] * len(names), data["task"].attrs)))


def test_each_finding_is_said_with_its_numbers():
    data = trained(
        {"exact": 0.70, "rloo": 0.69, "reinforce": 0.026, "straight_through": 0.9, "exact_marginal": 0.99}, seeds=8, noise=1e-3
    )
    assert findings(Result(data)) == [
        "On t0 after 100 steps leave-one-out (rloo) ends at 69.0% exact match, REINFORCE, with 40 times the variance of one gradient, at 2.6% (p = .0078, "
        "8 seeds).",
        "On t0 the objective matters: after 100 steps exact_marginal, the marginal likelihood without noise, ends at 99.0% exact match, exact, the expected "
        "loss without noise, at 70.0% (p = .0078, 8 seeds).",
        "On t0 after 100 steps straight-through, biased by 50% of the gradient, ends at 90.0% exact match, leave-one-out (rloo), the best unbiased sample, "
        "at 69.0% (p = .0078, 8 seeds).",
        "On t0, at step 0, REINFORCE has 40 times the variance of leave-one-out (rloo); the mean of straight-through is off by 50% of the gradient.",
    ]
    page = report(data)
    assert (
        page.index('id="findings"')
        < page.index("On t0 after 100 steps leave-one-out (rloo) ends at 69.0%")
        < page.index('id="ranking"')
    )
    warned = data.assign(measurement_unsupported=(("run", "measurement_step"), np.ones((data.sizes["run"], 1), np.uint8)))
    assert not any("biased by" in line or "is off by" in line for line in findings(Result(warned))), (
        "a bias with a mark is not quoted"
    )


def with_rows(data: xr.Dataset, rows: dict[str, float], half: dict[str, float]) -> xr.Dataset:
    """The same with evaluations at 50 and 100 steps, these rows in all, and these scores at 50 steps."""
    names = [str(name) for name in data["estimator"].values]
    scores = data["metric_exact_match"].values
    first = np.array([half[name] for name in names])[:, None] + scores - scores.mean()
    data = data.drop_vars(["metric_exact_match", "heldout_expected_loss", "evaluation_step"])
    spent = np.array([rows[name] for name in names])[:, None] * [0.5, 1.0]
    data = data.assign(
        metric_exact_match=(("run", "evaluation_step"), np.hstack([first, scores])),
        train_loss=(("run", "step"), spent * 0),
        train_rows=(("run", "step"), spent),
    ).assign_coords(evaluation_step=[50, 100], step=[50, 100])
    return stated(data)


def test_a_comparison_says_what_it_cost_and_how_it_ends_at_equal_rows():
    data = with_rows(
        trained({"rloo": 0.8, "reinforce": 0.2}, seeds=8, noise=1e-3),
        {"rloo": 2000, "reinforce": 1000},
        {"rloo": 0.25, "reinforce": 0.1},
    )
    data["metric_exact_match"].values[data["estimator"].values == "rloo", 0] = 0.2 + 0.1 * np.random.default_rng(1).normal(
        size=8
    )
    assert findings(Result(data))[0].startswith(
        "On t0 after 100 steps leave-one-out (rloo, 2,000 rows) ends at 80.0% exact match, REINFORCE (1,000 rows), with 40 times "
        "the variance of one gradient, at 20.0% (p = .0078, 8 seeds); at equal rows (1,000) at 2"
    )
    assert (
        "and 20.0% (p = " in findings(Result(data))[0]
        and "p = .0078, 8 seeds); at equal rows (1,000)" in findings(Result(data))[0]
    )
    unknown = data.isel(evaluation_step=[1])
    assert findings(Result(unknown))[0].endswith(
        "; no comparison at equal rows, for lack of evaluations (train.evaluate_every)."
    )
    few = data.copy(deep=True)
    few["metric_exact_match"].values[(few["estimator"].values == "rloo") & (few["seed"].values > 2)] = np.nan
    few["status"].values[(few["estimator"].values == "rloo") & (few["seed"].values > 2)] = 2
    assert "3 to 8 seeds" in " ".join(findings(Result(few))), "the seeds are those of the compared estimators"


def test_a_difference_that_holds_at_equal_rows_too_comes_first():
    """Leave-one-out is best at equal steps and no better than REINFORCE at equal rows; the moving baseline is better at both."""
    scores = {"rloo": 0.8, "moving_baseline": 0.5, "reinforce": 0.2}
    rows, half = (
        {"rloo": 2000, "moving_baseline": 1000, "reinforce": 1000},
        {"rloo": 0.2, "moving_baseline": 0.3, "reinforce": 0.1},
    )
    data = with_rows(trained(scores, seeds=8, noise=1e-3), rows, half)
    noise = 0.1 * np.random.default_rng(1).normal(size=8)
    data["metric_exact_match"].values[data["estimator"].values == "rloo", 0] = 0.2 + noise
    assert findings(Result(data))[0] == (
        "On t0 after 100 steps a moving baseline (1,000 rows) ends at 50.0% exact match, REINFORCE (1,000 rows), with 4 times the "
        "variance of one gradient, at 20.0% (p = .0078, 8 seeds)."
    )
    without = data.sel(run=data["estimator"].values != "moving_baseline")
    assert "leave-one-out" in findings(Result(without))[0] and "; at equal rows (1,000) at 2" in findings(Result(without))[0]


def test_the_ranking_has_the_scores_at_equal_rows_beside_those_at_equal_steps():
    data = with_rows(
        trained({"rloo": 0.8, "reinforce": 0.2}, seeds=8, noise=1e-3),
        {"rloo": 2000, "reinforce": 1000},
        {"rloo": 0.1, "reinforce": 0.1},
    )
    page = report(data)
    ranking = page[page.index('id="ranking"') : page.index('id="figures"')]
    assert "at 1,000 rows" in ranking and ranking.index("80.0%") < ranking.index("40.0%") < ranking.index("20.0%")
    same = with_rows(
        trained({"rloo": 0.8, "reinforce": 0.2}, seeds=8),
        dict.fromkeys(("rloo", "reinforce"), 1000),
        {"rloo": 0.1, "reinforce": 0.1},
    )
    assert "at 1,000 rows" not in report(same), "equal rows are shown once"


def test_failed_runs_are_counted_and_named():
    data = trained({"rloo": 0.8, "reinforce": 0.2, "exact": 0.9}, seeds=8, noise=1e-3)
    of = data["estimator"].values == "rloo"
    data["status"].values[of & (data["seed"].values < 2)] = 1
    data["metric_exact_match"].values[of & (data["seed"].values < 2)] = np.nan
    assert (
        findings(Result(data))[0]
        == "On t0 runs failed or had an infinite loss, and count as the worst score: 2 of 8 of leave-one-out (rloo)."
    )
    other = trained({"rloo": 0.8, "reinforce": 0.2, "exact": 0.9}, seeds=8, noise=1e-3).drop_vars("metric_exact_match")
    other["heldout_expected_loss"].values[(other["estimator"].values == "exact") & (other["seed"].values == 3)] = np.inf
    assert (
        findings(Result(other))[0]
        == "On t0 runs failed or had an infinite loss, and count as the worst score: 1 of 8 of exact."
    )
    shown = answer(other).set_index("estimator")
    assert shown.loc["exact", "failed"] == 1 and shown.loc["exact", "seeds"] == 8 and np.isfinite(shown["score"]).all()
    assert table(other).set_index("estimator").loc["exact", "final_loss"] == np.inf and "infinite" in format_table(table(other))
    assert "Failed runs, and runs with an infinite loss: exact 1 of 8." in " ".join(format_answer(answer(other)).split())


def test_a_network_whose_runs_all_fail_is_said():
    parts = [trained({"rloo": 0.8, "reinforce": 0.2}, seeds=8, task=f"t{i}") for i in range(2)]
    data = xr.concat(
        [part.assign_coords(run=part["run"] + 100 * i) for i, part in enumerate(parts)], "run", combine_attrs="override"
    )
    gone = data["task"].values == "t1"
    for name in ("metric_exact_match", "heldout_expected_loss"):
        data[name].values[gone] = np.nan
    data["status"].values[gone] = 1
    data["reason"].values[gone] = "no memory"
    assert findings(Result(data))[0] == "t1 · m has no score: 16 of 16 runs failed (no memory)."
    assert unranked(Result(data), answer(data)) == ["t1 · m has no score: 16 of 16 runs failed (no memory)"]
    with pytest.raises(InputError, match="t1 · m has no score: 16 of 16 runs failed .no memory."):
        answer(data.isel(run=gone))


def test_noise_is_no_finding():
    """40 results of equal estimators: one with a "finding" of training beyond noise is a false alarm. 5% may be; 8 of 40 have a probability
    below 1e-3 at that rate."""
    alarms = 0
    for seed in range(40):
        said = findings(Result(trained({"rloo": 0.5, "reinforce": 0.5, "straight_through": 0.5}, noise=0.1, seed=seed)))
        alarms += any("p <" in line or "p =" in line for line in said)
    assert alarms <= 7
    said = findings(Result(trained({"rloo": 0.5, "reinforce": 0.5}, noise=0.1)))
    assert any(
        line.startswith("On t0 after 100 steps no estimator differs from the best beyond noise: exact match from ")
        for line in said
    ), said


def test_at_most_five_and_every_network_before_any_twice():
    parts = [
        trained({"exact": 0.7, "rloo": 0.69, "reinforce": 0.1, "exact_marginal": 0.99}, seeds=8, task=f"t{i}") for i in range(4)
    ]
    data = xr.concat(
        [part.assign_coords(run=part["run"] + 100 * i) for i, part in enumerate(parts)], "run", combine_attrs="override"
    )
    said = findings(Result(data))
    assert len(said) == MOST and all(any(line.startswith(f"On t{i}") for line in said) for i in range(4))


def test_without_training_or_measurements():
    data = trained({"rloo": 0.5, "reinforce": 0.5})
    assert findings(Result(data.drop_vars(["heldout_expected_loss", "metric_exact_match", "evaluation_step"]))) == [
        "On t0, at step 0, REINFORCE has 40 times the variance of leave-one-out (rloo)."
    ]
    assert findings(Result(data.isel(run=data["seed"].values == 0))) == [], "one seed"


def test_of_many_estimators_each_is_compared_with_leave_one_out():
    """14 estimators in two groups: 91 pairs would leave nothing beyond noise, 13 comparisons with leave-one-out do."""
    scores = {"rloo": 0.6, "reinforce": 0.3, "exact": 0.9, **{f"e{i:02}": 0.6 for i in range(11)}}
    for name in scores:
        AIMS.setdefault(name, "expected_loss"), VARIANCE.setdefault(name, 0.5)
    data = trained(scores, seeds=10, noise=0.01)
    assert findings(Result(data))[0].startswith("On t0 after 100 steps leave-one-out (rloo) ends at 59.9%")
    assert (
        "of 13 others, beyond noise, 1 better, such as exact with 90." in findings(Result(data))[0]
        and "; 1 worse, such as REINFORCE with " in findings(Result(data))[0]
    )
    page = report(data)
    assert "behind rloo" in page and "rloo (baseline)" in page and findings(Result(data))[0] in page
    assert "behind the best" in report(trained({name: scores[name] for name in list(scores)[:12]}, seeds=10))
