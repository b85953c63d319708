"""Tuned settings, such as learning rates: which one is best, and a score of the estimator at its
best setting without selection bias."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .statistics import pairwise_differences

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Tuned(NamedTuple):
    """An estimator at its best setting."""

    scores: (
        np.ndarray
    )  # [seeds], each at the setting that is best for the other seeds; NaN for missing runs
    chosen: int  # the setting that is best over all seeds
    unsettled: bool = False  # true if the seeds were scored at different settings


def tuned(scores: np.ndarray) -> Tuned:
    """Scores [settings, seeds], lower is better, NaN for a missing run.

    The best of several noisy numbers looks better than it is. So each seed is scored at the setting
    that the other seeds choose (leave-one-out cross-validation: Stone 1974). With a single seed
    there are no others, and the score is that of the best setting. A setting with missing runs is
    chosen only if all have some."""
    if np.isfinite(scores).sum() == 0:
        return Tuned(np.full(scores.shape[1], np.nan), 0)

    def best(of: np.ndarray) -> int:  # of [settings, some seeds]
        most = np.isfinite(of).sum(axis=1)
        with np.errstate(invalid="ignore"):
            means = np.where(
                most == most.max(), np.nansum(of, axis=1) / np.maximum(most, 1), np.inf
            )
        return int(np.argmin(means))

    seeds = scores.shape[1]
    if len(scores) == 1 or seeds == 1:
        return Tuned(scores[best(scores)].copy(), best(scores))
    choices = [best(np.delete(scores, seed, axis=1)) for seed in range(seeds)]
    return Tuned(scores[choices, np.arange(seeds)], best(scores), len(set(choices)) > 1)


class Near(NamedTuple):
    """How close the other settings are: the difference of the next best to the chosen one; positive
    is worse."""

    others: int  # other settings with numbers
    close: int  # number of these that do not differ from the chosen one beyond noise
    next: int  # the best of `others`; -1 without any
    difference: float
    low: float
    high: float


def nearest(scores: np.ndarray, chosen: int) -> Near:
    """Scores [settings, seeds], lower is better, NaN for a missing run. Intervals hold
    simultaneously for all pairs of settings (Dunn 1961), since the chosen one is the best of the
    same numbers. With a single seed all others count as close."""
    with np.errstate(invalid="ignore"):
        differences = pairwise_differences(scores)
        others = np.flatnonzero(
            np.isfinite(differences.difference[:, chosen]) & (np.arange(len(scores)) != chosen)
        )
        if not others.size:
            return Near(0, 0, -1, np.nan, np.nan, np.nan)
        following = int(others[np.argmin(differences.difference[others, chosen])])
        close = int((~(differences.low[others, chosen] > 0)).sum())
    return Near(
        len(others), close, following, *(float(part[following, chosen]) for part in differences[:3])
    )


def at_edge(settings: Sequence[dict[str, str]], chosen: int) -> dict[str, str]:
    """The chosen setting's numbers at the end of the range tried, by name, with the range. Better
    values may lie beyond."""
    found = {}
    for name, value in settings[chosen].items():
        tried = sorted(
            {setting[name] for setting in settings if name in setting},
            key=lambda text: float(text) if _number(text) else 0,
        )
        if len(tried) > 1 and all(map(_number, tried)) and value in (tried[0], tried[-1]):
            found[name] = f"{tried[0]} to {tried[-1]}"
    return found


def _number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None
