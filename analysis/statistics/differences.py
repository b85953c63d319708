"""Tests: differences with intervals and p-values, and the correction for multiple tests."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from .means import Mean
from .noise import fewest_pairs, freedom, least_p, rounding_deviation


class Difference(NamedTuple):
    """A difference with its confidence interval; NaN with too few numbers."""

    difference: float
    low: float
    high: float
    p_value: float  # of "no difference"
    p_unbounded: (
        float  # the same without the bound, to be corrected for several tests and then bounded
    )
    p_least: float  # the bound: the least p-value that so few numbers can give (`noise.least_p`)
    count: int  # type: ignore[assignment]  # hides tuple.count: pairs, or numbers of the smaller sample


_NOTHING = Difference(np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, 0)


def holm(p_values: np.ndarray) -> np.ndarray:
    """p-values corrected for multiple tests, controlling the probability of one or more false
    alarms (Holm 1979, A simple sequentially rejective multiple test procedure). NaN values are not
    tests: they stay NaN and are not counted."""
    p = np.asarray(p_values, dtype=float)
    result = np.full(p.shape, np.nan)
    places = np.flatnonzero(np.isfinite(p))
    order = places[np.argsort(p[places], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    result[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return result


def _tested(
    difference: float, error: float, degrees: float, least: float, level: float
) -> tuple[float, float, float, float, float]:
    """Low, high, p, unbounded p and its bound of a difference with this standard error. The ends
    are NaN where no p can be below 1 - level."""
    p, half = float(difference == 0), 0.0
    if error > 0:
        p = float(2 * stats.t.sf(abs(difference) / error, degrees))
        half = float(stats.t.ppf(0.5 + level / 2, degrees) * error)
    if not least < 1 - level:
        half = np.nan
    return difference - half, difference + half, max(p, least), p, least


def paired_difference(first: np.ndarray, second: np.ndarray, level: float = 0.95) -> Difference:
    """Mean of first - second over pairs that share their random numbers (one per seed); pairs with
    a NaN are omitted.

    Student's t interval and p-value of the differences (Student 1908) with the bounds of `noise`:
    for heavy-tailed noise, a variance of at least the scores' rounding, and a p-value that so few
    pairs can give. Five pairs or fewer have no interval of 95%."""
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    finite = np.isfinite(x - y)
    pairs, n = (x - y)[finite], int(finite.sum())
    if n < 2:
        return _NOTHING._replace(difference=float(pairs[0]) if n else np.nan, count=n)
    mean = float(pairs.mean())
    deviation = max(
        float(pairs.std(ddof=1)), rounding_deviation(np.concatenate([x[finite], y[finite]]))
    )
    return Difference(
        mean, *_tested(mean, deviation / np.sqrt(n), float(freedom(n)), float(least_p(n)), level), n
    )


@lru_cache(2048)
def _deviations(degrees: float, count: int) -> np.ndarray:
    """`count` equally likely sample standard deviations of normal numbers with deviation 1."""
    return np.sqrt(special.chdtri(degrees, 1 - (np.arange(count) + 0.5) / count) / degrees)


def pairs_needed(
    difference: float,
    deviation: float,
    level: float = 0.05,
    tests: int = 1,
    power: float = 0.8,
    most: int = 1000,
    pilot: float = np.inf,
) -> float:
    """The number of pairs at which a paired difference (`paired_difference`, or one of `tests` that
    hold simultaneously) has an interval without 0 with probability `power`, if single differences
    are normal with this mean and standard deviation (noncentral t; Cohen 1988, ch. 2). inf beyond
    `most`, NaN without numbers.

    `pilot`: the degrees of freedom of an estimated standard deviation. The power is then averaged
    over the error of this estimate (assurance: O'Hagan, Stevens & Campbell 2005, Assurance in
    clinical trial design).
    """
    if not (np.isfinite(difference) and np.isfinite(deviation)):
        return float("nan")
    if difference == 0:
        return float("inf")
    fewest = fewest_pairs(level)
    if deviation == 0:
        return float(fewest)
    estimated = _deviations(pilot, 50) if np.isfinite(pilot) else np.array([1.0])

    def found(
        n: int,
        # the t statistic is (a normal number + shift) / (a deviation of n), averaged over both
        # deviations
    ) -> float:
        critical = special.stdtrit(freedom(n), 1 - level / 2 / tests)
        shift = abs(difference) / deviation * np.sqrt(n)
        return float(
            special.ndtr(shift * estimated[:, None] - critical * _deviations(n - 1, 200)).mean()
        )

    low, high = fewest - 1, most  # power grows with n: too low at `low`, sufficient at `high`
    if found(most) < power:
        return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return float(high)


def welch_difference(first: np.ndarray, second: np.ndarray, level: float = 0.95) -> Difference:
    """Difference of the means of two independent samples with unequal variances (Welch 1947), with
    the bounds of `noise`; the least p-value is that of a permutation of both samples (Pitman 1937).
    NaN values are omitted."""
    sides = [
        side[np.isfinite(side)]
        for side in (
            np.asarray(first, dtype=float).ravel(),
            np.asarray(second, dtype=float).ravel(),
        )
    ]
    count = min(side.size for side in sides)
    if count == 0:
        return _NOTHING
    difference = float(sides[0].mean() - sides[1].mean())
    if count == 1:
        return _NOTHING._replace(difference=difference, count=1)
    rounding = rounding_deviation(np.concatenate(sides)) ** 2 / 2
    parts = [max(float(side.var(ddof=1)), rounding) / side.size for side in sides]
    error = float(np.sqrt(sum(parts)))
    degrees = (
        sum(parts) ** 2
        / sum(part**2 / float(freedom(side.size)) for part, side in zip(parts, sides))
        if error > 0
        else 1.0
    )
    least = 2 / float(special.comb(sides[0].size + sides[1].size, count))
    return Difference(difference, *_tested(difference, error, degrees, least, level), count)


def propagated_difference(first: Mean, second: Mean, level: float = 0.95) -> Difference:
    """Difference of two independent measurements from their own intervals at this level, assuming
    normality: squared errors add (Gauss 1823). No p-value unless both have an interval."""
    difference = first.mean - second.mean
    count = min(first.count, second.count)
    halves = [(mean.high - mean.low) / 2 for mean in (first, second)]
    if not np.isfinite([difference, *halves]).all():
        return _NOTHING._replace(difference=float(difference), count=count)
    error = float(np.hypot(halves[0], halves[1]) / stats.norm.ppf(0.5 + level / 2))
    return Difference(
        float(difference), *_tested(float(difference), error, np.inf, 0.0, level), count
    )
