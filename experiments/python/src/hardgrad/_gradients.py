"""Gradients of a user's loss at the user's parameters, for `compare`."""
from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Optional, Union

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._core import NotFinite, UsageError
from ._draws import Kept, metered
from ._transfers import fetched

Floats = NDArray[np.float64]
Given = Union[Iterable[Tensor], Mapping[str, Union[Tensor, Iterable[Tensor]]]]


class Parameters:
    """The user's parameters, in order, as one vector [P]. Parameters that are frozen are left out.

    groups: the part of the vector that belongs to each group; empty if the parameters have no groups.
    """

    def __init__(self, given: Given):
        named = {name: [value] if isinstance(value, Tensor) else list(value) for name, value in given.items()} if isinstance(given, Mapping) else None
        several = list(given) if named is None else [tensor for tensors in named.values() for tensor in tensors]
        if wrong := [x for x in several if not isinstance(x, Tensor)]:
            raise UsageError(f"parameters hold an object of type {type(wrong[0]).__name__}, expected tensors")
        if len({id(x) for x in several}) < len(several):
            raise UsageError("parameters hold the same tensor twice")
        self.tensors = [x for x in several if x.requires_grad]
        self.frozen = len(several) - len(self.tensors)
        if not self.tensors:
            raise UsageError("parameters hold no tensor that requires a gradient")
        if complex_ := [x for x in self.tensors if x.is_complex()]:
            raise UsageError(f"parameters hold a tensor of {complex_[0].dtype}, expected real numbers")
        ends = np.cumsum([0] + [x.numel() for x in self.tensors]).tolist()
        self.parts = [slice(a, b) for a, b in zip(ends, ends[1:])]
        self.size = int(ends[-1])
        self.groups: dict[str, slice] = {}
        place = 0
        for name, tensors in (named or {}).items():
            count = sum(x.requires_grad for x in tensors)
            if count:
                self.groups[name] = slice(self.parts[place].start, self.parts[place + count - 1].stop)
            place += count
        self.single = all(torch.finfo(x.dtype).eps > 1e-9 for x in self.tensors)
        self._devices = sorted({x.device.index or 0 for x in self.tensors if x.is_cuda})
        self._on_host = all(x.device.type == "cpu" for x in self.tensors)
        self._seeded = False
        self.spent = 0.0  # seconds in the user's function and its backward pass
        self._seen = self._versions()
        self._copies = [x.detach().clone() for x in self.tensors]

    def _versions(self) -> list[Any]:
        return [(x._version, x.data_ptr()) for x in self.tensors]

    def changed(self) -> Optional[str]:
        """The first parameter that was assigned in place since the last call, in words. All then get their former values."""
        now = self._versions()
        places = [i for i, (new, old) in enumerate(zip(now, self._seen)) if new != old]
        if not places:
            return None
        with torch.no_grad():
            for tensor, copy in zip(self.tensors, self._copies):
                tensor.copy_(copy)
        self._seen = self._versions()
        return self.in_words(places[0])

    def in_words(self, place: int) -> str:
        of = next((f" in {name}" for name, part in self.groups.items() if part.start <= self.parts[place].start < part.stop), "")
        return f"parameter {place}, {list(self.tensors[place].shape)}{of}"

    def own_noise(self) -> Any:
        """A block after which PyTorch's generators have their former states."""
        return torch.random.fork_rng(devices=self._devices)


    def seed(self, seed: int) -> None:
        """As torch.manual_seed. That one also notes the seed for a CUDA that may be used later, with a trace of the stack, which takes as
        long as a small step; so it is called once, and again if anything but the CPU is in use."""
        if self._seeded and self._on_host and not torch.cuda.is_initialized():
            torch.default_generator.manual_seed(seed)
        else:
            torch.manual_seed(seed)
            self._seeded = True


@dataclass
class Drawn:
    """One gradient. numbers: [P], overwritten by the next; reached: which parameters have a gradient; seconds: of the user's function
    and its backward pass, until the numbers are known."""
    numbers: Floats
    reached: list[bool]
    rows: float
    specs: set[str]
    seconds: float


class Drawing:
    """Draws gradients of a loss. kept: its estimators given by name."""

    def __init__(self, parameters: Parameters, loss: Callable[[], Any], numbers: Floats):
        self.parameters, self.loss, self.numbers = parameters, loss, numbers
        self.kept: Kept = {}

    @property
    def learns(self) -> bool:
        return any(estimator.learns for estimator in self.kept.values())

    def __call__(self, seed: int, learning: bool = False) -> Drawn:
        """UsageError if the loss is no scalar with a gradient, or changes the parameters; NotFinite if the gradient is not finite."""
        self.parameters.seed(seed)
        with metered(self.kept, learning) as meter, torch.enable_grad():
            begin = time.perf_counter()
            loss = self.loss()
            gradients = self._gradients(loss)
            there = [(part, gradient) for part, gradient in zip(self.parameters.parts, gradients) if gradient is not None]
            *found, value = fetched([*(x.to_dense() if x.is_sparse else x for _, x in there), loss],
                                    torch.float32 if self.parameters.single else torch.float64)
            seconds = time.perf_counter() - begin
            self.parameters.spent += seconds
        if place := self.parameters.changed():
            raise UsageError(f"the step changes the parameters ({place}): it must return the loss only, without backward() and without a "
                             "step of the optimiser. They have their former values again")
        if not np.isfinite(value).all():
            raise NotFinite(f"the loss is {value.item()}")
        reached = [gradient is not None for gradient in gradients]
        if not all(reached):
            self.numbers.fill(0)
        for (part, _), numbers in zip(there, found):
            self.numbers[part] = numbers.reshape(-1)
        return Drawn(self.numbers, reached, meter.rows, meter.specs, seconds)

    def _gradients(self, loss: Any) -> Any:
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            what = f"a tensor of shape {list(loss.shape)}" if isinstance(loss, Tensor) else f"an object of type {type(loss).__name__}"
            raise UsageError(f"the step returned {what}, expected a scalar loss")
        if not loss.requires_grad:
            raise UsageError("the step returned a loss without a gradient: no operation on a parameter is recorded")
        try:
            return torch.autograd.grad(loss.reshape(()), self.parameters.tensors, allow_unused=True)
        except RuntimeError as error:
            if "second time" in str(error):
                raise UsageError("the step has called backward() already: it must return the loss only") from error
            raise
