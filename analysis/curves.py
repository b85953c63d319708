"""Figures of quantities over training, against steps or cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy import stats

from .budgets import COSTS, cost_so_far
from .drawing import broken, draw_panels, font_scale, readable_log
from .errors import InputError
from .groups import Group, runs_of
from .quantities import evaluation_names, most_common
from .result import Result
from .style import LineStyle

_MOST_POINTS = 200  # of a curve: more are not seen, and make large files
_MARKS = 7  # of a long curve


def curves(
    result: Result,
    name: str,
    axis: str,
    log: bool,
    ax: Axes,
    members: list[Group],
    styles: dict[str, LineStyle],
    places: np.ndarray | None = None,
) -> bool:
    """Mean over seeds with its 95% interval as a band (Student's, as in the tables), one curve per
    group. The axis shows the means and the seeds; a band may go beyond it. With `log`, geometric
    means; groups at zero are named. `places` [run, axis] replaces the steps as horizontal axis; a
    group is drawn at their mean over seeds. Of long runs evenly spaced points are drawn. False if
    there is nothing to draw."""
    zero, drawn, seen = [], False, []
    for place, group in enumerate(members):
        values = result.values(name)[group.runs]
        if not np.isfinite(values).any():
            continue
        if log and not (values[np.isfinite(values)] > 0).any():
            zero.append(group.label)
            continue
        kept = np.where(np.isfinite(values) & ((values > 0) | (not log)), values, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns without a number
            mean, lower, upper = _band(np.log(kept) if log else kept)
            if log:
                mean, lower, upper = np.exp(mean), np.exp(lower), np.exp(upper)
            x = (
                result.values(axis).astype(float)
                if places is None
                else np.nanmean(np.where(np.isfinite(kept), places[group.runs], np.nan), axis=0)
            )
        there = np.isfinite(mean) & np.isfinite(x) & ((x > 0) | (places is None))
        if not there.any():
            continue
        style = styles[group.label]
        shown = np.flatnonzero(there)
        shown = shown[np.unique(np.linspace(0, len(shown) - 1, _MOST_POINTS).round().astype(int))]
        few = len(shown) <= 12
        ax.plot(
            x[shown],
            mean[shown],
            color=style.colour,
            linestyle=style.line,
            marker=style.marker,
            markevery=1 if few else _marks(x[shown], places is not None, place / len(members)),
            markersize=(6 if few else 5) * font_scale(),
            linewidth=1.6 * font_scale(),
            markeredgecolor="white",
            markeredgewidth=0.5,
            zorder=3,
        )
        ax.fill_between(
            x[shown],
            lower[shown],
            upper[shown],
            color=style.colour,
            alpha=0.15,
            linewidth=0,
            zorder=2,
        )
        seen += kept[:, there][np.isfinite(kept[:, there])].tolist()
        drawn = True
    if drawn:
        ends = np.log([min(seen), max(seen)]) if log else np.array([min(seen), max(seen)])
        room = 0.05 * (ends[1] - ends[0] or 0.1 * abs(ends[1]) or 1)
        ax.set_ylim(*(np.exp(ends + [-room, room]) if log else ends + [-room, room]))
    if zero:
        ax.text(
            0.98,
            0.02,
            "zero: " + ", ".join(zero),
            transform=ax.transAxes,
            ha="right",
            va="bottom",
            fontsize=8.5,
            color="#333333",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
            zorder=4,
        )
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


def _marks(x: np.ndarray, log: bool, phase: float) -> list[int]:
    """Positions of the markers of a curve: evenly spaced along the axis, whatever the curve does;
    `phase` in [0, 1) parts those of several curves."""
    at = np.log(x) if log else x
    wanted = at[0] + (at[-1] - at[0]) * (np.arange(_MARKS) + phase) / _MARKS
    return sorted(set(np.abs(at[:, None] - wanted).argmin(axis=0).tolist()))


def _band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean over seeds [seeds, axis] and the ends of its 95% interval; NaN ends with a single
    seed."""
    count = np.isfinite(values).sum(axis=0)
    mean = np.nanmean(values, axis=0)
    half = (
        stats.t.ppf(0.975, np.maximum(count - 1, 1))
        * np.nanstd(values, axis=0, ddof=1)
        / np.sqrt(count)
    )
    return mean, mean - half, mean + half


def _measured(
    data: xr.Dataset | Result,
    name: str,
    why: str,
    title: str,
    label: str,
    log: bool = False,
    finish: Callable[[Axes], object] = lambda ax: None,
) -> Figure:
    """The variable `name` at the measured steps. `why` explains in the message why it may be
    missing; `finish` adjusts the axes of panels with something drawn."""
    result = Result.of(data)
    result.need(name, why)

    def panel(ax: Axes, members: list[Group], styles: dict[str, LineStyle]) -> bool:
        drawn = curves(result, name, "measurement_step", log, ax, members, styles)
        if drawn:
            finish(ax)
        return drawn

    mean = "geometric mean" if log else "mean"
    return draw_panels(
        result.panels_with(name),
        f"{title} ({mean} over seeds; band: 95% interval)",
        panel,
        COSTS["steps"],
        label,
        part=result.part,
    )


def variance_over_training(data: xr.Dataset | Result) -> Figure:
    """Variance of the gradient at the measured steps: geometric mean over seeds, and its
    interval."""
    return _measured(
        data,
        "variance",
        "set measure.at in the sweep",
        "Variance of the gradient over training",
        "variance",
        log=True,
    )


def cosine_over_training(data: xr.Dataset | Result) -> Figure:
    """Mean cosine between an estimate and the true gradient at the measured steps: 1 is exact, 0 is
    chance."""

    def finish(ax: Axes) -> None:
        ax.axhline(0, color="#555555", linewidth=1, zorder=1)
        ax.set_ylim(min(ax.get_ylim()[0], -0.05), 1.05)

    return _measured(
        data,
        "cosine",
        "set measure.at in the sweep",
        "Cosine of estimate and true gradient",
        "cosine",
        finish=finish,
    )


def entropy_over_training(data: xr.Dataset | Result) -> Figure:
    """Mean entropy of one choice of the network at the measured steps: 0 is deterministic, log S is
    uniform over S options."""
    return _measured(
        data,
        "attention_entropy",
        "set measure.at in the sweep; earlier versions did not record it",
        "Attention entropy: nats per choice",
        "entropy (nat)",
        finish=lambda ax: ax.set_ylim(0, max(1.05 * ax.get_ylim()[1], 0.1)),
    )


def loss_curves(
    data: xr.Dataset | Result, name: str = "train_loss", against: str = "steps"
) -> Figure:
    """Training loss (or a held-out loss by its variable's name) against a cost of `COSTS`: mean
    over seeds, and its interval."""
    result = Result.of(data)
    values = result.need(name, "nothing was trained: set train.steps in the sweep")
    axis = "step" if "step" in result.data[name].dims else "evaluation_step"
    what = (
        "Training loss"
        if name == "train_loss"
        else f"{result.evaluated_along.capitalize()} loss: "
        + name.removeprefix("heldout_").replace("_", " ")
    )
    places = None if against == "steps" else cost_so_far(result, axis, against)

    def panel(ax: Axes, members: list[Group], styles: dict[str, LineStyle]) -> bool:
        runs = runs_of(members)
        finite = values[runs]
        finite = finite[np.isfinite(finite)]
        drawn = curves(result, name, axis, False, ax, members, styles, places)
        if finite.size and finite.min() > 0 and finite.max() > 30 * finite.min():
            ax.set_yscale("log")
            ax.set_ylim(
                finite.min() / 1.2, finite.max() * 1.2
            )  # the limits of a linear axis may be negative
        if drawn and name == "train_loss" and len(aims := targets(result, runs)) > 1:
            words = "losses of different targets: " + ", ".join(
                aim.replace("_", " ") for aim in aims
            )
            ax.text(
                0.98,
                0.98,
                broken(words, 2.6 * font_scale(), 8.5 * font_scale()),
                transform=ax.transAxes,
                ha="right",
                va="top",
                zorder=4,
                fontsize=8.5 * font_scale(),
                color="#333333",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
            )
        return drawn

    return draw_panels(
        result.panels_with(name),
        f"{what} (mean over seeds; band: 95% interval)",
        panel,
        COSTS[against],
        "loss",
        part=result.part,
    )


def targets(result: Result, runs: np.ndarray) -> list[str]:
    """Targets of these runs' estimators, if they were recorded."""
    return sorted(set(result.targets[runs]) - {""})


def heldout_curves(data: xr.Dataset | Result, against: str = "steps") -> Figure:
    """The most common held-out loss."""
    result = Result.of(data)
    names = evaluation_names(result, "heldout")
    if not names:
        raise InputError(f"{result.path}: has no held-out loss: nothing was evaluated")
    return loss_curves(result, names[0], against)


def metric_curves(
    data: xr.Dataset | Result, name: str | None = None, against: str = "steps"
) -> Figure:
    """A metric against a cost of `COSTS`. Without a metric's name, each panel shows its task's
    first one by preference (`quantities.evaluation_names`). InputError if no network has it."""
    result = Result.of(data)
    every = evaluation_names(result, "metric")
    if name is not None:
        result.need(name, f"evaluated metrics are: {', '.join(every) or 'none'}")
    shown = {
        panel: most_common(result, [name] if name else every, runs_of(members))
        for panel, members in result.panels.items()
    }
    found = {panel: members for panel, members in result.panels.items() if shown[panel]}
    if not found:
        raise InputError(f"{result.path}: has no metric: evaluate a task that has one")
    places = None if against == "steps" else cost_so_far(result, "evaluation_step", against)

    def panel(ax: Axes, members: list[Group], styles: dict[str, LineStyle]) -> bool:
        metric = str(shown[members[0].panel])
        drawn = curves(result, metric, "evaluation_step", False, ax, members, styles, places)
        if result.is_share(metric):
            ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=None))
        ax.annotate(
            metric.removeprefix("metric_").replace("_", " "),
            (0, 1.0),
            xytext=(4, -4),
            xycoords="axes fraction",
            textcoords="offset points",
            va="top",
            fontsize=9,
            color="#444444",
        )
        return drawn

    return draw_panels(
        found,
        f"{result.evaluated_along.capitalize()} metric (mean over seeds; band: 95% interval)",
        panel,
        COSTS[against],
        "metric",
        part=result.part,
    )
