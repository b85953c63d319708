"""Draws and estimates as PyTorch's operators, for `in_graph`: torch.compile sees their shapes only,
torch.func their rules for batches and derivatives."""

from __future__ import annotations

import inspect
from typing import Any, Optional

import torch
from torch import Tensor

from .._core import NotFinite, UsageError
from ..formulas import Formula, formula_of_spec
from ..losses import Takes, given_ids, given_seed
from . import draws
from .by_formula import Run
from .tensors import captured, drawn_seed, transforming

EMPTY = 0


def _seed(here: Tensor, call: str, seed: Optional[int]) -> Tensor:
    """The seed of a draw. call: of the place in the graph, since equal operators are merged, even
    if they are random. here: an operator needs some tensor."""
    return torch.tensor(drawn_seed(seed, None), device="cpu")


def _formula(spec: str) -> Formula:
    formula = formula_of_spec(spec)
    assert formula is not None
    return formula


def _draw(
    logits: Tensor, spec: str, takes: Takes, bits: bool, ids: Optional[Tensor], seed: Tensor
) -> Any:
    """The rows of a draw, and the noise; an empty tensor where there are none."""
    if not draws.plain():
        raise UsageError(
            "functions that are compiled, or transformed by torch.func, draw plain noise, but this "
            "comparison seeks rare options: compare the function itself"
        )
    if captured(logits):
        raise UsageError("a CUDA graph cannot contain a draw: it would repeat the same noise")
    run = Run(_formula(spec), logits, logits.dtype, takes, bits)
    run.draw(None if ids is None else given_ids(ids.cpu(), run.E), given_seed(int(seed)))
    draws.counted(spec, run.R)
    none = logits.new_empty(EMPTY)
    return none if run.z is None else run.z, none if run.noise is None else run.noise


def _shapes(
    logits: Tensor, spec: str, takes: Takes, bits: bool, ids: Optional[Tensor], seed: Tensor
) -> Any:
    formula = _formula(spec)
    run = Run(formula, logits, logits.dtype, takes, bits)
    rows = (run.R, *run.users.shape[1:])
    z = (
        logits.new_empty(rows[:2], dtype=torch.int64)
        if takes == "options"
        else logits.new_empty(rows)
    )
    if formula.law not in ("gumbels", "numbered_pairs"):
        return z, logits.new_empty(EMPTY)
    of = run.logits.shape[1:]
    K = run.K // 2 if formula.pairs else run.K
    return z, logits.new_empty((run.E, K, *of) if K > 1 else (run.E, *of))


def _lanes(x: Tensor, dim: Optional[int], count: int) -> Tensor:
    """[count, ...]"""
    return x.expand(count, *x.shape) if dim is None else x.movedim(dim, 0)


def _draw_of_lanes(
    info: Any,
    dims: Any,
    logits: Tensor,
    spec: str,
    takes: Takes,
    bits: bool,
    ids: Optional[Tensor],
    seed: Tensor,
) -> Any:
    """The draws of a vmap's lanes, as examples of one draw. Lanes with a seed of their own (PyTorch
    has drawn it, with randomness="different") have the positions of one batch as ids, so that their
    noise differs."""
    B, (of_logits, *_, of_ids, of_seed) = info.batch_size, dims
    x = _lanes(logits, of_logits, B)
    axes = x.dim() - 1 + bits
    E = x.shape[1] if axes == 3 else 1
    shaped = x.flatten(0, 1) if axes == 3 else x if axes == 2 else x.unsqueeze(1)
    if of_seed is None:
        own = torch.arange(E, device="cpu") if ids is None else ids
        of_rows = _lanes(own, None if ids is None else of_ids, B).reshape(-1)
    elif ids is None:
        of_rows, seed = None, seed.movedim(of_seed, 0)[0]
    else:
        each = _lanes(ids, of_ids, B)
        given = zip(x, each, seed.movedim(of_seed, 0))
        found = [torch.ops.hardgrad.draw(v, spec, takes, bits, i, s) for v, i, s in given]
        return tuple(torch.stack(parts) for parts in zip(*found)), (0, 0)
    z, noise = torch.ops.hardgrad.draw(shaped, spec, takes, bits, of_rows, seed)
    none = noise.shape == (EMPTY,)
    parts = z.unflatten(0, (B, -1)), noise if none else noise.unflatten(0, (B, -1))
    return parts, (0, None if none else 0)


