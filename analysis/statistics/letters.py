"""The compact letter display: methods that do not differ beyond noise share a letter."""

from __future__ import annotations

import string

import numpy as np


def letters(differs: np.ndarray) -> list[str]:
    """A text of letters for each method: a greedy clique cover of the pairs that do not differ (Gramm, Guo, Hueffner &
    Niedermeier 2008, Algorithms for compact letter displays: comparison and evaluation).

    differs [methods, methods], symmetric: whether a pair differs beyond noise. Two methods share a letter if and only
    if they do not differ. The first letters go to the first methods, so sort the methods by their means before. """
    alike = ~np.asarray(differs, bool)
    np.fill_diagonal(alike, True)
    left = alike.copy()  # pairs without a common letter; a method without any pair is a pair with itself
    columns: list[list[int]] = []
    for i in range(len(alike)):
        while left[i, i:].any():
            others = np.flatnonzero(left[i, i:]) + i
            column = {i, int(others[others > i][0]) if (others > i).any() else i}
            for k in range(len(alike)):
                if alike[k, list(column)].all():
                    column.add(k)
            members = sorted(column)
            left[np.ix_(members, members)] = False
            columns.append(members)
    columns.sort()
    return ["".join(_letter(k) for k, column in enumerate(columns) if i in column) for i in range(len(alike))]


def _letter(k: int) -> str:
    """a, b, ..., z, A, ..., Z, then with a number: a1, b1, ..."""
    places = string.ascii_lowercase + string.ascii_uppercase
    return places[k % len(places)] + (str(k // len(places)) if k >= len(places) else "")
