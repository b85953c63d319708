"""Exact moments against the program's, and against explicit sums."""

import itertools

import numpy as np
import pytest

import hardgrad
from problem import BIT, BIT_MODEL, LOGITS, MODEL, measured, probabilities, table


def score(logits, z):
    """grad log p(z) at the logits [D, S]."""
    return np.eye(logits.shape[1])[list(z)] - probabilities(logits)


def enumerated(logits, losses):
    """(probability, score, loss) of every outcome."""
    p = probabilities(logits)
    for z in itertools.product(*(range(n) for n in losses.shape)):
        yield np.prod([p[d, i] for d, i in enumerate(z)]), score(logits, z), losses[z]


@pytest.mark.parametrize("model, logits, fewest", [(MODEL, LOGITS, 32), (BIT_MODEL, BIT, 43)], ids=["categories", "a bit"])
def test_every_estimator_has_the_moments_that_the_program_has(tmp_path, model, logits, fewest):
    losses = table(tmp_path, model)
    ours, refused = {}, {}
    for spec in hardgrad.estimators():
        try:
            ours[spec] = hardgrad.moments(logits, losses, spec, cap=2e5)
        except hardgrad.UsageError as refusal:
            refused[spec] = str(refusal)
    for spec, said in refused.items():
        assert any(reason in said for reason in ("posterior", "needs", "exact moments", "dream", "bits", "more than the")), (
            spec,
            said,
        )
    theirs = {found["estimator"]: found for found in measured(ours, model)}
    assert len(ours) >= fewest and theirs.keys() == ours.keys(), sorted(refused.items())
    for spec, of in ours.items():
        found = theirs[spec]
        assert found["status"] == "ok" and of.target.split("[")[0] == found["target"]
        take = (lambda x: x.ravel()) if model == MODEL else (lambda x: x[1:])
        scale = 1e-9 * (1 + np.abs(of.mean).max())
        np.testing.assert_allclose(take(of.mean), found["mean_gradient"]["bits.logits"], atol=scale, err_msg=spec)
        np.testing.assert_allclose(take(of.variance).sum(), found["variance"], rtol=1e-8, atol=1e-18, err_msg=spec)
        np.testing.assert_allclose((take(of.bias) ** 2).sum(), found["squared_bias"], rtol=1e-6, atol=1e-18, err_msg=spec)
        np.testing.assert_allclose(np.linalg.norm(take(of.exact)), found["estimand_norm"], rtol=1e-12, err_msg=spec)
        np.testing.assert_allclose(of.rows, found["rows"], rtol=1e-9, err_msg=spec)


def test_covariance_of_the_score_function():
    losses = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]])[:, :2]
    logits = np.array([[0.2, -0.4], [1.0, 0.3]])
    of = hardgrad.moments(logits, losses, "reinforce")
    outcomes = list(enumerated(logits, losses))
    mean = sum(p * f * s for p, s, f in outcomes)
    second = sum(p * f * f * np.multiply.outer(s, s) for p, s, f in outcomes)
    np.testing.assert_allclose(of.exact, mean, atol=1e-14)
    np.testing.assert_allclose(of.mean, mean, atol=1e-14)
    np.testing.assert_allclose(of.covariance, second - np.multiply.outer(mean, mean), atol=1e-13)
    np.testing.assert_allclose(of.variance, np.einsum("ijij->ij", of.covariance), atol=1e-14)
    np.testing.assert_allclose(of.loss, sum(p * f for p, _, f in outcomes))
    assert of.covariance.shape == (2, 2, 2, 2) and of.rows == 1 and of.outcomes == 4


def test_a_function_is_called_once_and_gives_what_its_table_gives():
    calls = []

    def f(options):
        calls.append(options.copy())
        return (options[:, 0] - 0.45) ** 2 + options[:, 0] * options[:, 1]

    of = hardgrad.moments(LOGITS, f, "rloo[samples=3]")
    assert len(calls) == 1 and calls[0].shape == (9, 2) and calls[0].dtype == np.int64
    i, j = np.indices((3, 3))
    by_table = hardgrad.moments(LOGITS, (i - 0.45) ** 2 + i * j, "rloo[samples=3]")
    assert np.array_equal(of.mean, by_table.mean) and np.array_equal(of.covariance, by_table.covariance)


def quadratic(weights):
    """(x - .45)^2 of one bit, x its weight, and the derivatives in the weights."""
    x = weights[:, 0, 1]
    return (x - 0.45) ** 2, np.stack([np.zeros_like(x), 2 * (x - 0.45)], axis=-1)[:, None]


def test_straight_through_of_one_bit_is_biased_by_what_is_known():
    phi = 0.7
    p = 1 / (1 + np.exp(-phi))
    of = hardgrad.moments([0, phi], quadratic, "straight_through", takes="weights")
    slope = 2 * (p - 0.45)  # at the mean of the bit's values: f'(b) is linear
    np.testing.assert_allclose(of.mean, p * (1 - p) * np.array([-slope, slope]), atol=1e-14)
    exact = p * (1 - p) * ((1 - 0.45) ** 2 - 0.45**2)
    np.testing.assert_allclose(of.exact, [-exact, exact], atol=1e-14)
    np.testing.assert_allclose(of.bias, of.mean - of.exact, atol=1e-16)
    assert abs(of.bias).max() > 0.01


