"""Groups of runs that differ only in their seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

from .errors import InputError
from .load import estimator_settings, run_settings, status_names


def in_words(settings: Mapping[str, object]) -> str:
    """Settings as readable text, without empty ones (`train.start = ""`)."""
    return " ".join(f"{name}={value}" for name, value in settings.items() if value != "")


def labelled(estimator: str, others: Mapping[str, object]) -> str:
    """An estimator with the other settings that distinguish it."""
    return f"{estimator} {in_words(others)}".strip()


def spelled(data: xr.Dataset) -> list[str]:
    """[run] The estimators as displayed. A sweep omits defaults, so `rloo[samples=4]` would stand as `rloo` beside `rloo[samples=8]` or
    `vimco[samples=4]`. If an estimator of the file names its samples, all that have samples name them."""
    names = [str(name) for name in data["estimator"].values]
    if not any(_SAMPLES in name for name in names):
        return names
    try:
        own = [one.get("samples") for one in estimator_settings(data)]
    except InputError:  # unreadable settings are reported where they are needed
        return names
    return [name if count is None or _SAMPLES in name else
            f"{name[:-1]},{_SAMPLES}{count}]" if name.endswith("]") else f"{name}[{_SAMPLES}{count}]" for name, count in zip(names, own)]


_SAMPLES = "samples="


class Group(NamedTuple):
    """Runs that differ only in their seed."""

    task: str
    model: str
    estimator: str  # as displayed (`spelled`)
    others: dict[str, str]  # other axes of the grid that vary within the file
    runs: np.ndarray  # positions along `run`
    status: list[str]  # of each run
    tuned: dict[str, str] = {}  # settings chosen by [tune]
    edge: str = ""  # those of them at the end of the range tried

    @property
    def label(self) -> str:
        """The estimator, with the other axes that distinguish it."""
        return labelled(self.estimator, self.others)

    @property
    def panel(self) -> tuple[str, str]:
        return self.task, self.model


def other_axes(data: xr.Dataset) -> list[str]:
    """Axes of the grid besides task, model, estimator and seed with more than one value."""
    names = []
    for name in data.variables:
        axis = data[name].attrs.get("grid_axis")
        if axis and axis not in ("task", "model", "estimator", "seed") and len(set(data[name].values.tolist())) > 1:
            names.append(str(name))
    return sorted(names)


def overrides(data: xr.Dataset) -> dict[str, list[str]]:
    """Training and measurement settings that differ between the runs of a network without being an axis of the grid (overrides): [run] as
    text, by path."""
    settings = run_settings(data)
    axes = {str(data[name].attrs.get("grid_axis")) for name in data.variables}
    networks = list(zip(data["task"].values.tolist(), data["model"].values.tolist()))
    found = {}
    for path in dict.fromkeys(path for one in settings for path in one):
        values = [str(one[path]) if path in one else "" for one in settings]
        if len(set(zip(networks, values))) > len(set(networks)) and path not in axes:
            found[path] = values
    return found


def _splits(data: xr.Dataset, last: bool) -> np.ndarray:
    words = {"heldout": "held-out", "test": "test"}
    found = []
    for one in run_settings(data):
        final = str(one.get("train.final_split", "same"))
        found.append(words.get(final if last and final != "same" else str(one.get("train.evaluate_split", "heldout")), "evaluated"))
    return np.array(found, object)


def evaluation_splits(data: xr.Dataset) -> np.ndarray:
    """[run] The split of the last evaluation: "held-out", "test", or "evaluated" for any other."""
    return _splits(data, True)


def in_common(words: np.ndarray, otherwise: str = "evaluated") -> str:
    """The common word, such as a split; `otherwise` if they differ."""
    found = set(words.tolist())
    return str(found.pop()) if len(found) == 1 else otherwise


def evaluated_on(data: xr.Dataset, runs: np.ndarray | None = None) -> str:
    """The split of the last evaluation of all runs, or of these."""
    splits = evaluation_splits(data)
    return in_common(splits if runs is None else splits[runs])


def evaluated_along(data: xr.Dataset) -> str:
    """The split of all evaluations: "evaluated" if the last one uses another split than the earlier ones."""
    return in_common(np.concatenate([_splits(data, False), _splits(data, True)]))


def groups(data: xr.Dataset) -> list[Group]:
    """All groups, ordered by their first run."""
    others = other_axes(data)
    status = status_names(data)
    found: dict[tuple[str, ...], list[int]] = {}
    keys = ["task", "model", "estimator", *others]
    columns = [spelled(data) if key == "estimator" else [str(value) for value in data[key].values] for key in keys]
    for run, key in enumerate(zip(*columns)):
        found.setdefault(key, []).append(run)
    chosen = {str(data[name].attrs["tuned_axis"]): [str(value) for value in data[name].values]
              for name in data.variables if "tuned_axis" in data[name].attrs}
    edges = [str(edge) for edge in data["tuning_edge"].values] if "tuning_edge" in data else [""] * data.sizes["run"]
    return [Group(task, model, estimator, dict(zip(others, rest)), np.array(runs), [status[run] for run in runs],
                  {name: values[runs[0]] for name, values in chosen.items() if values[runs[0]]}, edges[runs[0]])
            for (task, model, estimator, *rest), runs in found.items()]


def by_seed(data: xr.Dataset, members: list[Group], scores: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Scores [groups, seeds] of one panel, NaN for missing runs; and the seeds."""
    name = "seed_hex" if "seed_hex" in data.variables else "seed"
    runs = np.concatenate([group.runs for group in members])
    labels = map(str, data[name].values[runs] if name in data.variables else runs)
    seeds = dict(zip(runs.tolist(), labels))
    every = {seed: place for place, seed in enumerate(dict.fromkeys(seeds.values()))}
    matrix = np.full((len(members), len(every)), np.nan)
    for i, group in enumerate(members):
        for run in group.runs:
            matrix[i, every[seeds[run]]] = scores[run]
    return matrix, list(every)


def page(data: xr.Dataset, number: int, most: int) -> tuple[xr.Dataset, int]:
    """The runs of the networks (tasks and models) on page `number` of `most` networks, and the number of pages. InputError if the page
    does not exist."""
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


def panels_with(data: xr.Dataset, name: str) -> dict[tuple[str, str], list[Group]]:
    """The same, of the networks with a value of this variable."""
    there = np.isfinite(data[name].values).reshape(data.sizes["run"], -1).any(axis=1)
    return {panel: members for panel, members in panels(data).items() if any(there[group.runs].any() for group in members)}
