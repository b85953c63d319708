"""Figures of quantities over training, against steps or cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .budgets import COSTS, cost_so_far
from .drawing import draw_panels, letters, readable_log
from .errors import InputError
from .groups import Group, evaluated_along, panels
from .lettering import broken
from .load import need
from .style import Look
from .table import evaluation_names

def curves(data: xr.Dataset, name: str, axis: str, log: bool, ax: Axes, members: list[Group], look: dict[str, Look],
           places: np.ndarray | None = None) -> bool:
    """Mean over seeds with a band from the lowest to the highest seed, one curve per group. (With the usual three seeds, an interval of
    the mean would exceed the panel.) With `log`, geometric means; groups at zero are named. `places` [run, axis] replaces the steps as
    horizontal axis; a group is drawn at their mean over seeds. False if there is nothing to draw."""
    zero, drawn = [], False
    for group in members:
        values = data[name].values[group.runs]
        if not np.isfinite(values).any():
            continue
        if log and not (values[np.isfinite(values)] > 0).any():
            zero.append(group.label)
            continue
        kept = np.where(np.isfinite(values) & ((values > 0) | (not log)), values, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns without a number
            mean = np.exp(np.nanmean(np.log(kept), axis=0)) if log else np.nanmean(kept, axis=0)
            x = data[axis].values.astype(float) if places is None else np.nanmean(
                np.where(np.isfinite(kept), places[group.runs], np.nan), axis=0)
            low, high = np.nanmin(kept, axis=0), np.nanmax(kept, axis=0)
        there = np.isfinite(mean) & np.isfinite(x) & ((x > 0) | (places is None))
        if not there.any():
            continue
        style = look[group.label]
        few = there.sum() <= 12
        ax.plot(x[there], mean[there], color=style.colour, linestyle=style.line, marker=style.marker, markevery=1 if few else 0.12,
                markersize=6 if few else 5, linewidth=1.6, markeredgecolor="white", markeredgewidth=0.5, zorder=3)
        ax.fill_between(x[there], low[there], high[there], color=style.colour, alpha=0.15, linewidth=0, zorder=2)
        drawn = True
    if zero:
        ax.text(0.98, 0.02, "zero: " + ", ".join(zero), transform=ax.transAxes, ha="right", va="bottom", fontsize=8.5,
                color="#333333", bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}, zorder=4)
    if places is not None and drawn:
        ax.set_xscale("log")
        readable_log(ax.xaxis, *ax.get_xlim())
    if log and drawn:
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        if zero:
            ax.set_ylim(low * (low / high) ** 0.12, high)  # room for the words
        readable_log(ax.yaxis, low, high)
    return drawn or bool(zero)


def _measured(data: xr.Dataset, name: str, why: str, title: str, label: str, log: bool = False,
              finish: Callable[[Axes], object] = lambda ax: None) -> Figure:
    """The variable `name` at the measured steps. `why` explains in the message why it may be missing; `finish` adjusts the axes of
    panels with something drawn."""
    need(data, name, why)

    def panel(ax: Axes, members: list[Group], look: dict[str, Look]) -> bool:
        drawn = curves(data, name, "measurement_step", log, ax, members, look)
        if drawn:
            finish(ax)
        return drawn

    mean = "geometric mean" if log else "mean"
    return draw_panels(panels(data), f"{title} ({mean} over seeds; band: their range)", panel, COSTS["steps"], label)


def variance_over_training(data: xr.Dataset) -> Figure:
    """Variance of the gradient at the measured steps: geometric mean over seeds, and their range."""
    return _measured(data, "variance", "set measure.at in the sweep", "Variance of the gradient over training", "variance", log=True)


def cosine_over_training(data: xr.Dataset) -> Figure:
    """Mean cosine between an estimate and the true gradient at the measured steps: 1 is exact, 0 is chance."""
    def finish(ax: Axes) -> None:
        ax.axhline(0, color="#555555", linewidth=1, zorder=1)
        ax.set_ylim(min(ax.get_ylim()[0], -0.05), 1.05)

    return _measured(data, "cosine", "set measure.at in the sweep", "Cosine of estimate and true gradient", "cosine", finish=finish)


def entropy_over_training(data: xr.Dataset) -> Figure:
    """Mean entropy of one choice of the network at the measured steps: 0 is deterministic, log S is uniform over S options."""
    return _measured(data, "attention_entropy", "set measure.at in the sweep; earlier versions did not record it",
                     "Attention entropy: nats per choice", "entropy (nat)",
                     finish=lambda ax: ax.set_ylim(0, max(1.05 * ax.get_ylim()[1], 0.1)))


def loss_curves(data: xr.Dataset, name: str = "train_loss", against: str = "steps") -> Figure:
    """Training loss (or a held-out loss by its variable's name) against a cost of `COSTS`: mean over seeds, and their range."""
    values = need(data, name, "nothing was trained: set train.steps in the sweep")
    axis = "step" if "step" in values.dims else "evaluation_step"
    what = "Training loss" if name == "train_loss" else f"{evaluated_along(data).capitalize()} loss: " + name.removeprefix("heldout_").replace("_", " ")
    places = None if against == "steps" else cost_so_far(data, axis, against)

    def panel(ax: Axes, members: list[Group], look: dict[str, Look]) -> bool:
        runs = np.concatenate([group.runs for group in members])
        finite = values.values[runs]
        finite = finite[np.isfinite(finite)]
        drawn = curves(data, name, axis, False, ax, members, look, places)
        if finite.size and finite.min() > 0 and finite.max() > 30 * finite.min():
            ax.set_yscale("log")
        if drawn and name == "train_loss" and len(aims := targets(data, runs)) > 1:
            words = "losses of different targets: " + ", ".join(aim.replace("_", " ") for aim in aims)
            ax.text(0.98, 0.98, broken(words, 2.6 * letters(), 8.5 * letters()), transform=ax.transAxes, ha="right", va="top", zorder=4,
                    fontsize=8.5 * letters(), color="#333333", bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5})
        return drawn

    return draw_panels(panels(data), f"{what} (mean over seeds; band: their range)", panel, COSTS[against], "loss")