def test_relaxed_losses_are_asked_at_weights():
    """muprop is unbiased for any loss between the options; Gumbel-softmax is not, and its quadrature reports its error."""
    asked = []

    def f(weights):
        asked.append(weights)
        return quadratic(weights)

    of = hardgrad.moments([0, 0.7], f, "muprop", takes="weights")
    assert np.abs(of.bias).max() < 1e-12 and any(np.any((0 < w) & (w < 1)) for w in asked)
    soft = hardgrad.moments([0, 0.7], f, "gumbel_softmax", takes="weights")
    assert np.abs(soft.bias).max() > 1e-3 and 0 <= soft.error < 1e-9


def test_examples_are_each_by_themselves():
    logits = np.stack([LOGITS, 0.5 * LOGITS, -LOGITS])
    shift = np.array([0.0, 1.0, -2.0])

    def f(options, example):
        return (options[:, 0] - options[:, 1]) ** 2 + shift[example] * options[:, 0]

    of = hardgrad.moments(logits, f, "rloo[samples=2]")
    assert of.mean.shape == (3, 2, 3) and of.covariance.shape == (3, 2, 3, 2, 3) and of.loss.shape == of.rows.shape == (3,)
    i, j = np.indices((3, 3))
    tables = np.stack([(i - j) ** 2 + s * i for s in shift])
    batched = hardgrad.moments(logits, tables, "rloo[samples=2]")
    for e in range(3):
        alone = hardgrad.moments(logits[e], tables[e], "rloo[samples=2]")
        for other in (of, batched):
            assert np.array_equal(other.mean[e], alone.mean) and np.array_equal(other.covariance[e], alone.covariance)
            assert other.loss[e] == alone.loss and other.rows[e] == alone.rows


def test_examples_that_an_estimator_couples_are_refused():
    """Each alone would have other moments. One example is no batch."""
    logits, losses = np.array([[[0.0, 1.0]], [[0.5, -0.2]]]), np.array([[1.0, -2.0], [0.5, 0.2]])
    for spec in ("policy_gradient[advantage=batch_std,samples=2]", "policy_gradient[aggregation=batch_tokens,samples=2]"):
        with pytest.raises(hardgrad.UsageError, match="couples the examples of a batch, whose moments are not those of each"):
            hardgrad.moments(logits, losses, spec)
        assert np.isfinite(hardgrad.moments(logits[:1], losses[:1], spec).mean).all()


def test_options_that_there_are_none_of():
    """-inf at the end of a row marks missing options; entries of a table there do not matter."""
    asked = []

    def f(options):
        asked.append(options)
        return 1.5 * options[:, 0] - options[:, 1] ** 2

    logits = np.array([[0.3, -0.7, -np.inf], [-1.1, 0.4, 0.9]])
    i, j = np.indices((3, 3))
    padded = np.where(i == 2, np.nan, 1.5 * i - j**2)
    visited = 0
    for spec in ("reinforce", "rloo[samples=2]", "local_expectation", "unordered_set", "straight_through", "exact"):
        of = hardgrad.moments(logits, padded, spec)
        assert of.mean[0, 2] == of.variance[0, 2] == of.exact[0, 2] == 0
        p, q = probabilities(logits[0, :2]), probabilities(logits[1])
        inner = (q * (1.5 * np.arange(2)[:, None] - np.arange(3) ** 2)).sum(axis=1)
        np.testing.assert_allclose(of.exact[0, :2], p * (inner - p @ inner), atol=1e-14)
        visited += 1
    assert visited == 6
    by_function = hardgrad.moments(logits, f, "reinforce")
    assert asked[0].shape == (6, 2) and asked[0][:, 0].max() == 1
    assert np.array_equal(by_function.mean, hardgrad.moments(logits, padded, "reinforce").mean)


def test_what_was_learned_is_measured():
    """Measuring does not change the learned state of a moving average."""
    fresh = hardgrad.moments([0.0, 0.5], [10.0, 10.5], "moving_baseline")
    again = hardgrad.Estimator("moving_baseline")
    twice = [hardgrad.moments([0.0, 0.5], [10.0, 10.5], again) for _ in range(2)]
    assert np.array_equal(twice[0].variance, fresh.variance) and np.array_equal(twice[1].variance, fresh.variance)


def test_xarray_has_the_axes_named():
    pytest.importorskip("xarray")
    of = hardgrad.moments(np.stack([LOGITS, LOGITS]), np.arange(9.0).reshape(3, 3), "reinforce").to_xarray()
    assert of["covariance"].dims == ("example", "column", "option", "other_column", "other_option")
    assert of["mean"].dims == ("example", "column", "option") and of["loss"].dims == ("example",)
    assert of.attrs == {"estimator": "reinforce", "target": "expected_loss"}
    alone = hardgrad.moments([0.1, 0.2], [1, 2], "reinforce").to_xarray()
    assert alone["covariance"].dims == ("option", "other_option") and alone["rows"].dims == ()
