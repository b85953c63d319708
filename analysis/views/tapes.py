"""Machines with tapes: paths of their heads, and their writes."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..drawing import FONT
from ..style import COLOURS
from .attention import Attention
from .maps import show
from .registry import view

_MOVES = np.array([0, 1, -1])  # stay, right, left


def paths(attention: Attention, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For one row: positions of the input and memory heads before each of its steps [n + 1], not
    wrapped to the circle, and whether it writes at each step [n]. The last step is not chosen: it
    writes the remainder."""
    if attention.choices is None:
        raise ValueError("paths need hard choices")
    example = int(attention.row_example[row * 3])
    answer, length = attention.need("answer")[example], int(attention.need("length")[example])
    wanted = int(np.sum(answer[:length, 0] >= 0))
    limit = int(np.ceil(float(attention.settings.get("time", 1)) * length))
    chosen = attention.choices[:, row * 3 : row * 3 + 3]
    at: list[list[int]] = [[0, 0]]
    writes: list[bool] = []
    for t in range(limit):
        if sum(writes) == wanted:
            break
        step = chosen[t] if t < len(chosen) else np.full(3, -1)
        must = wanted - sum(writes) >= limit - t
        writes.append(bool(must or step[2] == 0))
        at.append([at[-1][d] + (_MOVES[step[d]] if step[d] >= 0 else 0) for d in (0, 1)])
    positions = np.array(at)
    return positions[:, 0], positions[:, 1], np.array(writes)


@view("tape_machine")
def tape_heads(attention: Attention) -> Figure:
    """One example per column: the input tape and, step by step downwards, the head positions of one
    row; dots: writes."""
    given = attention.need("input")
    answer = attention.need("answer")
    lengths = attention.need("length")
    shown = list(attention.shown)
    tapes = {b: given[b, : lengths[b]][answer[b, : lengths[b], 0] < 0] for b in shown}
    tall = max(int(np.ceil(float(attention.settings.get("time", 1)) * lengths[b])) for b in shown)
    widths = [max(len(tapes[b]), 6) for b in shown]
    heights = [0.13 * given.shape[2] + 0.1, 0.17 * tall + 0.3]
    with matplotlib.rc_context(FONT):
        figure = Figure(
            figsize=(sum(0.22 * n + 0.8 for n in widths) + 0.6, sum(heights) + 1.3),
            layout="constrained",
        )
        axes = figure.subplots(
            2,
            len(shown),
            squeeze=False,
            gridspec_kw={"height_ratios": heights, "width_ratios": widths},
        )
        for column, b in enumerate(shown):
            above, below = axes[:, column]
            show(above, np.abs(tapes[b]).T)
            above.set_yticks([])
            above.set_title(f"example {b + 1}", fontsize=9.5)
            if column == 0:
                above.set_ylabel("tape", rotation=0, ha="right", va="center")
                below.set_ylabel("step")
            below.set_xlabel("cell")
            below.set_ylim(tall + 0.7, 0.3)
            if attention.choices is None:
                below.text(0.5, 0.5, "weights, no path", transform=below.transAxes, ha="center")
                continue
            at_input, at_memory, writes = paths(attention, int(attention.rows(b)[0]) // 3)
            steps = np.arange(1, len(writes) + 1)
            below.plot(
                at_memory[:-1],
                steps,
                color=COLOURS[0],
                linewidth=1.2,
                linestyle="--",
                label="memory",
            )
            below.plot(at_input[:-1], steps, color=COLOURS[1], linewidth=1.4, label="input")
            below.plot(
                at_input[:-1][writes],
                steps[writes],
                color=COLOURS[1],
                marker="o",
                markersize=4,
                linestyle="",
            )
            left = min(at_input.min(), at_memory.min(), 0)
            right = max(at_input.max(), at_memory.max(), len(tapes[b]) - 1)
            for ax in (above, below):
                ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
                ax.set_xlim(left - 0.5, right + 0.5)
        if attention.choices is not None:
            axes[1, -1].legend(loc="lower right", fontsize=8)
        figure.suptitle(
            f"Heads of one row, step by step; dots: writes ({attention.estimator})",
            x=0.01,
            ha="left",
            fontsize=11,
        )
    return figure
