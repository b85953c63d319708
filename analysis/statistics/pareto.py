"""Which methods no other beats in everything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def pareto_front(known: np.ndarray, ends: Sequence[np.ndarray]) -> np.ndarray:
    """Mask [methods] of the Pareto front (Pareto 1906; Deb 2001, Multi-objective optimization), lower being better in all criteria:
    the methods of which it is not established that another equals or beats them in every criterion and beats them in one.

    `ends` of each criterion: [methods, methods], the upper end of the interval of method i less method j, or the difference itself
    where it has no interval. That i is no worse is established where it is not above zero. Methods that are not `known` [methods]
    are excluded: they are not on the front and dominate no method.
    """
    with np.errstate(invalid="ignore"):
        no_worse = np.all([end <= 0 for end in ends], axis=0)
        better = np.any([end < 0 for end in ends], axis=0)
    beats = no_worse & better & known[:, None] & ~np.eye(len(known), dtype=bool)
    return known & ~beats.any(axis=0)
