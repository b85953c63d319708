"""Tests: differences with intervals and p-values, and the correction for multiple tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special, stats

from .means import Mean


class Difference(NamedTuple):
    """A difference with its confidence interval; NaN with too few numbers."""

    difference: float
    low: float
    high: float
    p_value: float  # of "no difference"
    p_sign_flip: float  # the same without assuming a normal distribution; NaN if not paired
    count: int  # type: ignore[assignment]  # hides tuple.count: pairs, or numbers of the smaller sample


_NOTHING = Difference(np.nan, np.nan, np.nan, np.nan, np.nan, 0)


def holm(p_values: np.ndarray) -> np.ndarray:
    """p-values corrected for multiple tests, controlling the probability of one or more false alarms (Holm 1979, A simple
    sequentially rejective multiple test procedure). NaN values are not tests: they stay NaN and are not counted."""
    p = np.asarray(p_values, dtype=float)
    result = np.full(p.shape, np.nan)
    there = np.flatnonzero(np.isfinite(p))
    order = there[np.argsort(p[there], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    result[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return result


def _interval(difference: float, error: float, freedom: float, level: float) -> tuple[float, float, float]:
    """Low, high and p of a difference with this standard error."""
    if not error > 0:
        return difference, difference, float(difference == 0)
    half = stats.t.ppf(0.5 + level / 2, freedom) * error
    return float(difference - half), float(difference + half), float(2 * stats.t.sf(abs(difference) / error, freedom))


def paired_difference(first: np.ndarray, second: np.ndarray, level: float = 0.95, resamples: int = 9999, seed: int = 0) -> Difference:
    """Mean of first - second over pairs that share their random numbers (one per seed); pairs with a NaN are omitted.

    Student's t interval and p-value of the differences (Student 1908), and the p-value of the sign-flip randomisation test
    (Fisher 1935, The design of experiments). The latter is exact if all sign patterns fit into `resamples`. With n pairs it is at
    least 2 / 2^n, so 0.25 for three seeds. With `resamples` 0 it is omitted (NaN).
    """
    pairs = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    pairs = pairs[np.isfinite(pairs)]
    if pairs.size < 2:
        return _NOTHING._replace(difference=float(pairs[0]) if pairs.size else np.nan, count=int(pairs.size))
    mean = float(pairs.mean())
    error = float(pairs.std(ddof=1) / np.sqrt(pairs.size))
    if error <= 1e-12 * abs(mean):
        error = 0.0  # all differences are equal up to rounding
    flips = stats.permutation_test((pairs,), np.mean, permutation_type="samples", vectorized=True, n_resamples=resamples,
                                   random_state=seed).pvalue if pairs.any() and resamples else 1.0 if resamples else np.nan
    return Difference(mean, *_interval(mean, error, pairs.size - 1, level), float(flips), int(pairs.size))


def _deviations(freedom: float, count: int) -> np.ndarray:
    """`count` equally likely sample standard deviations of normal numbers with deviation 1."""
    return np.sqrt(special.chdtri(freedom, 1 - (np.arange(count) + 0.5) / count) / freedom)


def pairs_needed(difference: float, deviation: float, level: float = 0.05, power: float = 0.8, most: int = 1000,
                 freedom: float = np.inf) -> float:
    """The number of pairs at which a paired two-sided t test at `level` finds a true mean difference with probability `power`, if single
    differences have this standard deviation (noncentral t; Cohen 1988, ch. 2). inf beyond `most`, NaN without numbers.

    `freedom`: the degrees of freedom of an estimated standard deviation. The power is then averaged over the error of this
    estimate (assurance: O'Hagan, Stevens & Campbell 2005, Assurance in clinical trial design).
    """
    if not (np.isfinite(difference) and np.isfinite(deviation)):
        return float("nan")
    if difference == 0:
        return float("inf")
    if deviation == 0:
        return 2.0
    estimated = _deviations(freedom, 50) if np.isfinite(freedom) else np.array([1.0])

    def found(n: int) -> float:  # the t statistic is (a normal number + shift) / (a deviation of n), averaged over both deviations
        critical, shift = special.stdtrit(n - 1, 1 - level / 2), abs(difference) / deviation * np.sqrt(n)
        return float(special.ndtr(shift * estimated[:, None] - critical * _deviations(n - 1, 200)).mean())

    low, high = 1, most  # power grows with n: too low at `low`, sufficient at `high`
    if found(most) < power:
        return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return float(high)


def welch_difference(first: np.ndarray, second: np.ndarray, level: float = 0.95) -> Difference:
    """Difference of the means of two independent samples with unequal variances (Welch 1947); NaN values are omitted."""
    sides = [side[np.isfinite(side)] for side in (np.asarray(first, dtype=float).ravel(), np.asarray(second, dtype=float).ravel())]
    count = min(side.size for side in sides)
    if count == 0:
        return _NOTHING
    difference = float(sides[0].mean() - sides[1].mean())
    if count == 1:
        return _NOTHING._replace(difference=difference, count=1)
    parts = [side.var(ddof=1) / side.size for side in sides]
    error = float(np.sqrt(sum(parts)))
    freedom = sum(parts) ** 2 / sum(part**2 / (side.size - 1) for part, side in zip(parts, sides)) if error > 0 else 1.0
    return Difference(difference, *_interval(difference, error, freedom, level), np.nan, count)


def propagated_difference(first: Mean, second: Mean, level: float = 0.95) -> Difference:
    """Difference of two independent measurements from their own intervals at this level, assuming normality: squared errors add
    (Gauss 1823). No p-value unless both have an interval."""
    difference = first.mean - second.mean
    count = min(first.count, second.count)
    halves = [(mean.high - mean.low) / 2 for mean in (first, second)]
    if not np.isfinite([difference, *halves]).all():
        return _NOTHING._replace(difference=float(difference), count=count)
    error = float(np.hypot(halves[0], halves[1]) / stats.norm.ppf(0.5 + level / 2))
    return Difference(float(difference), *_interval(difference, error, np.inf, level), np.nan, count)
