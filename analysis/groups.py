"""Which runs belong together: everything but the seed equal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from .errors import InputError
from .load import status_names


class Group(NamedTuple):
    """Runs that differ in their seed only."""

    task: str
    model: str
    estimator: str
    others: dict[str, str]  # further axes of the grid that vary within the file
    runs: np.ndarray  # positions along `run`
    status: list[str]  # of each run

    @property
    def label(self) -> str:
        """The estimator, with the further axes that set it apart."""
        return " ".join([self.estimator, *(f"{name}={value}" for name, value in self.others.items())])

    @property
    def panel(self) -> tuple[str, str]:
        return self.task, self.model


def other_axes(data: xr.Dataset) -> list[str]:
    """Axes of the grid besides task, model, estimator and seed that take more than one value."""
    names = []
    for name in data.variables:
        axis = data[name].attrs.get("grid_axis")
        if axis and axis not in ("task", "model", "estimator", "seed") and len(set(data[name].values.tolist())) > 1:
            names.append(str(name))
    return sorted(names)


def groups(data: xr.Dataset) -> list[Group]:
    """All groups in the order of their first run."""
    others = other_axes(data)
    status = status_names(data)
    found: dict[tuple[str, ...], list[int]] = {}
    keys = ["task", "model", "estimator", *others]
    columns = [[str(value) for value in data[key].values] for key in keys]
    for run, key in enumerate(zip(*columns)):
        found.setdefault(key, []).append(run)
    return [Group(task, model, estimator, dict(zip(others, rest)), np.array(runs), [status[run] for run in runs])
            for (task, model, estimator, *rest), runs in found.items()]


def page(data: xr.Dataset, number: int, most: int) -> tuple[xr.Dataset, int]:
    """The runs of the networks (tasks and models) on a page of `most`, and how many pages there are. InputError if there is no such
    page."""
    found = list(panels(data).values())
    pages = -(-len(found) // most)
    if not 1 <= number <= pages:
        raise InputError(f"{data.attrs.get('path', 'result')}: has no page {number}: {len(found)} networks fill {pages}")
    if pages == 1:
        return data, 1
    here = found[(number - 1) * most : number * most]
    return data.isel(run=np.sort(np.concatenate([group.runs for members in here for group in members]))), pages


def panels(data: xr.Dataset) -> dict[tuple[str, str], list[Group]]:
    """Groups by task and model, in order."""
    result: dict[tuple[str, str], list[Group]] = {}
    for group in groups(data):
        result.setdefault(group.panel, []).append(group)
    return result
