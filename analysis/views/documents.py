"""Attentive readers: documents with attention on their tokens."""

from __future__ import annotations

import textwrap

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..drawing import FONT
from .attention import Attention
from .registry import view
from .sentences import words

_WIDTH = 74  # characters per line
_INCHES = 0.0762  # width of a character of 9 points


def placed(tokens: list[str], width: int = _WIDTH) -> list[tuple[int, int]]:
    """Line and column of each token in lines of at most `width` characters; a longer token is alone
    on its line."""
    places, line, column = [], 0, 0
    for token in tokens:
        if column and column + len(token) > width:
            line, column = line + 1, 0
        places.append((line, column))
        column += len(token) + 1
    return places


@view("attentive_reader")
def marked_documents(attention: Attention) -> Figure:
    """Each document as text. Shading: probability of the last read; numbers below a token: one
    row's reads of it; bold and red: the sentence with the answer, if it is known."""
    support, answers = attention.field("support"), attention.field("answer_text")
    lengths, shown = attention.need("question_length"), list(attention.shown)
    documents = {b: words(attention, "document", b) for b in shown}
    places = {b: placed(documents[b]) for b in shown}
    heights = [0.3 * (places[b][-1][0] + 1) + 0.5 for b in shown]
    tall, wide = sum(heights) + 0.4, _WIDTH * _INCHES + 0.3
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(wide, tall))
        top = tall - 0.4
        for b, height in zip(shown, heights):
            reads = np.flatnonzero(np.isfinite(attention.soft[b]).any(axis=1))[: lengths[b]]
            answer = answers[b] if answers is not None else attention.need("answer")[b]
            title = f"{' '.join(words(attention, 'question', b))} – {answer}"
            ax = figure.add_axes(
                (0.15 / wide, (top - height) / tall, (wide - 0.3) / wide, (height - 0.3) / tall)
            )
            ax.set_title(
                textwrap.shorten(title, 74, placeholder="…"),
                loc="left",
                fontsize=10,
                fontweight="bold",
            )
            facts = support[b] if support is not None else np.zeros(len(documents[b]))
            _text(ax, attention, b, documents[b], places[b], reads, facts)
            top -= height
        figure.suptitle(
            f"Darker: more probable; numbers: one row's reads ({attention.estimator})",
            x=0.15 / wide,
            y=1 - 0.06 / tall,
            va="top",
            ha="left",
            fontsize=9.5,
        )
    return figure


def _text(
    ax: Axes,
    attention: Attention,
    b: int,
    document: list[str],
    places: list[tuple[int, int]],
    reads: np.ndarray,
    support: np.ndarray,
) -> None:
    ax.set_xlim(0, _WIDTH), ax.set_ylim(places[-1][0] + 0.75, -0.45)
    ax.axis("off")
    last = attention.soft[b, reads[-1]] if len(reads) else np.zeros(len(document))
    chosen = (
        attention.choices[reads, attention.rows(b)[0]]
        if attention.choices is not None
        else np.array([], int)
    )
    shade = matplotlib.colormaps["Blues"]
    for t, (token, (line, column)) in enumerate(zip(document, places)):
        p = float(np.nan_to_num(last[t]))
        ax.text(
            column,
            line,
            token,
            fontsize=9,
            family="monospace",
            va="center",
            clip_on=True,
            color="#7A2400" if support[t] else "#222222",
            fontweight="bold" if support[t] else "normal",
            bbox={"facecolor": shade(0.55 * p), "edgecolor": "none", "pad": 1.2},
        )
        if numbers := ",".join(str(i + 1) for i in np.flatnonzero(chosen == t)):
            ax.text(
                column,
                line + 0.42,
                numbers,
                fontsize=7.5,
                va="center",
                color="#D55E00",
                fontweight="bold",
            )
