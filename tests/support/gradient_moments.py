"""Bias and variance of a gradient estimator from its raw estimates: the formulas of experiments/measurement, written anew."""

from __future__ import annotations

from typing import Callable, NamedTuple

import numpy as np
from scipy import integrate, optimize, special, stats


class Mean(NamedTuple):
    """A number with its interval."""

    mean: float
    low: float
    high: float
    count: int


class Moments(NamedTuple):
    """Squared bias and variance, both summed over parameters, with intervals; p-value of no bias (uniform if there is none)."""

    squared_bias: Mean
    variance: Mean
    p_value: float


def gradient_moments(estimates: np.ndarray, truth: np.ndarray, level: float = 0.95) -> Moments:
    """Unbiased squared bias and variance of independent estimates [replicates, parameters] of the gradient `truth`
    [parameters]; at least three replicates, else ValueError.

    The variance is the trace of the sample covariance. |mean - truth|^2 exceeds the squared bias by variance / replicates on average.
    This term is subtracted, so the estimate is unbiased and may be negative. Intervals are computed as in the files: test inversion for
    the squared bias (never below zero); the wider ends of Satterthwaite's chi-square and a bootstrap-t for the variance.
    """
    x = np.asarray(estimates, dtype=float)
    if x.ndim != 2 or len(x) < 3:
        raise ValueError("gradient_moments: needs at least three estimates as [replicates, parameters]")
    n = len(x)
    x = x - np.asarray(truth, dtype=float)  # relative to the truth, to avoid cancellation
    mean = x.mean(axis=0)
    away = x - mean
    squares = np.sum(away**2, axis=1)
    variance = float(squares.sum()) / (n - 1)
    bias = float(mean @ mean) - variance / n
    if variance == 0:
        return Moments(Mean(bias, bias, bias, n), Mean(0.0, 0.0, 0.0, n), float(bias == 0))

    edges = [n * b // min(n, 32) for b in range(min(n, 32))]
    scatter = _Scatter(np.diff([*edges, n]).astype(float), np.add.reduceat(squares, edges), np.add.reduceat(away, edges))
    length = _Length.of(mean, variance / n, n - 1, scatter)
    return Moments(
        Mean(bias, *length.interval(level), n),
        Mean(variance, *_variance_interval(variance, scatter, level), n),
        length.above(0),
    )


class _Scatter(NamedTuple):
    """Blocks of deviations from the overall mean: their sizes, sums of squares, sums [blocks, parameters]."""

    sizes: np.ndarray
    squares: np.ndarray
    sums: np.ndarray

    def concentration(self) -> float:
        """Trace of the covariance's square over its squared trace (Bai & Saranadasa 1996)."""
        f = len(self.sizes) - 1
        scaled = self.sums / np.sqrt(self.sizes)[:, None]
        gram = scaled @ scaled.T / f
        trace = np.trace(gram)
        of_square = f * f / ((f - 1) * (f + 2)) * (np.sum(gram**2) - trace**2 / f)
        square_of = trace**2 - 2 * of_square / f
        return float(np.clip(of_square / square_of if square_of > 0 else 1, 1 / self.sums.shape[1], 1))

    def along(self, direction: np.ndarray) -> float:
        """The share of the trace along a direction of length 1."""
        return float(np.sum((self.sums @ direction) ** 2 / self.sizes) / np.sum(self.sums**2 / self.sizes[:, None]))


class _Length(NamedTuple):
    """|b|^2 observed with noise: see experiments/measurement/intervals.hpp."""

    observed: float
    trace: float
    squares: float
    along: float
    freedom: float
    others: int

    @classmethod
    def of(cls, mean: np.ndarray, trace: float, freedom: float, scatter: _Scatter) -> _Length:
        observed, squares = float(mean @ mean), scatter.concentration() * trace**2
        along = scatter.along(mean / np.sqrt(observed)) * trace if observed > 0 else np.inf
        return cls(
            observed, trace, squares, trace if mean.size == 1 else min(along, float(np.sqrt(squares))), freedom, mean.size - 1
        )

    def above(self, length: float) -> float:
        """Probability of a value above `observed` if |b| = length."""
        root, error = np.sqrt(self.observed), np.sqrt(self.along)
        beyond = special.stdtr(self.freedom, (length - root) / error) + special.stdtr(self.freedom, (-root - length) / error)
        rest = self.trace - self.along
        if rest <= 1e-9 * self.trace:
            return float(min(1, beyond))
        squares = self.squares - self.along**2
        freedom = np.clip(rest**2 / squares if squares > 0 else self.others, 1, self.others)
        scale = (
            np.exp(-special.betaln(0.5, self.freedom / 2)) / np.sqrt(self.freedom) / error
        )  # normalisation of Student's density

        def joint(angle: np.ndarray) -> np.ndarray:
            along, left = root * np.sin(angle), root * np.cos(angle)
            density = scale * (1 + ((along - length) / error) ** 2 / self.freedom) ** (-(self.freedom + 1) / 2)
            return density * left * special.fdtrc(freedom, self.freedom * freedom, left**2 / rest)

        splits = [s / root for s in (length, length - 4 * error, length + 4 * error) if abs(s) < root]
        ends = np.arcsin(np.sort([-1, 1, *splits]))
        inside = sum(integrate.fixed_quad(joint, a, b, n=40)[0] for a, b in zip(ends, ends[1:]))
        return float(min(1, inside + beyond))

    def interval(self, level: float) -> tuple[float, float]:
        out, freedom = 1 - level, self.trace**2 / self.squares
        lost = self.trace * (stats.f.ppf(level, freedom, self.freedom * freedom) - 1)

        def below(length: float) -> float:
            return out / 2 * max(0.0, 1 - (lost / max(length**2, lost)) ** 2)

        def crossing(f: Callable[[float], float], low: float, high: float) -> float:
            return float(optimize.brentq(f, low, high, rtol=1e-7)) if f(low) * f(high) < 0 else low

        root, start = np.sqrt(self.observed), np.sqrt(lost)
        low = 0.0 if self.above(0) >= out else crossing(lambda b: self.above(b) - out + below(b), 0, root)
        far = root + start
        while 1 - self.above(far) > below(far):
            far *= 2
        return low**2, crossing(lambda b: 1 - self.above(b) - below(b), start, far) ** 2


def _variance_interval(variance: float, scatter: _Scatter, level: float) -> tuple[float, float]:
    """experiments/measurement/intervals.hpp."""
    count, squares, sums = scatter
    blocks, n, gram = len(count), count.sum(), sums @ sums.T
    least = 2 * scatter.concentration() / (n * (n - 1))
    times = np.vstack([np.ones(blocks), np.random.default_rng(11).multinomial(blocks, np.full(blocks, 1 / blocks), size=999)])

    # For every resample (the first is the sample itself): the variance, and leave-one-block-out variances.
    vectors, total, along = times @ count, times @ squares, times @ gram
    length = np.sum(along * times, axis=1)
    spread = (total - length / vectors) / (vectors - 1)
    left = vectors[:, None] - count
    without = (total[:, None] - squares - (length[:, None] - 2 * along + np.diag(gram)) / left) / (left - 1)
    off = (without - (np.sum(times * without, axis=1) / blocks)[:, None]) ** 2
    scale = np.sum(times * off, axis=1) * (blocks - 1) / blocks

    kurtosis = blocks * np.sum(off[0] ** 2) / np.sum(off[0]) ** 2 if np.sum(off[0]) > 0 else 3
    freedom = np.clip(2 * blocks / (kurtosis - 1 + 2 / (blocks - 1)), 1, blocks - 1)
    inflation = stats.t.ppf(0.5 + level / 2, freedom) / stats.norm.ppf(0.5 + level / 2)
    freedom = 2 * variance**2 / (max(scale[0], least * variance**2) * inflation**2)
    bounds = freedom * variance / stats.chi2.ppf([(1 + level) / 2, (1 - level) / 2], freedom)

    whole = spread > 1e-12 * variance
    error = np.sqrt(np.maximum(scale[whole] / spread[whole] ** 2, least))
    t = (np.log(spread[whole][1:]) - np.log(squares.sum() / n)) / error[1:]
    ends = variance * np.exp(-np.quantile(t, [(1 + level) / 2, (1 - level) / 2]) * error[0])
    return float(min(bounds[0], ends[0])), float(max(bounds[1], ends[1]))
