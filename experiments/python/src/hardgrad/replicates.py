"""Replicates of a gradient: those of one estimator, drawn within its share of a budget, and their
moments: in double precision, in memory proportional to the number of parameters."""

from __future__ import annotations

import hashlib
import math
import statistics
import time
from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from . import _core
from ._core import Mixture, NotFinite, UsageError
from .gradients import Drawing, Floats, Parameters

LEVEL = 0.95  # of all intervals
_BLOCKS = 32
_MEMORY = (
    2**30
    # intervals come from the scatter of at most 32 blocks of gradients, fewer if their sums need
    # more bytes
)


@dataclass(frozen=True)
class Moments:
    """The statistics of `hardgrad measure`: numbers and intervals by the names in
    results/README.md; unsupported: why the replicates do not support them, empty if they do."""

    numbers: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    unsupported: str


class Replicates:
    """Gradients added one after another. reference: the true gradient, or None; weighted: whether
    there are weights but 1."""

    def __init__(
        self, parameters: Parameters, reference: Optional[Reference], weighted: bool = False
    ):
        self.reference, self._single = reference, parameters.single
        around = np.zeros(parameters.size) if reference is None else reference.gradient
        blocks = int(min(_BLOCKS, max(4, _MEMORY // (8 * (1 + weighted) * parameters.size))))
        self._core = _core.Replicates(
            around, blocks, [(part.start, part.stop) for part in parameters.groups.values()]
        )
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
        """Of the whole, or of a group; after `finish`. Of a group, cosines, the tail and
        bias_p_value are NaN: they need each gradient, and the draws of the whole decide;
        unsupported: why they do not support intervals."""
        run = self.reference.run if self.reference else None
        found = self._of(name).summary(
            run._of(name) if run else None, self.reference is not None, self._single, rows, LEVEL
        )
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


FEWEST = 8  # replicates, also if the time has run out
MOST = 100_000
WARMUP, REPLICATE, REFERENCE, TRIAL = range(4)  # streams of seeds
_TRIALS, _FROM_THE_LAW = 16, 4  # steps that show the rare draws


def seed_of(seed: int, stream: int, number: int) -> int:
    """An independent seed for each stream and number."""
    return (
        int.from_bytes(
            hashlib.blake2b(f"{seed} {stream} {number}".encode(), digest_size=8).digest(), "little"
        )
        >> 1
    )


@dataclass
class Plan:
    """How much to draw. end: the time (time.monotonic) at which to stop."""

    seed: int
    most: int
    end: float = math.inf


@dataclass
class Collected:
    """Replicates with their costs. not_finite: how many were left out; unreached: parameters
    without a gradient; ratios: of the samples of a behaviour policy."""

    replicates: Replicates
    rows: float
    seconds: float
    not_finite: int
    unreached: list[int]
    specs: set[str] = field(default_factory=set)
    ratios: _core.Ratios = field(default_factory=_core.Ratios)


def warmed_up(drawing: Drawing, plan: Plan, steps: int) -> int:
    """Lets estimators given by name learn, for at most half of the time. Returns the number of
    steps."""
    until = time.monotonic() + (plan.end - time.monotonic()) / 2
    for step in range(steps):
        if time.monotonic() > until:
            return step
        drawing(seed_of(plan.seed, WARMUP, step), learning=True)
    return steps


def rare_draws(drawing: Drawing, plan: Plan) -> tuple[int, int]:
    """The examples of a step that have draws with a rare option, and how many: the most of a few
    steps, from the law first and then flat, since there may be more draws after a rare option. 0
    where draws share their noise, or have the same in every step, which stays."""
    most = 0, 0
    before: set[int] = set()
    for number in range(_TRIALS):
        if number == _FROM_THE_LAW and most == (0, 0) or time.monotonic() > plan.end:
            break
        mixture = (
            Mixture()
            if number < _FROM_THE_LAW
            else Mixture(seed_of(plan.seed, TRIAL, -1), 2 * number + 1, *most)
        )
        try:
            drawing(seed_of(plan.seed, TRIAL, number), mixture=mixture)
        except NotFinite:
            pass
        if not mixture.seeds:
            break
        if mixture.coupled or not before.isdisjoint(mixture.seeds):
            return 0, 0
        before.update(mixture.seeds)
        most = max(most[0], mixture.seen[0]), max(most[1], mixture.seen[1])
    return most


def checked(drawing: Drawing, plan: Plan) -> Optional[Floats]:
    """The gradient of the first seed; None if it is not finite. UsageError if the same seed gives
    another gradient."""
    seed = seed_of(plan.seed, REPLICATE, 0)
    try:
        first = drawing(seed).numbers.copy()
        second = drawing(seed).numbers
    except NotFinite:
        return None
    off, length = float(np.linalg.norm(first - second)), float(np.linalg.norm(first))
    if off > (1e-4 if drawing.parameters.single else 1e-9) * length:
        raise UsageError(
            "the step is not deterministic: with the same seed its gradients differ by "
            f"{off / length:.2g} of their length. "
            f"{drawing.parameters.advice}"
        )
    return first if math.isfinite(length) else None


def collected(
    drawing: Drawing, reference: Optional[Reference], plan: Plan, stream: int
) -> Collected:
    """Replicates as planned, which seek rare draws. NotFinite if fewer than two are finite."""
    rare, key = rare_draws(drawing, plan), seed_of(plan.seed, stream, -1)
    found = Replicates(drawing.parameters, reference, rare != (0, 0))
    seconds: list[float] = []
    weights: list[float] = []
    rows, bad, why = 0.0, 0, ""
    reached = np.zeros(len(drawing.parameters.parts), bool)
    specs: set[str] = set()
    ratios = _core.Ratios()
    for number in range(plan.most):
        if number >= FEWEST and time.monotonic() > plan.end:
            break
        try:
            mixture = Mixture(key, number, *rare) if rare != (0, 0) else None
            drawn = drawing(seed_of(plan.seed, stream, number), mixture=mixture)
        except NotFinite as error:
            bad, why = bad + 1, str(error)
            continue
        seconds.append(drawn.seconds)
        weights.append(drawn.weight)
        rows += drawn.weight * drawn.rows
        reached |= drawn.reached
        specs |= drawn.specs
        ratios.join(drawn.ratios, drawn.weight)
        if not found.add(drawn.numbers, drawn.weight):
            bad, why = bad + 1, "the gradient has an entry that is not a finite number"
    if found.count < 2:
        raise NotFinite(
            f"{bad} of {bad + found.count} estimates are not finite: {why}"
            if bad
            else "fewer than two estimates"
        )
    if not reached.any():
        raise UsageError("no gradient reaches any of the parameters")
    found.finish()
    return Collected(
        found,
        rows / sum(weights) if specs else math.nan,
        statistics.median(seconds),
        bad,
        np.flatnonzero(~reached).tolist(),
        specs,
        ratios,
    )
