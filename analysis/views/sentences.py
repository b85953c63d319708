"""Translators: alignment matrices labelled with words."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .attention import Attention
from .maps import row_names, soft_and_hard, stacked
from .registry import VIEWS_OF_SEVERAL, view


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


def _wide(values: np.ndarray, options: int) -> np.ndarray:
    """[B, T, S] with so many options, those that it lacks without a number."""
    more = options - values.shape[2]
    return np.pad(values, [(0, 0), (0, 0), (0, more)], constant_values=np.nan)


@view("translator")
def alignments(*networks: Attention) -> Figure:
    """Target words down, source words across, followed by the null position if a network has one
    (blank for those without); the probabilities of several networks, or of one, with its choices
    below. Outlined: the true alignment, if it is known. Dots: the source words that one target word
    reads at once, two or more with a share of at least `_AT_ONCE` each, as French "l'" reads "the"
    and "man" (Bahdanau et al. 2015, sec. 5.2.1)."""
    attention = networks[0]
    null = ["(none)"] if any(network.settings.get("null") for network in networks) else []
    gold = attention.field("alignment")
    rows = soft_and_hard(attention)
    if len(networks) > 1:
        wide = max(one.soft.shape[2] for one in networks)
        rows = [(name, _wide(one.soft, wide)) for name, one in zip(row_names(networks), networks)]

    def mark(ax: Axes, row: int, b: int) -> None:
        for t, read in enumerate(read_at_once(rows[row][1][b])):
            ax.plot(read, [t] * len(read), "o", color="#D55E00", markersize=4)
        for t, place in enumerate(gold[b] if gold is not None else []):
            if place >= 0:
                corner = (place - 0.5, t - 0.5)
                ax.add_patch(
                    Rectangle(
                        corner, 1, 1, fill=False, edgecolor="#D55E00", linewidth=1.8, clip_on=False
                    )
                )

    marks = ["darker: more probable"]
    marks += ["outlined: true link"] if gold is not None and np.any(gold >= 0) else []
    if any(read for _, values in rows for b in attention.shown for read in read_at_once(values[b])):
        marks.append("dots: read at once")
    return stacked(
        rows,
        attention.shown,
        ("" if len(networks) > 1 else f"{attention.estimator}; ") + "; ".join(marks),
        lambda b: words(attention, "source", b) + null,
        lambda b: words(attention, "target", b),
        mark,
    )


VIEWS_OF_SEVERAL["translator"] = alignments
