"""Checks of attention: whether it depends on the query, and whether the policy is still random. If
not, comparisons mislead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .frames import per_run
from .groups import Network
from .result import Result

#: Share of attended positions (of all that words could attend to) below which attention has
#: collapsed: nearly all words share one.
COLLAPSED = 0.1
#: Entropy of a choice, in nats, below which it is practically deterministic: of two options, the
#: other has a probability below 1e-4.
CERTAIN = 1e-3


def collapsed(result: Result) -> dict[Network, list[str]]:
    """By task and model, the estimators with collapsed attention: at the last evaluation of one of
    their runs nearly all words attend to one position (`metric_positions_used` is below
    `COLLAPSED`). Empty if this was not evaluated."""
    if "metric_positions_used" not in result:
        return {}
    used = per_run(result, "metric_positions_used")
    return _where(result, lambda runs: (used[runs] < COLLAPSED).any())


def certain(result: Result) -> dict[Network, list[str]]:
    """By task and model, the estimators with a practically deterministic policy: at the last
    measurement of one of their runs `attention_entropy` is below `CERTAIN`. Choices of numbers have
    a differential entropy, which may be negative; they are excluded. Empty if this was not
    measured."""
    if "attention_entropy" not in result:
        return {}
    entropy = result.last("attention_entropy")
    return _where(
        result, lambda runs: ((entropy[runs] > -CERTAIN) & (entropy[runs] < CERTAIN)).any()
    )


def _where(result: Result, holds: Callable[[np.ndarray], bool]) -> dict[Network, list[str]]:
    found: dict[Network, list[str]] = {}
    for panel, members in result.panels.items():
        estimators = [group.estimator for group in members if holds(group.runs)]
        if estimators:
            found[panel] = estimators
    return found
