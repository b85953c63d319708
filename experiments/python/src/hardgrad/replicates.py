"""Replicates of a gradient: those of one estimator, drawn within its share of a budget, and their
moments: in double precision, in memory proportional to the number of parameters."""

from __future__ import annotations

import hashlib
import math
import statistics
import time
from dataclasses import dataclass, field
from typing import Optional, Sequence

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
_VECTORS = 75  # of the parameters' size that one estimator needs, with rare draws


def turns_fit(estimators: int, parameters: Parameters) -> bool:
    """Whether the sums of all estimators fit in memory, so that these can be drawn in turns."""
    return estimators * _VECTORS * 8 * parameters.size <= 4 * _MEMORY


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
        self._around, self._weighted, self._furthest = around, weighted, 0.0
        blocks = int(min(_BLOCKS, max(4, _MEMORY // (8 * (1 + weighted) * parameters.size))))
        self._core = _core.Replicates(
            around, blocks, [(part.start, part.stop) for part in parameters.groups.values()]
        )
        self._groups, self._parts = list(parameters.groups), dict[str, _core.Replicates]()

    def add(self, gradient: Floats, weight: float = 1.0) -> bool:
        """Whether it was added: false if an entry is not finite."""
        added = self._core.add(gradient, weight)
        if added:
            off = gradient if self.reference is None else gradient - self._around
            self._furthest = max(self._furthest, float(off @ off))
        return added

    @property
    def count(self) -> int:
        return self._core.count

    def finish(self) -> None:
        self._core.finish()

    @property
    def unseen_probability(self) -> float:
        """Anything that is likelier is in one of these replicates with probability LEVEL. Weighted
        ones show it half as often at least."""
        return float((1 + self._weighted) * (1 - (1 - LEVEL) ** (1 / self.count)))

    def unseen_variance(self) -> float:
        """What adds most to the variance if no gradient showed it, and if it is no further from the
        mean than those seen: its probability times the largest squared deviation. NaN if none
        deviates, since nothing then bounds it. After `finish`."""
        mean, _ = self.coordinates()
        off = float(np.linalg.norm(mean - self._around))
        if not float(self._core.variances().sum()) > 0:
            return math.nan
        return self.unseen_probability * (math.sqrt(self._furthest) + off) ** 2

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
    """Replicates with their costs. times: seconds of each, NaN if it failed; not_finite: how many
    were left out; unreached: parameters without a gradient; ratios: of the samples of a behaviour
    policy; sought: whether they seek rare draws."""

    replicates: Replicates
    rows: float
    times: list[float]
    not_finite: int
    unreached: list[int]
    specs: set[str] = field(default_factory=set)
    ratios: _core.Ratios = field(default_factory=_core.Ratios)
    sought: bool = False

    @property
    def seconds(self) -> float:
        return statistics.median(self.known_times)

    @property
    def known_times(self) -> list[float]:
        return [value for value in self.times if not math.isnan(value)]


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


class Collecting:
    """Replicates as planned, which seek rare draws, drawn one at a time."""

    def __init__(self, drawing: Drawing, reference: Optional[Reference], plan: Plan, stream: int):
        self._drawing, self._plan, self._stream = drawing, plan, stream
        self._rare, self._key = rare_draws(drawing, plan), seed_of(plan.seed, stream, -1)
        self._found = Replicates(drawing.parameters, reference, self._rare != (0, 0))
        self._seconds: list[float] = []
        self._weights: list[float] = []
        self._rows, self._bad, self._why = 0.0, 0, ""
        self._reached = np.zeros(len(drawing.parameters.parts), bool)
        self._specs: set[str] = set()
        self._ratios = _core.Ratios()
        self.number = 0  # of draws so far

    @property
    def whole(self) -> bool:
        return self.number >= self._plan.most

    def draw(self) -> None:
        number, self.number = self.number, self.number + 1
        try:
            mixture = Mixture(self._key, number, *self._rare) if self._rare != (0, 0) else None
            drawn = self._drawing(seed_of(self._plan.seed, self._stream, number), mixture=mixture)
        except NotFinite as error:
            self._bad, self._why = self._bad + 1, str(error)
            self._seconds.append(math.nan)
            return
        self._seconds.append(drawn.seconds)
        self._weights.append(drawn.weight)
        self._rows += drawn.weight * drawn.rows
        self._reached |= drawn.reached
        self._specs |= drawn.specs
        self._ratios.join(drawn.ratios, drawn.weight)
        if not self._found.add(drawn.numbers, drawn.weight):
            self._bad += 1
            self._why = "the gradient has an entry that is not a finite number"

    def finished(self) -> Collected:
        """NotFinite if fewer than two are finite."""
        count = self._found.count
        if count < 2:
            raise NotFinite(
                f"{self._bad} of {self._bad + count} estimates are not finite: {self._why}"
                if self._bad
                else "fewer than two estimates"
            )
        if not self._reached.any():
            raise UsageError("no gradient reaches any of the parameters")
        self._found.finish()
        return Collected(
            self._found,
            self._rows / sum(self._weights) if self._specs else math.nan,
            self._seconds,
            self._bad,
            np.flatnonzero(~self._reached).tolist(),
            self._specs,
            self._ratios,
            self._rare != (0, 0),
        )


def collected(
    drawing: Drawing, reference: Optional[Reference], plan: Plan, stream: int
) -> Collected:
    """The replicates of one estimator alone."""
    collecting = Collecting(drawing, reference, plan, stream)
    while not collecting.whole:
        if collecting.number >= FEWEST and time.monotonic() > plan.end:
            break
        collecting.draw()
    return collecting.finished()


def median_interval(values: Sequence[float], level: float) -> tuple[float, float]:
    """Of the median of the law of independent values, from their order (Thompson 1936); all numbers
    if there are too few."""
    ordered = sorted(values)
    tail, below = 0.0, -1  # P(at most `below` values are less than the median)
    while below + 1 < len(ordered) / 2:
        more = tail + math.exp(_log_binomial(len(ordered), below + 1))
        if more > (1 - level) / 2:
            break
        tail, below = more, below + 1
    return (ordered[below], ordered[-1 - below]) if below >= 0 else (0.0, math.inf)


def _log_binomial(count: int, chosen: int) -> float:
    """The logarithm of the probability of a fair coin."""
    return (
        math.lgamma(count + 1)
        - math.lgamma(chosen + 1)
        - math.lgamma(count - chosen + 1)
        - count * math.log(2)
    )
