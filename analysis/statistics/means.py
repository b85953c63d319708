"""Means with intervals: over seeds, and of numbers with their own intervals."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats


class Mean(NamedTuple):
    """A mean with its confidence interval; NaN bounds for a single value."""

    mean: float
    low: float
    high: float
    count: int  # type: ignore[assignment]  # hides tuple.count


def mean_interval(values: np.ndarray, level: float = 0.95, log: bool = False) -> Mean:
    """Mean over independent runs with Student's t interval (Student 1908); NaN values are omitted.
    With an infinite value the mean is infinite, without an interval.

    `log`: the geometric mean with an interval from logarithms, for positive quantities of one
    scale; values that are not positive are omitted."""
    x = np.asarray(values, dtype=float).ravel()
    x = x[~np.isnan(x)]
    if log:
        x = np.log(x[x > 0])
    if x.size == 0:
        return Mean(np.nan, np.nan, np.nan, 0)
    mean = float(x.mean())
    half = np.nan
    if x.size > 1 and np.isfinite(mean):
        half = float(_quantile(0.5 + level / 2, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size))
    low, high = mean - half, mean + half
    if log:
        mean, low, high = float(np.exp(mean)), float(np.exp(low)), float(np.exp(high))
    return Mean(mean, low, high, int(x.size))


@lru_cache
def _quantile(share: float, degrees: int) -> float:
    """Of Student's t."""
    return float(stats.t.ppf(share, degrees))


def propagated_mean(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> Mean:
    """Mean of independent measurements with their own intervals, by propagation of errors (Gauss
    1823).

    The interval, at the measurements' level, covers measurement noise only: it is for the mean over
    these seeds, not over future seeds. Squared half-widths add, below and above separately. NaN
    values are omitted."""
    x, below, above = (np.asarray(a, dtype=float).ravel() for a in (values, low, high))
    finite = np.isfinite(x)
    if not finite.any():
        return Mean(np.nan, np.nan, np.nan, 0)
    # An unbiased estimate of the squared bias may lie below its interval, which begins at zero.
    x, below, above = (
        x[finite],
        np.maximum(x[finite] - below[finite], 0),
        np.maximum(above[finite] - x[finite], 0),
    )
    mean, n = float(x.mean()), x.size
    return Mean(
        mean,
        mean - float(np.sqrt(np.sum(below**2))) / n,
        mean + float(np.sqrt(np.sum(above**2))) / n,
        n,
    )


def scaled(mean: Mean, factor: float) -> Mean:
    """A mean and its interval times a known positive number. (Variance times cost is the
    work-normalised variance: Glynn & Whitt 1992, The asymptotic efficiency of simulation
    estimators.)"""
    return mean._replace(mean=mean.mean * factor, low=mean.low * factor, high=mean.high * factor)
