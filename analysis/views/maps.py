"""Heat maps of attention, one row of panels for each network, or probabilities above choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..drawing import FONT, broken
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


def row_names(networks: Sequence[Attention]) -> list[str]:
    """What to call each network: its estimator, with settings only if two have the same."""
    short = [network.estimator.split("[")[0] for network in networks]
    named = [
        name if short.count(name) == 1 else network.estimator
        for name, network in zip(short, networks)
    ]
    return [name.replace("_", " ") for name in named]


def soft_and_hard(attention: Attention) -> list[tuple[str, np.ndarray]]:
    """The rows of one network: probabilities, and choices unless they are the same weights. Values
    are means over an example's rows; for hard choices, the share of rows that made them."""
    rows = [("probability", attention.soft)]
    if attention.hard is not None and not (
        attention.relaxed and np.allclose(attention.hard, attention.soft, equal_nan=True)
    ):
        rows.append(("weight" if attention.relaxed else "chosen", attention.hard))
    return rows


def stacked(
    rows: Sequence[tuple[str, np.ndarray]],
    shown: Sequence[int],
    title: str,
    columns: Callable[[int], Sequence[str]],
    steps: Callable[[int], Sequence[str]],
    mark: Callable[[Axes, int, int], None] | None = None,
    cell: float = 0.27,
) -> Figure:
    """Steps x options [B, T, S] for a few examples, side by side, a row of panels for each named
    array; of one example, the arrays are side by side. `columns` and `steps` name the options and
    steps of an example, as many as are drawn; `mark` adds to the panel of a row and an example."""
    names = {b: (list(columns(b)), list(steps(b))) for b in shown}
    letters = [
        max((len(text) for pair in names.values() for text in pair[i]), default=1) for i in (0, 1)
    ]
    beside = len(shown) == 1 and len(rows) > 1
    left, above = 0.085 * min(letters[1], 18) + 0.15, 0.07 * min(letters[0], 18) + 0.15
    wide = [max(len(options), 4) * cell for options, _ in names.values()]
    wide *= len(rows) if beside else 1
    tall = max(max(len(places), 2) for _, places in names.values()) * cell
    width = sum(wide) + (1 if beside else len(names)) * left + 0.4
    height = above + (1 if beside else len(rows)) * (tall + 0.12) + 0.45 + 0.2 * beside
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(max(width, 3.5), height), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03)
        shape = (1, len(rows)) if beside else (len(rows), len(names))
        axes = figure.subplots(*shape, squeeze=False, gridspec_kw={"width_ratios": wide})
        for r, (kind, values) in enumerate(rows):
            line = axes[:, r] if beside else axes[r]
            for ax, b in zip(line, shown):
                options, places = names[b]
                show(ax, values[b][: len(places), : len(options)])
                ax.set_xticks(range(len(options)))
                ax.xaxis.tick_top()
                ax.set_xticklabels(
                    options if beside or r == 0 else [],
                    rotation=60,
                    ha="left",
                    rotation_mode="anchor",
                )
                ax.tick_params(which="both", length=0)
                ax.set_yticks(range(len(places)), [""] * len(places) if beside and r else places)
                for spine in ax.spines.values():
                    spine.set_visible(False)
                if mark:
                    mark(ax, r, b)
            if beside:
                line[0].set_xlabel(kind)
            else:
                line[0].set_ylabel(broken(kind, max(tall, 0.9), FONT["axes.labelsize"]))
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure
