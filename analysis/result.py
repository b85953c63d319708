"""A result, prepared once for every view: labels, groups, settings, steps, directions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from .errors import InputError
from .groups import Group, Network, in_common, names_samples, runs_of, titles, with_samples
from .steps import NAMED, Step, chosen_step, measured

if sys.version_info >= (3, 11):
    import tomllib as tomllib
else:  # the same, as a package
    import tomli as tomllib

T = TypeVar("T")
_GRID = ("task", "model", "estimator", "seed")


def json_object(text: str, what: str) -> dict[str, Any]:
    """A JSON object; empty of an empty text. InputError with its name, `what`, if it is none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{what} is not a JSON object: {text}")
    return found


class Result:
    """A dataset of `load` (or one of its layout) with the labels, settings and steps that the views
    derive from it. Each is computed once, when it is first needed; so the dataset must not change.
    Functions that users call accept a dataset, too, and prepare it with `Result.of`."""

    def __init__(self, data: xr.Dataset, part: str = "") -> None:
        """`part`: in words, which settings of a file it has, if not all."""
        self.data, self.part = data, part
        self._made: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, data: xr.Dataset | Result) -> Result:
        """The result of a dataset; a result as it is."""
        return data if isinstance(data, Result) else cls(data)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` returns. It is called once for a key, which begins with its name."""
        if key not in self._made:
            self._made[key] = make()
        found: T = self._made[key]
        return found

    @property
    def path(self) -> str:
        """Where it was read from, for messages."""
        return str(self.data.attrs.get("path", "result"))

    @property
    def count(self) -> int:
        """The number of runs."""
        return int(self.data.sizes["run"])

    def __contains__(self, name: object) -> bool:
        return name in self.data.variables

    def values(self, name: str) -> np.ndarray:
        return self.once(("values", name), lambda: np.asarray(self.data[name].values))

    def need(self, name: str, remedy: str) -> np.ndarray:
        """The values of a variable. InputError with the remedy if it is missing or has no finite
        value."""
        if name not in self:
            raise InputError(f"{self.path}: has no variable {name}: {remedy}")
        if self.data[name].dtype.kind == "f" and not self.data[name].notnull().any():
            raise InputError(f"{self.path}: {name} has no finite value: {remedy}")
        return self.values(name)

    def of_runs(self, runs: np.ndarray) -> Result:
        """A result of these runs alone, in the order of the file."""
        return Result(self.data.isel(run=np.sort(runs)), self.part)

    def part_of(self, runs: np.ndarray, part: str | None = None) -> Result:
        """A result of these runs with the labels that they have here, also where the settings of
        the part are equal; called `part` in the titles of figures."""
        found = Result(self.of_runs(runs).data, self.part if part is None else part)
        found.other_axes = self.other_axes
        found.estimators = [self.estimators[run] for run in np.sort(runs)]
        return found

    def last(self, name: str) -> np.ndarray:
        """[run] The last value of each run of a quantity evaluated or logged over training, NaN
        without any."""

        def make() -> np.ndarray:
            there = [row[~np.isnan(row)] for row in self.values(name)]
            return np.array([row[-1] if row.size else np.nan for row in there])

        return self.once(("last", name), make)

    def has(self, name: str) -> np.ndarray:
        """[run] Whether a run has a number of such a quantity."""
        return self.once(("has", name), lambda: (~np.isnan(self.values(name))).any(axis=1))

    # Labels.

    @cached_property
    def status(self) -> list[str]:
        """ "ok", "failed" or "skipped" for every run."""
        meanings = str(self.data["status"].attrs.get("flag_meanings", "ok failed skipped")).split()
        return [
            meanings[int(code)] if int(code) < len(meanings) else "unknown"
            for code in self.values("status")
        ]

    @cached_property
    def estimators(self) -> list[str]:
        """[run] The estimators as displayed. A sweep omits defaults, so `rloo[samples=4]` would
        stand as `rloo` beside `rloo[samples=8]` or `vimco[samples=4]`. If an estimator of the file
        names its samples, all that have samples name them."""
        names = [str(name) for name in self.values("estimator")]
        if not any(map(names_samples, names)):
            return names
        try:
            own = [one.get("samples") for one in self.estimator_settings]
        except InputError:  # unreadable settings are reported where they are needed
            return names
        return list(map(with_samples, names, own))

    @cached_property
    def seeds(self) -> list[str]:
        """[run] The seeds as text; of a result without seeds, the runs' places."""
        name = "seed_hex" if "seed_hex" in self else "seed"
        return list(map(str, self.values(name) if name in self else np.arange(self.count)))

    @cached_property
    def targets(self) -> np.ndarray:
        """[run] The target of every run's estimator; "" if it was not recorded, with a measurement
        or with the training."""
        found = np.full(self.count, "", object)
        if "trained_target" in self:
            found = self.values("trained_target").astype(str).astype(object)
        if "own_target" not in self:
            return found
        measured = self.values("own_target")
        return np.array(
            [next((str(aim) for aim in row if str(aim)), own) for row, own in zip(measured, found)],
            object,
        )

    @cached_property
    def texts(self) -> dict[str, str]:
        """Texts at the top of the sweep's configuration, such as name and description; empty if the
        result is not from a sweep."""
        try:
            found = (
                tomllib.loads(str(self.values("configuration"))) if "configuration" in self else {}
            )
        except tomllib.TOMLDecodeError:
            return {}
        return {key: value for key, value in found.items() if isinstance(value, str)}

    # Settings.

    @cached_property
    def estimator_settings(self) -> list[dict[str, Any]]:
        """Every run's parameters of the estimator, by name; empty if the result has none.
        InputError if one is not a JSON object."""
        return self.objects("estimator_settings")

    @cached_property
    def run_settings(self) -> list[dict[str, Any]]:
        """Training and measurement settings of every run, including overrides and defaults, by path
        such as "train.learning_rate"; empty if the result has none. InputError as above."""
        return self.objects("run_settings")

    def objects(self, name: str) -> list[dict[str, Any]]:
        """[run] A variable of JSON objects; empty ones if the result has none. InputError as
        above."""

        def make() -> list[dict[str, Any]]:
            texts = self.values(name) if name in self else np.full(self.count, "")
            return [json_object(str(text), f"{self.path}: {name}") for text in texts]

        return self.once(("objects", name), make)

    @cached_property
    def axes(self) -> dict[str, str]:
        """The axes of the grid, and their variables."""
        return self._named_by("grid_axis")

    @cached_property
    def tuned_axes(self) -> dict[str, str]:
        """The settings that [tune] chose, and their variables."""
        return self._named_by("tuned_axis")

    def _named_by(self, attribute: str) -> dict[str, str]:
        """Variables by their attribute, of those that have it."""
        every = {str(name): self.data[name].attrs for name in self.data.variables}
        return {str(of[attribute]): name for name, of in every.items() if of.get(attribute)}

    @cached_property
    def other_axes(self) -> list[str]:
        """Axes of the grid besides task, model, estimator and seed with more than one value."""
        others = [name for axis, name in self.axes.items() if axis not in _GRID]
        return sorted(name for name in others if len(set(self.values(name).tolist())) > 1)

    @cached_property
    def overrides(self) -> dict[str, list[str]]:
        """Training and measurement settings that differ between the runs of a network without being
        an axis of the grid (overrides): [run] as text, by path."""
        networks = list(zip(self.values("task").tolist(), self.values("model").tolist()))
        found = {}
        for path in dict.fromkeys(path for one in self.run_settings for path in one):
            values = [str(one[path]) if path in one else "" for one in self.run_settings]
            if len(set(zip(networks, values))) > len(set(networks)) and path not in self.axes:
                found[path] = values
        return found

    @cached_property
    def splits(self) -> np.ndarray:
        """[run] The split of the last evaluation: "held-out", "test", or "evaluated" for any
        other."""
        return self._splits(last=True)

    def _splits(self, last: bool) -> np.ndarray:
        words = {"heldout": "held-out", "test": "test"}
        found = []
        for one in self.run_settings:
            each = str(one.get("train.evaluate_split", "heldout"))
            final = str(one.get("train.final_split", "same"))
            found.append(words.get(final if last and final != "same" else each, "evaluated"))
        return np.array(found, object)

    @cached_property
    def evaluated_on(self) -> str:
        """The split of the last evaluation of all runs."""
        return in_common(self.splits)

    @cached_property
    def evaluated_along(self) -> str:
        """The split of all evaluations: "evaluated" if the last one uses another split than the
        earlier ones."""
        return in_common(np.concatenate([self._splits(last=False), self.splits]))

    # Groups, and the networks (task and model) that are the panels of a figure.

    @cached_property
    def groups(self) -> list[Group]:
        """All groups, ordered by their first run."""
        found: dict[tuple[str, ...], list[int]] = {}
        keys = ["task", "model", "estimator", *self.other_axes]
        columns = [
            self.estimators if key == "estimator" else [str(value) for value in self.values(key)]
            for key in keys
        ]
        for run, key in enumerate(zip(*columns)):
            found.setdefault(key, []).append(run)
        chosen = {
            path: [str(value) for value in self.data[name].values]
            for path, name in self.tuned_axes.items()
        }
        edges = (
            [str(edge) for edge in self.values("tuning_edge")]
            if "tuning_edge" in self
            else [""] * self.count
        )
        return [
            Group(
                task,
                model,
                estimator,
                dict(zip(self.other_axes, rest)),
                np.array(runs),
                [self.status[run] for run in runs],
                {name: values[runs[0]] for name, values in chosen.items() if values[runs[0]]},
                edges[runs[0]],
            )
            for (task, model, estimator, *rest), runs in found.items()
        ]

    @cached_property
    def panels(self) -> dict[Network, list[Group]]:
        """Groups by task and model, in order."""
        found: dict[Network, list[Group]] = {}
        for group in self.groups:
            found.setdefault(group.panel, []).append(group)
        return found

    @cached_property
    def titles(self) -> dict[Network, str]:
        """A short title of every network."""
        return dict(zip(self.panels, titles(list(self.panels))))

    def panels_with(self, name: str) -> dict[Network, list[Group]]:
        """The same, of the networks with a value of this variable."""
        there = np.isfinite(self.values(name)).reshape(self.count, -1).any(axis=1)
        return {
            panel: members
            for panel, members in self.panels.items()
            if there[runs_of(members)].any()
        }

    def network(self, panel: Network) -> Result:
        """The runs of one network, with the labels of the whole file."""
        return self.part_of(runs_of(self.panels[panel]))

    def page(self, number: int, most: int) -> tuple[Result, int]:
        """The runs of the networks on page `number` of `most` networks, and the number of pages.
        InputError if the page does not exist."""
        found = list(self.panels.values())
        pages = -(-len(found) // most)
        if not 1 <= number <= pages:
            raise InputError(
                f"{self.path}: has no page {number}: {len(found)} networks fill {pages}"
            )
        if pages == 1:
            return self, 1
        runs = [runs_of(members) for members in found[(number - 1) * most : number * most]]
        page = self.once(("page", number, most), lambda: self.of_runs(np.concatenate(runs)))
        return page, pages

    def by_seed(self, members: list[Group], scores: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """Scores [groups, seeds] of one panel, NaN for missing runs; and the seeds."""
        every = {
            seed: place
            for place, seed in enumerate(dict.fromkeys(self.seeds[run] for run in runs_of(members)))
        }
        matrix = np.full((len(members), len(every)), np.nan)
        for i, group in enumerate(members):
            for run in group.runs:
                matrix[i, every[self.seeds[run]]] = scores[run]
        return matrix, list(every)

    # Facts of the quantities, which are attributes of their variables and of the file.

    def lower_is_better(self, name: str) -> bool:
        """Whether lower values of a quantity are better. InputError if it has no direction."""
        better = self.data[name].attrs.get("better") if name in self else None
        if better not in ("lower", "higher"):
            raise InputError(
                f"{self.path}: {name} has no attribute better (lower or higher), so it "
                "cannot rank: the tasks of "
                "the file differ in it, or an earlier version wrote the file"
            )
        return str(better) == "lower"

    def is_share(self, name: str) -> bool:
        """Whether a quantity is a share from 0 to 1, displayed as a percentage."""
        return bool(self.data[name].attrs.get("share", 0))

    def preference(self, name: str) -> int:
        """The place of a quantity among those that may rank; 1 is first."""
        return int(self.data[name].attrs.get("preference", 50))

    def exact_twin(self, name: str) -> str | None:
        """The variable with the exact values of a sampled quantity; None if there is none."""
        twin = str(self.data[name].attrs.get("exact_twin", "")) if name in self else ""
        return twin if twin in self else None

    def fact(self, name: str) -> float:
        """A number that the file states of its measurements. InputError if it is missing."""
        if name not in self.data.attrs:
            raise InputError(
                f"{self.path}: has no attribute {name}, so what rounding explains is "
                "unknown: an earlier version "
                "wrote the file"
            )
        return float(self.data.attrs[name])

    # Measurements.

    def step(self, at: str | int = "first") -> Step:
        """The step for "first", "last", "half" (the measured step nearest to half of the last one;
        the later of two) or a number, of each network. At the first step, 0, estimators that share
        a seed share their parameters; learned baselines are untrained there. InputError if no
        network was measured at a step of this number."""
        key = str(at)

        def make() -> Step:
            steps = self.need("measurement_step", "set measure.at in the sweep").astype(int)
            if at not in NAMED and not (key.lstrip("-").isdigit() and int(at) in steps):
                raise InputError(
                    f"{self.path}: nothing was measured at step {at} "
                    f"(there are: first, half, last, {', '.join(map(str, steps))})"
                )
            return chosen_step(
                steps,
                self.once("measured", lambda: measured(self.data)),
                list(map(runs_of, self.panels.values())),
                at,
            )

        return self.once(("step", key), make)

    def at(self, name: str, step: Step) -> np.ndarray:
        """[run, ...] The values of a variable over [run, measurement_step, ...] at a step; NaN or
        "" where a run has none."""
        return step.of(self.values(name))
