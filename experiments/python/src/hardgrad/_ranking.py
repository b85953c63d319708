"""The order of estimators by variance x cost, and which differ beyond noise."""
from __future__ import annotations

import math
from typing import NamedTuple, Sequence


class Score(NamedTuple):
    """variance: with its interval, at a level for all pairs together; cost: of one estimate; biased: whether a bias was found."""
    variance: float
    low: float
    high: float
    cost: float
    biased: bool


def level_of_pairs(count: int, level: float) -> float:
    """The level of each interval with which those of all pairs hold together (Dunn 1961)."""
    return 1 - (1 - level) / max(1, count * (count - 1) // 2)


def better(a: Score, b: Score) -> bool:
    """Whether a's variance x cost is less beyond noise: the interval of the ratio, made of those of both (Zou & Donner 2008,
    Construction of confidence limits about effect measures), is below 1. Costs are taken as known."""
    if not (a.variance > 0 and b.variance > 0):
        return a.variance == 0 and b.low > 0
    difference = math.log(b.variance * b.cost) - math.log(a.variance * a.cost)
    below = math.log(b.variance / b.low) if b.low > 0 else math.inf
    above = math.log(a.high / a.variance)
    return difference - math.hypot(below, above) > 0


def ranks(scores: Sequence[Score]) -> list[float]:
    """1 + the number of those without bias that are better beyond noise; NaN for those with a bias."""
    return [math.nan if score.biased else 1.0 + sum(better(other, score) for other in scores if not other.biased and other is not score)
            for score in scores]
