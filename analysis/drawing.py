"""Shared parts of figures: a grid of panels under one legend, axes for numbers that may be zero or
negative, and text that is broken to stay within a figure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any, NamedTuple

import matplotlib
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from .errors import InputError
from .groups import titles
from .style import LineStyle, line_styles

MOST_PANELS = 24  # tasks and models in one figure


class Size(NamedTuple):
    """Size of one panel with its labels, in inches; panels per row; and the font size, relative to
    LETTERS."""

    width: float
    height: float
    columns: int
    letters: float


#: `paper`: one panel fits a column of a two-column page, two fit the page. `talk`: two panels fill
#: a slide of 13.3 x 7.5 inches, legible from the back. `poster`: three panels across a column of 80
#: cm, legible from two metres.
SIZES = {
    "screen": Size(4.6, 3.4, 3, 1),
    "paper": Size(3.3, 2.4, 2, 0.8),
    "talk": Size(6.6, 4.6, 2, 1.7),
    "poster": Size(10.5, 7.5, 3, 2.6),
}
_size: ContextVar[Size] = ContextVar("size", default=SIZES["screen"])
_HANDLE, _BETWEEN = 2.6, 1.6  # handle and gap of the legend, in font sizes


@contextmanager
def sized(size: Size) -> Iterator[None]:
    """Figures drawn within this context have panels of this size."""
    before = _size.set(size)
    try:
        yield
    finally:
        _size.reset(before)


LETTERS = {
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10.0,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.fontsize": 9.5,
}
_STROKES = {
    "axes.linewidth": 0.8,
    "grid.linewidth": 0.6,
    "xtick.major.width": 0.8,
    "ytick.major.width": 0.8,
}  # in points; they scale with the letters
FONT: dict[str, Any] = {
    **LETTERS,
    **_STROKES,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "svg.hashsalt": "hardgrad",
}


def font_scale() -> float:
    """The current font size of figures, relative to LETTERS."""
    return _size.get().letters


def draw_panels(
    found: Mapping[tuple[str, str], list[Any]],
    title: str,
    panel: Callable[[Axes, list[Any], dict[str, LineStyle]], bool],
    xlabel: str,
    ylabel: str,
    lines: bool = True,
    legend: bool = True,
    part: str = "",
) -> Figure:
    """A grid of panels, one per task and model, above one legend. `found`: the items of each panel,
    with a `label`. `panel` draws them and returns whether it drew anything. Panels without `legend`
    name their items and grow with their number. `part`: which items these are, for the title.
    InputError beyond MOST_PANELS."""
    title += f" · {part}" if part else ""
    if len(found) > MOST_PANELS:
        raise InputError(
            f"{len(found)} networks are too many for one figure (at most {MOST_PANELS}): "
            "select some"
        )
    styles = line_styles([group.label for members in found.values() for group in members])
    size = _size.get()
    font = {name: points * size.letters for name, points in {**LETTERS, **_STROKES}.items()}
    with matplotlib.rc_context({**FONT, **font}):
        figure = Figure()
        columns = min(len(found), size.columns if len(found) != 4 else 2)
        rows = -(-len(found) // columns)
        labels = [
            label for label in styles if any(g.label == label for m in found.values() for g in m)
        ]
        width, big, middle = size.width * columns, 12 * size.letters, font["axes.titlesize"]
        head = broken(title, width - 0.2, big)
        names = [broken(name, size.width - 0.9, middle, "bold") for name in titles(list(found))]
        entries, per_row = _legend(labels, width, font["legend.fontsize"])
        line = 1.62 / 72  # line height in inches, for a font of one point
        below = (
            font["legend.fontsize"]
            * line
            * max(
                sum(entry.count("\n") + 1 for entry in column)
                for column in np.array_split(np.array(entries, object), per_row)
            )
            + 0.15
        )
        above = big * line * (head.count("\n") + 1) + 0.1
        of_titles = (
            middle
            * line
            * sum(
                max(name.count("\n") for name in names[i : i + columns])
                for i in range(0, len(names), columns)
            )
        )
        below = below if legend else 0.0
        named = max(
            len(members)
            * (0.09 + 0.15 * max(in_margin(one.label).count("\n") + 1 for one in members))
            for members in found.values()
        )
        height = (
            (size.height if legend else max(size.height, (named + 1) * size.letters)) * rows
            + of_titles
            + above
            + below
        )
        figure.set_size_inches(width, height)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, name, members in zip(axes, names, found.values()):
            drawn = panel(ax, members, styles)
            ax.set_title(name, loc="left", fontweight="bold")
            if not drawn:
                ax.text(
                    0.5,
                    0.5,
                    "no data",
                    ha="center",
                    va="center",
                    transform=ax.transAxes,
                    color="#777777",
                )
                ax.set_xticks([]), ax.set_yticks([])
        for ax in axes[len(found) :]:
            ax.remove()
        for i, ax in enumerate(axes[: len(found)]):
            if i + columns >= len(found) and xlabel:
                ax.set_xlabel(xlabel)
            if i % columns == 0:
                ax.set_ylabel(ylabel)
        handles = [
            Line2D(
                [],
                [],
                color=styles[label].colour,
                marker=styles[label].marker,
                markersize=6.5 * size.letters,
                linewidth=1.6 * size.letters,
                linestyle=styles[label].line if lines else "none",
                label=entry,
            )
            for label, entry in zip(labels, entries)
        ]
        figure.text(0.1 / width, 1 - 0.08 / height, head, ha="left", va="top", fontsize=big)
        _lay_out(figure, (0, below / height, 1, 1 - above / height))
        if legend:
            figure.legend(
                handles=handles,
                loc="lower center",
                ncol=per_row,
                frameon=False,
                handlelength=_HANDLE,
                columnspacing=_BETWEEN,
                borderaxespad=0.3,
            )
        for ax in figure.axes:
            ax.set_rasterized(False)
    return figure


def _lay_out(figure: Figure, within: tuple[float, float, float, float]) -> None:
    """`tight_layout`, which measures every panel twice at the same size; here once."""
    for ax in figure.axes:
        setattr(ax, "get_tightbbox", cache(ax.get_tightbbox))
    figure.tight_layout(rect=within)
    for ax in figure.axes:
        delattr(ax, "get_tightbbox")


def in_margin(label: str) -> str:
    """A label beside its row, in a panel without a legend, on as many lines as it needs."""
    return broken(label, 2 * font_scale(), LETTERS["ytick.labelsize"] * font_scale())


def _legend(labels: list[str], width: float, size: float) -> tuple[list[str], int]:
    """The legend's entries, wrapped to the width of the figure, and the number of columns."""
    room = (
        (_HANDLE + 0.8 + _BETWEEN) * size / 72
    )  # the handle and the gaps, which scale with the font
    entries = [broken(label, width - room - 0.1, size) for label in labels]
    widest = max(width_of(line, size) for entry in entries for line in entry.split("\n"))
    return entries, max(1, min(len(labels), int((width - 0.1) / (widest + room))))


