"""Moments of gradients: in double precision, in memory proportional to the number of parameters."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from . import _core
from ._gradients import Floats, Parameters

LEVEL = 0.95  # of all intervals
_BLOCKS, _MEMORY = 32, 2**30  # intervals come from the scatter of at most 32 blocks of gradients, fewer if their sums need more bytes


@dataclass(frozen=True)
class Moments:
    """The statistics of `hardgrad measure`: numbers and intervals by the names in results/README.md; unsupported: why the replicates
    do not support them, empty if they do."""
    numbers: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    unsupported: str


class Replicates:
    """Gradients added one after another, as a whole and by group. reference: the true gradient, or None."""

    def __init__(self, parameters: Parameters, reference: Optional[Reference]):
        self.reference, self._single = reference, parameters.single
        around = np.zeros(parameters.size) if reference is None else reference.gradient
        blocks = int(min(_BLOCKS, max(4, _MEMORY // (8 * parameters.size))))
        self.parts = {"": slice(0, parameters.size), **parameters.groups}
        self.cores: dict[str, Any] = {name: _core.Replicates(around[part], blocks) for name, part in self.parts.items()}

    def add(self, gradient: Floats) -> bool:
        """Whether it was added: false if an entry is not finite."""
        if not self.cores[""].add(gradient):
            return False
        for name, part in self.parts.items():
            if name:
                self.cores[name].add(gradient[part])
        return True

    @property
    def count(self) -> int:
        return int(self.cores[""].count)

    def finish(self) -> None:
        for core in self.cores.values():
            core.finish()

    def moments(self, name: str = "", rows: float = np.nan) -> Moments:
        """Of the whole, or of a group; after `finish`."""
        core, run = self.cores[name], self.reference.run if self.reference else None
        found = core.summary(run and run.cores[name], self.reference is not None, self._single, rows, LEVEL)
        return Moments(found["numbers"], found["intervals"], found["unsupported"])

    def coordinates(self) -> tuple[Floats, Floats]:
        """[P] mean and variance of each coordinate."""
        core = self.cores[""]
        return core.mean(), core.variances()

    def variance_interval(self, level: float) -> tuple[float, float]:
        low, high = self.cores[""].variance_interval(level)
        return float(low), float(high)


@dataclass(frozen=True)
class Reference:
    """The true gradient [P]: exact, or the mean of a long run. what: its source, in words."""
    what: str
    gradient: Floats
    run: Optional[Replicates] = None
