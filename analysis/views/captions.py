"""Captioners: the words of a caption over the attended cells."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..drawing import FONT
from ..style import COLOURS
from .attention import Attention
from .maps import outline
from .registry import VIEWS_OF_TWO, view
from .sentences import words

_ACROSS = 8  # words of a caption per row


def grid_of(cells: int, height: int, width: int) -> tuple[int, int]:
    """Rows and columns of `cells` square cells in a picture; for features alone, as square as
    possible."""
    divisors = [r for r in range(1, cells + 1) if cells % r == 0]
    square = [r for r in divisors if width and r * r * width == cells * height]
    rows = square[0] if square else max(r for r in divisors if r * r <= cells)
    return rows, cells // rows


@view("captioner")
def words_over_cells(attention: Attention) -> Figure:
    """One picture per word. Improbable cells fade into grey, the most probable one of a word is
    clear; outlined: the share of rows that chose the cell (thicker is more), where cells were
    chosen; dotted: the true cell of the word, if it is known."""
    return _rows(attention)


def soft_row_over_hard_row(first: Attention, second: Attention) -> Figure:
    """The same pictures of two networks, those of the first in the row above: soft over hard
    attention, as in Xu et al. 2015, Fig. 2."""
    return _rows(first, second)


VIEWS_OF_TWO["captioner"] = soft_row_over_hard_row


def _rows(*networks: Attention) -> Figure:
    attention = networks[0]
    images, gold, shown = attention.field("image"), attention.field("gold"), list(attention.shown)
    said = {b: words(attention, "target", b) for b in shown}
    lines = [
        (b, start, network)
        for b in shown
        for start in range(0, len(said[b]), _ACROSS)
        for network in networks
    ]
    with matplotlib.rc_context(FONT):
        figure = Figure(
            figsize=(1.15 * _ACROSS + 0.2, 1.4 * len(lines) + 0.6), layout="constrained"
        )
        axes = figure.subplots(len(lines), _ACROSS, squeeze=False)
        for row, (b, start, network) in zip(axes, lines):
            for n, ax in enumerate(row, start):
                ax.axis("off")
                if n < len(said[b]):
                    ax.set_title(said[b][n], fontsize=9)
                    _word(
                        ax,
                        network,
                        b,
                        n,
                        images[b] if images is not None else None,
                        gold[b, n] if gold is not None else -1,
                    )
        chosen = any(network.choices is not None for network in networks)
        marks = [
            "grey: improbable",
            *(["outlined: chosen"] if chosen else []),
            *(["dotted: true cell"] if gold is not None else []),
        ]
        figure.suptitle(
            f"Words over cells: {', '.join(marks)} "
            f"({', below '.join(network.estimator for network in networks)})",
            x=0.01,
            ha="left",
            fontsize=11,
        )
    return figure


def _word(
    ax: Axes, attention: Attention, b: int, t: int, image: np.ndarray | None, gold: int
) -> None:
    p = np.nan_to_num(attention.soft[b, t])
    height, width = image.shape[:2] if image is not None else (0, 0)
    rows, columns = grid_of(len(p), height, width)
    extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)  # in units of cells
    if image is not None:
        ax.imshow(image, vmin=0, vmax=1, extent=extent, interpolation="nearest")
    veil = np.ones((rows, columns, 4))
    veil[..., :3] = 0.5
    veil[..., 3] = 0.8 * (1 - p.reshape(rows, columns) / max(p.max(), 1e-300))
    ax.imshow(veil, extent=extent, interpolation="nearest")
    if attention.hard is not None and attention.choices is not None:
        for cell in np.flatnonzero(np.nan_to_num(attention.hard[b, t]) > 0.05):
            outline(
                ax,
                cell % columns - 0.5,
                cell // columns - 0.5,
                1,
                edgecolor=COLOURS[1],
                linewidth=0.5 + 1.8 * attention.hard[b, t, cell],
                clip_on=False,
            )
    if gold >= 0:
        outline(
            ax,
            gold % columns - 0.42,
            gold // columns - 0.42,
            0.84,
            edgecolor="white",
            linestyle=":",
            linewidth=1.6,
        )
