"""Views for any model: plain heat maps of attention, and its entropy."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from ..drawing import FONT
from ..errors import InputError
from ..style import COLOURS, LINES, MARKERS
from .attention import Attention
from .maps import soft_and_hard, stacked
from .registry import view


@view("*")
def attention_maps(attention: Attention) -> Figure:
    """Steps x options for a few examples."""
    if attention.numbers is not None:
        raise InputError(
            f"the choices of {attention.model} are numbers, which a heat map cannot show; "
            "register a view for this model"
        )

    def there(b: int, axis: int) -> range:
        kept = np.flatnonzero(np.isfinite(attention.soft[b]).any(axis=axis))
        return range(int(kept.max(initial=-1)) + 1)

    return stacked(
        soft_and_hard(attention),
        attention.shown,
        f"{attention.model}: attention, steps down, options across ({attention.estimator})",
        lambda b: [str(i) for i in there(b, 0)],
        lambda b: [str(i + 1) for i in there(b, 1)],
    )


@view("")
def attention_entropy(attention: Attention) -> Figure:
    """Entropy over steps, one line per example and their mean; dotted: the maximum, for uniform
    probabilities."""
    values = attention.entropy
    most = np.log(np.maximum(np.isfinite(attention.soft).sum(axis=2), 1))
    steps = np.arange(1, values.shape[1] + 1)
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        ax = figure.subplots()
        for b in attention.shown:
            ax.plot(
                steps,
                values[b],
                color=COLOURS[b % len(COLOURS)],
                marker=MARKERS[b % len(MARKERS)],
                linestyle=LINES[b % len(LINES)],
                markersize=6,
                linewidth=1.4,
                label=f"example {b + 1}",
            )
            if attention.numbers is None:
                ax.plot(
                    steps,
                    np.where(np.isfinite(values[b]), most[b], np.nan),
                    color=COLOURS[b % len(COLOURS)],
                    linestyle=":",
                    linewidth=1,
                )
        counts = np.isfinite(values).sum(axis=0)
        mean = np.where(counts > 0, np.nansum(values, axis=0) / np.maximum(counts, 1), np.nan)
        ax.plot(
            steps,
            mean,
            color="#555555",
            linewidth=3,
            alpha=0.6,
            zorder=1,
            label=f"mean of {len(values)}",
        )
        ax.set_xticks(steps if len(steps) <= 16 else steps[:: -(-len(steps) // 12)])
        if attention.numbers is None:
            ax.set_ylim(bottom=0)
        ax.set_xlabel("step")
        ax.set_ylabel("entropy (nat)")
        dotted = " (dotted: uniform)" if attention.numbers is None else ""
        ax.set_title(f"{attention.model}: entropy of attention{dotted}", loc="left")
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
