"""Assumptions about the noise of scores. Scores of training are discrete, bounded, skewed, or of
unequal noise, and few. `tests/analysis/planted_scores.py` counts how often intervals with these
assumptions are wrong."""

from __future__ import annotations

import numpy as np

#: Degrees of freedom that a variance has at most, however many numbers it is estimated from: a
#: bound on how well the form of the noise is known. With it the planted study has at most 7% wrong
#: verdicts for any number of seeds.
MOST_FREEDOM = 8


def freedom(count: np.ndarray | float) -> np.ndarray:
    """Degrees of freedom of the variance of `count` numbers: the squared relative errors of n - 1
    and of MOST_FREEDOM add (Satterthwaite 1946)."""
    n = np.asarray(count, float)
    return (n - 1) / (1 + (n - 1) / MOST_FREEDOM)


def least_p(count: np.ndarray | float) -> np.ndarray:
    """The least p-value that `count` pairs can give without an assumption about the size of the
    noise: that of the sign-flip test (Fisher 1935, The design of experiments) where all differences
    have one sign. The signs of a seed are flipped in all comparisons together, so it bounds the
    p-value of a family of tests, too."""
    return 2.0 ** (1 - np.asarray(count, float))


def fewest_pairs(level: float = 0.05) -> int:
    """The fewest pairs that can give a p-value below `level`: 6 for .05."""
    return int(np.floor(1 - np.log2(level))) + 1


def rounding_deviation(scores: np.ndarray) -> float:
    """The standard deviation of a difference of two scores by their resolution alone (uniform
    errors of rounding). The resolution is the smallest difference between two scores: 1/200 for
    shares of 200 examples. 0 if all scores are equal."""
    values = np.unique(np.asarray(scores, float)[np.isfinite(scores)])
    gaps = np.diff(values)
    gaps = (
        gaps[gaps > 1e-12 * np.abs(values).max()] if gaps.size else gaps
    )  # smaller ones are rounding errors of the arithmetic
    return float(gaps.min() / np.sqrt(6)) if gaps.size else 0.0
