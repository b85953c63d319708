"""Which methods no other beats in everything."""

from __future__ import annotations

import numpy as np

from .differences import Difference


def pareto_front(known: np.ndarray, differences: list[dict[tuple[int, int], Difference]]) -> np.ndarray:
    """Mask [methods] of the Pareto front (Pareto 1906; Deb 2001, Multi-objective optimization), lower being better in all criteria:
    the methods of which it is not established that another equals or beats them in every criterion and beats them in one.

    `differences` of each criterion: by pair (i, j), method i less method j with its interval. That i is no worse is established where
    the whole interval is not above zero; without an interval the number itself decides. Methods that are not `known` [methods] are not
    on the front and dominate nobody.
    """
    n = len(known)
    front = known.copy()
    for j in range(n):
        for i in range(n):
            if i == j or not (known[i] and known[j]):
                continue
            ends = [_upper_end(criterion[i, j]) for criterion in differences]
            if all(end <= 0 for end in ends) and any(end < 0 for end in ends):
                front[j] = False
    return front


def _upper_end(difference: Difference) -> float:
    return difference.high if np.isfinite(difference.high) else difference.difference
