"""Selection of the leading settings, for results with more settings than a page can show."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .groups import labelled
from .result import Result

MOST_SETTINGS = 30  # of each network, drawn and listed in full


def keys_of(result: Result, frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Task, model and label (as `groups.Group.label`) of every row of the table."""
    names = result.other_axes
    labels = [labelled(estimator, dict(zip(names, rest))) for estimator, *rest in zip(frame["estimator"], *(frame[name] for name in names))]
    return list(zip(frame["task"], frame["model"], labels))


def leading(frame: pd.DataFrame, most: int = MOST_SETTINGS) -> np.ndarray:
    """Mask [rows] of the table (`table.table`, best rows first): for each network the best row of every estimator, then
    the next best rows, `most` in all."""
    kept = np.zeros(len(frame), bool)
    places = pd.Series(np.arange(len(frame)))
    for _, part in places.groupby([frame["task"].to_numpy(), frame["model"].to_numpy()], sort=False):
        again = frame["estimator"].iloc[part].duplicated().to_numpy()
        kept[part.to_numpy()[np.argsort(again, kind="stable")][:most]] = True
    return kept


def only(result: Result, keys: set[tuple[str, str, str]]) -> Result:
    """The runs of these rows of the table."""
    return result.of_runs(np.concatenate([group.runs for group in result.groups if (*group.panel, group.label) in keys]))