def _finite(losses: Tensor) -> Tensor:
    if losses.device.type == "cpu" and not torch.isfinite(losses).all():
        raise NotFinite("a loss that f returned is not a finite number")
    return losses.clone()


def _no_second_derivative(ctx: Any, *cotangents: Any) -> Any:
    raise UsageError(
        "the gradient of an estimate was differentiated: an estimate has first derivatives only"
    )


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


class _First(torch.autograd.Function):
    """The first of the tensors; it depends on all of them."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*given: Any, **named: Any) -> Any:
        return given[0].clone()

    setup_context = staticmethod(_keep)


class _Cotangent(_First):
    backward = staticmethod(_no_second_derivative)


class _Estimate(_First):
    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return _of_estimate(_Cotangent.apply, cotangents[0], *ctx.saved_tensors)


def _of_estimate(
    cotangent: Any, g: Tensor, value: Tensor, logits: Tensor, slope: Optional[Tensor]
) -> Any:
    g = cotangent(g, value, logits)
    at_logits = None if slope is None else g.reshape(-1, *(1,) * (slope.dim() - 1)) * slope
    return g, at_logits, None


def estimate(value: Tensor, logits: Tensor, slope: Optional[Tensor]) -> Tensor:
    """The value [E], with this slope [E, D, S] at the logits (None: 0). Neither its derivative
    there nor that in the value can be differentiated."""
    if transforming():
        found: Tensor = _Estimate.apply(value, logits, slope)
    else:
        found = torch.ops.hardgrad.estimate(value, logits, slope)
    return found


def _operators() -> None:
    operator: Any = torch.library.custom_op
    unsafe = getattr(torch.Tag, "cudagraph_unsafe", None)  # a graph would repeat the noise
    of_seed = operator(
        "hardgrad::seed",
        _seed,
        mutates_args=(),
        schema="(Tensor here, str call, SymInt? seed) -> Tensor",
        tags=torch.Tag.nondeterministic_seeded,
    )
    of_seed.register_fake(lambda here, call, seed: torch.empty((), dtype=torch.int64, device="cpu"))
    of_draw = operator(
        "hardgrad::draw",
        _draw,
        mutates_args=(),
        schema="(Tensor logits, str spec, str takes, bool bits, Tensor? ids, Tensor seed)"
        " -> (Tensor, Tensor)",
        tags=() if unsafe is None else (unsafe,),
    )
    of_draw.register_fake(_shapes)
    finite = operator(
        "hardgrad::finite", _finite, mutates_args=(), schema="(Tensor losses) -> Tensor"
    )
    finite.register_fake(torch.empty_like)
    if hasattr(of_draw, "register_vmap"):
        of_draw.register_vmap(_draw_of_lanes)
        finite.register_vmap(lambda info, dims, x: (torch.ops.hardgrad.finite(x), dims[0]))
    cotangent = operator(
        "hardgrad::cotangent",
        lambda g, one, other: g.clone(),
        mutates_args=(),
        schema="(Tensor g, Tensor one, Tensor other) -> Tensor",
    )
    cotangent.register_fake(lambda g, one, other: torch.empty_like(g))
    cotangent.register_autograd(_no_second_derivative)
    of_value = operator(
        "hardgrad::estimate",
        lambda value, logits, slope: value.clone(),
        mutates_args=(),
        schema="(Tensor value, Tensor logits, Tensor? slope) -> Tensor",
    )
    of_value.register_fake(lambda value, logits, slope: torch.empty_like(value))
    of_value.register_autograd(
        lambda ctx, g: _of_estimate(torch.ops.hardgrad.cotangent, g, *ctx.saved_tensors),
        setup_context=_keep,
    )


#: Whether this PyTorch has such operators (recent PyTorch 2).
THERE = "tags" in inspect.signature(getattr(torch.library, "custom_op", lambda: 0)).parameters
#: Whether they can be transformed by torch.func.
TRANSFORMED = THERE and hasattr(torch.library, "register_vmap")
if THERE:
    _operators()
