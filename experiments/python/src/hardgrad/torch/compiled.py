"""`sample` inside `torch.compile`: an operator of PyTorch, whose shapes are all that the compiler
sees, so that the graph does not break. Its backward pass makes the draw again, with the same
seed."""

from __future__ import annotations

from typing import Any, Callable, Optional, Protocol

import torch
from torch import Tensor

from .._core import UsageError
from .tensors import of_core


class Draw(Protocol):
    """z of logits: drawn with a seed, and differentiable by backward. again: as before."""

    def __call__(
        self,
        logits: Tensor,
        estimator: str,
        hard: bool,
        bits: bool,
        subset: Optional[int],
        seed: int,
        *,
        again: bool = False,
    ) -> Tensor: ...


def _given(subset: int) -> Optional[int]:
    return None if subset < 0 else subset


compiling: Callable[[], bool] = getattr(
    getattr(torch, "compiler", None), "is_compiling", lambda: False
)


def operator(draw: Draw) -> Optional[Callable[..., Tensor]]:
    """The draw as a function of logits, a seed (a tensor), the estimator, hard, bits, and the
    options of a subset (-1: none). None before PyTorch 2.4."""
    library: Any = torch.library
    if not hasattr(library, "register_autograd"):
        return None

    def drawn(
        logits: Tensor, seed: Tensor, estimator: str, hard: bool, bits: bool, subset: int
    ) -> Tensor:
        found = draw(logits.detach(), estimator, hard, bits, _given(subset), int(seed))
        return found.clone() if found.data_ptr() == logits.data_ptr() else found

    def slope(
        logits: Tensor, seed: Tensor, cotangent: Tensor, estimator: str, bits: bool, subset: int
    ) -> Tensor:
        with torch.enable_grad():
            leaf = logits.detach().to(of_core(logits.dtype)).requires_grad_()
            z = draw(leaf, estimator, False, bits, _given(subset), int(seed), again=True)
            (found,) = torch.autograd.grad(z, leaf, cotangent.to(leaf.dtype))
        return found.to(logits.dtype).contiguous()

    tag = getattr(torch.Tag, "cudagraph_unsafe", None)  # draws are made by the CPU
    ways: dict[str, Any] = {"mutates_args": (), **({} if tag is None else {"tags": (tag,)})}
    called = library.custom_op("hardgrad::sample", drawn, **ways)
    of_slope = library.custom_op("hardgrad::sample_slope", slope, **ways)

    def like_logits(logits: Tensor, *others: Any) -> Tensor:
        return torch.empty_like(logits, memory_format=torch.contiguous_format)

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        logits, seed, *ctx.given = inputs
        ctx.save_for_backward(logits, seed)

    def backward(ctx: Any, cotangent: Tensor) -> Any:
        estimator, _, bits, subset = ctx.given
        return of_slope(*ctx.saved_tensors, cotangent, estimator, bits, subset), *(None,) * 5

    called.register_fake(like_logits)
    of_slope.register_fake(like_logits)
    called.register_autograd(backward, setup_context=keep)
    result: Callable[..., Tensor] = called
    return result


def given_seed(seed: Optional[int]) -> Tensor:
    """The seed as a tensor; PyTorch's compiled generator draws one if there is none."""
    if seed is None:
        return torch.randint(2**63 - 1, ())
    if not 0 <= seed < 2**63:
        raise UsageError(f"a seed is a whole number from 0 to {2**63 - 1} here, got {seed}")
    return torch.full((), seed, dtype=torch.int64)
