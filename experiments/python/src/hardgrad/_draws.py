"""Draws of `hardgrad.torch`: their estimator, whether it learns, and the counts for `compare`."""
from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager
from typing import Iterator, Optional, Union

import torch

from ._core import Estimator

Kept = dict[tuple[str, int], Estimator]


class Meter:
    """Counts the draws in a block. An estimator given by name is kept in `kept`, by its name and the number of the call."""

    def __init__(self, kept: Kept, learning: bool):
        self.kept, self.learning = kept, learning
        self.rows, self.calls = 0.0, 0
        self.specs: set[str] = set()

    def estimator(self, spec: str) -> Estimator:
        found = self.kept.setdefault((spec, self.calls), Estimator(spec))
        self.calls += 1
        return found


class _Here(threading.local):
    meter: Optional[Meter] = None


_here = _Here()
_drawn_before: set[str] = set()
_warned: set[str] = set()


@contextmanager
def metered(kept: Kept, learning: bool) -> Iterator[Meter]:
    """Counts this thread's draws in the block. Estimators learn there only if `learning`."""
    before, _here.meter = _here.meter, Meter(kept, learning)
    try:
        yield _here.meter
    finally:
        _here.meter = before


def learns_now() -> bool:
    """Whether estimators learn from the present draw: gradients are recorded, and no comparison is at work."""
    return torch.is_grad_enabled() and (_here.meter is None or _here.meter.learning)


def held(estimator: Union[str, Estimator]) -> Estimator:
    """The estimator of a draw."""
    if isinstance(estimator, Estimator):
        return estimator
    return Estimator(estimator) if _here.meter is None else _here.meter.estimator(estimator)


def drawn(given: Union[str, Estimator], used: Estimator, rows: float, learning: bool) -> None:
    """Notes a draw. Warns, once for each spec, if an estimator that learns is given by name again."""
    meter = _here.meter
    if meter is not None:
        meter.rows += rows
        meter.specs.add(used.spec)
    elif learning and isinstance(given, str) and given not in _warned and used.learns:
        if given in _drawn_before:
            _warned.add(given)
            name = given.split("[")[0]
            warnings.warn(f'{name} learns, but given by name it starts anew at each call: make hardgrad.Estimator("{given}") once, before '
                          "the training loop, and pass that", RuntimeWarning, stacklevel=3)
        _drawn_before.add(given)
