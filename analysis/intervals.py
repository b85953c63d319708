"""Final scores with their intervals, a panel per network, and their interquartile means over
networks (Agarwal et al. 2021, rliable)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from .drawing import draw_panels, font_scale, in_margin
from .errors import InputError
from .numbers_in_words import quantity_name
from .quantities import comparable, ranking_quantity
from .result import Result
from .statistics import Mean, interquartile_mean_interval, mean_interval
from .style import LineStyle

OVER_ALL = ("interquartile mean", "interquartile mean")  # in place of task and model


class Interval(NamedTuple):
    """A bar of the figure."""

    label: str
    mean: Mean
    what: str  # the quantity, in words
    share: bool


def intervals(result: Result) -> dict[tuple[str, str], list[Interval]]:
    """By network, the best first: means over seeds and their 95% intervals, each for its estimator
    alone. With several networks, under the key `OVER_ALL`: the interquartile mean of all runs of
    each estimator that has scores on all of them, and its interval by a bootstrap within the
    networks. There, 1 is the best run of a network and 0 its worst."""
    found: dict[tuple[str, str], list[Interval]] = {}
    scaled: dict[str, dict[tuple[str, str], np.ndarray]] = {}
    for panel, members in result.panels.items():
        name = ranking_quantity(result, members)
        if name is None:
            continue
        lower = result.lower_is_better(name)
        scores = comparable(result, members, result.last(name), lower)  # lower is better
        if not np.isfinite(scores).any():
            continue
        best, worst = np.nanmin(scores), np.nanmax(scores)
        there = [i for i in range(len(members)) if np.isfinite(scores[i]).any()]
        order = sorted(there, key=lambda i: np.nanmean(scores[i]))
        found[panel] = [
            Interval(
                members[i].label,
                mean_interval(scores[i] if lower else -scores[i]),
                quantity_name(name),
                result.is_share(name),
            )
            for i in order
        ]
        for i in there:
            row = scores[i][np.isfinite(scores[i])]
            scaled.setdefault(members[i].label, {})[panel] = (
                (worst - row) / (worst - best) if worst > best else np.ones_like(row)
            )
    whole = {
        label: list(strata.values())
        for label, strata in scaled.items()
        if len(strata) == len(found)
    }
    if len(found) > 1 and len(whole) > 1:
        means = {label: interquartile_mean_interval(strata) for label, strata in whole.items()}
        found[OVER_ALL] = [
            Interval(label, means[label], "share of the networks' ranges", True)
            for label in sorted(means, key=lambda label: -means[label].mean)
        ]
    return found


def final_scores(data: xr.Dataset | Result) -> Figure:
    """The intervals of every network and of all together. InputError if nothing was evaluated."""
    result = Result.of(data)
    found = intervals(result)
    if not found:
        raise InputError(f"{result.path}: nothing was evaluated")

    def panel(ax: Axes, members: list[Interval], styles: dict[str, LineStyle]) -> bool:
        for place, one in enumerate(members):
            style = styles[one.label]
            if np.isfinite(one.mean.low):
                ax.barh(
                    place,
                    one.mean.high - one.mean.low,
                    left=one.mean.low,
                    height=0.6,
                    color=style.colour,
                    alpha=0.35,
                    linewidth=0,
                )
            ax.plot(
                [one.mean.mean] * 2,
                [place - 0.3, place + 0.3],
                color=style.colour,
                linewidth=2 * font_scale(),
            )
        ax.set_yticks(range(len(members)), [in_margin(one.label) for one in members])
        ax.set_ylim(len(members) - 0.4, -0.6)
        ax.use_sticky_edges = False
        ax.margins(x=0.06)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set_xlabel(members[0].what)
        if members[0].share:  # an interval may end beyond 0 and 1, where a share cannot be
            low, high = ax.get_xlim()
            ax.set_xlim(max(low, -0.03), min(high, 1.03))
            ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=None))
        return True

    return draw_panels(
        found,
        f"{result.evaluated_on.capitalize()} scores at the end of training (mean over seeds; "
        "bar: 95% interval)",
        panel,
        "",
        "",
        legend=False,
        part=result.part,
    )
