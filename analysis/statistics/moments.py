"""Bias and variance of a gradient estimator from its raw estimates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from .means import Mean


class Moments(NamedTuple):
    """Squared bias and variance, both summed over parameters, with intervals."""

    squared_bias: Mean
    variance: Mean


def gradient_moments(estimates: np.ndarray, truth: np.ndarray, level: float = 0.95) -> Moments:
    """Unbiased squared bias and variance of independent estimates [replicates, parameters] of the gradient `truth`
    [parameters]; at least three replicates, else ValueError.

    The variance is the trace of the sample covariance. |mean - truth|^2 exceeds the squared bias by variance / replicates on
    average; that much is taken off, so that the result is unbiased and may be negative. Intervals are Student's around
    delete-one jackknife standard errors (Quenouille 1956; Tukey 1958), as in the files, where blocks are deleted.
    """
    x = np.asarray(estimates, dtype=float)
    if x.ndim != 2 or len(x) < 3:
        raise ValueError("gradient_moments: wants at least three estimates as [replicates, parameters]")
    n = len(x)
    x = x - np.asarray(truth, dtype=float)  # around the truth, so that nothing cancels
    mean = x.mean(axis=0)
    away = x - mean
    squares = np.sum(away**2, axis=1)
    variance = squares.sum() / (n - 1)
    bias = mean @ mean - variance / n

    # Without estimate i, in closed form.
    less_variance = (squares.sum() - squares * n / (n - 1)) / (n - 2)
    less_bias = np.sum((mean - away / (n - 1)) ** 2, axis=1) - less_variance / (n - 1)
    quantile = stats.t.ppf(0.5 + level / 2, n - 1)

    def jackknife(value: float, without: np.ndarray) -> Mean:
        half = float(quantile * np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
        return Mean(float(value), float(value) - half, float(value) + half, n)

    return Moments(jackknife(bias, less_bias), jackknife(variance, less_variance))
