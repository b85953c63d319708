"""`hardgrad.torch.expectation` for estimators that have a formula (hardgrad/formulas.py): tensor
operations where the logits are. The results at a seed are those of core: the same options, and the
same numbers up to rounding."""

from __future__ import annotations

import functools
import math
from contextlib import nullcontext
from typing import Any, Callable, Optional

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .. import _core
from .._core import NotFinite, UsageError
from ..formulas import (
    Formula,
    covers,
    factors,
    formula_of_spec,
    jacobians,
    of_pairs,
    of_scores,
    through,
    weights,
)
from ..losses import TAKES, LogitLayout, Takes, check_shared, given_ids, given_seed
from . import draws
from .noise import Form, drawn
from .operations import XP
from .philox import Word, count
from .tensors import (
    DTYPES,
    USERS_DTYPES,
    applied,
    captured,
    check_losses,
    drawn_seed,
    leads_to,
    normal,
    of_core,
    once,
    transforming,
)


def formula_of(estimator: draws.Given) -> Optional[Formula]:
    """None: the estimator has none, or there is no such estimator."""
    spec = _spec(estimator)
    return None if spec is None else formula_of_spec(spec)


def _spec(estimator: draws.Given) -> Optional[str]:
    if isinstance(estimator, str):
        return estimator
    if isinstance(estimator, _core.Estimator):
        return estimator.spec if estimator._registered else None
    return estimator.spec if isinstance(estimator, draws.Module) else None


def applicable(
    estimator: draws.Given, logits: Tensor, takes: Takes, bits: bool
) -> Optional[Formula]:
    """The formula, if the expectation is computed by it: for tensors that Hardgrad supports."""
    spec = _spec(estimator)
    if spec is None or not draws.plain() or transforming():
        return None
    device, dtype, layout = logits.device.type, logits.dtype, logits.layout
    return formula_for(spec, logits.shape, device, dtype, layout, takes, bits)


@functools.lru_cache(maxsize=1024)
def formula_for(
    spec: str,
    shape: tuple[int, ...],
    device: str,
    dtype: torch.dtype,
    layout: torch.layout,
    takes: Takes,
    bits: bool,
) -> Optional[Formula]:
    """The formula of a registered estimator for such logits, if it covers them."""
    formula = formula_of_spec(spec)
    if dtype not in USERS_DTYPES or layout != torch.strided or takes not in TAKES:
        return None
    return (
        formula if formula is not None and covers_on(device, formula, shape, takes, bits) else None
    )


def covers_on(
    device: str, formula: Formula, shape: tuple[int, ...], takes: Takes, bits: bool
) -> bool:
    without = ("mps", "meta")  # double precision, or numbers
    return device not in without and covers(formula, shape, takes == "options", bits)


def expectation(
    formula: Formula,
    logits: Tensor,
    f: Callable[..., Tensor],
    estimator: draws.Given,
    takes: Takes,
    bits: bool,
    ids: Optional[ArrayLike],
    generator: Optional[torch.Generator],
    seed: Optional[int],
) -> Tensor:
    """As `hardgrad.torch.expectation`, for the formula of the estimator."""
    wide = normal(logits)
    if logits.dtype not in DTYPES:
        wide = wide.to(of_core(logits.dtype))
    number: Word = 0
    if formula.law is None and seed is None:
        pass
    elif captured(wide):
        number = _captured_seed(wide, ids, generator, seed)
    else:
        number = drawn_seed(None, generator) if seed is None else given_seed(seed)
    run = Run(formula, wide.detach(), logits.dtype, takes, bits)
    run.draw(None if ids is None else given_ids(ids, run.E), number)
    if formula.relaxes:
        losses = run.relaxed_losses(f, wide, estimator)
        result = losses.clone() if run.K == 1 else losses.reshape(run.E, run.K).mean(1)
    else:
        wanted = wide.requires_grad and torch.is_grad_enabled()
        version = run.z._version if wanted else 0
        losses = run.losses(f, run.z)
        if wanted and run.z._version != version:  # f changed it
            run.draw(*run.place)
        slope = run.slope(losses.detach()) if wanted else None
        result = _mean(run.K, wide, losses, slope)
    draws.counted(estimator, run.R)
    return result if run.rank == 3 else result[0]


