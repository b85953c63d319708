"""The laws of samplers as tensors: `hardgrad.policies` for PyTorch."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import torch
from torch import Tensor

from .. import policies
from ..losses import LogitLayout
from .tensors import check_logits, fetched, of_core, sent


def tempered(logits: Tensor, temperature: float) -> Tensor:
    """The logits of softmax(logits / temperature), as a behaviour policy: where the logits are, in
    their dtype, without a gradient. See `hardgrad.tempered`."""
    return _changed(policies.tempered, logits, temperature)


def top_k(logits: Tensor, k: int) -> Tensor:
    """The logits of the law that draws among the k likeliest options; -inf at the others: where the
    logits are, in their dtype, without a gradient. See `hardgrad.top_k`."""
    return _changed(policies.top_k, logits, k)


def top_p(logits: Tensor, p: float) -> Tensor:
    """The logits of the law that draws from the nucleus of probability p; -inf at the others: where
    the logits are, in their dtype, without a gradient. See `hardgrad.top_p`."""
    return _changed(policies.top_p, logits, p)


def _changed(law: Callable[..., Any], logits: Tensor, setting: Any) -> Tensor:
    check_logits(logits)
    (numbers,) = fetched([logits], of_core(logits.dtype))
    (found,) = sent([law(numbers, setting)], logits.device)
    return found.to(logits.dtype)


def for_core(
    others: Sequence[tuple[str, Optional[Tensor]]],
    logits: Tensor,
    asked: LogitLayout,
    dtype: torch.dtype,
    shape: tuple[int, ...],
) -> list[Optional[Any]]:
    """The numbers of other policies, given with their names, in core's layout and shape; None for
    those that are not there. UsageError unless they are tensors in the shape of the logits."""
    there = [(name, x) for name, x in others if x is not None]
    for name, x in there:
        check_logits(x, f"{name}'s logits")
        policies.check_shape(x.shape, logits.shape, name)
    found = dict(zip((name for name, _ in there), fetched([x for _, x in there], dtype)))

    def ordered(x: Any) -> Any:
        laid_out = x if asked.bits else x.reshape(asked.numbers.shape)
        return asked.ordered(laid_out).reshape(shape)

    return [ordered(found[name]) if name in found else None for name, _ in others]
