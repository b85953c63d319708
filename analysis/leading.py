"""Selection of the leading settings, for results with more settings than a page can show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from .groups import labelled, other_axes, panels

MOST_SETTINGS = 30  # of each network, drawn and listed in full


def keys_of(data: xr.Dataset, frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Task, model and label (as `groups.Group.label`) of every row of the table."""
    names = other_axes(data)
    labels = [labelled(estimator, dict(zip(names, rest))) for estimator, *rest in zip(frame["estimator"], *(frame[name] for name in names))]
    return list(zip(frame["task"], frame["model"], labels))


def leading(frame: pd.DataFrame, most: int = MOST_SETTINGS) -> np.ndarray:
    """Mask [rows] of the table (`table.table`, best rows first): for each network the best row of every estimator, then the next best
    rows, `most` in all."""
    kept = np.zeros(len(frame), bool)
    places = pd.Series(np.arange(len(frame)))
    for _, part in places.groupby([frame["task"].to_numpy(), frame["model"].to_numpy()], sort=False):
        again = frame["estimator"].iloc[part].duplicated().to_numpy()
        kept[part.to_numpy()[np.argsort(again, kind="stable")][:most]] = True
    return kept


def runs_of(data: xr.Dataset, keys: set[tuple[str, str, str]]) -> xr.Dataset:
    """The runs of these rows of the table."""
    runs = [group.runs for members in panels(data).values() for group in members if (*group.panel, group.label) in keys]
    return data.isel(run=np.sort(np.concatenate(runs)))
