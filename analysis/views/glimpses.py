"""Glimpse readers: where they looked in the picture."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..drawing import FONT
from ..style import COLOURS, LINES, MARKERS
from .attention import Attention
from .registry import view

_PATHS = 3  # rows of an example whose path is drawn


def window(cell: int, grid: int, side: int, height: int, width: int) -> tuple[int, int]:
    """First row and column of the window with `side` pixels around a cell of the grid, as the sensor places it."""
    def first(place: int, extent: int) -> int:
        return ((2 * place + 1) * extent - side * grid + grid) // (2 * grid)

    return first(cell // grid, height), first(cell % grid, width)


def picture(ax: Axes, image: np.ndarray) -> None:
    """Draws a picture of greys in [0, 1] alone, one unit a pixel."""
    ax.imshow(image, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xlim(-0.5, image.shape[1] - 0.5), ax.set_ylim(image.shape[0] - 0.5, -0.5)
    ax.set_xticks([]), ax.set_yticks([])
    ax.grid(False)


@view("glimpse_reader")
def glimpse_paths(attention: Attention) -> Figure:
    """An example to a row: the probabilities of every glimpse over the picture, then the paths of a few rows: windows, in order.

    A window is drawn at its finest scale.
    """
    images, labels = attention.need("image"), attention.field("label")
    cells = attention.soft.shape[2]
    grid = int(attention.settings.get("grid", round(cells**0.5)))
    side = int(attention.settings.get("patch", 8))
    shown, glimpses = list(attention.shown), attention.soft.shape[1]
    columns = glimpses + (attention.choices is not None)
    height, width = images.shape[1:]
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(1.75 * columns + 0.4, 1.85 * len(shown) + 0.8), layout="constrained")
        axes = figure.subplots(len(shown), columns, squeeze=False)
        for row, b in zip(axes, shown):
            for t in range(glimpses):
                picture(row[t], images[b])
                p = attention.soft[b, t].reshape(grid, grid)
                overlay = np.zeros((grid, grid, 4))
                overlay[..., :3] = matplotlib.colors.to_rgb(COLOURS[1])
                overlay[..., 3] = 0.65 * np.nan_to_num(p / np.nanmax(p)) if np.isfinite(p).any() else 0
                row[t].imshow(overlay, extent=(-0.5, width - 0.5, height - 0.5, -0.5), interpolation="nearest")
                row[t].set_title(f"glimpse {t + 1}, ≤ {np.nanmax(p):.2f}" if np.isfinite(p).any() else f"glimpse {t + 1}", fontsize=9)
            if labels is not None:
                row[0].set_ylabel(f"label {labels[b]}")
            if attention.choices is not None:
                _paths(row[-1], attention, attention.choices, b, grid, side, images[b])
        figure.suptitle(f"Glimpses: probabilities (darkest: the most likely place), paths of up to {_PATHS} rows ({attention.estimator})",
                        x=0.01, ha="left", fontsize=11)
    return figure


def _paths(ax: Axes, attention: Attention, choices: np.ndarray, example: int, grid: int, side: int, image: np.ndarray) -> None:
    picture(ax, image)
    ax.set_title("paths", fontsize=9)
    for i, row in enumerate(attention.rows(example)[:_PATHS]):
        colour = (COLOURS[0], COLOURS[1], COLOURS[2])[i]
        corners = [window(int(c), grid, side, *image.shape) for c in choices[:, row] if c >= 0]
        for top, left in corners:
            ax.add_patch(Rectangle((left - 0.5, top - 0.5), side, side, fill=False, edgecolor=colour, linewidth=1.2, alpha=0.8))
        middle = np.array([(left + side / 2 - 0.5, top + side / 2 - 0.5) for top, left in corners]).reshape(-1, 2)
        middle = middle + (i - 1) * 0.02 * image.shape[0]  # paths over the same cells stay apart
        ax.plot(middle[:, 0], middle[:, 1], color=colour, linestyle=LINES[i], marker=MARKERS[i], markersize=4, linewidth=1.4)
        if i == 0:
            for n, (x, y) in enumerate(middle):
                ax.annotate(str(n + 1), (x, y), xytext=(3, 3), textcoords="offset points", fontsize=8, color=colour, fontweight="bold")
