"""The answer on simulated sweeps with known truth: coverage of the intervals, agreement of intervals and verdicts, and power; and how often
estimators with equal scores of many kinds get different verdicts."""

import sys

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from analysis.answer import answer
from analysis.statistics import pairwise_differences
from made_up import stated
from planted_scores import ESTIMATORS, KINDS, wrong

NOISE = 0.1
RATES = {"0.01": 0.05, "0.1": 0.0, "1": 0.2}  # settings and their effects on the loss


def planted(studies, effects, seeds, rates, seed):
    """`studies` networks that repeat one study: estimator i ends with the loss effects[i], plus the effects of its rate and of the seed, and
    noise."""
    random = np.random.default_rng(seed)
    own = 0.3 * random.normal(size=(studies, 1, 1, seeds))
    loss = own + np.array(effects)[:, None, None] + np.array([RATES[rate] for rate in rates])[:, None]
    loss = loss + NOISE * random.normal(size=(studies, len(effects), len(rates), seeds))
    grid = [
        [f"t{t}", "m", f"e{e}", rate, s]
        for t in range(studies)
        for e in range(len(effects))
        for rate in rates
        for s in range(seeds)
    ]
    names = {"task": "task", "model": "model", "estimator": "estimator", "rate": "train.learning_rate", "seed": "seed"}
    data = xr.Dataset(
        {
            "status": ("run", np.zeros(len(grid), np.uint8), {"flag_meanings": "ok failed skipped"}),
            "reason": ("run", np.array([""] * len(grid), object)),
            "heldout_expected_loss": (("run", "evaluation_step"), loss.reshape(-1, 1)),
        },
        coords={"evaluation_step": [100], "run": range(len(grid))},
    )
    return stated(data).assign_coords(
        {name: ("run", list(column), {"grid_axis": axis}) for (name, axis), column in zip(names.items(), zip(*grid))}
    )


def least(trials, share):
    """A number of successes reached with probability .999 if each has probability `share`."""
    return int(stats.binom.ppf(0.001, trials, share))


DESIGNS = {
    "near": ([0, 0, 0.05, 0.1, 0.2], 6, ["0.1"]),
    "tuned": ([0, 0, 0.1, 0.1], 6, list(RATES)),
    "two tuned": ([0, 0.1], 10, list(RATES)),
}  # losses, seeds, rates
STUDIES = 120


@pytest.fixture(scope="module", params=DESIGNS)
def found(request):
    """The answers for many studies of a design; for each row the true difference to the estimator with the verdict best."""
    effects, seeds, rates = DESIGNS[request.param]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys.modules["analysis.answer"], "pairs_needed", lambda *_, **__: 2.0
        )  # the slowest part, tested separately
        rows = answer(planted(STUDIES, effects, seeds, rates, seed=5))
    truth = np.array(effects)[rows["estimator"].str[1:].astype(int)]
    rows["truth"] = truth
    return rows.assign(true_difference=truth - rows.groupby("task", sort=False)["truth"].transform("first"))


def test_intervals_to_the_best_that_was_chosen_hold_all_at_once(found):
    inside = (found["difference_low"] <= found["true_difference"] + 1e-12) & (
        found["true_difference"] - 1e-12 <= found["difference_high"]
    )
    assert inside.groupby(found["task"]).all().sum() >= least(STUDIES, 0.95)


def test_an_interval_of_a_score_holds_the_expected_score(found):
    """For an estimator that was not selected by its score, at its best rate, or with the extra loss of choosing the rate."""
    mine = found[found["estimator"] == "e1"]
    cost = mine["score"].mean() - mine["truth"].iloc[0] if found["settings"].max() > 1 else 0.0
    inside = (mine["low"] <= mine["truth"] + cost) & (mine["truth"] + cost <= mine["high"])
    assert inside.sum() >= least(STUDIES, 0.95)


def test_one_interval_is_one_decision(found):
    others = found[found["verdict"] != "best"]
    excludes = (others["difference_low"] > 0) | (others["difference_high"] < 0)
    assert len(others) and set(others["verdict"]) <= {"worse", "unclear"}
    assert (excludes == (others["verdict"] == "worse")).all() and (excludes == (others["p_corrected"] < 0.05)).all()


@pytest.mark.parametrize("seeds", [3, 6])
def test_the_seeds_that_are_asked_for_settle_it(seeds):
    """Each pilot study with an unclear difference is repeated with the recommended number of seeds; the true difference equals the pilot's
    estimate, with the same noise."""
    rows = answer(planted(STUDIES, [0, 0.1], seeds, ["0.1"], seed=7))
    asked = rows[(rows["verdict"] == "unclear") & np.isfinite(rows["seeds_needed"])]
    random, settled = np.random.default_rng(8), 0
    for difference, count in zip(asked["difference"], asked["seeds_needed"].astype(int)):
        scores = NOISE * random.normal(size=(2, count)) + np.array([[0], [difference]])
        settled += pairwise_differences(scores).low[1, 0] > 0
    assert len(asked) > 60 and settled >= least(len(asked), 0.8)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_estimators_are_rarely_said_to_differ(kind):
    """At most 7% of studies have a wrong verdict, at any number of seeds."""
    studies = 200
    counts = {seeds: wrong(kind, seeds, studies) for seeds in (2, 3, 4, 5, 8, 20)}
    assert len(counts) == 6 and max(counts.values()) <= stats.binom.ppf(0.999, studies, 0.07), counts


def test_the_study_would_find_plain_t_tests_wrong():
    """The same study with Student's t as it is."""
    studies, pairs = 200, ESTIMATORS * (ESTIMATORS - 1) / 2
    counts = {}
    for kind, seeds in (
        ("solved or not, p = .5", 2),
        ("solved or not, p = .5", 3),
        ("one of two states", 2),
        ("lognormal, unequal 1 to 6", 8),
    ):
        random, counts[kind, seeds] = np.random.default_rng(1), 0
        for _ in range(studies):
            x = KINDS[kind](random, (ESTIMATORS, seeds))
            with np.errstate(divide="ignore", invalid="ignore"):
                p = stats.ttest_rel(x[:, None], x[None], axis=-1).pvalue * pairs
            counts[kind, seeds] += bool((p < 0.05).any())
    assert len(counts) == 4 and min(counts.values()) > stats.binom.ppf(0.999, studies, 0.07), counts


def test_five_seeds_decide_nothing_and_six_show_a_clear_difference():
    random = np.random.default_rng(4)
    for seeds in range(2, 10):
        scores = np.array([[0.0], [1.0], [1.0]]) + 0.01 * random.normal(size=(3, seeds))
        differences = pairwise_differences(scores)
        assert (differences.low[1, 0] > 0) == (seeds >= 6) and np.isnan(differences.low[1, 0]) == (seeds < 6)
        assert differences.p_corrected[1, 0] >= 2.0 ** (1 - seeds) and differences.p_value[1, 0] >= 2.0 ** (1 - seeds)
    equal = pairwise_differences(np.array([[0.5] * 8, [0.4] * 8, [0.3, 0.4] * 4]))
    assert 0 < equal.low[0, 1] < 0.1 < equal.high[0, 1] < 0.3, (
        "equal differences are no more certain than the scores' resolution"
    )
