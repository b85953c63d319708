"""Which methods no other beats in everything."""

from __future__ import annotations

import numpy as np


def pareto_front(costs: np.ndarray) -> np.ndarray:
    """Mask [methods] of the Pareto front of costs [methods, criteria], lower being better in all: the methods that no other
    equals or beats in every criterion while beating it in one (Pareto 1906; Deb 2001, Multi-objective optimization). Methods
    with a NaN are not on the front and dominate nobody."""
    x = np.asarray(costs, dtype=float)
    known = np.isfinite(x).all(axis=1)
    no_worse = (x[:, None, :] <= x[None, :, :]).all(axis=2)
    better = (x[:, None, :] < x[None, :, :]).any(axis=2)
    return known & ~(no_worse & better & known[:, None]).any(axis=0)