def no_slope(spec: str) -> UsageError:
    return UsageError(
        f"{spec} differentiates the loss in z, but the result of f does not depend on z by "
        "operations that autograd knows"
    )


def _captured_seed(logits: Tensor, *given: Any) -> Tensor:
    """From PyTorch's generator there, which draws anew whenever a CUDA graph is replayed."""
    if any(x is not None for x in given):
        raise UsageError(
            "a CUDA graph draws the noise of all examples from PyTorch's generator: leave out ids, "
            "generator and seed"
        )
    return torch.randint(2**63 - 1, (), device=logits.device)


class Run:
    """One run of K rows for each of E examples.

    rank: of the user's logits, with the axis of the options. E, R: examples, rows. two: whether
    choices are among two options, so that the formulas are those of bits. logits: [E, D, S], [E, D]
    of two. z: the rows as f gets them, but for their dtype. place: the arguments of the draw.
    """

    def __init__(
        self, formula: Formula, users: Tensor, dtype: torch.dtype, takes: Takes, bits: bool
    ):
        self.formula, self.takes, self.bits, self.dtype = formula, takes, bits, dtype
        self.shape, self.rank = users.shape, users.dim() + bits
        if self.rank < 3:
            users = users.reshape(1, *(1,) * (2 - self.rank), *users.shape)
        self.users = self.logits = users
        self.stacked = not bits and users.shape[2] == 2
        self.two = bits or self.stacked
        if self.stacked:
            self.logits = users[..., 1] - users[..., 0]
        self.E, self.K = len(users), formula.samples
        self.R = self.E * self.K
        self.on_cpu = users.device.type == "cpu"
        self.place: Any = None
        self.z: Any = None
        self.noise: Any = None
        self.ended = False

    def draw(self, ids: Any, seed: Word) -> None:
        formula, law, self.place = self.formula, self.formula.law, (ids, seed)
        form: Form = "options" if self.takes == "options" else "bits" if self.bits else "one_hot"
        if law is None:
            self._check_finite()
        else:
            form = form if formula.is_hard else "none"
            self.z, self.noise = drawn(formula, law, self.users, self.rank, ids, seed, form)
            if self.noise is not None:
                self.noise = self.of_rows(self.noise, self.K // 2 if formula.pairs else self.K)
        if not formula.is_hard:
            w = weights(XP, formula, self.logits, self.noise, self.two)
            w = torch.stack([1 - w, w], -1) if self.stacked else w
            self.z = w if self.K == 1 else w.flatten(0, 1)

    def _check_finite(self) -> None:
        """Where core draws nothing, so that it checks no logits."""
        if self.on_cpu and not math.isfinite(self.users.sum().item()):
            users = LogitLayout(self.users.reshape(self.shape).double().numpy(), self.bits).numbers
            _core.count_options(users.reshape(self.E, -1, users.shape[-1]), self.rank)

    def of_rows(self, x: Tensor, rows: int) -> Tensor:
        """[E, rows, ...] of [E rows, ...]; the same if there is one row."""
        return x if rows == 1 else x.reshape(self.E, rows, *x.shape[1:])

    def rows(self, z: Tensor) -> Tensor:
        """z as numbers [E, K, D, S], [E, K, D] of two."""
        if self.takes == "options":
            if not self.two:  # vmap has no rule for one_hot's scatter
                z = z[..., None] == count(z, self.users.shape[2])
            z = z.to(self.logits.dtype)
        elif self.stacked:
            z = z[..., 1]
        return self.of_rows(z, self.K)

    def losses(self, f: Callable[..., Tensor], z: Tensor) -> Tensor:
        """[R] the losses of f, in core's dtype."""
        if z.dtype != self.dtype and self.takes == "weights":
            z = z.to(self.dtype)
        losses = f(z, self.example()) if self.rank == 3 else f(z)
        if getattr(losses, "ndim", 0) == 2:
            check_shared(tuple(losses.shape), tuple(z.shape[:2]))
        losses = check_losses(losses, self.R)
        if losses.dtype != self.logits.dtype or losses.device != self.logits.device:
            losses = losses.to(self.logits.device, self.logits.dtype)
        if self.on_cpu and not math.isfinite(losses.detach().sum().item()):
            for row, loss in enumerate(losses.tolist()):
                if not math.isfinite(loss):
                    raise NotFinite(f"the loss of row {row} is {loss}, not a finite number")
        return losses

    def relaxed_losses(
        self, f: Callable[..., Tensor], wide: Tensor, estimator: draws.Given
    ) -> Tensor:
        """The same, differentiable in z."""
        if torch.is_inference_mode_enabled():
            return self.losses(f, self.z)
        base = wide if wide.requires_grad else wide.detach().requires_grad_()
        with nullcontext() if torch.is_grad_enabled() else torch.enable_grad():
            z = _weights(self, base)
            losses = self.losses(f, z)
        if not leads_to(losses, z):
            raise no_slope(estimator if isinstance(estimator, str) else estimator.spec)
        self.ended = True
        return losses

    def example(self) -> Tensor:
        examples = torch.arange(self.E, device="cpu") if self.on_cpu else count(self.users, self.E)
        if self.K == 1:
            return examples
        return examples[:, None].expand(self.E, self.K).reshape(self.R)

    def slope(self, losses: Tensor) -> Tensor:
        """The slopes of the examples' values at the user's logits, of losses [R]."""
        c = losses if self.K == 1 else losses.reshape(self.E, self.K)
        if self.formula.scoreless:
            return self.users.new_zeros(self.shape)
        if self.formula.pairs:
            found = of_pairs(XP, self.formula, self.logits, self.rows(self.z), self.noise, c)
        else:
            c = factors(self.formula, c)
            found = of_scores(XP, self.logits, self.rows(self.z), c, self.two)
        return self.at_users(found)

    def through(self, slope: Tensor, z: Optional[Tensor]) -> Tensor:
        """The gradient at the user's logits, from that in z."""
        if not self.ended:
            raise UsageError(
                "f differentiated its losses: it returns them, and the estimator differentiates"
            )
        rows = None if z is None else self.rows(z)
        parts = jacobians(XP, self.formula, self.logits, rows, self.noise, self.two)
        if self.stacked:
            slope = slope[..., 1] - slope[..., 0]
        found = through(XP, parts, self.of_rows(slope, self.K), self.two, self.K)
        if self.on_cpu and not math.isfinite(found.sum().item()):
            for number in found.flatten().tolist():
                if not math.isfinite(number):
                    raise NotFinite(
                        f"an entry of the gradient at the logits is {number}, not a finite number"
                    )
        return self.at_users(found)

    def at_users(self, slope: Tensor) -> Tensor:
        if self.stacked:
            slope = torch.stack([-slope, slope], -1)
        return slope if self.rank == 3 else slope.reshape(self.shape)


class _Weights(torch.autograd.Function):
    """The weights z of a relaxed run: `apply(run, logits)`."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        run, logits = given
        ctx.run = run
        z, run.z = run.z, None  # kept, it would keep the run until garbage is collected
        ctx.save_for_backward(logits, *[z] * run.formula.reads_rows)
        return z

    @staticmethod
    @once
    def backward(ctx: Any, *cotangents: Any) -> Any:
        _, *rows = ctx.saved_tensors  # an error if it was changed
        return None, ctx.run.through(cotangents[0], rows[0] if rows else None)


class _Mean(torch.autograd.Function):
    """[E] the mean losses of the examples, of K rows each, with a slope of each example at its
    logits: `apply(K, logits, losses, slope)`."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        ctx.K, logits, losses, slope = given
        ctx.save_for_backward(logits, losses, slope)
        return losses.clone() if ctx.K == 1 else losses.reshape(-1, ctx.K).mean(1)

    @staticmethod
    @once
    def backward(ctx: Any, *cotangents: Any) -> Any:
        K, (cotangent,) = ctx.K, cotangents
        _, _, slope = ctx.saved_tensors  # an error if the logits were changed
        at_logits = at_losses = None
        if ctx.needs_input_grad[1]:
            at_logits = slope * (
                cotangent.reshape(-1, *(1,) * (slope.dim() - 1)) if slope.dim() else cotangent[0]
            )
        if ctx.needs_input_grad[2]:
            at_losses = cotangent
            if K > 1:
                at_losses = (cotangent / K)[:, None].expand(-1, K).reshape(-1)
        return None, at_logits, at_losses, None


_weights, _mean = applied(_Weights), applied(_Mean)
