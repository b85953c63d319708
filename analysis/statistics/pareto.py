"""Pareto-optimal methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def pareto_front(known: np.ndarray, ends: Sequence[np.ndarray]) -> np.ndarray:
    """Mask [methods] of the Pareto front (Pareto 1906; Deb 2001, Multi-objective optimization); lower is better in all
    criteria. A method is off the front if another is established to be no worse in every criterion and better in one.

    `ends` of each criterion: [methods, methods], the upper end of the interval of method i minus method j, or the
    difference itself if it has no interval. Method i is established to be no worse if this is not above zero. Methods
    that are not `known` [methods] are excluded: they are not on the front and dominate no method. """
    with np.errstate(invalid="ignore"):
        no_worse = np.all([end <= 0 for end in ends], axis=0)
        better = np.any([end < 0 for end in ends], axis=0)
    beats = no_worse & better & known[:, None] & ~np.eye(len(known), dtype=bool)
    return known & ~beats.any(axis=0)
