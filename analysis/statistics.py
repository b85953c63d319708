"""Means over seeds, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats


class Mean(NamedTuple):
    """A mean with its confidence interval; NaN bounds if there is but one value."""

    mean: float
    low: float
    high: float
    count: int


def mean_interval(values: np.ndarray, level: float = 0.95, log: bool = False) -> Mean:
    """Mean over independent runs with Student's t interval (Student 1908); NaN values are left out.

    `log`: the geometric mean, interval formed on logarithms, for positive quantities of one scale; values that are not
    positive are left out.
    """
    x = np.asarray(values, dtype=float).ravel()
    x = x[np.isfinite(x)]
    if log:
        x = np.log(x[x > 0])
    if x.size == 0:
        return Mean(np.nan, np.nan, np.nan, 0)
    mean = float(x.mean())
    half = np.nan
    if x.size > 1:
        half = float(stats.t.ppf(0.5 + level / 2, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size))
    low, high = mean - half, mean + half
    if log:
        mean, low, high = float(np.exp(mean)), float(np.exp(low)), float(np.exp(high))
    return Mean(mean, low, high, int(x.size))
