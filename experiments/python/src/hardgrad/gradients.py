"""Gradients of a user's loss at the user's parameters, for `compare`. The parts of the frameworks
are in torch/compare.py and jax/compare.py."""

from __future__ import annotations

import abc
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._core import NotFinite, UsageError

Floats = NDArray[np.float64]
#: Estimators given by name that a step draws with, by name and the number of the call.
EstimatorCache = dict[tuple[str, int], _core.Estimator]
#: From a seed to the gradient at each tensor (None: it has none) and the loss, as arrays.
Evaluated = Callable[[int], tuple[list[Optional[NDArray[Any]]], Any]]
#: Held by the thread that draws for a comparison or a test: sources of noise and counts of rows are
#: the process's. A step may compare, too.
ALONE = threading.RLock()


@dataclass
class Counted:
    """The draws in a block: rows of their losses, the specs of their estimators, and the ratios of
    samples that a behaviour policy has drawn."""

    rows: float = 0.0
    specs: set[str] = field(default_factory=set)
    ratios: _core.Ratios = field(default_factory=_core.Ratios)


class Parameters(abc.ABC):
    """The user's parameters, in order, as one vector [P]. A framework has a subclass.

    shapes: of the tensors; names: of these, in words; labels: the group of each, None if they have
        none; frozen: how many are left out since they have no gradient; single: all are of single
        precision, or less.
    """

    framework: str  #: in files
    held: tuple[type, ...]  #: the types of estimators with a state
    advice: str  #: for a step that is not deterministic

    def __init__(
        self,
        shapes: Sequence[tuple[int, ...]],
        names: Sequence[str],
        labels: Sequence[Optional[str]],
        frozen: int,
        single: bool,
    ):
        ends = np.cumsum([0] + [int(np.prod(shape)) for shape in shapes]).tolist()
        self.parts = [slice(a, b) for a, b in zip(ends, ends[1:])]
        self.size, self.frozen, self.single = int(ends[-1]), frozen, single
        self.groups: dict[str, slice] = {}
        for label, part in zip(labels, self.parts):
            if label is not None:
                self.groups[label] = slice(
                    self.groups[label].start if label in self.groups else part.start, part.stop
                )
        self._words = [
            f"{name}, {list(shape)}" + (f" in {label}" if label is not None else "")
            for name, shape, label in zip(names, shapes, labels)
        ]
        self.spent = 0.0  # seconds in the user's function and its backward pass

    def in_words(self, place: int) -> str:
        return self._words[place]

    @staticmethod
    @abc.abstractmethod
    def asking(step: Any, estimator: Any) -> Any:
        """The step's loss with this estimator, in the form of a user's own function."""

    @abc.abstractmethod
    def evaluated(self, loss: Any) -> Evaluated:
        """The gradients of a loss. UsageError, when called, for a result that is not a loss."""

    @abc.abstractmethod
    def counting(
        self, kept: EstimatorCache, learning: bool, mixture: Optional[_core.Mixture]
    ) -> ContextManager[Counted]:
        """Counts the draws in a block, which are made from the mixture, if there is one. Estimators
        learn there only if `learning`."""

    @abc.abstractmethod
    def own_noise(self) -> ContextManager[Any]:
        """A block after which the user's sources of noise have their former states."""

    def stopwatch(self) -> Callable[[], float]:
        """Seconds from now on that the work takes, whatever else runs on the machine: of all
        threads on processors; of an accelerator, from its own clock if it has one."""
        begin = time.process_time()
        return lambda: time.process_time() - begin

    def changed(self) -> Optional[str]:
        """The first parameter that was assigned in place since the last call, in words. All then
        get their former values."""
        return None


@dataclass
class Drawn:
    """One gradient. numbers: [P], overwritten by the next; reached: which parameters have a
    gradient; seconds: of the user's function and its backward pass, until the numbers are known
    (Parameters.stopwatch); weight: the ratio of the law to the mixture that it was drawn from;
    ratios: of the samples of a behaviour policy."""

    numbers: Floats
    reached: list[bool]
    rows: float
    specs: set[str]
    seconds: float
    weight: float
    ratios: _core.Ratios


class Drawing:
    """Draws gradients of a loss. kept: its estimators given by name."""

    def __init__(
        self,
        parameters: Parameters,
        loss: Any,
        numbers: Floats,
        kept: Optional[EstimatorCache] = None,
    ):
        self.parameters, self.numbers = parameters, numbers
        self.kept: EstimatorCache = {} if kept is None else kept
        self._evaluated = parameters.evaluated(loss)

    @property
    def learns(self) -> bool:
        return any(estimator.learns for estimator in self.kept.values())

    def __call__(
        self, seed: int, learning: bool = False, mixture: Optional[_core.Mixture] = None
    ) -> Drawn:
        """UsageError if the loss is no scalar with a gradient, or changes the parameters; NotFinite
        if the gradient is not finite."""
        with self.parameters.counting(self.kept, learning, mixture) as counted:
            begin, elapsed = time.perf_counter(), self.parameters.stopwatch()
            gradients, value = self._evaluated(seed)
            seconds = elapsed()
            self.parameters.spent += time.perf_counter() - begin
        if place := self.parameters.changed():
            raise UsageError(
                f"the step changes the parameters ({place}): it must return the loss only, "
                "without backward() and without a "
                "step of the optimiser. They have their former values again"
            )
        if not np.isfinite(value).all():
            raise NotFinite(f"the loss is {value.item()}")
        reached = [gradient is not None for gradient in gradients]
        if not all(reached):
            self.numbers.fill(0)
        for part, gradient in zip(self.parameters.parts, gradients):
            if gradient is not None:
                self.numbers[part] = gradient.reshape(-1)
        return Drawn(
            self.numbers,
            reached,
            counted.rows,
            counted.specs,
            seconds,
            mixture.weight if mixture else 1.0,
            counted.ratios,
        )
