"""Measured quantities of a group of runs: means over seeds with intervals, and known biases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from .groups import Group
from .rounding import at_step, doubtful
from .statistics import Mean, holm, mean_interval, propagated_mean
from .steps import Step, pick


def measurements(data: xr.Dataset, name: str, step: Step) -> Callable[[Group], Mean]:
    """By group: the mean of a measured quantity over its seeds; for a single seed, with the measurement's own interval.

    A squared bias is averaged as it was estimated, without bias and possibly negative; its interval is the wider one of Student's over
    the seeds and that of the measurements (`propagated_mean`). A relative bias is the root of the mean of squared bias over squared norm
    of the gradient, cut at 0 after averaging, and so are the ends of its interval.
    """
    if name in ("squared_bias", "relative_bias") and "squared_bias" in data.data_vars:
        return _biases(data, name == "relative_bias", step)
    values = at_step(data, name, step)
    own = at_step(data, f"{name}_interval", step) if f"{name}_interval" in data else None

    def of(group: Group) -> Mean:
        mean = mean_interval(values[group.runs])
        if mean.count == 1 and own is not None:
            low, high = own[group.runs][np.isfinite(values[group.runs])][0]
            mean = mean._replace(low=float(low), high=float(high))
        return mean

    return of


def measured(data: xr.Dataset, group: Group, name: str, step: Step) -> Mean:
    """The same for one group."""
    return measurements(data, name, step)(group)


def _biases(data: xr.Dataset, relative: bool, step: Step) -> Callable[[Group], Mean]:
    values = at_step(data, "squared_bias", step)
    ends = at_step(data, "squared_bias_interval", step) if "squared_bias_interval" in data else np.full((len(values), 2), np.nan)
    scale = np.ones(len(values))
    if relative:
        scale = pick(data, "estimand_norm", step) ** 2 if "estimand_norm" in data.data_vars else np.full(len(values), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        values, ends = np.where(values == 0, 0, values / scale), np.where(ends == 0, 0, ends / scale[:, None])

    def of(group: Group) -> Mean:
        x, low, high = values[group.runs], ends[group.runs, 0], ends[group.runs, 1]
        mean, noise = mean_interval(x), propagated_mean(x, low, high)
        mean = mean._replace(low=float(np.fmin(mean.low, noise.low)), high=float(np.fmax(mean.high, noise.high)))
        root = [float(np.sqrt(max(end, 0))) if np.isfinite(end) else end for end in mean[:3]]
        return Mean(root[0], root[1], root[2], mean.count) if relative else mean

    return of


def biased_runs(data: xr.Dataset, step: Step, level: float = 0.05) -> np.ndarray:
    """[run] Whether a bias was found: the p-value, corrected for the number of runs (Holm 1979), is below `level`, and the replicates
    support it."""
    if "bias_p_value" not in data.data_vars:
        return np.zeros(data.sizes["run"], bool)
    with np.errstate(invalid="ignore"):
        return (holm(at_step(data, "bias_p_value", step)) < level) & ~doubtful(data, step)


def known_unbiased(data: xr.Dataset, step: Step) -> np.ndarray:
    """[run] Whether an estimator is known to be unbiased for its target: by its derivation (`known_unbiased`), unless a bias was found,
    or by an exact squared bias of 0."""
    known = np.zeros(data.sizes["run"], bool)
    if "known_unbiased" in data.data_vars:
        known = (pick(data, "known_unbiased", step).astype(str) == "yes") & ~biased_runs(data, step)
    if {"exact_squared_bias", "squared_bias"} <= set(data.data_vars):
        known |= np.isfinite(pick(data, "exact_squared_bias", step)) & (at_step(data, "squared_bias", step) == 0)
    return known


def shown_bias(data: xr.Dataset, step: Step) -> Callable[[Group], Mean]:
    """By group: the squared bias for a figure: 0, without an interval, where no bias is known (`known_unbiased`), else as measured."""
    known, of = known_unbiased(data, step), measurements(data, "squared_bias", step)

    def bias(group: Group) -> Mean:
        found = of(group)
        return Mean(0.0, np.nan, np.nan, found.count) if known[group.runs].all() and np.isfinite(found.mean) else found

    return bias


def targets_of(data: xr.Dataset) -> np.ndarray:
    """[run] The target of every run's estimator; "" if it was not recorded, with a measurement or with the training."""
    found = np.full(data.sizes["run"], "", object)
    if "trained_target" in data.data_vars:
        found = data["trained_target"].values.astype(str).astype(object)
    if "own_target" not in data.data_vars:
        return found
    return np.array([next((str(aim) for aim in row if str(aim)), own) for row, own in zip(data["own_target"].values, found)], object)
