"""Translators: alignment matrices labelled with words."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .attention import Attention
from .maps import soft_above_hard
from .registry import view


def words(attention: Attention, field: str, example: int) -> list[str]:
    """The words of an example's field without padding; their numbers if the file has no words."""
    length = attention.field(f"{field}_length")
    numbers = attention.need(field)
    end = int(length[example]) if length is not None else numbers.shape[1]
    text = attention.field(f"{field}_text")
    return [str(word) for word in (text if text is not None else numbers)[example][:end]]


@view("translator")
def alignments(attention: Attention) -> Figure:
    """Target words down, source words across, followed by the null position if the network has one. Outlined: the true alignment, if it
    is known."""
    null = ["(none)"] if attention.settings.get("null") else []
    gold = attention.field("alignment")

    def mark(ax: Axes, b: int) -> None:
        if gold is not None:
            for t, place in enumerate(gold[b]):
                if place >= 0:
                    ax.add_patch(Rectangle((place - 0.5, t - 0.5), 1, 1, fill=False, edgecolor="#D55E00", linewidth=1.8, clip_on=False))

    title = f"Alignment ({attention.estimator}" + ("; outlined: the true one)" if gold is not None and np.any(gold >= 0) else ")")
    return soft_above_hard(attention, title, lambda b: words(attention, "source", b) + null, lambda b: words(attention, "target", b), mark)
