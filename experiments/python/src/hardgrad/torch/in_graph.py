"""`hardgrad.torch.expectation` in a function that torch.compile compiles: the seed and the draw are
operators of their own, all else ordinary tensor operations, so that the graph does not break
(recent PyTorch 2; estimators with a formula). The results are those of the same call without
compilation."""

from __future__ import annotations

import inspect
import itertools
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .._core import UsageError
from ..formulas import Formula, factors, jacobians, of_pairs, of_scores
from ..losses import Columns, Takes, check_shared, given_seed
from . import draws
from .by_formula import Run, covers, formula_of_spec
from .operations import XP
from .tensors import USERS_DTYPES, check_losses, drawn_seed, of_core

_EMPTY = 0


def _formula(spec: str) -> Optional[Formula]:
    return formula_of_spec(spec)


_formula._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as assume_constant_result


_calls = itertools.count()


def _call() -> str:
    return str(next(_calls))


_call._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _seed(here: Tensor, call: str, seed: Optional[int]) -> Tensor:
    """The seed of a draw. call: of the place in the graph, since equal operators are merged, even
    if they are random. here: an operator needs some tensor."""
    return torch.tensor(drawn_seed(seed, None), device="cpu")


def _draw(logits: Tensor, spec: str, takes: Takes, bits: bool, seed: Tensor) -> Any:
    formula = formula_of_spec(spec)
    assert formula is not None
    if not draws.plain():
        raise UsageError(
            "a compiled function draws plain noise, but this comparison seeks rare options: "
            "compare the function itself, not compiled"
        )
    if logits.is_cuda and torch.cuda.is_current_stream_capturing():
        raise UsageError("a CUDA graph cannot contain a draw: it would repeat the same noise")
    run = Run(formula, logits, logits.dtype, takes, bits)
    run.draw(None, given_seed(int(seed)))
    draws.counted(spec, run.R)
    none = logits.new_empty(_EMPTY)
    return none if run.z is None else run.z, none if run.noise is None else run.noise


def _shapes(logits: Tensor, spec: str, takes: Takes, bits: bool, seed: Tensor) -> Any:
    formula = formula_of_spec(spec)
    assert formula is not None
    run = Run(formula, logits, logits.dtype, takes, bits)
    rows = (run.R, *run.users.shape[1:])
    z = (
        logits.new_empty(rows[:2], dtype=torch.int64)
        if takes == "options"
        else logits.new_empty(rows)
    )
    if formula.law not in ("gumbels", "numbered_pairs"):
        return z, logits.new_empty(_EMPTY)
    of = run.logits.shape[1:]
    K = run.K // 2 if formula.pairs else run.K
    return z, logits.new_empty((run.E, K, *of) if K > 1 else (run.E, *of))


def _no_second_derivative(ctx: Any, *cotangents: Any) -> Any:
    raise UsageError(
        "the gradient of an estimate was differentiated: an estimate has first derivatives only"
    )


