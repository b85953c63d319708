"""Settings that were tried for the sake of an estimator, such as learning rates: which is best, and how good an estimator is at its
best without having looked at the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .statistics import pairwise_differences

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Tuned(NamedTuple):
    """An estimator at its best setting."""

    scores: np.ndarray  # [seeds], each at the setting that is best for the other seeds; NaN where a run is missing
    chosen: int  # the setting that is best over all seeds
    unsettled: bool = False  # the seeds were not all scored at the same setting


def tuned(scores: np.ndarray) -> Tuned:
    """Scores [settings, seeds], lower is better, NaN for a missing run.

    The best of several noisy numbers looks better than it is. So the setting at which a seed is counted is chosen by the other
    seeds alone (cross-validation, leaving one out: Stone 1974). With a single seed nothing is left to choose by, and the number
    is that of the best. A setting with missing runs is chosen only if all have some.
    """
    if np.isfinite(scores).sum() == 0:
        return Tuned(np.full(scores.shape[1], np.nan), 0)

    def best(of: np.ndarray) -> int:  # of [settings, some seeds]
        most = np.isfinite(of).sum(axis=1)
        with np.errstate(invalid="ignore"):
            means = np.where(most == most.max(), np.nansum(of, axis=1) / np.maximum(most, 1), np.inf)
        return int(np.argmin(means))

    seeds = scores.shape[1]
    if len(scores) == 1 or seeds == 1:
        return Tuned(scores[best(scores)].copy(), best(scores))
    choices = [best(np.delete(scores, seed, axis=1)) for seed in range(seeds)]
    return Tuned(scores[choices, np.arange(seeds)], best(scores), len(set(choices)) > 1)


class Near(NamedTuple):
    """How near the settings that were not chosen came: the difference of the next best one to the chosen, above zero is worse."""

    others: int  # settings that were not chosen and have numbers
    close: int  # of these, how many cannot be told apart from the chosen one
    next: int  # the best of these; -1 without any
    difference: float
    low: float
    high: float


def nearest(scores: np.ndarray, chosen: int) -> Near:
    """Scores [settings, seeds], lower is better, NaN for a missing run. Intervals hold for all pairs of settings at once (Dunn 1961), as
    the chosen one is the best of the same numbers; with a single seed nothing can be told apart."""
    with np.errstate(invalid="ignore"):
        found = pairwise_differences(scores)
        others = np.flatnonzero(np.isfinite(found.difference[:, chosen]) & (np.arange(len(scores)) != chosen))
        if not others.size:
            return Near(0, 0, -1, np.nan, np.nan, np.nan)
        following = int(others[np.argmin(found.difference[others, chosen])])
        close = int((~(found.low[others, chosen] > 0)).sum())
    return Near(len(others), close, following, *(float(part[following, chosen]) for part in found[:3]))


def at_edge(settings: Sequence[dict[str, str]], chosen: int) -> dict[str, str]:
    """The chosen setting's numbers that are the least or the largest tried: by name, the range. There might be better ones beyond."""
    found = {}
    for name, value in settings[chosen].items():
        tried = sorted({setting[name] for setting in settings if name in setting}, key=lambda text: float(text) if _number(text) else 0)
        if len(tried) > 1 and all(map(_number, tried)) and value in (tried[0], tried[-1]):
            found[name] = f"{tried[0]} to {tried[-1]}"
    return found


def _number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None
