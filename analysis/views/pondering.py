"""Ponderers: when they halt."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from ..drawing import FONT
from ..style import COLOURS
from .attention import Attention
from .registry import view


def laws(attention: Attention) -> np.ndarray:
    """[B, N] the chance to halt after each inner step, by the network; NaN where no row got far enough to tell."""
    if attention.settings.get("ask", "bits") == "step":
        return np.nan_to_num(attention.soft[:, 0])
    halt, go_on = np.moveaxis(attention.soft, 2, 0).copy()  # [B, N - 1] each, of those that got there
    choices = attention.choices
    for b in range(len(halt)):
        there = choices[:, attention.rows(b)] if choices is not None else np.zeros((0, 0))
        for n in range(halt.shape[1]):
            if not there.shape[1]:
                break
            if np.isnan(halt[b, n]):  # somebody got there and had no choice: all halt
                halt[b, n:], go_on[b, n:] = 1, 0
                break
            there = there[:, there[n] == 1]
    reached = np.cumprod(np.concatenate([np.ones((len(halt), 1)), go_on], axis=1), axis=1)
    return reached * np.concatenate([halt, np.ones((len(halt), 1))], axis=1)  # at the last step all halt


def stops(attention: Attention) -> np.ndarray | None:
    """[R] the step, from 0, after which each row halted; None if that is unknown."""
    if attention.choices is None:
        return None
    if attention.settings.get("ask", "bits") == "step":
        return attention.choices[0]
    going_on = attention.choices == 1  # who has no choice halts, too
    return np.where(going_on.all(axis=0), len(going_on), going_on.argmin(axis=0))


@view("ponderer")
def halting_steps(attention: Attention) -> Figure:
    """An example to a panel: the chance to halt after each inner step, and when its rows did halt."""
    law, stopped = laws(attention), stops(attention)
    shown, difficulty = list(attention.shown), attention.field("difficulty")
    steps = np.arange(1, law.shape[1] + 1)
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(2.6 * len(shown) + 0.6, 2.8), layout="constrained")
        for ax, b in zip(figure.subplots(1, len(shown), squeeze=False, sharey=True)[0], shown):
            ax.bar(steps, np.nan_to_num(law[b]), color=COLOURS[0], width=0.8)
            known = np.isfinite(law[b])
            if not known.all():  # no row got there
                ax.axvspan(steps[~known][0] - 0.5, steps[-1] + 0.5, color="#eeeeee")
            if stopped is not None:
                rows = stopped[attention.rows(b)]
                shares = np.bincount(rows, minlength=len(steps)) / len(rows)
                ax.plot(steps[shares > 0], shares[shares > 0], color=COLOURS[1], marker="o", markersize=5, linestyle="")
            mean = f", {np.sum(law[b] * steps):.1f} steps" if known.all() else ""
            ax.set_title((f"difficulty {difficulty[b]}" if difficulty is not None else f"example {b + 1}") + mean, fontsize=9.5)
            ax.set_xlabel("inner step")
            ax.set_xlim(0.4, steps[-1] + 0.6)
            ax.set_ylim(0, 1.02)
        figure.axes[0].set_ylabel("chance to halt")
        dots = "; dots: share of rows that halted there" if stopped is not None else ""
        figure.suptitle(f"Halting ({attention.estimator}{dots})", x=0.01, ha="left", fontsize=11)
    return figure