def _operators() -> Any:
    """Registers the operators. Returns that of the draw."""
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
        schema="(Tensor logits, str spec, str takes, bool bits, Tensor seed) -> (Tensor, Tensor)",
        tags=() if unsafe is None else (unsafe,),
    )
    of_draw.register_fake(_shapes)
    # The identity, whose derivative cannot be differentiated.
    cotangent = operator(
        "hardgrad::cotangent",
        lambda g, x: g.clone(),
        mutates_args=(),
        schema="(Tensor g, Tensor x) -> Tensor",
    )
    cotangent.register_fake(lambda g, x: torch.empty_like(g))
    cotangent.register_autograd(_no_second_derivative)
    first = operator(
        "hardgrad::first_derivative",
        lambda x: x.clone(),
        mutates_args=(),
        schema="(Tensor x) -> Tensor",
    )
    first.register_fake(torch.empty_like)
    first.register_autograd(
        lambda ctx, g: torch.ops.hardgrad.cotangent(g, *ctx.saved_tensors),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return of_draw


if "tags" in inspect.signature(getattr(torch.library, "custom_op", lambda: 0)).parameters:
    _operator: Any = _operators()
else:
    _operator = None


def expectation(
    logits: Any,
    f: Callable[..., Tensor],
    estimator: Any = "rloo[samples=4]",
    *,
    takes: Takes = "weights",
    columns: Columns = "shared",
    probs: Optional[Tensor] = None,
    bits: bool = False,
    subset: Optional[int] = None,
    behaviour: Optional[Tensor] = None,
    reference: Optional[Tensor] = None,
    state: Optional[Tensor] = None,
    ids: Any = None,
    generator: Optional[torch.Generator] = None,
    seed: Optional[int] = None,
) -> Optional[Tensor]:
    """As `hardgrad.torch.expectation`; None if the graph must break for it."""
    given = (probs, subset, behaviour, reference, state, ids, generator)
    if _operator is None or any(x is not None for x in given) or columns != "shared":
        return None
    if not isinstance(logits, Tensor) or takes not in ("weights", "options"):
        return None
    if isinstance(seed, int) and not 0 <= seed < 1 << 63:
        return None
    spec = estimator if isinstance(estimator, str) else getattr(estimator, "spec", None)
    if not isinstance(spec, str) or not getattr(estimator, "_registered", True):
        return None
    if logits.dtype not in USERS_DTYPES:
        return None
    formula = _formula(spec)
    if formula is None or not covers(formula, logits.shape, logits.device.type, takes, bits):
        return None
    wide = logits.to(of_core(logits.dtype))
    here = torch.zeros((), device="cpu")
    one = torch.ops.hardgrad.seed(here, _call(), seed)
    z, noise = torch.ops.hardgrad.draw(wide.detach(), spec, takes, bits, one)
    run = Run(formula, wide, logits.dtype, takes, bits)
    run.noise = noise if noise.shape != (_EMPTY,) else None
    finite = torch.where(torch.isinf(run.logits), torch.zeros_like(run.logits), run.logits)
    finite = torch.ops.hardgrad.first_derivative(finite)
    if formula.relaxes:
        parts = jacobians(XP, formula, run.logits.detach(), run.rows(z), run.noise, run.two)
        carrier: Any = sum(a * _linear(w, finite, run.K, run.two) for a, w in parts)
        carrier = carrier - carrier.detach()
        if run.stacked:
            carrier = torch.stack([-carrier, carrier], -1)
        z = run.of_rows(z, run.K) + carrier
        z = z if run.K == 1 else z.flatten(0, 1)
    if z.dtype != run.dtype and takes == "weights":
        z = z.to(run.dtype)
    given_z = z if formula.relaxes else z.clone()  # f may change it in place
    losses = f(given_z, run.example()) if run.rank == 3 else f(given_z)
    if formula.relaxes and z.requires_grad and not losses.requires_grad:
        return None  # it raises
    check_shared(tuple(getattr(losses, "shape", ())), tuple(z.shape[:2]))
    losses = check_losses(losses, run.R).to(wide.device, wide.dtype)
    if run.on_cpu:
        said = "a loss that f returned is not a finite number"
        torch._assert_async(torch.isfinite(losses.detach()).all(), said)
    of_rows = losses.reshape(run.E, run.K)
    value = of_rows.mean(1)
    if not formula.relaxes:
        c = (losses if run.K == 1 else of_rows).detach()
        at = run.logits.detach()
        if formula.pairs:
            slope = of_pairs(XP, formula, at, run.rows(z), run.noise, c)
        else:
            slope = of_scores(XP, at, run.rows(z), factors(formula, c), run.two)
        surrogate = (slope.detach() * finite).flatten(1).sum(1)
        value = value + (surrogate - surrogate.detach())
    return value if run.rank == 3 else value[0]


def _linear(w: Tensor, logits: Tensor, rows: int, bits: bool) -> Tensor:
    """[E, K or 1, D, S] a function of the logits whose derivative is J(w)."""
    w = w.detach()
    w = w[:, None] if rows > 1 and w.dim() == logits.dim() else w
    x = logits[:, None] if rows > 1 else logits
    return w * (1 - w) * x if bits else w * (x - (w * x).sum(-1, keepdim=True))
