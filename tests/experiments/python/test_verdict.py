"""hardgrad.test: the program's verdicts, and those of estimators written in Python."""

import gc
import json
import weakref

import numpy as np
import pytest

import hardgrad
from problem import program


def score_function(of):
    return of.losses[:, None, None] * (of.one_hot - of.probabilities)


def shrunk(of):
    """Leave-one-out with a baseline that includes the sample itself."""
    losses = of.losses.reshape(-1, of.samples)
    return (losses - losses.mean(1, keepdims=True)).reshape(-1, 1, 1) * (of.one_hot - of.probabilities)


def test_a_registered_ones_verdict_is_the_programs():
    (theirs,) = json.loads(program("test", "straight_through", "--json"))
    ours = hardgrad.test("straight_through", full=True)
    assert ours.passed and theirs["passed"] and ours.claims_unbiased == theirs["claims_unbiased"] is False
    assert [vars(check) for check in ours.checks] == theirs["checks"] and len(ours.checks) > 80
    assert str(ours).startswith("straight_through: passed, ")
    with pytest.raises(hardgrad.UsageError, match='unknown estimator "rlo"'):
        hardgrad.test("rlo")


def test_a_wrong_one_is_found_with_its_number():
    verdict = hardgrad.test(shrunk, 2, first_failure=True)
    failed = [check for check in verdict.checks if check.outcome == "failed"]
    assert not verdict.passed and verdict.claims_unbiased and failed
    assert failed[0].check == "exact mean" and "says it is unbiased, but the mean is off by" in failed[0].detail
    assert "shrunk: FAILED" in str(verdict) and "off by" in str(verdict)


def test_what_raises_has_failed_and_nothing_is_kept():
    class Broken:
        def __call__(self, of):
            raise KeyError("mine")

    broken = Broken()
    verdict = hardgrad.test(broken, first_failure=True)
    assert not verdict.passed and "mine" in verdict.checks[0].detail
    gone = weakref.ref(broken)
    del broken
    gc.collect()
    assert gone() is None and "written_in_python" not in hardgrad.estimators()


@pytest.mark.parametrize("low, high", [(-np.inf, 20), (-20, np.inf), (-500, 500)])
def test_one_that_clips_losses_is_found(low, high):
    def clipped(of):
        return of.losses.clip(low, high)[:, None, None] * (of.one_hot - of.probabilities)

    verdict = hardgrad.test(clipped)
    failed = [check for check in verdict.checks if check.outcome == "failed"]
    assert {check.check for check in failed} in ({"shift"}, {"shift", "exact mean"}), str(verdict)  # large losses have both
    assert all("off by" in check.detail and (check.check == "exact mean" or "losses + " in check.where) for check in failed)


def straight_through(of):
    """Biased, as declared."""
    inner = (of.derivatives * of.probabilities).sum(-1, keepdims=True)
    return of.probabilities * (of.derivatives - inner)


def test_a_biased_one_that_says_so_is_not_judged_by_its_bias():
    verdict = hardgrad.test(straight_through, derivatives=True, unbiased=False)
    assert verdict.passed and not verdict.claims_unbiased and verdict.count("passed") > 60, str(verdict)
    assert not hardgrad.test(straight_through, derivatives=True, first_failure=True).passed
    assert not hardgrad.test(
        lambda of: of.derivatives * float("nan"), derivatives=True, unbiased=False, first_failure=True
    ).passed


def test_a_right_one_passes_everywhere():
    """Also on sequential networks, with ragged or simultaneous choices, and with a learned posterior."""
    verdict = hardgrad.test(score_function, full=True)
    assert verdict.passed and verdict.claims_unbiased and verdict.count("passed") > 250, str(verdict)
    assert {check.check for check in verdict.checks} >= {"exact mean", "contract", "shift", "exact mean, elbo[kl=sampled]"}
    skipped = [check.detail for check in verdict.checks if check.outcome == "skipped"]
    assert all(
        "needs" in detail or "no learned posterior" in detail for detail in skipped
    )  # on numbers; the lower bound of codes


def test_a_quick_verdict_is_a_part_of_the_full_one():
    """The same exact checks on every small network, with the same outcome; fewer draws, settings and targets, and no whole models."""
    quick, full = hardgrad.test(score_function), hardgrad.test(score_function, full=True)
    assert quick.passed and full.passed
    of_full = {(check.check, check.where): check for check in full.checks}
    exact = [check for check in quick.checks if "outcomes)" in check.detail]
    assert len(exact) > 15 and all(check == of_full[check.check, check.where] for check in exact)
    assert 50 < len(quick.checks) < len(full.checks) / 2 and {"exact mean", "contract", "shift", "truth"} <= {
        check.check for check in quick.checks
    }
