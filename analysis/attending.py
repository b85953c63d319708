"""Checks of attention: whether it depends on the query, and whether the policy is still random. If not, comparisons mislead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from .frames import per_run
from .groups import panels
from .quantities import last

#: Share of attended positions (of all that words could attend to) below which attention has collapsed: nearly all words share one.
COLLAPSED = 0.1
#: Entropy of a choice, in nats, below which it is practically deterministic: of two options, the other has a probability below 1e-4.
CERTAIN = 1e-3


def collapsed(data: xr.Dataset) -> dict[tuple[str, str], list[str]]:
    """By task and model, the estimators with collapsed attention: at the last evaluation of one of their runs nearly all words attend to
    one position (`metric_positions_used` is below `COLLAPSED`). Empty if this was not evaluated."""
    if "metric_positions_used" not in data:
        return {}
    used = per_run(data, "metric_positions_used")
    return _where(data, lambda runs: (used[runs] < COLLAPSED).any())


def certain(data: xr.Dataset) -> dict[tuple[str, str], list[str]]:
    """By task and model, the estimators with a practically deterministic policy: at the last measurement of one of their runs
    `attention_entropy` is below `CERTAIN`. Choices of numbers have a differential entropy, which may be negative; they are excluded.
    Empty if this was not measured."""
    if "attention_entropy" not in data:
        return {}
    entropy = last(data, "attention_entropy")
    return _where(data, lambda runs: ((entropy[runs] > -CERTAIN) & (entropy[runs] < CERTAIN)).any())


def _where(data: xr.Dataset, holds: Callable[[np.ndarray], bool]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for panel, members in panels(data).items():
        estimators = [group.estimator for group in members if holds(group.runs)]
        if estimators:
            found[panel] = estimators
    return found
