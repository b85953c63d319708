"""`hardgrad.torch.expectation` for estimators that have a formula (hardgrad/formulas.py): tensor
operations where the logits are. The results at a seed are those of core: the same options, and the
same numbers up to rounding."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Optional

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .. import _core
from .._core import NotFinite, UsageError
from ..formulas import Formula, factors, jacobians, of_pairs, of_scores, through, weights
from ..losses import LogitLayout, Takes, given_ids, given_seed
from . import draws
from .noise import Form, drawn
from .philox import count
from .tensors import (
    check_losses,
    drawn_seed,
    leads_to,
    normal,
    of_core,
    once,
    one_hot,
)

_LARGEST = 1e30  # of losses whose sums and differences are numbers in float32, too


def formula_of(estimator: draws.Given) -> Optional[Formula]:
    """None: the estimator has none, or there is no such estimator."""
    if isinstance(estimator, _core.Estimator):
        return _formula(estimator.spec) if estimator._registered else None
    if isinstance(estimator, draws.Module):
        return _formula(estimator.spec)
    return _formula(estimator) if isinstance(estimator, str) else None


@functools.lru_cache(maxsize=1024)
def _formula(spec: str) -> Optional[Formula]:
    try:
        found = _core.formula(spec)
    except UsageError:
        return None
    return None if found is None else Formula(**found)


def applicable(
    estimator: draws.Given, logits: Tensor, takes: Takes, bits: bool
) -> Optional[Formula]:
    """The formula, if the expectation is computed by it."""
    formula = formula_of(estimator)
    if formula is None or (formula.relaxes and takes == "options") or not draws.plain():
        return None
    dims, two = logits.dim(), bits or logits.shape[-1:] == (2,)
    if dims > 3 - bits or dims < 1 - bits or logits.numel() == 0 or (formula.pairs and not two):
        return None
    if not bits and logits.shape[-1] == 1:
        return None
    place = logits.device.type
    if place in ("mps", "meta"):  # without double precision, or without numbers
        return None
    examples = len(logits) if dims == 3 - bits else 1
    return formula if examples * formula.samples <= formula.cap else None


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
    run = _Run(formula, logits, estimator, takes, bits)
    seed = given_seed(drawn_seed(seed, generator))
    run.draw(given_ids(ids, run.E), seed)
    losses = run.losses(f)
    draws.counted(estimator, run.R)
    result: Tensor = _Mean.apply(run, run.wide, losses)
    return result if run.batched else result[0]


class _Run:
    """One run of K rows for each of E examples.

    E, R: examples, rows. two: whether choices are among two options, so that the formulas are those
    of bits. logits: [E, D, S], [E, D] of two. z: the rows as f gets them.
    """

    def __init__(
        self,
        formula: Formula,
        logits: Tensor,
        estimator: draws.Given,
        takes: Takes,
        bits: bool,
    ):
        self.formula, self.takes, self.bits, self.dtype = formula, takes, bits, logits.dtype
        self.rank = logits.dim() + bits
        self.batched = self.rank == 3
        self.wide = normal(logits).to(of_core(logits.dtype))
        users = self.wide.detach()
        self.users = users if self.batched else users.reshape(1, *(1,) * (2 - self.rank), *users.shape)
        self.two = bits or self.users.shape[2] == 2
        self.logits = (
            self.users if bits or not self.two else self.users[..., 1] - self.users[..., 0]
        )
        self.E, self.K = len(self.users), formula.samples
        self.R = self.E * self.K
        self.estimator = estimator
        self.z: Any = None
        self.noise: Any = None
        self.c: Any = None
        self.ended = False

    def draw(self, ids: Any, seed: int) -> None:
        formula, law = self.formula, self.formula.law
        form: Form = "bits" if self.bits else "one_hot"
        if self.takes == "options":
            form = "options"
        if not formula.is_hard:
            form = "none"
        if law is None:
            self._check_finite()
        else:
            self.z, self.noise = drawn(formula, law, self.users, self.rank, ids, seed, form)
        if not formula.is_hard:
            at, noise = self.of_rows(self.logits, 1), self.noise
            noise = None if noise is None else self.of_rows(noise)
            with torch.no_grad():
                w = weights(torch, formula, at, noise, self.two)
            w = torch.stack([1 - w, w], -1) if self.two and not self.bits else w
            self.z = w.reshape(self.R, *w.shape[2:])

    def _check_finite(self) -> None:
        """Where core draws nothing, so that it checks no logits."""
        if self.users.device.type == "cpu" and not torch.isfinite(self.users).all():
            shape = self.users.shape[3 - self.rank :] if self.rank < 3 else self.users.shape
            users = LogitLayout(self.users.reshape(shape).double().numpy(), self.bits).numbers
            _core.count_options(users.reshape(self.E, -1, users.shape[-1]), self.rank)

    def of_rows(self, x: Tensor, rows: int = 0) -> Tensor:
        """[E, K, ...]"""
        return x.reshape(self.E, rows or self.K, *x.shape[1:])

    def of_two(self, x: Tensor) -> Tensor:
        """The numbers of the second of two options."""
        return x[..., 1] if self.two and not self.bits else x

    def rows(self) -> Tensor:
        """z as numbers [E, K, D, S], [E, K, D] of two."""
        z = self.z
        if self.takes == "options":
            dtype = self.logits.dtype
            z = z.to(dtype) if self.two else one_hot(z, self.users.shape[2], dtype)
        else:
            z = self.of_two(z)
        return self.of_rows(z)

    def losses(self, f: Callable[..., Tensor]) -> Tensor:
        """[R] the losses of f, in core's dtype."""
        given = [self._example()] if self.batched else []
        if not self.formula.relaxes or torch.is_inference_mode_enabled():
            found = self._checked(f(self._of_users(self.z), *given))
            if not self.formula.relaxes:
                self.c = factors_of(self, found.detach())
            return found
        base = self.wide if self.wide.requires_grad else self.wide.detach().requires_grad_()
        with torch.enable_grad():
            z = _Weights.apply(self, base)
            found = self._checked(f(self._of_users(z), *given))
        if not leads_to(found, z):
            name = self.estimator if isinstance(self.estimator, str) else self.estimator.spec
            raise UsageError(
                f"{name} differentiates the loss in z, but the result of f does not "
                "depend on z by operations that "
                "autograd knows"
            )
        self.ended = True
        return found

    def _of_users(self, z: Tensor) -> Tensor:
        return z if self.takes == "options" or z.dtype == self.dtype else z.to(self.dtype)

    def _example(self) -> Tensor:
        examples = count(self.users, self.E)
        if self.K == 1:
            return examples
        return examples[:, None].expand(self.E, self.K).reshape(self.R)

    def _checked(self, losses: Any) -> Tensor:
        losses = check_losses(losses, self.R)
        if losses.dtype != self.wide.dtype or losses.device != self.wide.device:
            losses = losses.to(self.wide.device, self.wide.dtype)
        if losses.device.type == "cpu":
            numbers = losses.detach()
            if not numbers.abs().max().item() < _LARGEST:
                for row, loss in enumerate(numbers.tolist()):
                    if not math.isfinite(loss):
                        raise NotFinite(f"the loss of row {row} is {loss}, not a finite number")
        return losses

    def slope(self, cotangent: Tensor) -> Tensor:
        """The gradient at the user's logits, for a cotangent [E] of the examples."""
        weighted = cotangent[:, None] * self.c
        if self.formula.pairs:
            shape = (self.E, self.K // 2, 2)
            noise = None if self.noise is None else self.of_rows(self.noise, self.K // 2)
            z = self.rows()
            z = z.reshape(*shape, *z.shape[2:])
            found = of_pairs(
                torch, self.formula, self.logits, z, noise, weighted.reshape(shape)
            )
        else:
            found = of_scores(torch, self.logits, self.rows(), weighted, self.two)
        return self.at_users(found)

    def through(self, slope: Tensor) -> Tensor:
        """The gradient at the user's logits, from that in z."""
        if not self.ended:
            raise UsageError(
                "f differentiated its losses: it returns them, and the estimator differentiates"
            )
        noise = None if self.noise is None else self.of_rows(self.noise)
        parts = jacobians(
            torch, self.formula, self.of_rows(self.logits, 1), self.rows(), noise, self.two
        )
        if self.two and not self.bits:
            slope = slope[..., 1] - slope[..., 0]
        found = self.at_users(through(parts, self.of_rows(slope), self.two))
        if found.device.type == "cpu" and not math.isfinite(found.sum().item()):
            for number in found.flatten().tolist():
                if not math.isfinite(number):
                    raise NotFinite(
                        f"an entry of the gradient at the logits is {number}, not a finite number"
                    )
        return found

    def at_users(self, slope: Tensor) -> Tensor:
        if self.two and not self.bits:
            slope = torch.stack([-slope, slope], -1)
        return slope.reshape(self.wide.shape)


def factors_of(run: _Run, losses: Tensor) -> Tensor:
    """[E, K] the factors of the rows in the slope."""
    of_rows = losses.reshape(run.E, run.K)
    if run.formula.pairs:
        return of_rows
    c: Tensor = factors(run.formula, of_rows)
    return c if run.K == 1 else c / run.K


class _Weights(torch.autograd.Function):
    """The weights z of a relaxed run: `apply(run, logits)`."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        ctx.run, logits = given
        ctx.save_for_backward(logits)
        return ctx.run.z

    @staticmethod
    @once
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return None, ctx.run.through(cotangents[0])


class _Mean(torch.autograd.Function):
    """[E] the mean losses of the examples: `apply(run, logits, losses)`. The gradient at the logits
    is the estimate's, unless it comes through the weights."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        run, logits, losses = given
        ctx.run = run
        ctx.save_for_backward(logits, losses)
        return losses.clone() if run.K == 1 else losses.reshape(run.E, run.K).mean(1)

    @staticmethod
    @once
    def backward(ctx: Any, *cotangents: Any) -> Any:
        run, (cotangent,) = ctx.run, cotangents
        at_logits = at_losses = None
        if ctx.needs_input_grad[1] and not run.formula.relaxes:
            at_logits = run.slope(cotangent)
        if ctx.needs_input_grad[2]:
            at_losses = cotangent
            if run.K > 1:
                at_losses = (cotangent / run.K)[:, None].expand(run.E, run.K).reshape(run.R)
        return None, at_logits, at_losses


