"""Draws of `hardgrad.torch`: their estimator, whether it learns, and the counts for `compare`."""

from __future__ import annotations

import sys
import threading
import warnings
from contextlib import contextmanager, nullcontext
from typing import Any, ContextManager, Iterator, Optional, Union

import torch
from torch import Tensor

from .. import _core
from .._core import UsageError
from ..gradients import Counted, EstimatorCache
from .tensors import AS_IS, Slope


class Module(torch.nn.Module):
    """An estimator that is a module, as far as a draw uses it. (`hardgrad.torch.Estimator`, which
    is made of draws itself.)"""

    spec: str
    _held: _core.Estimator  # core's own, with the learned state once it is ready

    def ready(self, dtype: torch.dtype) -> None:
        """Before a draw in this dtype."""
        raise NotImplementedError

    def learned(self, dtype: torch.dtype, gradient: Any) -> list[tuple[Tensor, Tensor]]:
        """After a draw: takes over the new state. Returns the parameters for the caller's optimiser
        with their gradients."""
        raise NotImplementedError


#: An estimator as users give it: by name, or with a state of its own.
Given = Union[str, _core.Estimator, Module]
HELD = (_core.Estimator, Module)
#: Core's draw in a dtype.
DRAW = {torch.float32: _core.draw_float, torch.float64: _core.draw_double}


class Meter(Counted):
    """Counts the draws in a block. An estimator given by name is kept in `kept`, by its name and
    the number of the call."""

    def __init__(self, kept: EstimatorCache, learning: bool, mixture: Optional[_core.Mixture]):
        super().__init__()
        self.kept, self.learning, self.mixture, self.calls = kept, learning, mixture, 0

    def estimator(self, spec: str) -> _core.Estimator:
        found = self.kept.setdefault((spec, self.calls), _core.Estimator(spec))
        self.calls += 1
        return found


class _Here(threading.local):
    meter: Optional[Meter] = None


_here = _Here()
_mixtures: list[_core.Mixture] = []  # of the comparisons at work, each within the one before
_drawn_before: set[str] = set()
_warned: set[str] = set()


def _uncompiled() -> ContextManager[Any]:
    """In the block compiled functions run as they were written, since compiled draws are plain."""
    in_use = "torch._dynamo" in sys.modules
    compiler: Any = getattr(torch, "compiler", None) if in_use else None
    if not hasattr(compiler, "set_stance"):  # before PyTorch 2.6
        return nullcontext()
    stance: ContextManager[Any] = compiler.set_stance("force_eager")
    return stance


@contextmanager
def metered(
    kept: EstimatorCache, learning: bool, mixture: Optional[_core.Mixture]
) -> Iterator[Meter]:
    """Counts this thread's draws in the block, which are made from the mixture. Estimators learn
    there only if `learning`."""
    before, _here.meter = _here.meter, Meter(kept, learning, mixture)
    _mixtures.extend([mixture] if mixture else [])
    try:
        with _uncompiled() if mixture else nullcontext():
            yield _here.meter
    finally:
        _here.meter = before
        del _mixtures[len(_mixtures) - bool(mixture) :]


def mixture(seed: int) -> Optional[_core.Mixture]:
    """The noise of a draw with this seed in a comparison. A checkpointed block is run again in
    another thread, PyTorch's for the device, and draws the same there."""
    if _here.meter is not None:
        return _here.meter.mixture
    return next((of for of in _mixtures if of.knows(seed)), None)


def plain() -> bool:
    """Whether draws are made with plain noise: no comparison is at work that seeks rare options."""
    return not _mixtures and (_here.meter is None or _here.meter.mixture is None)


def counted(given: Given, rows: float) -> None:
    """Notes a draw without core, of an estimator that learns nothing."""
    if _here.meter is not None:
        _here.meter.rows += rows
        _here.meter.specs.add(given if isinstance(given, str) else given.spec)
        if isinstance(given, str):
            _here.meter.calls += 1


def learns_now(estimator: Given) -> bool:
    """Whether the estimator learns from the present draw: gradients are recorded, it is no module
    in evaluation mode, and no comparison is at work."""
    mode = not isinstance(estimator, Module) or estimator.training
    return mode and torch.is_grad_enabled() and (_here.meter is None or _here.meter.learning)


def compared() -> bool:
    """Whether this thread's draws are those of a comparison."""
    return _here.meter is not None


def held(estimator: Given, dtype: torch.dtype) -> _core.Estimator:
    """The estimator of a draw in this dtype."""
    if isinstance(estimator, _core.Estimator):
        return estimator
    if isinstance(estimator, Module):
        estimator.ready(dtype)
        return estimator._held
    if not isinstance(estimator, str):
        raise UsageError(
            'an estimator is given by name, such as "rloo[samples=4]", or as an Estimator; got '
            f"{type(estimator).__name__}"
        )
    return _core.Estimator(estimator) if _here.meter is None else _here.meter.estimator(estimator)


def learned(
    estimator: Given, dtype: torch.dtype, gradient: Any
) -> tuple[list[Slope], list[Tensor]]:
    """After a draw: a module takes over its new state. The slopes of its parameters, for
    `Estimate`, and these parameters."""
    found = estimator.learned(dtype, gradient) if isinstance(estimator, Module) else []
    return [(slope, AS_IS) for _, slope in found], [parameter for parameter, _ in found]


def drawn(
    given: Given,
    used: _core.Estimator,
    rows: float,
    learning: bool,
    ratios: Optional[_core.Ratios] = None,
) -> None:
    """Notes a draw. Warns, once for each spec, if an estimator that learns is given by name
    again."""
    meter = _here.meter
    if meter is not None:
        meter.rows += rows
        meter.specs.add(used.spec)
        if ratios is not None:
            meter.ratios.join(ratios, 1.0)
    elif learning and isinstance(given, str) and given not in _warned and used.learns:
        if given in _drawn_before:
            _warned.add(given)
            name = given.split("[")[0]
            warnings.warn(
                f"{name} learns, but given by name it starts anew at each call: make "
                f'hardgrad.Estimator("{given}") once, before '
                "the training loop, and pass that",
                RuntimeWarning,
                stacklevel=_users_level(),
            )
        _drawn_before.add(given)


def _users_level() -> int:
    """The level of the user's code on the stack, for a warning of the calling function."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        ("hardgrad.", "torch.")
    ):
        frame, level = frame.f_back, level + 1
    return level
