"""Estimates of the gradient at the logits, and their exact moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._core import Estimator
from .losses import (
    Floats,
    Function,
    Ints,
    Logits,
    Loss,
    Takes,
    check_takes,
    given_ids,
    given_seed,
    given_table,
    tabulated,
)
from .policies import policy, reached

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Samples:
    """One run of the loss, R rows.

    options: [R, D] the chosen options; None if the estimator replaced choices by weights.
    weights: [R, D, S] these weights, or None.
    example: [R] the example of each row (zeros without a batch).
    losses: [R]
    share: [R] the weight of each loss in the estimate: sum(share * losses) estimates the expected
        loss (of each example), and sum(share * derivatives of the losses) is the gradient of
        parameters within the loss.
    ratios: [R] of each row the policy's probability over that of the behaviour policy, which has
        drawn it; None without one.
    """

    options: Optional[Ints]
    weights: Optional[Floats]
    example: Ints
    losses: Floats
    share: Floats
    ratios: Optional[Floats] = None


@dataclass(frozen=True)
class Gradient:
    """One estimate.

    value: in the shape of the logits, the gradient of the expected loss at the logits (of the sum
        over the examples).
    runs: of the loss, in order; most estimators make one.
    """

    value: Floats
    runs: tuple[Samples, ...]

    @property
    def rows(self) -> int:
        """Number of evaluated rows of the loss."""
        return sum(len(run.losses) for run in self.runs)

    @property
    def effective_ratio_share(self) -> float:
        """Of the ratios R: (mean R)^2 / mean R^2, the effective sample size over the number of
        samples. NaN without a behaviour policy."""
        ratios = self._ratios()
        squares = float(np.square(ratios).sum())
        return float(ratios.sum()) ** 2 / (len(ratios) * squares) if squares else float("nan")

    @property
    def largest_ratio(self) -> float:
        """The largest ratio; NaN without a behaviour policy."""
        return float(self._ratios().max(initial=-np.inf)) if len(self._ratios()) else float("nan")

    def _ratios(self) -> Floats:
        there = [run.ratios for run in self.runs if run.ratios is not None]
        return np.concatenate(there) if there else np.empty(0)


@dataclass(frozen=True)
class Moments:
    """Exact moments of an estimator; [...] is the shape of the logits, with examples first if they
    have any.

    target: the objective whose gradient is estimated; `expected_loss` unless the estimator or its
        settings specify another.
    exact: [...] the target's gradient at the logits, by enumeration.
    mean, bias: [...] of the estimate; bias = mean - exact.
    variance: [...] of each entry.
    covariance: [D, S, D, S] (with the axes [D, S] of the logits; [E, D, S, D, S] for a batch, whose
        examples are independent); None if not requested.
    loss: the target's value, one number an example.
    rows: mean number of rows of the loss for one estimate of one example.
    outcomes: number of visited outcomes of the noise.
    error: estimated error of the mean (a length) from the quadrature of continuous noise; 0 for
        categorical draws.
    effective_ratio_share, largest_ratio: with a behaviour policy, of the ratios R of the policy's
        probability to its: (E R)^2 / E R^2, the effective sample size over the number of samples,
        and the largest R. NaN without one.
    reached: the policy's probability of the options that the behaviour policy can draw. The mean of
        an estimator that draws lacks the rest.
    """

    estimator: str
    target: str
    exact: Floats
    mean: Floats
    bias: Floats
    variance: Floats
    covariance: Optional[Floats]
    loss: Floats
    rows: Floats
    outcomes: Floats
    error: Floats
    effective_ratio_share: Floats
    largest_ratio: Floats
    reached: Floats

    def to_xarray(self) -> xarray.Dataset:
        """The same as a dataset with named axes."""
        import xarray

        whole = ("example", "column", "option")
        axes = whole[3 - self.mean.ndim :]
        of_example = axes[:1] if self.mean.ndim == 3 else ()
        twice = axes + tuple(f"other_{axis}" for axis in axes if axis != "example")
        named: dict[str, Any] = {
            name: (axes, getattr(self, name)) for name in ("exact", "mean", "bias", "variance")
        }
        if self.covariance is not None:
            named["covariance"] = (twice, self.covariance)
        named |= {
            name: (of_example, getattr(self, name))
            for name in (
                *("loss", "rows", "outcomes", "error"),
                *("effective_ratio_share", "largest_ratio", "reached"),
            )
        }
        return xarray.Dataset(named, attrs={"estimator": self.estimator, "target": self.target})


def _held(estimator: Union[str, Estimator], seed: int) -> Estimator:
    return estimator if isinstance(estimator, Estimator) else Estimator(estimator, given_seed(seed))


def moments(
    logits: ArrayLike,
    f: Loss,
    estimator: Union[str, Estimator],
    *,
    takes: Takes = "options",
    cap: float = 1e6,
    seed: int = 0,
    covariance: bool = True,
    behaviour: Optional[ArrayLike] = None,
    reference: Optional[ArrayLike] = None,
) -> Moments:
    """Exact mean, bias and covariance of an estimator of the gradient of E[f(z)], z ~
    Cat(softmax(logits)): every outcome of its noise is visited, with its probability. Nothing is
    sampled.

    logits: [S] of one choice, [D, S] of D choices (columns) that share a loss, or [E, D, S] of E
        independent examples. -inf at the end of a row marks missing options.
    f: a table [S, ..., S] of D axes (or [E, S, ..., S]); or a function of options [R, D] (for a
        batch also of example [R], the position of each row's example) that returns losses [R]. It
        is called once, for all outcomes, and must be deterministic: the same row, the same loss.
    estimator: e.g. "rloo[samples=4]"; or an Estimator in its present learned state.
    takes: "weights": f is a function of weights over the options [R, D, S] instead, one-hot for
        hard choices. It returns losses [R] and their derivatives [R, D, S]. Relaxations, and
        estimators that contain them, need that, or a table, which is multilinear between its
        outcomes.
    cap: most visited outcomes (and terms of the exact gradient); NotExact if there are more.
    seed: for the initial values of the estimator's own parameters, if it has any.
    behaviour: in the shape of the logits, those of the policy that draws: an older one, or its own
        as a sampler changes it (`tempered`, `top_k`, `top_p`). `policy_gradient` corrects for
        it by ratios; others that draw raise UsageError. -inf marks options that it never draws;
        where the policy may choose them, `bias` is that of the truncation.
    reference: in the same shape, those of a policy to stay near, for `target=near_reference` and
        `policy_gradient`'s divergences; finite for options that are there.

    Source: the estimators' papers, see `describe`; moments by replay as in
    `hardgrad measure --exact`.
    """
    check_takes(takes)
    given = Logits(logits)
    function = Function(f, takes, given) if callable(f) else None
    tables = tabulated(function, given) if function else given_table(f, given)
    held = _held(estimator, seed)
    drawing = policy(behaviour, given.shape, "behaviour")
    near = policy(reference, given.shape, "reference")

    def of_example(e: int) -> dict[str, Any]:
        rows_of_example = function and (
            lambda choice, example, differentiable: function(
                choice, np.full_like(example, e), differentiable
            )
        )
        return _core.moments(
            held,
            given.value[e : e + 1],
            given.rank,
            tables[e : e + 1] if len(tables) > 1 else tables,
            function is None,
            rows_of_example if takes == "weights" else None,
            cap,
            covariance,
            None if drawing is None else drawing[e : e + 1],
            None if near is None else near[e : e + 1],
            len(given.value) > 1,
        )

    each = [of_example(e) for e in range(len(given.value))]

    def joined(name: str, axes: tuple[int, ...] = ()) -> Floats:
        whole: Floats = np.array([one[name] for one in each], np.float64)
        return whole.reshape((len(each),) * given.batched + axes)

    shape = given.shape[given.batched :]
    mean, exact = joined("mean", shape), joined("exact", shape)
    return Moments(
        estimator=held.spec,
        target=each[0]["target"],
        exact=exact,
        mean=mean,
        bias=mean - exact,
        variance=joined("variance", shape),
        covariance=joined("covariance", shape + shape) if covariance else None,
        **{name: joined(name) for name in ("loss", "rows", "outcomes")},
        error=joined("mean_error"),
        **{name: joined(name) for name in ("effective_ratio_share", "largest_ratio")},
        reached=np.array(
            [
                reached(given.value[e], None if drawing is None else drawing[e])
                for e in range(len(each))
            ]
        ).reshape((len(each),) * given.batched),
    )


def gradient(
    logits: ArrayLike,
    f: Loss,
    estimator: Union[str, Estimator],
    seed: int = 0,
    *,
    takes: Takes = "options",
    state: Optional[ArrayLike] = None,
    ids: Optional[ArrayLike] = None,
    behaviour: Optional[ArrayLike] = None,
    reference: Optional[ArrayLike] = None,
) -> Gradient:
    """One estimate of the gradient at the logits of E[f(z)] (summed over the examples), with its
    samples. The same seed draws the same numbers, which are those of `hardgrad gradient --seed`.

    logits, f, estimator, takes, behaviour, reference: as in `moments`. f is called once for all
        rows of a run. An Estimator is used in its present learned state, and does not learn here.
    ids: [E] ids of the examples, whole numbers below 2^32: an example's noise depends on its id,
        not on the rest of the batch. By default its position.
    state: [E, C] inputs of learned baselines for each example ([C] without a batch); by default a
        1.
    """
    check_takes(takes)
    given = Logits(logits)
    function = Function(f, takes, given) if callable(f) else None
    table = None if function else given_table(f, given)
    value, runs = _core.draw_double(
        _held(estimator, seed),
        given.value,
        given.rank,
        0,
        _state(state, given),
        given_ids(ids, len(given.value)),
        table,
        function,
        takes == "weights",
        given_seed(seed),
        False,
        True,
        False,
        None,
        policy(behaviour, given.shape, "behaviour"),
        policy(reference, given.shape, "reference"),
        0,
    )
    return Gradient(value.reshape(given.shape), tuple(Samples(*run) for run in runs))


def _state(state: Optional[ArrayLike], logits: Logits) -> Optional[Floats]:
    if state is None:
        return None
    given: Floats = np.ascontiguousarray(state, np.float64)
    if (
        given.ndim != 1 + logits.batched
        or given.shape[-1] == 0
        or given.size // given.shape[-1] != len(logits.value)
    ):
        raise _core.UsageError(
            f"state has shape {list(given.shape)}; it is "
            f"{'[examples, numbers]' if logits.batched else '[numbers]'}"
        )
    if not np.isfinite(given).all():
        raise _core.UsageError("state has an entry that is not a finite number")
    return given
