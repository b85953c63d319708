"""Machines with a memory: positions of their heads."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..drawing import FONT
from .attention import Attention
from .maps import choices_of_row, show
from .registry import view


def _bits(ax: Axes, rows: np.ndarray, label: str) -> None:
    show(ax, rows)
    ax.set_yticks([])
    ax.set_ylabel(label, rotation=0, ha="right", va="center")
    ax.set_xticklabels([])


@view("turing_machine")
def head_positions(attention: Attention) -> Figure:
    """One example per column, steps across: input, wanted output, and for every head the cells'
    probabilities, with the cells that one row chose."""
    given = attention.need("input")
    wanted = attention.need("answer")
    lengths = attention.need("length")
    readers = int(attention.settings.get("reads", 1))
    heads = readers + int(attention.settings.get("writes", 1))
    shown = list(attention.shown)
    soft = attention.of_columns()
    steps = [int(lengths[b]) for b in shown]
    cells = soft.shape[3]
    heights = [0.13 * given.shape[2], 0.13 * wanted.shape[2]] + [min(0.13 * cells, 4)] * heads
    with matplotlib.rc_context(FONT):
        figure = Figure(
            figsize=(
                sum(0.16 * n + 0.9 for n in steps) + 0.8,
                sum(heights) + 0.35 * len(heights) + 0.6,
            ),
            layout="constrained",
        )
        axes = figure.subplots(
            len(heights),
            len(shown),
            squeeze=False,
            gridspec_kw={"height_ratios": heights, "width_ratios": [n + 4 for n in steps]},
        )
        for column, (b, count) in enumerate(zip(shown, steps)):
            _bits(axes[0, column], np.abs(given[b, :count]).T, "input" if column == 0 else "")
            answer = np.where(wanted[b, :count] < 0, np.nan, wanted[b, :count]).T
            _bits(axes[1, column], answer, "wanted" if column == 0 else "")
            axes[0, column].set_title(f"example {b + 1}", fontsize=9.5)
            for h in range(heads):
                ax = axes[2 + h, column]
                show(ax, soft[b, :count, h].T)
                if attention.choices is not None:
                    path = attention.choices[:count, attention.rows(b)[h]]
                    choices_of_row(ax, path, markersize=3, linewidth=1)
                kind, number = ("reads", h + 1) if h < readers else ("writes", h + 1 - readers)
                ax.set_ylabel(f"head {number} {kind}" if column == 0 else "")
                ax.set_xlabel("step" if h == heads - 1 else "")
        line = "; line: one row" if attention.choices is not None else ""
        figure.suptitle(
            f"Heads over the cells ({attention.estimator}{line})", x=0.01, ha="left", fontsize=11
        )
    return figure
