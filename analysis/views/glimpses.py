"""Glimpse readers: positions of the glimpses in the picture."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle

from ..drawing import FONT
from ..style import COLOURS
from .attention import Attention
from .maps import row_names
from .registry import VIEWS_OF_SEVERAL, view

_ROWS = 3  # rows whose places are drawn
_INK = 0.45  # of the picture below a path


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


def picture(ax: Axes, image: np.ndarray, ink: float = 1) -> None:
    """Draws a picture of greys in [0, 1] without axes, one unit per pixel, with so much ink."""
    ax.imshow(ink * image, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xlim(-0.5, image.shape[1] - 0.5), ax.set_ylim(image.shape[0] - 0.5, -0.5)
    ax.set_xticks([]), ax.set_yticks([])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set(visible=True, color="#bbbbbb")


@view("glimpse_reader")
def glimpse_paths(*networks: Attention) -> Figure:
    """One example per column, a row for each network: the path of an example's first row over the
    picture, numbered glimpse by glimpse; outlined: the windows that it read, at their finest scale.
    """
    attention = networks[0]
    images, labels = attention.need("image"), attention.field("label")
    shown = list(attention.shown)
    names = row_names(networks)
    if len(networks) > 1 and len({network.estimator for network in networks}) == 1:
        names = [str(network.settings.get("policy", "grid")) for network in networks]
    with matplotlib.rc_context(FONT):
        figure = Figure(
            figsize=(1.42 * len(shown) + 0.3, 1.4 * len(networks) + 0.55), layout="constrained"
        )
        figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)
        axes = figure.subplots(len(networks), len(shown), squeeze=False)
        for k, (line, network, name) in enumerate(zip(axes, networks, names)):
            for ax, b in zip(line, shown):
                _path(ax, network, b, images[b])
                if k == 0 and labels is not None:
                    ax.set_title(_label(labels[b]), fontsize=9.5)
            line[0].set_ylabel(name, fontsize=10)
        figure.suptitle("Paths of glimpses, in their order", x=0.01, ha="left", fontsize=10)
    return figure


VIEWS_OF_SEVERAL["glimpse_reader"] = glimpse_paths


def _label(label: np.ndarray) -> str:
    return f"label {', '.join(str(one) for one in np.atleast_1d(label) if one >= 0)}"


@view("glimpse_reader")
def glimpse_places(attention: Attention) -> Figure:
    """One example per row: the probabilities of every glimpse over the picture. Readers with
    continuous places have ellipses instead: mean and two standard deviations of the next place of
    a few rows."""
    images, labels = attention.need("image"), attention.field("label")
    shown, glimpses = list(attention.shown), attention.soft.shape[1]
    with matplotlib.rc_context(FONT):
        figure = Figure(
            figsize=(1.15 * glimpses + 0.4, 1.3 * len(shown) + 0.5), layout="constrained"
        )
        axes = figure.subplots(len(shown), glimpses, squeeze=False)
        for row, b in zip(axes, shown):
            for t in range(glimpses):
                picture(row[t], images[b])
                row[t].set_title(
                    f"{t + 1}{_places(row[t], attention, b, t, images[b])}", fontsize=9
                )
            if labels is not None:
                row[0].set_ylabel(_label(labels[b]))
        what = (
            f"mean and two deviations, {_ROWS} rows"
            if attention.numbers is not None
            else "probabilities (darkest: the most probable place)"
        )
        figure.suptitle(f"Glimpses: {what} ({attention.estimator})", x=0.01, ha="left", fontsize=10)
    return figure


def _places(ax: Axes, attention: Attention, b: int, t: int, image: np.ndarray) -> str:
    """Draws the distribution of places at step t; returns its part of the title."""
    height, width = image.shape
    if attention.numbers is not None:
        for row, colour in zip(attention.rows(b), COLOURS[:_ROWS]):
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


def _path(ax: Axes, attention: Attention, example: int, image: np.ndarray) -> None:
    picture(ax, image, _INK)
    if attention.choices is None and attention.numbers is None:
        ax.text(0.5, 0.5, "weights, no path", transform=ax.transAxes, ha="center")
        return
    side = int(attention.settings.get("patch", 8))
    corners = _corners(attention, int(attention.rows(example)[0]), side, *image.shape)
    for top, left in corners:
        corner_of_window = (left - 0.5, top - 0.5)
        ax.add_patch(
            Rectangle(corner_of_window, side, side, fill=False, edgecolor=COLOURS[1], linewidth=0.8)
        )
    middle = np.array(
        [(left + side / 2 - 0.5, top + side / 2 - 0.5) for top, left in corners]
    ).reshape(-1, 2)
    ax.plot(*middle.T, color=COLOURS[0], linewidth=1.4, marker="o", markersize=9)
    there: dict[tuple[float, float], list[int]] = {}
    for n, (x, y) in enumerate(middle, 1):
        there.setdefault((float(x), float(y)), []).append(n)
    for (x, y), numbers in there.items():
        look = {"ha": "center", "va": "center_baseline", "fontsize": 7.5, "color": "white"}
        if len(numbers) > 1:  # of several glimpses at one place
            look["bbox"] = {"boxstyle": "round,pad=0.2", "color": COLOURS[0]}
        ax.text(x, y, _together(numbers), **look)


def _together(numbers: list[int]) -> str:
    """Increasing numbers, those that follow each other as a range: 2–4, 6."""
    ranges: list[list[int]] = []
    for n in numbers:
        if ranges and ranges[-1][-1] == n - 1:
            ranges[-1].append(n)
        else:
            ranges.append([n])
    return ", ".join(str(one[0]) if len(one) == 1 else f"{one[0]}–{one[-1]}" for one in ranges)
