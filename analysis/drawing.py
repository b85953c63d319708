"""What figures share: a grid of panels under one legend, and axes for numbers that may be zero or negative."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import matplotlib
import matplotlib.ticker

matplotlib.use("Agg")  # no display is needed

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .errors import InputError
from .style import Look, looks

MOST_PANELS = 24  # tasks and models in one figure: more make no page

FONT = {"font.size": 10, "axes.titlesize": 10.5, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
         "legend.fontsize": 9.5, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
         "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.axisbelow": True, "svg.hashsalt": "hardgrad"}


def draw_panels(found: Mapping[tuple[str, str], list[Any]], title: str, panel: Callable[[Axes, list[Any], dict[str, Look]], bool],
                xlabel: str, ylabel: str, lines: bool = True) -> Figure:
    """A grid of panels, one per task and model, under one legend. `found`: what is drawn in each, things with a `label`;
    `panel` draws them and says whether there was anything. InputError beyond MOST_PANELS."""
    if len(found) > MOST_PANELS:
        raise InputError(f"{len(found)} networks are too many for one figure (at most {MOST_PANELS}): select some")
    look = looks([group.label for members in found.values() for group in members])
    with matplotlib.rc_context(FONT):
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
        for ax, name, members in zip(axes, titles(list(found)), found.values()):
            drawn = panel(ax, members, look)
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


def titles(keys: list[tuple[str, str]], most: int = 58) -> list[str]:
    """A short title for every task and model: bare names where those tell it apart, else without the arguments that all of them
    share; cut at `most` characters."""
    bare = [tuple(spec.split("[")[0] for spec in key) for key in keys]
    return [_shorten(_joined(*(bare[i] if bare.count(bare[i]) == 1 else key)), most) for i, key in enumerate(_distinct(keys))]


def _joined(task: str, model: str) -> str:
    return task if task == model else model if model.split("[")[0] == task else f"{task} · {model}"


def _distinct(keys: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The specs without the arguments that all of them share."""
    def split(spec: str) -> tuple[str, list[str]]:
        name, _, rest = spec.partition("[")
        return name, rest.removesuffix("]").split(",") if rest else []

    columns = []
    for specs in zip(*keys):
        parts = [split(spec) for spec in specs]
        same_name = len({name for name, _ in parts}) == 1
        shared = set.intersection(*(set(arguments) for _, arguments in parts)) if same_name and len(parts) > 1 else set()
        kept = [[a for a in arguments if a not in shared] for _, arguments in parts]
        columns.append([name + (f"[{','.join(arguments)}]" if arguments else "") for (name, _), arguments in zip(parts, kept)])
    return [(task, model) for task, model in zip(*columns)]


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _symlog(values: np.ndarray, decades: int = 5) -> float | None:
    """The linear threshold of a symmetric logarithmic axis for these values; None if all are zero."""
    size = np.abs(values[np.isfinite(values)])
    size = size[size > 0]
    if not size.size:
        return None
    return float(10 ** np.floor(np.log10(max(size.min(), size.max() * 10.0 ** -decades))))


def set_symlog(axis: str, ax: Axes, values: list[float]) -> None:
    """Makes an axis linear around zero and logarithmic beyond, scaled to these values."""
    found = _symlog(np.array(values, dtype=float))
    if found is not None:
        threshold = found
        getattr(ax, f"set_{axis}scale")("symlog", linthresh=threshold, linscale=0.6 if axis == "y" else 1)
        which = ax.xaxis if axis == "x" else ax.yaxis
        low, high = np.nanmin([*values, 0]), np.nanmax([*values, 0])

        def powers(top: float) -> list[float]:
            if top < threshold:
                return []
            first, last = int(np.log10(threshold).round()), int(np.floor(np.log10(top)))
            stride = max(1, -(-(last - first + 1) // (2 if low < 0 and axis == "x" else 6)))
            return [10.0 ** p for p in range(last, first - 1, -stride)]

        which.set_ticks([-p for p in powers(-low)] + [0] + powers(high)[::-1])
        which.set_minor_locator(matplotlib.ticker.NullLocator())


def readable_log(axis: Axis, low: float, high: float) -> None:
    """Ticks for a logarithmic axis from `low` to `high`: plain numbers where there are too few powers of ten to read from."""
    if high >= 100 * low:
        return
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for multiples in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [tick for tick in np.outer(powers, multiples).ravel() if low <= tick <= high]
        if len(ticks) > 2:
            break
    axis.set_major_locator(matplotlib.ticker.FixedLocator(ticks))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(matplotlib.ticker.NullFormatter())
