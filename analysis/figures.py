"""Every figure by name, each a function from a result to a matplotlib Figure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Protocol

import xarray as xr
from matplotlib.figure import Figure

from .against import (
    bias_against_temperature,
    family_of,
    variance_against_samples,
    variance_against_temperature,
)
from .curves import (
    cosine_over_training,
    entropy_over_training,
    heldout_curves,
    loss_curves,
    metric_curves,
    variance_over_training,
)
from .errors import InputError, NotApplicable
from .heatmap import heat_map
from .intervals import final_scores
from .moments import bias_variance, variance_against_cost
from .result import Result
from .style import COLOURS
from .table import MOST_SETTINGS, foremost, with_labels


class Drawing(Protocol):
    """Draws a result; `at` is the step of the measurements."""

    def __call__(self, data: xr.Dataset | Result, at: str | int = "half") -> Figure: ...


#: Figures of a metric, and the cost on their horizontal axis.
METRICS = {"metric_curves": "steps", "metric_by_rows": "rows", "metric_by_time": "cpu_seconds"}
BY_COST = ("loss_by_rows", "loss_by_attention_values", "loss_by_time", *list(METRICS)[1:])
#: Settings in a figure that tells them apart by colour. Where each has a row: MOST_SETTINGS.
MOST_LINES = len(COLOURS)
_ROWS = ("final_scores", "heat_map")
_PARAMETERS = {
    "variance_against_samples": "samples",
    "variance_against_temperature": "temperature",
    "bias_against_temperature": "temperature",
}
#: By file name. Each takes a result and the step of the measurements (first, half, last or a
#: number). Raises InputError if the result lacks the data of the figure, NotApplicable if the
#: figure does not apply to the sweep.
FIGURES: dict[str, Drawing] = {
    "final_scores": lambda data, at="half": final_scores(data),
    "metric_curves": lambda data, at="half": metric_curves(data),
    "heldout_loss": lambda data, at="half": heldout_curves(data),
    "bias_variance": bias_variance,
    "variance_against_cost": variance_against_cost,
    "heat_map": heat_map,
    "variance_over_training": lambda data, at="half": variance_over_training(data),
    "cosine_over_training": lambda data, at="half": cosine_over_training(data),
    "attention_entropy": lambda data, at="half": entropy_over_training(data),
    "loss_curves": lambda data, at="half": loss_curves(data),
    "loss_by_rows": lambda data, at="half": loss_curves(data, against="rows"),
    "loss_by_attention_values": lambda data, at="half": loss_curves(
        data, against="attention_values"
    ),
    "loss_by_time": lambda data, at="half": loss_curves(data, against="cpu_seconds"),
    "metric_by_rows": lambda data, at="half": metric_curves(data, against="rows"),
    "metric_by_time": lambda data, at="half": metric_curves(data, against="cpu_seconds"),
    "variance_against_samples": variance_against_samples,
    "variance_against_temperature": variance_against_temperature,
    "bias_against_temperature": bias_against_temperature,
}


def draw_all(
    result: Result,
    at: str | int = "half",
    names: Collection[str] | None = None,
    metric: str | None = None,
    most: int | None = None,
    without: Collection[str] = (),
) -> Iterator[tuple[str, Figure | InputError]]:
    """Name and figure of every applicable or named figure; an InputError in place of a figure that
    cannot be drawn.
    `metric`: the metric that metric figures show, by its variable's name (default: the first one of
        each task).
    `most`: settings in each figure, the best of all networks first (default: MOST_LINES, or
        MOST_SETTINGS where each has a row). If these are not all, its title has their number.
    `without`: figures that are not drawn."""
    best = _excerpts(result, at)
    for name, draw in FIGURES.items():
        if names and name not in names or name in without:
            continue
        try:
            shown = best(name, most or (MOST_SETTINGS if name in _ROWS else MOST_LINES))
            yield (
                name,
                draw(shown, at)
                if metric is None or name not in METRICS
                else metric_curves(shown, metric, METRICS[name]),
            )
        except NotApplicable as error:
            if names:
                yield name, error
        except InputError as error:
            yield name, error


def _excerpts(result: Result, at: str | int) -> Callable[[str, int], Result]:
    """By figure and number: the result with at most so many settings, or, in a figure against a
    parameter, with the families of so many."""
    every = dict.fromkeys(group.label for group in result.groups)

    def of(name: str, most: int) -> Result:
        if len(every) <= most:
            return result
        labels = foremost(result, most, at)
        words = f"the best {len(labels)} of {len(every)} settings"
        if name in _PARAMETERS:
            families = {family_of(label, _PARAMETERS[name]) for label in labels}
            labels = [one for one in every if family_of(one, _PARAMETERS[name]) in families]
            words = f"estimators of {words}"
        return result.once(("excerpt", tuple(labels)), lambda: with_labels(result, labels, words))

    return of
