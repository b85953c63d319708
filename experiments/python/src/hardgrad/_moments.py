"""Moments of gradients: in double precision, in memory proportional to the number of parameters."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

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
    """Gradients added one after another. reference: the true gradient, or None; weighted: whether there are weights but 1."""

    def __init__(self, parameters: Parameters, reference: Optional[Reference], weighted: bool = False):
        self.reference, self._single = reference, parameters.single
        around = np.zeros(parameters.size) if reference is None else reference.gradient
        blocks = int(min(_BLOCKS, max(4, _MEMORY // (8 * (1 + weighted) * parameters.size))))
        self._core = _core.Replicates(around, blocks, [(part.start, part.stop) for part in parameters.groups.values()])
        self._groups, self._parts = list(parameters.groups), dict[str, _core.Replicates]()

    def add(self, gradient: Floats, weight: float = 1.0) -> bool:
        """Whether it was added: false if an entry is not finite."""
        return self._core.add(gradient, weight)

    @property
    def count(self) -> int:
        return self._core.count

    def finish(self) -> None:
        self._core.finish()

    def moments(self, name: str = "", rows: float = np.nan, unsupported: str = "") -> Moments:
        """Of the whole, or of a group; after `finish`. Of a group, cosines, the tail and bias_p_value are NaN: they need each gradient, and
        the draws of the whole decide; unsupported: why they do not support intervals."""
        run = self.reference.run if self.reference else None
        found = self._of(name).summary(run._of(name) if run else None, self.reference is not None, self._single, rows, LEVEL)
        return Moments(found["numbers"], found["intervals"], found["unsupported"] or unsupported)

    def _of(self, name: str) -> _core.Replicates:
        if not name:
            return self._core
        if name not in self._parts:
            self._parts[name] = self._core.part(self._groups.index(name))
        return self._parts[name]

    def coordinates(self) -> tuple[Floats, Floats]:
        """[P] mean and variance of each coordinate."""
        return self._core.mean(), self._core.variances()

    def variance_interval(self, level: float) -> tuple[float, float]:
        low, high = self._core.variance_interval(level)
        return float(low), float(high)


@dataclass(frozen=True)
class Reference:
    """The true gradient [P]: exact, or the mean of a long run. what: its source, in words."""
    what: str
    gradient: Floats
    run: Optional[Replicates] = None
