"""Heat maps of attention, soft above hard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..drawing import FONT
from .attention import Attention

COLOURS = "Blues"  # darker is more, in print and on screen


def show(ax: Axes, values: np.ndarray) -> None:
    """Attention [rows, columns] in [0, 1], with fine lines between cells; cells without a number
    stay blank."""
    ax.imshow(values, cmap=COLOURS, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    ax.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(values.shape[0] + 1) - 0.5, minor=True)
    ax.grid(False)
    ax.grid(True, which="minor", color="#cccccc", linewidth=0.5)
    ax.tick_params(which="both", length=0)


def outline(ax: Axes, left: float, top: float, size: float, **style: Any) -> None:
    """A square."""
    ax.add_patch(Rectangle((left, top), size, size, fill=False, **style))


def choices_of_row(ax: Axes, path: np.ndarray, *, across: bool = True, **style: Any) -> None:
    """Dots for the choices [steps] of one row; -1: none. across: steps are columns."""
    there = path >= 0
    points = np.arange(len(path))[there], path[there]
    ax.plot(*(points if across else points[::-1]), color="#D55E00", marker="o", **style)


def soft_above_hard(
    attention: Attention,
    title: str,
    columns: Callable[[int], Sequence[str]],
    steps: Callable[[int], Sequence[str]],
    mark: Callable[[Axes, int, np.ndarray], None] | None = None,
    cell: float = 0.34,
) -> Figure:
    """Steps x options for a few examples, side by side: probabilities above, choices below.
    `columns` and `steps` name the options and steps of an example, as many as are drawn; `mark`
    adds to the panel of an example and of these values. Values are means over an example's rows;
    for hard choices, the share of rows that made them."""
    shown = list(attention.shown)
    kinds = [("soft", attention.soft)]
    if attention.hard is not None:
        kinds.append(("relaxed" if attention.relaxed else "hard", attention.hard))
    names = {b: (list(columns(b)), list(steps(b))) for b in shown}
    widest = max(max(len(c), 4) for c, _ in names.values())
    tallest = max(max(len(s), 2) for _, s in names.values())
    letters = [
        max((len(text) for pair in names.values() for text in pair[i]), default=1) for i in (0, 1)
    ]
    left, above = 0.09 * min(letters[1], 18) + 0.15, 0.07 * min(letters[0], 18) + 0.35
    width = len(shown) * (left + cell * widest + 0.25) + 0.3
    height = len(kinds) * (above + cell * tallest) + 0.7
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(max(width, 5), height), layout="constrained")
        axes = figure.subplots(len(kinds), len(shown), squeeze=False)
        for row, (kind, values) in zip(axes, kinds):
            for ax, b in zip(row, shown):
                options, places = names[b]
                show(ax, values[b][: len(places), : len(options)])
                ax.set_xticks(
                    range(len(options)), options, rotation=60, ha="left", rotation_mode="anchor"
                )
                ax.xaxis.tick_top()
                ax.tick_params(which="both", length=0)
                ax.set_yticks(range(len(places)), places)
                for spine in ax.spines.values():
                    spine.set_visible(False)
                if mark:
                    mark(ax, b, values[b][: len(places), : len(options)])
            row[0].set_ylabel(kind)
        figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    return figure
