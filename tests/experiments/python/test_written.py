"""Estimators written in Python: registered ones, with the same moments; and a wrong one, whose bias is known."""

import numpy as np
import pytest

import hardgrad
from problem import LOGITS

TABLE = (np.arange(9.0).reshape(3, 3) % 4 - 1.3) ** 2


def score_function(of):
    return of.losses[:, None, None] * (of.one_hot - of.probabilities)


def leave_one_out(of):
    losses = of.losses.reshape(-1, of.samples)
    others = (losses.sum(1, keepdims=True) - losses) / (of.samples - 1)
    return (losses - others).reshape(-1, 1, 1) * (of.one_hot - of.probabilities)


def straight_through(of):
    p = of.probabilities
    return p * (of.derivatives - (p * of.derivatives).sum(-1, keepdims=True))


def shrunk(of):
    """Leave-one-out with a baseline that includes the sample itself."""
    losses = of.losses.reshape(-1, of.samples)
    return (losses - losses.mean(1, keepdims=True)).reshape(-1, 1, 1) * (of.one_hot - of.probabilities)


@pytest.mark.parametrize(
    "function, samples, derivatives, spec",
    [
        (score_function, 1, False, "reinforce"),
        (score_function, 2, False, "reinforce[samples=2]"),
        (leave_one_out, 2, False, "rloo[samples=2]"),
        (leave_one_out, 3, False, "rloo[samples=3]"),
        (straight_through, 2, True, "straight_through[samples=2]"),
    ],
)
def test_what_is_written_again_has_the_same_moments(function, samples, derivatives, spec):
    own = hardgrad.written(function, samples, derivatives=derivatives)
    for logits, losses in ((LOGITS, TABLE), (np.stack([LOGITS, -LOGITS]), TABLE), ([0.3, -0.2, -np.inf], [1.0, 2.0, 0.0])):
        ours, theirs = (hardgrad.moments(logits, losses, estimator) for estimator in (own, spec))
        for name in ("mean", "bias", "covariance", "rows"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-12)
        one, other = (hardgrad.gradient(logits, losses, estimator, 7).value for estimator in (own, spec))
        np.testing.assert_allclose(one, other, atol=1e-13)
    assert ours.estimator == own.spec == function.__name__ and repr(own) == f"Estimator('{function.__name__}')"


def test_a_wrong_one_is_found_with_its_number():
    of = hardgrad.moments(LOGITS, TABLE, hardgrad.written(shrunk, 3))
    np.testing.assert_allclose(of.bias, -of.exact / 3, atol=1e-12)
    of = hardgrad.moments(
        [0.2, -0.4],
        lambda w: (w[:, 0, 1] ** 3, np.stack([0 * w[:, :, 1], 3 * w[:, :, 1] ** 2], -1)),
        hardgrad.written(straight_through, derivatives=True),
        takes="weights",
    )
    p = 1 / (1 + np.exp(0.6))
    np.testing.assert_allclose(of.bias[1], p * (1 - p) * (3 * p - 1), atol=1e-13)  # from slopes 0 and 3, while the truth has 1


def test_refusals():
    for answer, said in (
        (np.zeros((1, 2)), r"returned a gradient of shape \[1, 2\], expected \[1, 2, 3\]"),
        ("a", "str, not an array of real numbers"),
    ):
        with pytest.raises(hardgrad.UsageError, match=f"wrong {said}|wrong returned {said}"):

            def wrong(of):
                return answer

            hardgrad.gradient(LOGITS, TABLE, hardgrad.written(wrong))
    with pytest.raises(hardgrad.NotFinite, match="the gradient that the estimator returned is nan"):
        hardgrad.gradient(LOGITS, TABLE, hardgrad.written(lambda of: of.one_hot + np.nan))
    with pytest.raises(hardgrad.UsageError, match="samples must be at least 1"):
        hardgrad.written(shrunk, 0)
    with pytest.raises(hardgrad.UsageError, match='straight_through needs a loss of weights.*takes="weights"'):
        hardgrad.gradient(LOGITS, lambda options: options.sum(1) * 1.0, hardgrad.written(straight_through, derivatives=True))


def test_what_it_raises_comes_out():
    def broken(of):
        raise KeyError("mine")

    for call in (hardgrad.moments, hardgrad.gradient):
        with pytest.raises(KeyError, match="mine"):
            call(LOGITS, TABLE, hardgrad.written(broken))


def test_in_pytorch():
    torch = pytest.importorskip("torch")
    import hardgrad.torch

    logits, weight = torch.tensor(LOGITS, requires_grad=True), torch.tensor([1.0, -2.0], dtype=torch.double, requires_grad=True)

    def f(z):
        return (z[:, :, 1] @ weight) ** 2

    for own, spec in (
        (hardgrad.written(leave_one_out, 4), "rloo[samples=4]"),
        (hardgrad.written(straight_through, 4, derivatives=True), "straight_through[samples=4]"),
    ):
        ours, theirs = (
            torch.autograd.grad(hardgrad.torch.expectation(logits, f, estimator, seed=5), (logits, weight))
            for estimator in (own, spec)
        )
        for one, other in zip(ours, theirs):
            torch.testing.assert_close(one, other)
