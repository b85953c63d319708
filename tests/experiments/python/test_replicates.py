"""The moments behind `hardgrad.torch.compare`: against explicit formulas, and against a second implementation in `tests/support`."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hardgrad import UsageError, _core

sys.path.append(str(Path(__file__).resolve().parents[2] / "support"))
from gradient_moments import gradient_moments  # noqa: E402

P = 7


def drawn(count, bias=0.0, seed=0):
    """Estimates [count, P] with unequal variances and heavy-ish tails, and the truth."""
    random = np.random.default_rng(seed)
    truth = np.linspace(-1, 1, P)
    return truth + bias + np.linspace(0.2, 2, P) * random.exponential(1, (count, P)) - np.linspace(0.2, 2, P), truth


def added(estimates, reference):
    run = _core.Replicates(reference, 32, [])
    for one in estimates:
        assert run.add(one)
    run.finish()
    return run


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_moments_and_intervals(bias):
    estimates, truth = drawn(256, bias)
    run = added(estimates, truth)
    found = run.summary(None, True, False, 4.0, 0.95)
    numbers, theirs = found["numbers"], gradient_moments(estimates, truth)
    np.testing.assert_allclose(run.mean(), estimates.mean(0), rtol=1e-12)
    np.testing.assert_allclose(run.variances(), estimates.var(0, ddof=1), rtol=1e-12)
    assert numbers["variance"] == pytest.approx(estimates.var(0, ddof=1).sum())
    assert numbers["squared_bias"] == pytest.approx(np.sum((estimates.mean(0) - truth) ** 2) - numbers["variance"] / 256)
    assert numbers["squared_bias"] == pytest.approx(theirs.squared_bias.mean) and numbers["replicates"] == 256
    assert numbers["bias_p_value_plain"] == pytest.approx(theirs.p_value, abs=1e-6)
    assert (numbers["bias_p_value_plain"] < 1e-6) == (bias > 0)
    np.testing.assert_allclose(found["intervals"]["squared_bias"], theirs.squared_bias[1:3], rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(found["intervals"]["variance"], theirs.variance[1:3], rtol=0.1)  # other resamples
    assert numbers["work_normalised_variance"] == 4 * numbers["variance"] and found["unsupported"] == ""
    assert run.variance_interval(0.999)[1] > found["intervals"]["variance"][1]


def test_any_number_and_numbers_that_are_not_finite():
    """Only added gradients count, wherever drawing stops, and one that is not finite leaves no trace."""
    estimates, truth = drawn(320)
    for count in (2, 9, 33, 150, 319):
        run = _core.Replicates(truth, 32, [])
        for one in estimates[:count]:
            assert not run.add(one * np.nan) and not run.add(np.where(np.arange(P) == 3, np.inf, one)) and run.add(one)
        assert run.count == count
        run.finish()
        found = run.summary(None, True, False, 1.0, 0.95)["numbers"]
        assert found["replicates"] == count and found["variance"] == pytest.approx(estimates[:count].var(0, ddof=1).sum())
        assert found["squared_bias"] == pytest.approx(
            np.sum((estimates[:count].mean(0) - truth) ** 2) - found["variance"] / count
        )
    run = _core.Replicates(truth, 32, [])
    run.add(truth)
    with pytest.raises(UsageError, match="two gradients"):
        run.finish()
    with pytest.raises(UsageError, match="another size"):
        run.add(truth[1:])


def test_weights():
    """Figures against explicit formulas: c is the number of weights 1 that a weight counts as, in the noise of the mean."""
    estimates, truth = drawn(256, 0.5)
    weights = np.random.default_rng(4).choice([0.2, 1.0, 1.8], 256)
    run = _core.Replicates(truth, 32, [(2, P)])
    for one, weight in zip(estimates, weights):
        assert run.add(one, weight) and not run.add(one * np.nan, weight)
    run.finish()
    mean = weights @ estimates / weights.sum()
    np.testing.assert_allclose(run.mean(), mean, rtol=1e-12)
    for part, first in ((run, 0), (run.part(0), 2)):
        squares = ((estimates - mean)[:, first:] ** 2).sum(1)
        c = weights**2 @ squares / (weights @ squares)
        found = part.summary(None, True, False, 1.0, 0.95)["numbers"]
        assert found["variance"] == pytest.approx(weights @ squares / (weights.sum() - c))
        assert found["squared_bias"] == pytest.approx(
            ((mean - truth)[first:] ** 2).sum() - found["variance"] * c / weights.sum()
        )


def test_against_a_long_run():
    """Its noise counts: the standard error is stated, and without a bias p is not small."""
    estimates, truth = drawn(200)
    long = added(drawn(800, seed=1)[0], np.zeros(P))
    run = added(estimates, long.mean())
    found = run.summary(long, True, False, 1.0, 0.95)["numbers"]
    error = np.sqrt(long.variances().sum() / 800)
    assert found["estimand_standard_error"] == pytest.approx(error) and found["bias_p_value_plain"] > 0.01
    expected = np.sum((estimates.mean(0) - long.mean()) ** 2) - found["variance"] / 200 - error**2
    assert found["squared_bias"] == pytest.approx(expected)
    assert np.isnan(added(estimates, np.zeros(P)).summary(None, False, False, 1.0, 0.95)["numbers"]["squared_bias"])


@pytest.mark.parametrize("count", [40, 320])
def test_a_part_is_made_of_slices(count):
    """Its figures are those of the slices added by themselves, except the numbers that need each gradient."""
    estimates, truth = drawn(count, 0.3)
    long, parts = drawn(800, seed=1)[0], [(0, 3), (3, P), (2, 2 + 1)]
    for against in (False, True):
        whole, run = _core.Replicates(truth, 32, parts), _core.Replicates(np.zeros(P), 32, parts)
        for one in estimates:
            whole.add(one)
        for one in long:
            run.add(one)
        whole.finish(), run.finish()
        for index, (first, last) in enumerate(parts):
            part = slice(first, last)
            alone, its = added(estimates[:, part], truth[part]), added(long[:, part], np.zeros(last - first))
            found = whole.part(index).summary(run.part(index) if against else None, True, False, 4.0, 0.95)
            expected = alone.summary(its if against else None, True, False, 4.0, 0.95)
            for name, value in expected["numbers"].items():
                if name in ("cosine", "tail_index", "bias_p_value"):
                    assert np.isnan(found["numbers"][name]), name
                else:
                    assert found["numbers"][name] == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True), name
            for name in ("variance", "squared_bias", "relative_bias", "snr"):
                np.testing.assert_allclose(found["intervals"][name], expected["intervals"][name], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(whole.part(index).mean(), estimates[:, part].mean(0), rtol=1e-12)
            np.testing.assert_allclose(whole.part(index).variances(), estimates[:, part].var(0, ddof=1), rtol=1e-12)


def test_a_heavy_tail_is_noticed():
    heavy = np.random.default_rng(3).standard_cauchy((400, P))
    assert (
        "tail index" in (said := added(heavy, np.zeros(P)).summary(None, False, False, 1.0, 0.95)["unsupported"])
        or "carry the variance" in said
    )


def test_finished_replicates_take_no_gradient():
    estimates, truth = drawn(8)
    run = _core.Replicates(truth, 4, [(0, 3)])
    for one in estimates:
        run.add(one)
    with pytest.raises(UsageError, match="are not finished"):
        run.summary(None, True, False, 1.0, 0.95)
    run.finish()
    for finished, one in (run, estimates[0]), (run, np.zeros(0)), (run.part(0), np.zeros(0)):
        with pytest.raises(UsageError, match="are finished: no gradient can be added"):
            finished.add(one)
