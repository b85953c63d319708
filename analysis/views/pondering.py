"""Ponderers: halting steps."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..drawing import FONT
from ..errors import InputError
from ..style import COLOURS
from .attention import Attention
from .registry import view


def laws(attention: Attention) -> np.ndarray:
    """[B, N] the network's probability of halting after each inner step; NaN where no row reached
    the step. InputError for sequences of inputs."""
    if "length" in attention.batch:
        raise InputError("the views of ponderer draw puzzles with one input; these are sequences")
    if attention.settings.get("ask", "bits") == "step":
        return np.nan_to_num(attention.soft[:, 0])
    halt, go_on = np.moveaxis(
        attention.soft, 2, 0
    ).copy()  # [B, N - 1] each, of the rows that reached the step
    choices = attention.choices
    for b in range(len(halt)):
        there = choices[:, attention.rows(b)] if choices is not None else np.zeros((0, 0))
        for n in range(halt.shape[1]):
            if not there.shape[1]:
                break
            if np.isnan(halt[b, n]):  # rows reached the step without a choice: all halt
                halt[b, n:], go_on[b, n:] = 1, 0
                break
            there = there[:, there[n] == 1]
    reached = np.cumprod(np.concatenate([np.ones((len(halt), 1)), go_on], axis=1), axis=1)
    return reached * np.concatenate(
        [halt, np.ones((len(halt), 1))], axis=1
    )  # all halt at the last step


def stops(attention: Attention) -> np.ndarray | None:
    """[R] the step, from 0, after which each row halted; None if it is unknown."""
    if attention.choices is None:
        return None
    if attention.settings.get("ask", "bits") == "step":
        return attention.choices[0]
    going_on = attention.choices == 1  # rows without a choice halt, too
    return np.where(going_on.all(axis=0), len(going_on), going_on.argmin(axis=0))


@view("ponderer")
def halting_steps(attention: Attention) -> Figure:
    """One example per panel: the probability of halting after each inner step, and the steps at
    which its rows halted."""
    law, stopped = laws(attention), stops(attention)
    shown, difficulty = list(attention.shown), attention.field("difficulty")
    steps = np.arange(1, law.shape[1] + 1)
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(2.6 * len(shown) + 0.6, 2.8), layout="constrained")
        for ax, b in zip(figure.subplots(1, len(shown), squeeze=False, sharey=True)[0], shown):
            ax.bar(steps, np.nan_to_num(law[b]), color=COLOURS[0], width=0.8)
            known = np.isfinite(law[b])
            if not known.all():  # no row reached the step
                ax.axvspan(steps[~known][0] - 0.5, steps[-1] + 0.5, color="#eeeeee")
            if stopped is not None:
                rows = stopped[attention.rows(b)]
                shares = np.bincount(rows, minlength=len(steps)) / len(rows)
                ax.plot(
                    steps[shares > 0],
                    shares[shares > 0],
                    color=COLOURS[1],
                    marker="o",
                    markersize=5,
                    linestyle="",
                )
            mean = f", {np.sum(law[b] * steps):.1f} steps" if known.all() else ""
            ax.set_title(
                (f"difficulty {difficulty[b]}" if difficulty is not None else f"example {b + 1}")
                + mean,
                fontsize=9.5,
            )
            ax.set_xlabel("inner step")
            ax.set_xlim(0.4, steps[-1] + 0.6)
            ax.set_ylim(0, 1.02)
        figure.axes[0].set_ylabel("halting probability")
        dots = "; dots: share of rows that halted there" if stopped is not None else ""
        figure.suptitle(f"Halting ({attention.estimator}{dots})", x=0.01, ha="left", fontsize=11)
    return figure


def mean_steps(attention: Attention) -> np.ndarray:
    """[B] steps of each example: the mean over its rows' halting steps, or the expectation if rows
    are not choices."""
    stopped = stops(attention)
    if stopped is None:
        law = laws(attention)
        return np.asarray(law @ np.arange(1, law.shape[1] + 1))
    return np.array([1 + stopped[attention.rows(b)].mean() for b in range(len(attention.soft))])


@view("ponderer")
def steps_by_difficulty(attention: Attention) -> Figure:
    """Steps against difficulty: the mean over all examples of a difficulty in the batch, with its
    standard error."""
    difficulty, taken = attention.need("difficulty"), mean_steps(attention)
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        ax = figure.subplots()
        levels = np.unique(difficulty)
        groups = [taken[difficulty == level] for level in levels]
        errors = [
            np.std(group, ddof=1) / np.sqrt(len(group)) if len(group) > 1 else 0 for group in groups
        ]  # unknown for one example
        ax.errorbar(
            levels,
            [np.mean(group) for group in groups],
            errors,
            color=COLOURS[0],
            marker="o",
            capsize=3,
            linewidth=1.4,
        )
        ax.set_ylim(0, laws(attention).shape[1] + 0.5)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("difficulty")
        ax.set_ylabel("steps")
        ax.set_title(
            f"Steps of {len(taken)} examples by difficulty, mean ± standard error",
            loc="left",
            fontsize=11,
        )
    return figure
