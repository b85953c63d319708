"""Draws the replicates of one estimator within its share of a budget."""
from __future__ import annotations

import hashlib
import math
import statistics
import time
from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from ._core import Mixture, NotFinite, UsageError
from ._gradients import Drawing, Floats
from ._moments import Reference, Replicates

FEWEST = 8  # replicates, also if the time has run out
MOST = 100_000
WARMUP, REPLICATE, REFERENCE, TRIAL = range(4)  # streams of seeds
_TRIALS, _FROM_THE_LAW = 16, 4  # steps that show the rare draws


def seed_of(seed: int, stream: int, number: int) -> int:
    """An independent seed for each stream and number."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {stream} {number}".encode(), digest_size=8).digest(), "little") >> 1


@dataclass
class Plan:
    """How much to draw. end: the time (time.monotonic) at which to stop."""
    seed: int
    most: int
    end: float = math.inf


@dataclass
class Collected:
    """Replicates with their costs. not_finite: how many were left out; unreached: parameters without a gradient."""
    replicates: Replicates
    rows: float
    seconds: float
    not_finite: int
    unreached: list[int]
    specs: set[str] = field(default_factory=set)


def warmed_up(drawing: Drawing, plan: Plan, steps: int) -> int:
    """Lets estimators given by name learn, for at most half of the time. Returns the number of steps."""
    until = time.monotonic() + (plan.end - time.monotonic()) / 2
    for step in range(steps):
        if time.monotonic() > until:
            return step
        drawing(seed_of(plan.seed, WARMUP, step), learning=True)
    return steps


def rare_draws(drawing: Drawing, plan: Plan) -> tuple[int, int]:
    """The examples of a step that have draws with a rare option, and how many: the most of a few steps, from the law first and then flat,
    since there may be more draws after a rare option. 0 where draws share their noise, or have the same in every step, which stays."""
    most = 0, 0
    before: set[int] = set()
    for number in range(_TRIALS):
        if number == _FROM_THE_LAW and most == (0, 0) or time.monotonic() > plan.end:
            break
        mixture = Mixture() if number < _FROM_THE_LAW else Mixture(seed_of(plan.seed, TRIAL, -1), 2 * number + 1, *most)
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
    """The gradient of the first seed; None if it is not finite. UsageError if the same seed gives another gradient."""
    seed = seed_of(plan.seed, REPLICATE, 0)
    try:
        first = drawing(seed).numbers.copy()
        second = drawing(seed).numbers
    except NotFinite:
        return None
    off, length = float(np.linalg.norm(first - second)), float(np.linalg.norm(first))
    if off > (1e-4 if drawing.parameters.single else 1e-9) * length:
        raise UsageError(f"the step is not deterministic: with the same seed its gradients differ by {off / length:.2g} of their length. "
                         f"{drawing.parameters.advice}")
    return first if math.isfinite(length) else None


def collected(drawing: Drawing, reference: Optional[Reference], plan: Plan, stream: int) -> Collected:
    """Replicates as planned, which seek rare draws. NotFinite if fewer than two are finite."""
    rare, key = rare_draws(drawing, plan), seed_of(plan.seed, stream, -1)
    found = Replicates(drawing.parameters, reference, rare != (0, 0))
    seconds: list[float] = []
    weights: list[float] = []
    rows, bad, why = 0.0, 0, ""
    reached = np.zeros(len(drawing.parameters.parts), bool)
    specs: set[str] = set()
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
        if not found.add(drawn.numbers, drawn.weight):
            bad, why = bad + 1, "the gradient has an entry that is not a finite number"
    if found.count < 2:
        raise NotFinite(f"{bad} of {bad + found.count} estimates are not finite: {why}" if bad else "fewer than two estimates")
    if not reached.any():
        raise UsageError("no gradient reaches any of the parameters")
    found.finish()
    return Collected(found, rows / sum(weights) if specs else math.nan, statistics.median(seconds), bad, np.flatnonzero(~reached).tolist(), specs)
