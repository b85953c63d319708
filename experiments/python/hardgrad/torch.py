"""Expected losses of discrete choices in PyTorch, differentiable by any of Hardgrad's estimators.

    loss = hardgrad.torch.expectation(logits, f, "rloo[samples=4]").mean()
    loss.backward()

The logits get the estimator's gradient, and parameters inside f their path gradient, both by PyTorch's own `backward`. Tensors on
the CPU share their memory with Hardgrad; others are refused.
"""
from __future__ import annotations

from typing import Any, Callable, Optional, Union

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import _core
from ._core import Estimator, UsageError
from ._losses import Takes, check_axes, check_takes, given_ids, given_seed

__all__ = ["expectation"]

_DRAW = {torch.float32: _core.draw_float, torch.float64: _core.draw_double}


def expectation(logits: Tensor, f: Callable[..., Tensor], estimator: Union[str, Estimator] = "rloo[samples=4]", *,
                takes: Takes = "weights", state: Optional[Tensor] = None, ids: Optional[ArrayLike] = None,
                generator: Optional[torch.Generator] = None, seed: Optional[int] = None) -> Tensor:
    """E[f(z)], z ~ Cat(softmax(logits)), as an estimator sees it: its value is the losses' weighted mean, its gradient the
    estimator's, and that of the losses' own parameters.

    logits: [S] of one choice, [D, S] of D choices (columns) that share a loss, or [E, D, S] of E examples; float or double.
        -inf at the end of a row are options that there are none of.
    f: a function of z [R, D, S], one-hot rows or, with relaxations, weights over the options; of a batch also of example [R], the
        position of each row's example. Returns losses [R]. It is called once for all rows of a run, and differentiated in z by
        autograd where the estimator wants that.
    estimator: e.g. "rebar[samples=2]", which starts anew at each call; or an Estimator, which keeps what it learns and learns at
        each call in which gradients are recorded.
    takes: "options": f is a function of options [R, D] (int64) instead. Relaxations, and what is made of them, cannot use that.
    state: [E, C] ([C] without a batch) what learned baselines see of an example; by default a 1. Not differentiated.
    ids: [E] names of the examples (whole numbers), by which they draw; by default their positions.
    generator, seed: of the noise; by default PyTorch's own generator, so that `torch.manual_seed` decides.

    Returns [E], or a number without a batch. Raises UsageError; what f raises comes out as it is. Can be differentiated once.
    Source: the estimators' own papers, see `hardgrad.describe`.
    """
    check_takes(takes)
    values = _shared(logits, "logits")
    check_axes(values.shape)
    batched = values.ndim == 3
    if seed is None:
        seed = int(torch.randint(2**63 - 1, (), generator=generator))
    held = estimator if isinstance(estimator, Estimator) else Estimator(estimator)
    loss = _Loss(f, takes, batched, logits.dtype, held.spec)
    shaped = values.reshape((1,) * (3 - values.ndim) + values.shape)
    slope, runs = _DRAW[logits.dtype](held, shaped, values.ndim, _state(state, logits, batched),
                                      given_ids(ids, len(shaped)), None, loss, takes == "weights", given_seed(seed), torch.is_grad_enabled(),
                                      False)
    value = np.zeros(len(shaped))
    for _, _, example, losses, share in runs:
        value += np.bincount(example, share * losses, len(shaped))
    rows = [(torch.from_numpy(example), torch.from_numpy(share)) for _, _, example, _, share in runs]
    result: Tensor = _Estimate.apply(torch.from_numpy(value.astype(values.dtype)), torch.from_numpy(slope), rows, logits, *loss.runs)
    return result if batched else result[0]


class _Estimate(torch.autograd.Function):
    """The value, whose derivatives are known: at the logits, and of each loss."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        value, ctx.slope, ctx.rows, logits, *_ = given  # and the losses
        ctx.shape = logits.shape
        return value

    @staticmethod
    @once_differentiable  # type: ignore[misc]
    def backward(ctx: Any, *cotangents: Any) -> Any:
        (cotangent,) = cotangents
        needed = ctx.needs_input_grad
        at_logits = (cotangent[:, None, None] * ctx.slope).reshape(ctx.shape) if needed[3] else None
        of_losses = (cotangent[example] * share if wanted else None for (example, share), wanted in zip(ctx.rows, needed[4:]))
        return None, None, None, at_logits, *of_losses


class _Loss:
    """The user's function, as core calls it (see _core.pyi). Keeps the losses of its runs, for autograd."""

    def __init__(self, f: Callable[..., Tensor], takes: Takes, batched: bool, dtype: torch.dtype, spec: str):
        self.f, self.takes, self.batched, self.dtype, self.spec = f, takes, batched, dtype, spec
        self.runs: list[Tensor] = []

    def __call__(self, choice: Any, example: Any, differentiable: bool) -> tuple[Any, Optional[Callable[[Any], Any]]]:
        z = torch.from_numpy(choice)
        if not differentiable:
            losses = self._losses(z, example)
            self.runs.append(losses)
            return losses.detach().numpy(), None
        with torch.enable_grad():
            losses = self._losses(z.requires_grad_(), example)
        self.runs.append(losses)

        def pull(cotangent: Any) -> Any:
            slope = None
            if losses.requires_grad:
                (slope,) = torch.autograd.grad(losses, z, torch.from_numpy(cotangent), retain_graph=True, allow_unused=True)
            if slope is None:
                raise UsageError(f"{self.spec} differentiates the loss in z, and what f returned does not depend on z by operations that "
                                 "autograd knows")
            return slope.numpy()

        return losses.detach().numpy(), pull

    def _losses(self, z: Tensor, example: Any) -> Tensor:
        losses = self.f(z, torch.from_numpy(example)) if self.batched else self.f(z)
        if not isinstance(losses, Tensor):
            raise UsageError(f"f returned losses of type {type(losses).__name__}, expected a tensor")
        if losses.shape != (len(example),):
            raise UsageError(f"f returned losses of shape {list(losses.shape)}, expected {[len(example)]}: one for each row")
        _check(losses, "the losses that f returned")
        return losses.to(self.dtype)


def _check(tensor: Tensor, what: str) -> None:
    if tensor.device.type != "cpu":
        raise UsageError(f"{what} are on {tensor.device}: only tensors on the CPU can be used, move them by .cpu()")
    if tensor.layout != torch.strided or tensor.dtype not in _DRAW:
        raise UsageError(f"{what} are {tensor.dtype} in layout {tensor.layout}: they must be dense, of float32 or float64")


def _shared(tensor: Tensor, what: str) -> Any:
    """The numbers as an array, which shares the tensor's memory if they are contiguous there."""
    if not isinstance(tensor, Tensor):
        raise UsageError(f"{what} are of type {type(tensor).__name__}, expected a tensor")
    _check(tensor, what)
    return tensor.detach().contiguous().numpy()


def _state(state: Optional[Tensor], logits: Tensor, batched: bool) -> Any:
    if state is None:
        return None
    numbers = _shared(state.to(logits.dtype) if isinstance(state, Tensor) else state, "the numbers of the state")
    examples = len(logits) if batched else 1
    if numbers.ndim != 1 + batched or numbers.shape[-1] == 0 or numbers.size != examples * numbers.shape[-1]:
        raise UsageError(f"state has shape {list(numbers.shape)}; it is {'[examples, numbers]' if batched else '[numbers]'}")
    return numbers
