"""Figures of bias, variance and cost, one point per estimator."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .drawing import draw_panels, readable_log, set_symlog
from .groups import Group, panels
from .load import need
from .statistics import Mean
from .style import Look
from .table import measured, measurement_step

_REMEDY = "set measure.at in the sweep"


def _bar(mean: Mean, floor: float) -> np.ndarray | None:
    """An error bar from the interval, not below `floor`."""
    if not np.isfinite([mean.low, mean.high]).all():
        return None
    return np.array([[max(mean.mean - max(mean.low, floor), 0)], [max(mean.high - mean.mean, 0)]])


def _point(ax: Axes, style: Look, x: Mean, y: Mean, x_floor: float) -> None:
    ax.errorbar([x.mean], [y.mean], xerr=_bar(x, x_floor), yerr=_bar(y, 0), fmt=style.marker, color=style.colour, markersize=7.5,
                markeredgecolor="white", markeredgewidth=0.6, elinewidth=1.3, capsize=2.5, zorder=3)


def _extent(mean: Mean, floor: float) -> list[float]:
    return [v for v in (mean.mean, max(mean.low, floor), mean.high) if np.isfinite(v)]


def bias_variance(data: xr.Dataset, at: str | int = "first") -> Figure:
    """Variance against squared bias with 95% intervals, one point per estimator, a panel per task.

    Both axes are linear around zero and logarithmic beyond. The estimate of the squared bias is itself unbiased: it
    falls below zero about half of the time where there is no bias; such points are drawn where they are.
    """
    step = measurement_step(data, at)
    need(data, "variance", _REMEDY)
    need(data, "squared_bias", _REMEDY)

    def panel(ax: Axes, members: list[Group], look: dict[str, Look]) -> bool:
        xs, ys = [], []
        for group in members:
            bias, variance = (measured(data, group, name, step) for name in ("squared_bias", "variance"))
            if not np.isfinite([bias.mean, variance.mean]).all():
                continue
            xs += _extent(bias, -np.inf)
            ys += _extent(variance, 0)
            _point(ax, look[group.label], bias, variance, -np.inf)
        if not xs:
            return False
        ax.axvline(0, color="#555555", linewidth=1, zorder=1)
        set_symlog("x", ax, xs)
        set_symlog("y", ax, ys)
        ax.margins(0.08)
        return True

    return draw_panels(panels(data), f"Bias and variance of the gradient at step {step}", panel,
                       "squared bias (unbiased estimate: may fall below 0)", "variance", lines=False)


def variance_against_cost(data: xr.Dataset, at: str | int = "first") -> Figure:
    """Variance against the rows of one gradient, with 95% intervals; along a dotted line variance x rows is the same: lower
    lines are better, whatever the budget (Glynn & Whitt 1992)."""
    step = measurement_step(data, at)
    need(data, "variance", _REMEDY)
    need(data, "rows", _REMEDY)

    def panel(ax: Axes, members: list[Group], look: dict[str, Look]) -> bool:
        xs, ys = [], []
        for group in members:
            rows, variance = (measured(data, group, name, step) for name in ("rows", "variance"))
            if not np.isfinite(variance.mean) or not rows.mean > 0:
                continue
            xs.append(rows.mean)
            ys += _extent(variance, 0)
            _point(ax, look[group.label], Mean(rows.mean, np.nan, np.nan, rows.count), variance, 0)
        if not xs:
            return False
        ax.set_xscale("log")
        set_symlog("y", ax, ys)
        ax.set_xlim(min(xs) / 2, max(xs) * 2)
        readable_log(ax.xaxis, *ax.get_xlim())
        bottom, top = -0.15 * min([y for y in ys if y > 0], default=1), max(ys) * 3 if max(ys) > 0 else 1
        ax.set_ylim(bottom, top)
        x = np.geomspace(min(xs) / 2, max(xs) * 2, 60)
        positive = [y for y in ys if y > 0]
        if positive:
            for power in range(int(np.floor(np.log10(min(positive) * min(xs)))), int(np.ceil(np.log10(top * max(xs)))) + 1, 2):
                ax.plot(x, 10.0**power / x, color="#bbbbbb", linestyle=":", linewidth=1, zorder=1, scalex=False, scaley=False)
        return True

    return draw_panels(panels(data), f"Variance and cost of one gradient at step {step} (dotted: equal variance × rows)", panel,
                       "rows of one gradient", "variance", lines=False)
