"""`hardgrad.torch.expectation` in a function that torch.compile compiles or torch.func transforms:
the seed and the draw are operators of their own, all else ordinary tensor operations, so that the
graph does not break and derivatives and batches are PyTorch's (recent PyTorch 2; estimators with a
formula). The results are those of the same call without them."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from ..formulas import Formula, Law, factors, formula_of_spec, jacobians, of_pairs, of_scores
from ..losses import Columns, Takes, check_shared, given_seed
from . import graph_operators
from .by_formula import Run, covers_on, no_slope
from .graph_operators import estimate
from .operations import XP
from .tensors import USERS_DTYPES, check_losses, compiling, of_core, random_seed, transforming


def _formula(spec: str) -> Optional[Formula]:
    return formula_of_spec(spec)


_formula._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as assume_constant_result


_calls = itertools.count()


def _call() -> str:
    return str(next(_calls))


_call._dynamo_marked_constant = True  # type: ignore[attr-defined]


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
    if not (graph_operators.TRANSFORMED if transforming() else graph_operators.THERE):
        return None
    if transforming() and compiling():  # the compiler knows no vmap of derivatives of one's own
        return None
    given = (probs, subset, behaviour, reference, state)
    if any(x is not None for x in given) or columns != "shared":
        return None
    if not transforming() and (ids is not None or generator is not None):
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
    if formula is None or not covers_on(logits.device.type, formula, logits.shape, takes, bits):
        return None
    wide = logits.to(of_core(logits.dtype))
    of_ids = ids if ids is None or isinstance(ids, Tensor) else torch.as_tensor(ids, device="cpu")
    one = _seed(formula.law, generator, seed)
    z, noise = torch.ops.hardgrad.draw(wide.detach(), spec, takes, bits, of_ids, one)
    run = Run(formula, wide, logits.dtype, takes, bits)
    run.noise = noise if noise.shape != (graph_operators.EMPTY,) else None
    if formula.relaxes:
        finite = torch.where(torch.isinf(run.logits), torch.zeros_like(run.logits), run.logits)
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
    if formula.relaxes and z.requires_grad and not getattr(losses, "requires_grad", True):
        if not transforming():
            return None  # it raises
        raise no_slope(spec)
    check_shared(tuple(getattr(losses, "shape", ())), tuple(z.shape[:2]))
    losses = check_losses(losses, run.R, transforming()).to(wide.device, wide.dtype)
    numbers = losses.detach()
    if transforming():
        numbers = torch.ops.hardgrad.finite(numbers)
    elif run.on_cpu:
        said = "a loss that f returned is not a finite number"
        torch._assert_async(torch.isfinite(numbers).all(), said)
    slope = None
    if not formula.relaxes:
        c = numbers if run.K == 1 else numbers.reshape(run.E, run.K)
        at = run.logits.detach()
        if formula.pairs:
            slope = of_pairs(XP, formula, at, run.rows(z), run.noise, c)
        else:
            slope = of_scores(XP, at, run.rows(z), factors(formula, c), run.two)
        slope = slope.detach()
    value = estimate(losses.reshape(run.E, run.K).mean(1), run.logits, slope)
    return value if run.rank == 3 else value[0]


def _seed(law: Optional[Law], generator: Optional[torch.Generator], seed: Optional[int]) -> Tensor:
    """The seed as a tensor. In vmap PyTorch draws it as its `randomness` says."""
    if law is None and seed is None:  # nothing is drawn
        return torch.zeros((), dtype=torch.int64, device="cpu")
    if not transforming():
        return torch.ops.hardgrad.seed(torch.zeros((), device="cpu"), _call(), seed)
    if seed is not None:
        return torch.full((), given_seed(seed), dtype=torch.int64, device="cpu")
    return random_seed(generator)


def _linear(w: Tensor, logits: Tensor, rows: int, bits: bool) -> Tensor:
    """[E, K or 1, D, S] a function of the logits whose derivative is J(w)."""
    w = w.detach()
    w = w[:, None] if rows > 1 and w.dim() == logits.dim() else w
    x = logits[:, None] if rows > 1 else logits
    if bits:
        return w * (1 - w) * x
    x = x.expand_as(w)
    x = x - x.gather(-1, w.argmax(-1, keepdim=True))  # as through_softmax
    return w * (x - (w * x).sum(-1, keepdim=True))
