"""Draws the replicates of one estimator within its share of a budget."""
from __future__ import annotations

import hashlib
import math
import statistics
import time
from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from ._core import NotFinite, UsageError
from ._gradients import Drawing, Floats
from ._moments import Reference, Replicates

FEWEST = 8  # replicates, also if the time has run out
MOST = 100_000
WARMUP, REPLICATE, REFERENCE = range(3)  # streams of seeds


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
    """Replicates as planned. NotFinite if fewer than two are finite."""
    found = Replicates(drawing.parameters, reference)
    seconds: list[float] = []
    rows, bad, why = 0.0, 0, ""
    reached = np.zeros(len(drawing.parameters.parts), bool)
    specs: set[str] = set()
    for number in range(plan.most):
        if number >= FEWEST and time.monotonic() > plan.end:
            break
        try:
            drawn = drawing(seed_of(plan.seed, stream, number))
        except NotFinite as error:
            bad, why = bad + 1, str(error)
            continue
        seconds.append(drawn.seconds)
        rows += drawn.rows
        reached |= drawn.reached
        specs |= drawn.specs
        if not found.add(drawn.numbers):
            bad, why = bad + 1, "the gradient has an entry that is not a finite number"
    if found.count < 2:
        raise NotFinite(f"{bad} of {bad + found.count} estimates are not finite: {why}" if bad else "fewer than two estimates")
    if not reached.any():
        raise UsageError("no gradient reaches any of the parameters")
    found.finish()
    return Collected(found, rows / len(seconds) if specs else math.nan, statistics.median(seconds), bad, np.flatnonzero(~reached).tolist(), specs)
