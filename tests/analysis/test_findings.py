"""The sentences that a report begins with, on results with planted differences."""

import numpy as np
import xarray as xr

from analysis.findings import MOST, findings
from analysis.report import report
from made_up import sweep

AIMS = {"exact": "expected_loss", "rloo": "expected_loss", "reinforce": "expected_loss", "straight_through": "expected_loss",
        "exact_marginal": "marginal_likelihood"}
VARIANCE = {"exact": 0.0, "exact_marginal": 0.0, "rloo": 0.5, "reinforce": 20.0, "straight_through": 0.25}


def trained(scores: dict[str, float], seeds: int = 6, noise: float = 0.01, task: str = "t0", seed: int = 3) -> xr.Dataset:
    """One task: estimators that end with these shares of exact matches, give or take the noise. straight_through has a relative bias of 0.5;
    the others are known to be unbiased."""
    data, random = sweep(1, list(scores), seeds), np.random.default_rng(seed)
    names = [str(name) for name in data["estimator"].values]
    data["metric_exact_match"] = (("run", "evaluation_step"), np.array([scores[n] for n in names])[:, None] + noise * random.normal(size=(len(names), 1)))
    at = ("run", "measurement_step")
    data["own_target"] = (at, np.array([[AIMS[n]] for n in names], object))
    data["known_unbiased"] = (at, np.array([["no" if n == "straight_through" else "yes"] for n in names], object))
    data["variance"] = (at, np.array([[VARIANCE[n]] for n in names]) * (1 + 1e-3 * random.normal(size=(len(names), 1))))
    data["squared_bias"] = (at, np.array([[0.25 if n == "straight_through" else 0.0] for n in names]))
    data["relative_bias"], data["estimand_norm"] = np.sqrt(data["squared_bias"]), data["squared_bias"] * 0 + 1
    return data.assign_coords(task=("run", [task] * len(names), data["task"].attrs))


def test_each_finding_is_said_with_its_numbers():
    data = trained({"exact": 0.70, "rloo": 0.69, "reinforce": 0.026, "straight_through": 0.9, "exact_marginal": 0.99}, noise=1e-3)
    assert findings(data) == [
        "On t0 leave-one-out (rloo) ends at 69.0% exact match, REINFORCE, with 40 times the variance, at 2.6% (p < .001).",
        "On t0 the objective matters more than the noise: exact_marginal (of the marginal likelihood) reaches 99.0% exact match, exact (of the "
        "expected loss, without noise) 70.0% (p < .001).",
        "On t0 a bias pays: straight-through, whose mean is off by 50% of the gradient, ends at 90.0% exact match, leave-one-out (rloo), the best "
        "unbiased sample, at 69.0% (p < .001).",
        "On t0, at step 0, REINFORCE has 40 times the variance of leave-one-out (rloo); the mean of straight-through is off by 50% of the gradient."]
    page = report(data)
    assert page.index('id="findings"') < page.index("On t0 leave-one-out (rloo) ends at 69.0%") < page.index('id="ranking"')


def test_a_task_is_solved_or_not():
    said = findings(trained({"rloo": 0.995, "reinforce": 0.026}, noise=1e-3))[0]
    assert said == "On t0 leave-one-out (rloo) solves the task, REINFORCE, with 40 times the variance, does not: 99.5% against 2.6% exact match (p < .001)."
    assert findings(trained({"rloo": 0.2, "straight_through": 0.1, "reinforce": 0.05}, noise=1e-3))[1].startswith("On t0 a bias costs: straight-through")


def test_noise_is_no_finding():
    """40 results of equal estimators: one with a "finding" of training beyond noise is a false alarm. 5% may be; 8 of 40 have a probability
    below 1e-3 at that rate."""
    alarms = 0
    for seed in range(40):
        said = findings(trained({"rloo": 0.5, "reinforce": 0.5, "straight_through": 0.5}, noise=0.1, seed=seed))
        alarms += any("p <" in line or "p =" in line for line in said)
    assert alarms <= 7
    said = findings(trained({"rloo": 0.5, "reinforce": 0.5}, noise=0.1))
    assert any(line.startswith("On t0 no estimator differs from the best beyond noise: exact match from ") for line in said), said


def test_at_most_five_and_every_network_before_any_twice():
    parts = [trained({"exact": 0.7, "rloo": 0.69, "reinforce": 0.1, "exact_marginal": 0.99}, task=f"t{i}") for i in range(4)]
    data = xr.concat([part.assign_coords(run=part["run"] + 100 * i) for i, part in enumerate(parts)], "run", combine_attrs="override")
    said = findings(data)
    assert len(said) == MOST and all(any(line.startswith(f"On t{i}") for line in said) for i in range(4))


def test_without_training_or_measurements():
    data = trained({"rloo": 0.5, "reinforce": 0.5})
    assert findings(data.drop_vars(["heldout_expected_loss", "metric_exact_match", "evaluation_step"])) == [
        "On t0, at step 0, REINFORCE has 40 times the variance of leave-one-out (rloo)."]
    assert findings(data.isel(run=data["seed"].values == 0)) == [], "one seed"


def test_of_many_estimators_each_is_compared_with_leave_one_out():
    """14 estimators in two groups: 91 pairs would leave nothing beyond noise, 13 comparisons with leave-one-out do."""
    scores = {"rloo": 0.6, "reinforce": 0.3, "exact": 0.9, **{f"e{i:02}": 0.6 for i in range(11)}}
    for name in scores:
        AIMS.setdefault(name, "expected_loss"), VARIANCE.setdefault(name, 0.5)
    data = trained(scores, seeds=4, noise=0.01)
    assert findings(data)[0].startswith("On t0 leave-one-out (rloo) ends at 59.8%")
    assert "of 13 others, beyond noise, 1 better, such as exact with 90.6%" in findings(data)[0] and "; 1 worse, such as REINFORCE with 29.3%" in findings(data)[0]
    page = report(data)
    assert "behind rloo" in page and "rloo (baseline)" in page and findings(data)[0] in page
    assert "behind the best" in report(trained({name: scores[name] for name in list(scores)[:12]}, seeds=4))