def targets(data: xr.Dataset, runs: np.ndarray) -> list[str]:
    """Targets of these runs' estimators, if they were recorded with measurements."""
    if "own_target" not in data:
        return []
    return sorted({str(aim) for aim in data["own_target"].values[runs].ravel() if str(aim)})


def heldout_curves(data: xr.Dataset, against: str = "steps") -> Figure:
    """The most common held-out loss."""
    names = evaluation_names(data, "heldout")
    if not names:
        raise InputError(f"{data.attrs.get('path', 'result')}: has no held-out loss: nothing was evaluated")
    return loss_curves(data, names[0], against)


def metric_curves(data: xr.Dataset, name: str | None = None, against: str = "steps") -> Figure:
    """A held-out metric against a cost of `COSTS`. Without a metric's name, each panel shows its task's first metric."""
    names = [name] if name else evaluation_names(data, "metric")
    if not names:
        raise InputError(f"{data.attrs.get('path', 'result')}: has no metric: evaluate a task that has one")
    for given in names:
        need(data, given, f"evaluated metrics are: {', '.join(evaluation_names(data, 'metric')) or 'none'}")
    places = None if against == "steps" else cost_so_far(data, "evaluation_step", against)

    def panel(ax: Axes, members: list[Group], look: dict[str, Look]) -> bool:
        runs = np.concatenate([group.runs for group in members])
        for candidate in names:
            if np.isfinite(data[candidate].values[runs]).any():
                drawn = curves(data, candidate, "evaluation_step", False, ax, members, look, places)
                ax.annotate(candidate.removeprefix("metric_").replace("_", " "), (0, 1.0), xytext=(4, -4),
                            xycoords="axes fraction", textcoords="offset points", va="top", fontsize=9, color="#444444")
                return drawn
        return False

    found = {key: members for key, members in panels(data).items()
             if any(np.isfinite(data[n].values[np.concatenate([group.runs for group in members])]).any() for n in names)}
    return draw_panels(found, f"{evaluated_along(data).capitalize()} metric (mean over seeds; band: their range)", panel, COSTS[against], "metric")