def _symlog(values: np.ndarray, decades: int = 5) -> float | None:
    """The linear threshold of a symmetric logarithmic axis for these values; None if all are
    zero."""
    size = np.abs(values[np.isfinite(values)])
    size = size[size > 0]
    if not size.size:
        return None
    return float(10 ** np.floor(np.log10(max(size.min(), size.max() * 10.0**-decades))))


def set_symlog(axis: str, ax: Axes, values: list[float]) -> None:
    """Makes an axis linear around zero and logarithmic beyond, scaled to these values."""
    found = _symlog(np.array(values, dtype=float))
    if found is not None:
        threshold = found
        getattr(ax, f"set_{axis}scale")(
            "symlog", linthresh=threshold, linscale=0.6 if axis == "y" else 1
        )
        which = ax.xaxis if axis == "x" else ax.yaxis
        low, high = np.nanmin([*values, 0]), np.nanmax([*values, 0])

        def powers(top: float) -> list[float]:
            if top < threshold:
                return []
            first, last = int(np.log10(threshold).round()), int(np.floor(np.log10(top)))
            stride = max(1, -(-(last - first + 1) // (2 if low < 0 and axis == "x" else 6)))
            return [10.0**p for p in range(last, first - 1, -stride)]

        above = powers(high)[::-1]
        if low >= 0 and len(above) < 3:  # too few ticks
            above = [
                p * m
                for p in above
                for m in ((1, 3) if axis == "x" else (1, 2, 5))
                if p * m <= 1.2 * high
            ]
            which.set_major_formatter(
                matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}")
            )
        which.set_ticks([-p for p in powers(-low)] + [0] + above)
        which.set_minor_locator(matplotlib.ticker.NullLocator())


def readable_log(axis: Axis, low: float, high: float) -> None:
    """Ticks for a logarithmic axis from `low` to `high`; plain numbers if there are too few powers
    of ten."""
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


def width_of(text: str, size: float, weight: str = "normal") -> float:
    """Width of a line in inches, at a font size in points."""
    families = (*matplotlib.rcParams["font.family"], *matplotlib.rcParams["font.sans-serif"])
    return _width(text, size, weight, families)


@lru_cache(1 << 16)
def _width(text: str, size: float, weight: str, families: tuple[str, ...]) -> float:
    """`families`: the fonts of Matplotlib's settings, with which the width changes."""
    points, _, _ = text_to_path.get_text_width_height_descent(
        text, FontProperties(size=size, weight=weight), False
    )
    return float(points) / 72


def broken(text: str, inches: float, size: float, weight: str = "normal") -> str:
    """The text on as many lines as needed. Breaks are at spaces, after commas, and within words
    longer than a line."""
    lines, line = [], ""
    for piece in re.findall(r"[^ ,;\[]*[ ,;\[]*", text):
        if line and width_of((line + piece).rstrip(), size, weight) > inches:
            lines.append(line.rstrip())
            line = ""
        line += piece
        while width_of(line.rstrip(), size, weight) > inches and len(line) > 1:
            fits = next(
                n
                for n in range(len(line) - 1, 0, -1)
                if n == 1 or width_of(line[:n], size, weight) <= inches
            )
            lines.append(line[:fits])
            line = line[fits:]
    return "\n".join([*lines, line.rstrip()] if line.strip() else lines)
