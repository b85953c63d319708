"""Groups of runs that differ only in their seed, and the names of estimators and networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

Network = tuple[str, str]  # task and model


def in_words(settings: Mapping[str, object]) -> str:
    """Settings as readable text, without empty ones (`train.start = ""`)."""
    return " ".join(f"{name}={value}" for name, value in settings.items() if value != "")


def labelled(estimator: str, others: Mapping[str, object]) -> str:
    """An estimator with the other settings that distinguish it."""
    return f"{estimator} {in_words(others)}".strip()


class Group(NamedTuple):
    """Runs that differ only in their seed."""

    task: str
    model: str
    estimator: str  # as displayed (`Result.estimators`)
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
    def panel(self) -> Network:
        return self.task, self.model


def runs_of(members: list[Group]) -> np.ndarray:
    """The runs of these groups, as positions along `run`."""
    return np.concatenate([group.runs for group in members])


_SAMPLES = "samples="


def names_samples(name: str) -> bool:
    """Whether an estimator, as the sweep gives it, names its samples."""
    return _SAMPLES in name


def with_samples(name: str, samples: object) -> str:
    """The estimator with its samples, unless it names them or has none (None)."""
    if samples is None or names_samples(name):
        return name
    return (
        f"{name[:-1]},{_SAMPLES}{samples}]"
        if name.endswith("]")
        else f"{name}[{_SAMPLES}{samples}]"
    )


def in_common(words: np.ndarray, otherwise: str = "evaluated") -> str:
    """The common word, such as a split; `otherwise` if they differ."""
    found = set(words.tolist())
    return str(found.pop()) if len(found) == 1 else otherwise


def titles(keys: list[Network]) -> list[str]:
    """A short title for every task and model: the bare names if they are unique, else without the
    arguments that all share."""
    bare = [tuple(spec.split("[")[0] for spec in key) for key in keys]
    return [
        _joined(*(bare[i] if bare.count(bare[i]) == 1 else key))
        for i, key in enumerate(_distinct(keys))
    ]


def _joined(task: str, model: str) -> str:
    return task if task == model else model if model.split("[")[0] == task else f"{task} · {model}"


def _distinct(keys: list[Network]) -> list[Network]:
    """The specs without the arguments that all share."""

    def split(spec: str) -> tuple[str, list[str]]:
        name, _, rest = spec.partition("[")
        return name, rest.removesuffix("]").split(",") if rest else []

    columns = []
    for specs in zip(*keys):
        parts = [split(spec) for spec in specs]
        same_name = len({name for name, _ in parts}) == 1
        shared = (
            set.intersection(*(set(arguments) for _, arguments in parts))
            if same_name and len(parts) > 1
            else set()
        )
        kept = [[a for a in arguments if a not in shared] for _, arguments in parts]
        columns.append(
            [
                name + (f"[{','.join(arguments)}]" if arguments else "")
                for (name, _), arguments in zip(parts, kept)
            ]
        )
    return [(task, model) for task, model in zip(*columns)]
