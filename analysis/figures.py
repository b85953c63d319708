"""Figures, each a function from a result to a matplotlib Figure."""

from __future__ import annotations

from typing import Callable

import matplotlib
import matplotlib.ticker

matplotlib.use("Agg")  # no display is needed

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .errors import InputError
from .groups import Group, panels
from .load import need
from .statistics import mean_interval
from .style import Look, looks
from .table import evaluation_names, measured, measurement_step

_FONT = {"font.size": 10, "axes.titlesize": 10.5, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
         "legend.fontsize": 9.5, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
         "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.axisbelow": True, "svg.hashsalt": "hardgrad"}


def _draw(data: xr.Dataset, title: str, panel: Callable[[Axes, list[Group], dict[str, Look]], bool], xlabel: str,
          ylabel: str, lines: bool = True) -> Figure:
    """A grid of panels, one per task and model, under one legend. `panel` says whether it drew anything."""
    found = panels(data)
    look = looks([group.label for members in found.values() for group in members])
    with matplotlib.rc_context(_FONT):
        figure = Figure()
        columns = min(len(found), 3 if len(found) != 4 else 2)
        rows = -(-len(found) // columns)
        labels = [label for label in look if any(g.label == label for m in found.values() for g in m)]
        wide = max(len(label) for label in labels)
        width = 4.6 * columns
        per_row = max(1, min(len(labels), int(width * 11 / (wide + 8))))
        legend_rows = -(-len(labels) // per_row)
        below = 0.22 * legend_rows + 0.1
        height = 3.4 * rows + below + 0.45
        figure.set_size_inches(width, height)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, ((task, model), members) in zip(axes, found.items()):
            drawn = panel(ax, members, look)
            name = _shorten(task if task == model else f"{task} · {model}")
            ax.set_title(name, loc="left", fontweight="bold", fontsize=10.5 if len(name) < 36 else 8)
            if not drawn:
                ax.text(0.5, 0.5, "no number here", ha="center", va="center", transform=ax.transAxes, color="#777777")
                ax.set_xticks([]), ax.set_yticks([])
        for ax in axes[len(found):]:
            ax.remove()
        for i, ax in enumerate(axes[:len(found)]):
            if i + columns >= len(found):
                ax.set_xlabel(xlabel)
            if i % columns == 0:
                ax.set_ylabel(ylabel)
        handles = [Line2D([], [], color=look[label].colour, marker=look[label].marker, markersize=6.5,
                          linestyle=look[label].line if lines else "none", label=label) for label in labels]
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
        figure.tight_layout(rect=(0, below / height, 1, 1 - 0.1 / height))
        figure.legend(handles=handles, loc="lower center", ncol=per_row, frameon=False, handlelength=2.6)
        for ax in figure.axes:
            ax.set_rasterized(False)
    return figure


def _shorten(text: str, most: int = 58) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _symlog(values: np.ndarray, decades: int = 5) -> float | None:
    """The linear threshold of a symmetric logarithmic axis for these values; None if all are zero."""
    size = np.abs(values[np.isfinite(values)])
    size = size[size > 0]
    if not size.size:
        return None
    return float(10 ** np.floor(np.log10(max(size.min(), size.max() * 10.0 ** -decades))))


def _set_symlog(axis: str, ax: Axes, values: list[float]) -> None:
    threshold = _symlog(np.array(values, dtype=float))
    if threshold is not None:
        getattr(ax, f"set_{axis}scale")("symlog", linthresh=threshold, linscale=0.6)
        which = ax.xaxis if axis == "x" else ax.yaxis
        low, high = np.nanmin([*values, 0]), np.nanmax([*values, 0])

        def powers(top: float) -> list[float]:
            if top < threshold:
                return []
            first, last = int(np.log10(threshold).round()), int(np.floor(np.log10(top)))
            stride = max(1, -(-(last - first + 1) // (4 if low < 0 and axis == "x" else 6)))
            return [10.0 ** p for p in range(last, first - 1, -stride)]

        which.set_ticks([-p for p in powers(-low)] + [0] + powers(high)[::-1])
        which.set_minor_locator(matplotlib.ticker.NullLocator())


def bias_variance(data: xr.Dataset, at: str | int = "first") -> Figure:
    """Variance against squared bias with 95% intervals, one point per estimator, a panel per task.

    Both axes are linear around zero and logarithmic beyond. The estimate of the squared bias is itself unbiased: it
    falls below zero about half of the time where there is no bias; such points are drawn where they are.
    """
    remedy = "set measure.at in the sweep"
    step = measurement_step(data, at)
    need(data, "variance", remedy)
    need(data, "squared_bias", remedy)

    def panel(ax: Axes, members: list[Group], look: dict[str, Look]) -> bool:
        xs, ys = [], []
        for group in members:
            bias, variance = (measured(data, group, name, step) for name in ("squared_bias", "variance"))
            if not np.isfinite([bias.mean, variance.mean]).all():
                continue
            xs += [v for v in bias[:3] if np.isfinite(v)]
            ys += [v for v in (variance.mean, max(variance.low, 0), variance.high) if np.isfinite(v)]
            style = look[group.label]
            bars = {name: np.array([[max(m.mean - max(m.low, floor), 0)], [m.high - m.mean]])
                    if np.isfinite([m.low, m.high]).all() else None
                    for name, m, floor in (("xerr", bias, -np.inf), ("yerr", variance, 0))}
            ax.errorbar([bias.mean], [variance.mean], **bars, fmt=style.marker, color=style.colour, markersize=7.5,
                        markeredgecolor="white", markeredgewidth=0.6, elinewidth=1.3, capsize=2.5, zorder=3)
        if not xs:
            return False
        ax.axvline(0, color="#555555", linewidth=1, zorder=1)
        _set_symlog("x", ax, xs)
        _set_symlog("y", ax, ys)
        ax.margins(0.08)
        return True

    return _draw(data, f"Bias and variance of the gradient at step {step}", panel,
                 "squared bias (unbiased estimate: may fall below 0)", "variance", lines=False)


def _curves(data: xr.Dataset, name: str, axis: str, log: bool, ax: Axes, members: list[Group],
            look: dict[str, Look]) -> bool:
    """Mean over seeds with a band from the lowest to the highest seed, one curve per group (an interval of the mean would be
    wider than the picture with the usual three seeds). With `log`, geometric means; groups at zero are named."""
    steps = data[axis].values
    zero, drawn = [], False
    for group in members:
        values = data[name].values[group.runs]
        if not np.isfinite(values).any():
            continue
        if log and not (values[np.isfinite(values)] > 0).any():
            zero.append(group.label)
            continue
        mean = np.array([mean_interval(values[:, i], log=log).mean for i in range(len(steps))])
        there = np.isfinite(mean)
        kept = np.where(values > 0, values, np.nan) if log else values
        low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
        low[there], high[there] = np.nanmin(kept[:, there], axis=0), np.nanmax(kept[:, there], axis=0)
        style = look[group.label]
        few = there.sum() <= 12
        every = 1 if few else max(1, int(there.sum()) // 8)
        ax.plot(steps[there], mean[there], color=style.colour, linestyle=style.line, marker=style.marker,
                markevery=every, markersize=6 if few else 5, linewidth=1.6, markeredgecolor="white", markeredgewidth=0.5,
                zorder=3)
        ax.fill_between(steps[there], low[there], high[there], color=style.colour, alpha=0.15, linewidth=0, zorder=2)
        drawn = True
    if zero:
        ax.text(0.98, 0.02, "zero: " + ", ".join(zero), transform=ax.transAxes, ha="right", va="bottom", fontsize=8.5,
                color="#333333", bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}, zorder=4)
    if log and drawn:
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        if zero:
            ax.set_ylim(low * (low / high) ** 0.12, high)  # room for the words
        if high < 100 * low:  # too few powers of ten to read values from
            ax.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
            ax.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    return drawn or bool(zero)


def variance_over_training(data: xr.Dataset) -> Figure:
    """Variance of the gradient at the steps measured: geometric mean over seeds, and their range."""
    need(data, "variance", "set measure.at in the sweep")
    return _draw(data, "Variance of the gradient over training (geometric mean over seeds; band: their range)",
                 lambda ax, members, look: _curves(data, "variance", "measurement_step", True, ax, members, look),
                 "training step", "variance")


def loss_curves(data: xr.Dataset, name: str = "train_loss") -> Figure:
    """Training loss (or a held-out one by its variable's name): mean over seeds, and their range."""
    values = need(data, name, "nothing was trained: set train.steps in the sweep")
    axis = "step" if "step" in values.dims else "evaluation_step"
    what = "Training loss" if name == "train_loss" else "Held-out loss: " + name.removeprefix("heldout_")

    def panel(ax: Axes, members: list[Group], look: dict[str, Look]) -> bool:
        runs = np.concatenate([group.runs for group in members])
        finite = values.values[runs]
        finite = finite[np.isfinite(finite)]
        drawn = _curves(data, name, axis, False, ax, members, look)
        if finite.size and finite.min() > 0 and finite.max() > 30 * finite.min():
            ax.set_yscale("log")
        return drawn

    return _draw(data, f"{what} (mean over seeds; band: their range)", panel, "training step", "loss")


def metric_curves(data: xr.Dataset, name: str | None = None) -> Figure:
    """A held-out metric over training; without a name, each panel shows the first its task has."""
    names = [name] if name else evaluation_names(data, "metric")
    if not names:
        raise InputError(f"{data.attrs.get('path', 'result')}: has no metric: evaluate a task that has one")
    for given in names:
        need(data, given, "the task has no such metric" + (f" (there are: {', '.join(evaluation_names(data, 'metric'))})"))

    def panel(ax: Axes, members: list[Group], look: dict[str, Look]) -> bool:
        runs = np.concatenate([group.runs for group in members])
        for candidate in names:
            if np.isfinite(data[candidate].values[runs]).any():
                drawn = _curves(data, candidate, "evaluation_step", False, ax, members, look)
                ax.annotate(candidate.removeprefix("metric_"), (0, 1.0), xytext=(4, -4), xycoords="axes fraction",
                            textcoords="offset points", va="top", fontsize=9, color="#444444")
                return drawn
        return False

    return _draw(data, "Held-out metric (mean over seeds; band: their range)", panel, "training step", "metric")


def _heldout(data: xr.Dataset) -> Figure:
    names = evaluation_names(data, "heldout")
    if not names:
        raise InputError(f"{data.attrs.get('path', 'result')}: has no held-out loss: nothing was evaluated")
    return loss_curves(data, names[0])


#: Every figure by its file's name; each raises InputError if the result does not hold what it draws.
FIGURES: dict[str, Callable[[xr.Dataset], Figure]] = {
    "bias_variance": bias_variance,
    "variance_over_training": variance_over_training,
    "loss_curves": loss_curves,
    "heldout_loss": _heldout,
    "metric_curves": metric_curves,
}
