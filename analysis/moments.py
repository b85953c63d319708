"""Figures of bias, variance and cost, one point per estimator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from .drawing import draw_panels, font_scale, readable_log, set_symlog
from .groups import Group
from .measured import measured, shown_bias
from .result import Result
from .statistics import Mean
from .style import LineStyle

_REMEDY = "set measure.at in the sweep"


def _bar(mean: Mean, floor: float) -> np.ndarray | None:
    """An error bar from the interval, not below `floor`."""
    if not np.isfinite([mean.low, mean.high]).all():
        return None
    return np.array([[max(mean.mean - max(mean.low, floor), 0)], [max(mean.high - mean.mean, 0)]])


_MARKER = 7.5  # points across


class _Point(NamedTuple):
    x: Mean
    y: Mean
    style: LineStyle


def _draw_points(ax: Axes, points: list[_Point], x_floor: float) -> None:
    """Points with their intervals, on axes whose scales and limits are set. Overlapping points are
    drawn side by side, centred at their common position."""
    for point, shift in zip(points, _side_by_side(ax, points)):
        moved = ax.transData + ScaledTranslation(shift / 72, 0, ax.figure.dpi_scale_trans)
        ax.errorbar(
            [point.x.mean],
            [point.y.mean],
            xerr=_bar(point.x, x_floor),
            yerr=_bar(point.y, 0),
            fmt=point.style.marker,
            color=point.style.colour,
            markersize=_MARKER * font_scale(),
            markeredgecolor="white",
            markeredgewidth=0.6,
            elinewidth=1.3 * font_scale(),
            capsize=2.5,
            zorder=3,
            transform=moved,
        )


def _side_by_side(ax: Axes, points: list[_Point]) -> list[float]:
    """Shift of each point to the right, in points; 0 unless another is closer than half a
    marker."""
    place = ax.transData.transform([(p.x.mean, p.y.mean) for p in points]) * 72 / ax.figure.dpi
    left, shift, marker = set(range(len(points))), [0.0] * len(points), _MARKER * font_scale()
    while left:
        first = min(left)
        together = [i for i in sorted(left) if np.hypot(*(place[i] - place[first])) < marker / 2]
        for k, i in enumerate(together):
            shift[i] = (k - (len(together) - 1) / 2) * marker * 0.8
        left -= set(together)
    return shift


def _extent(mean: Mean, floor: float) -> list[float]:
    return [v for v in (mean.mean, max(mean.low, floor), mean.high) if np.isfinite(v)]


def bias_variance(data: xr.Dataset | Result, at: str | int = "first") -> Figure:
    """Variance against squared bias with 95% intervals, one point per estimator, a panel per task.

    Both axes are linear around zero and logarithmic beyond. Estimators that are known to be
    unbiased stand at 0. The estimate of the squared bias of the others is unbiased and may be
    negative; such points are drawn at their values.
    """
    result = Result.of(data)
    step = result.step(at)
    result.need("variance", _REMEDY)
    result.need("squared_bias", _REMEDY)
    bias = shown_bias(result, step)

    def panel(ax: Axes, members: list[Group], styles: dict[str, LineStyle]) -> bool:
        points = [
            _Point(bias(group), measured(result, group, "variance", step), styles[group.label])
            for group in members
        ]
        points = [p for p in points if np.isfinite([p.x.mean, p.y.mean]).all()]
        if not points:
            return False
        xs = [v for p in points for v in _extent(p.x, -np.inf)]
        ys = [v for p in points for v in _extent(p.y, 0)]
        ax.axvline(0, color="#555555", linewidth=1, zorder=1)
        ax.update_datalim([(x, y) for x in (min(xs), max(xs)) for y in (min(ys), max(ys))])
        set_symlog("x", ax, xs)
        set_symlog("y", ax, ys)
        ax.margins(0.08)
        _draw_points(ax, points, -np.inf)
        return True

    return draw_panels(
        result.panels_with("variance"),
        f"Bias and variance of the gradient at {step.words}",
        panel,
        "squared bias (0 if it is known)",
        "variance",
        lines=False,
        part=result.part,
    )


def variance_against_cost(data: xr.Dataset | Result, at: str | int = "first") -> Figure:
    """Variance against the rows of one gradient, with 95% intervals. Along a dotted line variance x
    rows is constant; lower lines are better at any budget (Glynn & Whitt 1992)."""
    result = Result.of(data)
    step = result.step(at)
    result.need("variance", _REMEDY)
    result.need("rows", _REMEDY)

    def panel(ax: Axes, members: list[Group], styles: dict[str, LineStyle]) -> bool:
        points: list[_Point] = []
        for group in members:
            rows, variance = (measured(result, group, name, step) for name in ("rows", "variance"))
            if not np.isfinite(variance.mean) or not rows.mean > 0:
                continue
            points.append(
                _Point(Mean(rows.mean, np.nan, np.nan, rows.count), variance, styles[group.label])
            )
        xs, ys = [p.x.mean for p in points], [v for p in points for v in _extent(p.y, 0)]
        if not xs:
            return False
        ax.set_xscale("log")
        set_symlog("y", ax, ys)
        ax.set_xlim(min(xs) / 2, max(xs) * 2)
        readable_log(ax.xaxis, *ax.get_xlim())
        bottom = -0.15 * min([y for y in ys if y > 0], default=1)
        top = max(ys) * 3 if max(ys) > 0 else 1
        ax.set_ylim(bottom, top)
        x = np.geomspace(min(xs) / 2, max(xs) * 2, 60)
        positive = [y for y in ys if y > 0]
        if positive:
            for power in range(
                int(np.floor(np.log10(min(positive) * min(xs)))),
                int(np.ceil(np.log10(top * max(xs)))) + 1,
                2,
            ):
                ax.plot(
                    x,
                    10.0**power / x,
                    color="#bbbbbb",
                    linestyle=":",
                    linewidth=1,
                    zorder=1,
                    scalex=False,
                    scaley=False,
                )
        _draw_points(ax, points, 0)
        return True

    return draw_panels(
        result.panels_with("variance"),
        f"Variance and cost of one gradient at {step.words} (dotted: equal variance × rows)",
        panel,
        "rows of one gradient",
        "variance",
        lines=False,
        part=result.part,
    )
