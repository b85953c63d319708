"""Memory readers: hops over the sentences of a story."""

from __future__ import annotations

import textwrap

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from ..drawing import FONT
from .attention import Attention
from .maps import choices_of_row, show
from .registry import view


def _sentence(attention: Attention, field: str, *at: int) -> str:
    text = attention.field(f"{field}_text")
    if text is not None:
        return " ".join(str(word) for word in np.atleast_1d(text[at]) if str(word))
    return " ".join(str(number) for number in np.atleast_1d(attention.need(field)[at]) if number)


@view("memory_reader")
def memory_hops(attention: Attention) -> Figure:
    """The story down, hops across: probabilities, and choices with the path of one row. A star
    marks supporting facts."""
    lengths, support = attention.field("story_length"), attention.field("support")
    attention.need("story")
    shown, hops = list(attention.shown), attention.soft.shape[1]
    counts = [int(lengths[b]) if lengths is not None else attention.soft.shape[2] for b in shown]
    kinds = [attention.soft] + ([attention.hard] if attention.hard is not None else [])
    widths = [4.2] + [0.45 * hops + 0.3] * len(kinds)
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(sum(widths) + 0.4, sum(0.25 * n + 0.9 for n in counts) + 0.4))
        tall, wide = figure.get_size_inches()[1], figure.get_size_inches()[0]
        top = tall - 0.45
        for b, count in zip(shown, counts):
            title = f"{_sentence(attention, 'question', b)} – {_sentence(attention, 'answer', b)}"
            figure.text(
                0.2 / wide,
                (top - 0.12) / tall,
                textwrap.shorten(title, 70, placeholder="…"),
                fontweight="bold",
                va="top",
            )
            left, bottom, height = widths[0], top - 0.65 - 0.25 * count, 0.25 * count
            for k, values in enumerate(kinds):
                ax = figure.add_axes(
                    (left / wide, bottom / tall, 0.45 * hops / wide, height / tall)
                )
                left += widths[1]
                show(ax, values[b][:, :count].T)
                ax.set_xticks(range(hops), [f"{hop + 1}" for hop in range(hops)])
                ax.xaxis.tick_top()
                ax.set_title(
                    "soft" if k == 0 else "hard" if attention.choices is not None else "relaxed",
                    fontsize=9.5,
                )
                ax.tick_params(which="both", length=0)
                if k == 0:
                    facts = support[b] if support is not None else np.zeros(count)
                    ax.set_yticks(
                        range(count),
                        [
                            textwrap.shorten(
                                _sentence(attention, "story", b, n), 52, placeholder="…"
                            )
                            + ("  ★" if facts[n] else "   ")
                            for n in range(count)
                        ],
                    )
                else:
                    ax.set_yticks([])
                    if attention.choices is not None:
                        path = attention.choices[:, attention.rows(b)[0]]
                        choices_of_row(ax, path, markersize=4.5, linewidth=1.5)
            top = bottom - 0.25
        figure.suptitle(
            f"Hops over the story ({attention.estimator}; ★ supporting fact, line: one row's path)",
            x=0.2 / wide,
            y=1 - 0.08 / tall,
            va="top",
            ha="left",
            fontsize=12,
        )
    return figure
