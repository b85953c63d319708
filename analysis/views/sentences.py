"""Translators: alignment matrices labelled with words."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .attention import Attention
from .maps import outline, soft_above_hard
from .registry import view


def words(attention: Attention, field: str, example: int) -> list[str]:
    """The words of an example's field without padding; their numbers if the file has no words."""
    length = attention.field(f"{field}_length")
    numbers = attention.need(field)
    end = int(length[example]) if length is not None else numbers.shape[1]
    text = attention.field(f"{field}_text")
    return [str(word) for word in (text if text is not None else numbers)[example][:end]]


_AT_ONCE = 0.25


def read_at_once(values: np.ndarray) -> list[list[int]]:
    """For each step, the options with a share of at least `_AT_ONCE`, if they are several."""
    read = [np.flatnonzero(np.nan_to_num(row) >= _AT_ONCE).tolist() for row in values]
    return [options if len(options) > 1 else [] for options in read]


@view("translator")
def alignments(attention: Attention) -> Figure:
    """Target words down, source words across, followed by the null position if the network has one.
    Outlined: the true alignment, if it is known. Dots: the source words that one target word reads
    at once, two or more with a share of at least `_AT_ONCE` each, as French "l'" reads "the" and
    "man" (Bahdanau et al. 2015, sec. 5.2.1)."""
    null = ["(none)"] if attention.settings.get("null") else []
    gold = attention.field("alignment")

    def mark(ax: Axes, b: int, values: np.ndarray) -> None:
        for t, read in enumerate(read_at_once(values)):
            ax.plot(read, [t] * len(read), "o", color="#D55E00", markersize=4)
        if gold is not None:
            for t, place in enumerate(gold[b]):
                if place >= 0:
                    outline(
                        ax,
                        place - 0.5,
                        t - 0.5,
                        1,
                        edgecolor="#D55E00",
                        linewidth=1.8,
                        clip_on=False,
                    )

    marks = ["; outlined: the true one"] if gold is not None and np.any(gold >= 0) else []
    if any(
        read
        for b in attention.shown
        for values in (attention.soft, attention.hard)
        if values is not None
        for read in read_at_once(values[b])
    ):
        marks.append("; dots: words read at once")
    title = f"Alignment ({attention.estimator}{''.join(marks)})"
    return soft_above_hard(
        attention,
        title,
        lambda b: words(attention, "source", b) + null,
        lambda b: words(attention, "target", b),
        mark,
    )
