"""Programmers: their chosen programs, beside the table and the question."""

from __future__ import annotations

import textwrap

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..drawing import FONT
from .attention import Attention
from .maps import choices_of_row, outline, show
from .registry import view
from .sentences import words

OPERATIONS = (
    "sum",
    "count",
    "difference",
    "greater",
    "lesser",
    "and",
    "or",
    "assign",
    "reset",
)  # core/models/parts/table_operations.hpp


def asked(attention: Attention, b: int) -> str:
    """An example's question with its numbers, and the answer."""
    tokens = words(attention, "question", b)
    numbers, places = attention.need("number")[b], attention.need("number_place")[b]
    for n in range(int(attention.need("numbers")[b])):
        tokens[places[n]] = f"{numbers[n]:g}"
    answer = (
        "the shaded cells"
        if attention.need("asks_cells")[b]
        else f"{attention.need('answer')[b]:g}"
    )
    return f"{' '.join(tokens)}? {answer}"


@view("programmer")
def programs(attention: Attention) -> Figure:
    """One example per row: its table, with the cells of the answer shaded; the probabilities of
    operations and columns at each step. Dots: choices of one row; outlined: the question's true
    program."""
    shown, soft = list(attention.shown), attention.of_columns()
    operations, columns = attention.need("gold_operation"), attention.need("gold_column")
    names = {b: words_of_columns(attention, b) for b in shown}
    steps, rows = soft.shape[1], max(int(attention.need("table_rows")[b]) for b in shown)
    widest = max(len(names[b]) for b in shown)
    with matplotlib.rc_context(FONT):
        height = 0.26 * max(rows + 1, steps) + 1.3
        figure = Figure(
            figsize=(1.4 * widest + 4.6, height * len(shown) + 0.5), layout="constrained"
        )
        axes = figure.subplots(
            len(shown),
            3,
            squeeze=False,
            gridspec_kw={"width_ratios": [0.8 * widest, 4.2, 0.6 * widest]},
        )
        for line, b in zip(axes, shown):
            line[0].set_title(
                textwrap.shorten(asked(attention, b), 110, placeholder="…"),
                loc="left",
                fontsize=9.5,
            )
            _table(line[0], attention, b, names[b], rows)
            before = (
                steps - operations.shape[1]
            )  # additional steps of the network before the program
            for d, (ax, labels, gold) in enumerate(
                ((line[1], OPERATIONS, operations[b]), (line[2], names[b], columns[b]))
            ):
                show(ax, soft[b, :, d, : len(labels)])
                ax.set_xticks(
                    range(len(labels)),
                    labels,
                    rotation=40,
                    ha="right",
                    rotation_mode="anchor",
                    fontsize=8,
                )
                ax.set_yticks(range(steps), range(1, steps + 1))
                for t, option in enumerate(gold):
                    if option >= 0:
                        outline(
                            ax,
                            option - 0.5,
                            before + t - 0.5,
                            1,
                            edgecolor="#D55E00",
                            linewidth=1.8,
                            clip_on=False,
                        )
                if attention.choices is not None:
                    path = attention.choices[:, attention.rows(b)[d]]
                    choices_of_row(ax, path, markersize=5, linestyle="", across=False)
            line[1].set_ylabel("step")
        dots = "; dots: choices of one row" if attention.choices is not None else ""
        figure.suptitle(
            f"Programs ({attention.estimator}; outlined: true program{dots})",
            x=0.01,
            ha="left",
            fontsize=11,
        )
    return figure


def words_of_columns(attention: Attention, b: int) -> list[str]:
    """The names of the columns of an example's table."""
    return words(attention, "column_name", b)[: int(attention.need("table_columns")[b])]


def _table(ax: Axes, attention: Attention, b: int, names: list[str], rows: int) -> None:
    cells, wanted = attention.need("table")[b], attention.need("wanted")[b]
    ax.set_xlim(-0.5, len(names) - 0.5), ax.set_ylim(rows - 0.4, -1.5)
    ax.axis("off")
    for j, name in enumerate(names):
        ax.text(j, -1, name, ha="center", va="center", fontsize=8, fontweight="bold")
        for i in range(int(attention.need("table_rows")[b])):
            if wanted[i] == j + 1:
                ax.add_patch(
                    Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor="#cfe3f3", edgecolor="none")
                )
            ax.text(j, i, f"{cells[i, j]:g}", ha="center", va="center", fontsize=8)
