"""Figures, each a function from a result to a matplotlib Figure."""

from __future__ import annotations

from typing import Callable

import matplotlib
import matplotlib.ticker
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .against import bias_against_temperature, variance_against_samples, variance_against_temperature
from .drawing import draw_panels, set_symlog
from .errors import InputError
from .groups import Group, panels
from .load import need
from .statistics import mean_interval
from .style import Look
from .table import evaluation_names, measured, measurement_step

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
        set_symlog("x", ax, xs)
        set_symlog("y", ax, ys)
        ax.margins(0.08)
        return True

    return draw_panels(panels(data), f"Bias and variance of the gradient at step {step}", panel,
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
    return draw_panels(panels(data), "Variance of the gradient over training (geometric mean over seeds; band: their range)",
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

    return draw_panels(panels(data), f"{what} (mean over seeds; band: their range)", panel, "training step", "loss")


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

    return draw_panels(panels(data), "Held-out metric (mean over seeds; band: their range)", panel, "training step", "metric")


def _heldout(data: xr.Dataset) -> Figure:
    names = evaluation_names(data, "heldout")
    if not names:
        raise InputError(f"{data.attrs.get('path', 'result')}: has no held-out loss: nothing was evaluated")
    return loss_curves(data, names[0])


#: Every figure by its file's name; each raises InputError if the result does not hold what it draws (NotApplicable if the
#: sweep was not about it).
FIGURES: dict[str, Callable[[xr.Dataset], Figure]] = {
    "bias_variance": bias_variance,
    "variance_over_training": variance_over_training,
    "loss_curves": loss_curves,
    "heldout_loss": _heldout,
    "metric_curves": metric_curves,
    "variance_against_samples": variance_against_samples,
    "variance_against_temperature": variance_against_temperature,
    "bias_against_temperature": bias_against_temperature,
}
