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
    walks = {}
    if attention.choices is not None:
        walks = {b: paths(attention, int(attention.rows(b)[0]) // 3) for b in shown}
    tall = max((len(writes) for _, _, writes in walks.values()), default=6)
    spans = {b: (0, max(len(tapes[b]), 4) - 1) for b in shown}
    for b, (at_input, at_memory, _) in walks.items():
        every = [*at_input[:-1], *at_memory[:-1], *spans[b]]
        spans[b] = (min(every), max(every))
    widths = [last - first + 1 for first, last in spans.values()]
    heights = [0.13 * given.shape[2] + 0.1, 0.15 * tall + 0.3]
    with matplotlib.rc_context(FONT):
        figure = Figure(
            figsize=(sum(0.2 * n + 0.35 for n in widths) + 0.6, sum(heights) + 1.05),
            layout="constrained",
        )
        axes = figure.subplots(
            2,
            len(shown),
            squeeze=False,
            gridspec_kw={"height_ratios": heights, "width_ratios": widths},
        )
        for (above, below), b in zip(axes.T, shown):
            show(above, np.abs(tapes[b]).T)
            for ax in (above, below):
                ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
                ax.set_xlim(spans[b][0] - 0.5, spans[b][1] + 0.5)
            above.set_yticks([])
            above.set_xticklabels([])
            below.set_xlabel("cell")
            below.set_ylim(tall + 0.7, 0.3)
            below.yaxis.set_major_locator(MaxNLocator(8, integer=True))
            if b not in walks:
                below.text(0.5, 0.5, "weights, no path", transform=below.transAxes, ha="center")
                continue
            at_input, at_memory, writes = walks[b]
            steps = np.arange(1, len(writes) + 1)
            look = {"color": COLOURS[0], "linewidth": 1.2, "linestyle": "--"}
            below.plot(at_memory[:-1], steps, label="memory head", **look)
            look = {"color": COLOURS[1], "linewidth": 1.6}
            below.plot(at_input[:-1], steps, label="input head", **look)
            look = {"color": COLOURS[1], "marker": "o", "markersize": 5, "linestyle": ""}
            below.plot(at_input[:-1][writes], steps[writes], label="writes", **look)
        axes[0, 0].set_ylabel("tape", rotation=0, ha="right", va="center")
        axes[1, 0].set_ylabel("step")
        if walks:
            handles = axes[1, 0].get_legend_handles_labels()
            room = 0.27 / figure.get_size_inches()[1]
            figure.get_layout_engine().set(rect=(0, room, 1, 1 - room))
            figure.legend(*handles, loc="lower center", ncols=3, frameon=False, fontsize=9)
        figure.suptitle(
            f"Heads, step by step ({attention.estimator})", x=0.01, ha="left", fontsize=10
        )
    return figure
