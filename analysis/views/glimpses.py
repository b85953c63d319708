"""Glimpse readers: positions of the glimpses in the picture."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from ..drawing import FONT
from ..style import COLOURS, LINES, MARKERS
from .attention import Attention
from .maps import outline
from .registry import view

_PATHS = 3  # drawn paths per example


def window(cell: int, grid: int, side: int, height: int, width: int) -> tuple[int, int]:
    """First row and column of the window with `side` pixels around a grid cell, as the sensor
    places it."""

    def first(place: int, extent: int) -> int:
        return ((2 * place + 1) * extent - side * grid + grid) // (2 * grid)

    return first(cell // grid, height), first(cell % grid, width)


def corner(place: np.ndarray, side: int, height: int, width: int) -> tuple[float, float]:
    """First row and column of the window around a continuous place (row, column), the picture being
    [-1, 1]^2; may be fractional."""
    return (place[0] + 1) / 2 * height - side / 2, (place[1] + 1) / 2 * width - side / 2


def picture(ax: Axes, image: np.ndarray) -> None:
    """Draws a picture of greys in [0, 1] without axes, one unit per pixel."""
    ax.imshow(image, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xlim(-0.5, image.shape[1] - 0.5), ax.set_ylim(image.shape[0] - 0.5, -0.5)
    ax.set_xticks([]), ax.set_yticks([])
    ax.grid(False)


@view("glimpse_reader")
def glimpse_paths(attention: Attention) -> Figure:
    """One example per row: the probabilities of every glimpse over the picture, then the paths of a
    few rows as ordered windows.

    A window is drawn at its finest scale. Readers with continuous places have ellipses instead of
    probabilities: mean and two standard deviations of each row's next place.
    """
    images, labels = attention.need("image"), attention.field("label")
    side = int(attention.settings.get("patch", 8))
    shown, glimpses = list(attention.shown), attention.soft.shape[1]
    walked = attention.choices is not None or attention.numbers is not None
    columns = glimpses + walked
    with matplotlib.rc_context(FONT):
        figure = Figure(
            figsize=(1.75 * columns + 0.4, 1.85 * len(shown) + 0.8), layout="constrained"
        )
        axes = figure.subplots(len(shown), columns, squeeze=False)
        for row, b in zip(axes, shown):
            for t in range(glimpses):
                picture(row[t], images[b])
                row[t].set_title(
                    f"glimpse {t + 1}{_places(row[t], attention, b, t, images[b])}", fontsize=9
                )
            if labels is not None:
                known = [str(label) for label in np.atleast_1d(labels[b]) if label >= 0]
                row[0].set_ylabel(f"label {', '.join(known)}")
            if walked:
                _paths(row[-1], attention, b, side, images[b])
        what = (
            "mean and two deviations"
            if attention.numbers is not None
            else "probabilities (darkest: the most probable place)"
        )
        figure.suptitle(
            f"Glimpses: {what}, paths of up to {_PATHS} rows ({attention.estimator})",
            x=0.01,
            ha="left",
            fontsize=11,
        )
    return figure


def _places(ax: Axes, attention: Attention, b: int, t: int, image: np.ndarray) -> str:
    """Draws the distribution of places at step t; returns its part of the title."""
    height, width = image.shape
    if attention.numbers is not None:
        for row, colour in zip(attention.rows(b), COLOURS[:_PATHS]):
            y, x = corner(
                attention.numbers.mean[t, row], 1, height, width
            )  # axes count the centres of pixels
            tall, wide = (
                2 * attention.numbers.deviation[t, row] * (height, width)
            )  # two deviations to each side, a side being 2
            ax.add_patch(Ellipse((x, y), wide, tall, fill=False, edgecolor=colour, linewidth=1.2))
        return ""
    p = attention.soft[b, t]
    if not np.isfinite(p).any():
        return ""
    grid = int(attention.settings.get("grid", round(len(p) ** 0.5)))
    overlay = np.zeros((grid, grid, 4))
    overlay[..., :3] = matplotlib.colors.to_rgb(COLOURS[1])
    overlay[..., 3] = 0.65 * np.nan_to_num(p / np.nanmax(p)).reshape(grid, grid)
    ax.imshow(overlay, extent=(-0.5, width - 0.5, height - 0.5, -0.5), interpolation="nearest")
    return f", ≤ {np.nanmax(p):.2f}"


def _corners(
    attention: Attention, row: int, side: int, height: int, width: int
) -> list[tuple[float, float]]:
    """Corners of the windows that a row read."""
    if attention.numbers is not None:
        return [corner(place, side, height, width) for place in attention.numbers.value[:, row]]
    if attention.choices is None:
        raise ValueError("paths need hard choices")
    grid = int(attention.settings.get("grid", round(attention.soft.shape[2] ** 0.5)))
    return [window(int(c), grid, side, height, width) for c in attention.choices[:, row] if c >= 0]


def _paths(ax: Axes, attention: Attention, example: int, side: int, image: np.ndarray) -> None:
    picture(ax, image)
    ax.set_title("paths", fontsize=9)
    for i, row in enumerate(attention.rows(example)[:_PATHS]):
        colour = (COLOURS[0], COLOURS[1], COLOURS[2])[i]
        corners = _corners(attention, row, side, *image.shape)
        for top, left in corners:
            outline(ax, left - 0.5, top - 0.5, side, edgecolor=colour, linewidth=1.2, alpha=0.8)
        middle = np.array(
            [(left + side / 2 - 0.5, top + side / 2 - 0.5) for top, left in corners]
        ).reshape(-1, 2)
        if attention.numbers is None:
            middle = middle + (i - 1) * 0.02 * image.shape[0]  # separates paths over the same cells
        ax.plot(
            middle[:, 0],
            middle[:, 1],
            color=colour,
            linestyle=LINES[i],
            marker=MARKERS[i],
            markersize=4,
            linewidth=1.4,
        )
        if i == 0:
            for n, (x, y) in enumerate(middle):
                ax.annotate(
                    str(n + 1),
                    (x, y),
                    xytext=(3, 3),
                    textcoords="offset points",
                    fontsize=8,
                    color=colour,
                    fontweight="bold",
                )
