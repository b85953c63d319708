"""A heat map of estimators and networks: measured values, and reasons for missing ones."""

from __future__ import annotations

import string
import textwrap

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .drawing import FONT, LETTERS, broken
from .groups import Group
from .measured import measured
from .result import Result
from .steps import Step


def _why_not(result: Result, group: Group, step: Step) -> str:
    """The reason for a missing number: the run's, or the measurement's."""
    for status, run in zip(group.status, group.runs):
        if status != "ok":
            return f"{status}: {str(result.values('reason')[run]) or 'no reason given'}"
    if "measurement_reason" in result:
        for text in result.at("measurement_reason", step)[group.runs]:
            if str(text):
                return f"not measured: {text}"
    return "not measured"


def heat_map(
    data: xr.Dataset | Result, at: str | int = "half", quantity: str = "work_normalised_variance"
) -> Figure:
    """Estimators x tasks and networks: a measured quantity, as a multiple of the smallest positive
    value in its column, on a logarithmic scale. Cells without a number are hatched, with a letter
    for the reason below. Blank: not in the sweep."""
    result = Result.of(data)
    step = result.step(at)
    result.need(quantity, "set measure.at in the sweep")
    found = result.panels
    labels = list(dict.fromkeys(group.label for group in result.groups))
    values = np.full((len(labels), len(found)), np.nan)
    reasons: dict[tuple[int, int], str] = {}
    for column, members in enumerate(found.values()):
        for group in members:
            row = labels.index(group.label)
            values[row, column] = measured(result, group, quantity, step).mean
            if not np.isfinite(values[row, column]):
                reasons[row, column] = _why_not(result, group, step)
    positive = np.where(values > 0, values, np.inf).min(axis=0)
    ratio = values / np.where(np.isfinite(positive), positive, 1)
    letters = {reason: _letter(i) for i, reason in enumerate(dict.fromkeys(reasons.values()))}
    legend = [
        line
        for reason, letter in letters.items()
        for line in textwrap.wrap(f"{letter}  {reason}", 110, subsequent_indent="    ", max_lines=3)
    ]

    with matplotlib.rc_context(FONT):
        rows, columns = values.shape
        names = [broken(name, 3, LETTERS["xtick.labelsize"]) for name in result.titles.values()]
        left = 0.085 * max(len(label) for label in labels) + 0.2
        wide = max(left + min(0.95, 40 / columns) * columns + 1.1, 6.5)
        above = 0.045 * max(len(line) for name in names for line in name.split("\n")) + 0.6
        below = 0.19 * len(legend) + 0.25
        tall = above + 0.27 * rows + below
        figure = Figure(figsize=(wide, tall))
        ax = figure.add_axes(
            (
                left / wide,
                below / tall,
                min(0.95, 40 / columns) * columns / wide,
                0.27 * rows / tall,
            )
        )
        top = max(float(np.nanmax(np.where(np.isfinite(ratio), ratio, 1))), 10)
        picture = ax.imshow(
            np.where(ratio > 0, ratio, np.nan),
            cmap="cividis_r",
            norm=LogNorm(1, top),
            aspect="auto",
        )
        for (row, column), reason in reasons.items():
            ax.add_patch(
                Rectangle(
                    (column - 0.5, row - 0.5),
                    1,
                    1,
                    facecolor="#eeeeee",
                    edgecolor="#aaaaaa",
                    hatch="////",
                    linewidth=0,
                )
            )
            ax.text(
                column,
                row,
                letters[reason],
                ha="center",
                va="center",
                fontsize=8.5,
                fontweight="bold",
                bbox={"facecolor": "#eeeeee", "edgecolor": "none", "pad": 1},
            )
        if columns <= 40:
            for (row, column), value in np.ndenumerate(ratio):
                if np.isfinite(value):
                    dark = value > 0 and np.log(value) > 0.5 * np.log(top)
                    ax.text(
                        column,
                        row,
                        "0" if value == 0 else f"{value:.3g}",
                        ha="center",
                        va="center",
                        fontsize=8,
                        color="white" if dark else "black",
                    )
        ax.set_xticks(range(columns), names, rotation=35, ha="left", rotation_mode="anchor")
        ax.set_yticks(range(rows), labels)
        ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
        ax.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        ax.grid(True, which="minor", color="white", linewidth=1.5)
        ax.tick_params(which="minor", length=0)
        bar = figure.colorbar(
            picture, ax=ax, fraction=0.05, pad=0.02, shrink=min(1, 2.5 / (0.27 * rows))
        )
        bar.outline.set_visible(False)
        what = quantity.replace("work_normalised_variance", "variance × rows").replace("_", " ")
        figure.suptitle(
            f"{what.capitalize()} at {step.words}, as a multiple of the column's minimum"
            + (f" · {result.part}" if result.part else ""),
            x=0.01,
            y=1 - 0.08 / tall,
            va="top",
            ha="left",
            fontsize=12,
        )
        figure.text(
            0.1 / wide,
            (below - 0.15) / tall,
            "\n".join(legend),
            va="top",
            fontsize=8.5,
            linespacing=1.35,
        )
    return figure


def _letter(i: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    letters = string.ascii_lowercase
    return letters[i] if i < 26 else _letter(i // 26 - 1) + letters[i % 26]
