"""Measured quantities of a group of runs: means over seeds with intervals, and known biases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .groups import Group
from .result import Result
from .rounding import at_step, has_reliability_warning
from .statistics import Mean, holm, mean_interval, propagated_mean
from .steps import Step


def measurements(result: Result, name: str, step: Step) -> Callable[[Group], Mean]:
    """By group: the mean of a measured quantity over its seeds; for a single seed, with the
    measurement's own interval.

    A squared bias is averaged as it was estimated, without bias and possibly negative; its interval
    is the wider one of Student's over the seeds and that of the measurements (`propagated_mean`). A
    relative bias is the root of the mean of squared bias over squared norm of the gradient, cut at
    0 after averaging, and so are the ends of its interval.
    """
    if name in ("squared_bias", "relative_bias") and "squared_bias" in result:
        return _biases(result, name == "relative_bias", step)
    values = at_step(result, name, step)
    own = at_step(result, f"{name}_interval", step) if f"{name}_interval" in result else None

    def of(group: Group) -> Mean:
        mean = mean_interval(values[group.runs])
        if mean.count == 1 and own is not None:
            low, high = own[group.runs][np.isfinite(values[group.runs])][0]
            mean = mean._replace(low=float(low), high=float(high))
        return mean

    return of


def measured(result: Result, group: Group, name: str, step: Step) -> Mean:
    """The same for one group."""
    return measurements(result, name, step)(group)


def _biases(result: Result, relative: bool, step: Step) -> Callable[[Group], Mean]:
    values = at_step(result, "squared_bias", step)
    ends = (
        at_step(result, "squared_bias_interval", step)
        if "squared_bias_interval" in result
        else np.full((len(values), 2), np.nan)
    )
    scale = np.ones(len(values))
    if relative:
        scale = (
            result.at("estimand_norm", step) ** 2
            if "estimand_norm" in result
            else np.full(len(values), np.nan)
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        values, ends = (
            np.where(values == 0, 0, values / scale),
            np.where(ends == 0, 0, ends / scale[:, None]),
        )

    def of(group: Group) -> Mean:
        x, low, high = values[group.runs], ends[group.runs, 0], ends[group.runs, 1]
        mean, noise = mean_interval(x), propagated_mean(x, low, high)
        mean = mean._replace(
            low=float(np.fmin(mean.low, noise.low)), high=float(np.fmax(mean.high, noise.high))
        )
        root = [float(np.sqrt(max(end, 0))) if np.isfinite(end) else end for end in mean[:3]]
        return Mean(root[0], root[1], root[2], mean.count) if relative else mean

    return of


def biased_runs(result: Result, step: Step, level: float = 0.05) -> np.ndarray:
    """[run] Whether a bias was found: the p-value, corrected for the number of runs (Holm 1979), is
    below `level`, and the replicates support it."""
    if "bias_p_value" not in result:
        return np.zeros(result.count, bool)
    with np.errstate(invalid="ignore"):
        return (holm(at_step(result, "bias_p_value", step)) < level) & ~has_reliability_warning(
            result, step
        )


def known_unbiased(result: Result, step: Step) -> np.ndarray:
    """[run] Whether an estimator is known to be unbiased for its target: by its derivation
    (`known_unbiased`), unless a bias was found, or by an exact squared bias of 0."""
    known = np.zeros(result.count, bool)
    if "known_unbiased" in result:
        known = (result.at("known_unbiased", step).astype(str) == "yes") & ~biased_runs(
            result, step
        )
    twin = result.exact_twin("squared_bias")
    if twin is not None:
        known |= np.isfinite(result.at(twin, step)) & (at_step(result, "squared_bias", step) == 0)
    return known


def shown_bias(result: Result, step: Step) -> Callable[[Group], Mean]:
    """By group: the squared bias for a figure: 0, without an interval, where no bias is known
    (`known_unbiased`), else as measured."""
    known, of = known_unbiased(result, step), measurements(result, "squared_bias", step)

    def bias(group: Group) -> Mean:
        found = of(group)
        return (
            Mean(0.0, np.nan, np.nan, found.count)
            if known[group.runs].all() and np.isfinite(found.mean)
            else found
        )

    return bias
