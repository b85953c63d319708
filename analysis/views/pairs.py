"""Pairs of sentences: attention of each word to the words of the other sentence, or to the units of
its window."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from ..drawing import FONT
from ..style import COLOURS
from .attention import Attention
from .maps import show
from .registry import view
from .sentences import words


@view("sentence_pair")
def matching_matrices(attention: Attention) -> Figure:
    """One example per column, words down: the first sentence above, the second below. Across: the
    words of the other sentence, or with attention=top the units of a word's window. Shows the first
    block. Dots: choices of its rows (larger: more rows)."""
    top = attention.settings.get("attention", "bottom") == "top"
    label, shown = attention.field("label_text"), list(attention.shown)
    said = {b: (words(attention, "first", b), words(attention, "second", b)) for b in shown}
    longest = max(len(sentence) for pair in said.values() for sentence in pair)
    with matplotlib.rc_context(FONT):
        figure = Figure(
            figsize=(len(shown) * (0.34 * longest + 0.9) + 0.3, 0.68 * longest + 1.8),
            layout="constrained",
        )
        axes = figure.subplots(2, len(shown), squeeze=False)
        for column, b in zip(axes.T, shown):
            p = attention.of_columns()[b, 0]  # [D, S]
            first = 0
            for k, ax in enumerate(column):
                mine, other = said[b][k], said[b][1 - k]
                options = (
                    [f"unit {i + 1}" for i in range(int(attention.settings.get("window", 3)))]
                    if top
                    else other
                )
                tokens = slice(first, first + len(mine))
                ax.set_xticks(
                    range(len(options)), options, rotation=60, ha="left", rotation_mode="anchor"
                )
                show(ax, p[tokens, : len(options)])
                ax.xaxis.tick_top()
                ax.set_yticks(range(len(mine)), mine)
                if attention.choices is not None:
                    chosen = attention.choices[0, attention.rows(b)].reshape(-1, len(p))[
                        :, tokens
                    ]  # [rows, tokens]
                    for token in range(len(mine)):
                        option, count = np.unique(
                            chosen[:, token][chosen[:, token] >= 0], return_counts=True
                        )
                        ax.scatter(
                            option,
                            np.full(len(option), token),
                            s=30 * count / len(chosen),
                            color=COLOURS[1],
                            zorder=3,
                        )
                first += len(mine)
            if label is not None:
                column[0].set_title(str(label[b]), fontsize=10, fontweight="bold")
        figure.suptitle(
            f"Words and their {'units' if top else 'partners'} ({attention.estimator}; dots: "
            "chosen)",
            x=0.01,
            ha="left",
            fontsize=11,
        )
    return figure
