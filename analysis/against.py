"""Figures of a measured quantity against a parameter of the estimators, such as samples or
temperature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from .drawing import draw_panels, font_scale, set_symlog
from .errors import NotApplicable
from .groups import Group, Network
from .measured import measurements, shown_bias
from .result import Result
from .style import LineStyle


class Family(NamedTuple):
    """Groups that differ only in one parameter of their estimator, ordered by it."""

    label: str
    values: list[float]
    members: list[Group]


def families(result: Result, parameter: str) -> dict[Network, list[Family]]:
    """Families by task and model: estimators that were run with two or more values of the
    parameter."""
    several: dict[Network, list[Family]] = {}
    for panel, members in result.panels.items():
        found: dict[str, list[tuple[float, Group]]] = {}
        for group in members:
            value = result.estimator_settings[group.runs[0]].get(parameter)
            if isinstance(value, (int, float)):
                found.setdefault(family_of(group.label, parameter), []).append(
                    (float(value), group)
                )
        ordered = {
            label: sorted(points, key=lambda p: p[0])
            for label, points in found.items()
            if len(points) > 1
        }
        if ordered:
            several[panel] = [
                Family(label, [v for v, _ in points], [g for _, g in points])
                for label, points in ordered.items()
            ]
    if not several:
        raise NotApplicable(f"{result.path}: no estimator has several values of {parameter}")
    return several


def family_of(label: str, parameter: str) -> str:
    """The label without the parameter, which those of a family share."""
    name, bracket, rest = label.partition("[")
    if not bracket:
        return label
    inside, _, after = rest.partition("]")
    kept = [item for item in inside.split(",") if not item.startswith(parameter + "=")]
    return name + (f"[{','.join(kept)}]" if kept else "") + after


def against(
    data: xr.Dataset | Result, quantity: str, parameter: str, at: str | int = "first"
) -> Figure:
    """A measured quantity against a parameter, one curve per estimator, mean over seeds, on
    logarithmic axes."""
    result = Result.of(data)
    found = families(result, parameter)
    step = result.step(at)
    result.need(quantity, "set measure.at in the sweep")
    of = (
        shown_bias(result, step)
        if quantity == "squared_bias"
        else measurements(result, quantity, step)
    )

    def panel(ax: Axes, members: list[Family], styles: dict[str, LineStyle]) -> bool:
        every: list[float] = []
        for family in members:
            points = [(value, of(group)) for value, group in zip(family.values, family.members)]
            points = [(value, mean) for value, mean in points if np.isfinite(mean.mean)]
            if not points:
                continue
            x = np.array([value for value, _ in points])
            y = np.array([mean.mean for _, mean in points])
            style = styles[family.label]
            ax.plot(
                x,
                y,
                color=style.colour,
                linestyle=style.line,
                marker=style.marker,
                markersize=6 * font_scale(),
                linewidth=1.6 * font_scale(),
                markeredgecolor="white",
                markeredgewidth=0.5,
                zorder=3,
            )
            low, high = (
                np.array([getattr(mean, side) for _, mean in points]) for side in ("low", "high")
            )
            ax.fill_between(
                x,
                low,
                high,
                where=np.isfinite(low),
                color=style.colour,
                alpha=0.15,
                linewidth=0,
                zorder=2,
            )
            every += y.tolist()
        if not every:
            return False
        values = sorted({value for family in members for value in family.values})
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(values))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        set_symlog("y", ax, every)
        ax.set_ylim(0 if min(every) >= 0 else None, 2 * max(every) if max(every) > 0 else None)
        return True

    return draw_panels(
        found,
        f"{quantity.replace('_', ' ').capitalize()} against {parameter} ({step.words})",
        panel,
        parameter,
        quantity.replace("_", " "),
        part=result.part,
    )


def variance_against_samples(data: xr.Dataset | Result, at: str | int = "first") -> Figure:
    """Variance against the number of samples."""
    return against(data, "variance", "samples", at)


def variance_against_temperature(data: xr.Dataset | Result, at: str | int = "first") -> Figure:
    """Variance against the temperature of a relaxation."""
    return against(data, "variance", "temperature", at)


def bias_against_temperature(data: xr.Dataset | Result, at: str | int = "first") -> Figure:
    """Squared bias against the temperature of a relaxation."""
    return against(data, "squared_bias", "temperature", at)
