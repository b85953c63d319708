"""Does attention depend on what is asked, and is anything left to chance? Where not, what is compared is not what one thinks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from .frames import per_run
from .groups import panels
from .table import last

#: Share of the positions that words could attend to below which attention has collapsed: nearly all words of a sentence attend to one.
COLLAPSED = 0.1
#: Entropy of a choice, in nats, below which it is as good as certain: of two options the other one has a probability below 1e-4.
CERTAIN = 1e-3


def collapsed(data: xr.Dataset) -> dict[tuple[str, str], list[str]]:
    """By task and model, the estimators whose networks attend, at their last evaluation, to nearly one position whatever the word:
    `metric_positions_used` of one of their runs is below `COLLAPSED`. Nothing where that was not evaluated."""
    if "metric_positions_used" not in data:
        return {}
    used = per_run(data, "metric_positions_used")
    return _where(data, lambda runs: (used[runs] < COLLAPSED).any())


def certain(data: xr.Dataset) -> dict[tuple[str, str], list[str]]:
    """By task and model, the estimators one of whose networks was sure of every choice when it was last measured: `attention_entropy` is
    below `CERTAIN`. (Of numbers it is a density's, and may be negative: these are not meant.) Nothing where that was not measured."""
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
