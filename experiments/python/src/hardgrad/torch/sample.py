"""Draws of choices that are differentiable themselves: `hardgrad.torch.sample`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, Optional, TypeVar, Union

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .. import _core
from .._core import UsageError
from ..losses import LogitLayout, check_axes, check_subset, given_ids, given_seed
from . import draws
from .compiled import compiling, operator
from .compiled import given_seed as seed_of
from .laws import Law, each_of
from .tensors import check_logits, drawn_seed, eager, fetched, normal, of_core, once, one_hot, sent


def sample(
    logits: Law = None,
    estimator: draws.Given = "gumbel_softmax",
    *,
    hard: bool = False,
    dim: int = -1,
    temperature: Union[None, float, Tensor] = None,
    probs: Optional[Tensor] = None,
    bits: bool = False,
    subset: Optional[int] = None,
    ids: Optional[ArrayLike] = None,
    generator: Optional[torch.Generator] = None,
    seed: Optional[int] = None,
) -> Tensor:
    """z ~ Cat(softmax(logits)), as a tensor in the graph: like `F.gumbel_softmax`, with any
    estimator whose gradient depends on the loss through its derivative in z only.

    For losses f(z) of E examples, `f(sample(logits, spec, seed=s)).sum().backward()` gives the
    logits the gradient of `expectation(logits, f, spec, seed=s).sum()`: the same draws, the same
    estimate. (implicit_mle is not linear in the derivative: its step is as long as the cotangent
    that reaches z.)

    logits: [..., S], on any device, of float16, bfloat16, float32 or float64. -inf marks missing
        options. Read as in `expectation`: [S], [D, S] of D columns, [E, D, S] of E examples; of
        more axes, all but the last two are examples. With bits=True: [..., D] logits of a 1. Which
        axes are columns decides the noise only (and sparse_mixer scales those of an example
        together).
    estimator: e.g. "reinmax" or "gumbel_softmax[temperature=0.7]"; an Estimator that learns
        nothing; any that takes one row, of weights or of an option held fixed (path_only).
    hard: the value is one-hot at the largest weight (of subsets, 1 at the largest), the derivative
        that of the weights. Changes nothing where choices are hard already.
    dim: the axis of the options.
    temperature: the estimator's setting of this name, for a schedule. It gets no gradient.
    probs, bits, subset, ids, generator, seed: as in `expectation`, as are distributions instead of
        logits, of any batch shape.

    Returns the shape of the logits, in their dtype, on their device: one-hot rows or weights that
    sum to 1 (to `subset`), 0 where an option is missing. Can be differentiated once. Raises
    UsageError, also for estimators that need a loss (such as rloo).
    Source: the estimators' papers, see `hardgrad.describe`.
    """
    if dim != -1:
        logits, probs = _last(logits, dim, bits), _last(probs, dim, bits)
    # The compiler looks into tensors and names; at anything else the graph breaks.
    if (
        compiling()
        and _operator is not None
        and isinstance(logits, Tensor)
        and isinstance(estimator, str)
        and probs is ids is generator is temperature is None
    ):
        axes = 2 - bits
        shaped = logits if logits.dim() <= axes + 1 else logits.flatten(0, -axes - 1)
        z = _operator(
            shaped, seed_of(seed), estimator, hard, bits, -1 if subset is None else subset
        )
        z = z.reshape(logits.shape)
    else:
        z = _sampled(
            logits, probs, estimator, temperature, hard, bits, subset, ids, generator, seed
        )
    return z if dim == -1 else z.movedim(-1, dim)


@eager
def _sampled(
    logits: Law,
    probs: Optional[Tensor],
    estimator: draws.Given,
    temperature: Union[None, float, Tensor],
    hard: bool,
    bits: bool,
    subset: Optional[int],
    ids: Optional[ArrayLike],
    generator: Optional[torch.Generator],
    seed: Optional[int],
) -> Tensor:
    """z, with the options as the last axis."""
    given, bits, shape = each_of(logits, probs, bits)
    spec, number = with_temperature(estimator, temperature), drawn_seed(seed, generator)
    return _drawn(given.reshape(shape), spec, hard, bits, subset, number, ids).reshape(given.shape)


Moved = TypeVar("Moved", Law, Optional[Tensor])


def _last(law: Moved, dim: int, bits: bool) -> Moved:
    """With the axis `dim` of options as the last."""
    if law is None:
        return law
    if bits or not isinstance(law, Tensor):
        raise UsageError("dim= is the axis of a tensor's options; bits and distributions have none")
    if not -law.dim() <= dim < law.dim():
        raise UsageError(f"dim is {dim}, and the logits have shape {list(law.shape)}")
    return law.movedim(dim, -1)


def _drawn(
    logits: Tensor,
    estimator: draws.Given,
    hard: bool,
    bits: bool,
    subset: Optional[int],
    seed: int,
    ids: Optional[ArrayLike] = None,
    again: bool = False,
) -> Tensor:
    """z of logits with the axes of `expectation`. again: as a draw that was counted before."""
    check_logits(logits)
    dtype = of_core(logits.dtype)
    wide = normal(logits).to(dtype)
    (numbers,) = fetched([wide], dtype)
    asked = LogitLayout(numbers, bits)
    values = asked.numbers
    check_axes(values.shape, empty=True)
    picks = check_subset(subset, values.shape[-1], bits)
    if values.size == 0:  # no examples, or no choices
        return logits.clone()
    shaped = values.reshape((1,) * (3 - values.ndim) + values.shape)
    draw = _Draw(estimator, dtype, asked, shaped, picks, ids, given_seed(seed), again)
    (z,) = sent([draw.z], wide.device)
    if draw.options:
        z = z.to(dtype) if bits else one_hot(z, values.shape[-1], dtype)
    elif hard:
        most = z if bits else z.topk(max(1, picks), -1).indices
        z = (most > 0.5).to(dtype) if bits else one_hot(most, values.shape[-1], dtype)
    z = z.reshape(wide.shape)
    if torch.is_grad_enabled() and wide.requires_grad:
        z = _Sample.apply(wide, z, draw.pullback)
    return z.to(logits.dtype)


_operator = operator(_drawn)


class _Sample(torch.autograd.Function):
    """z as a function of the logits; pullback: from a slope in z to that at the logits."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        logits, z, ctx.pullback = given
        ctx.save_for_backward(logits)
        return z.view_as(z)

    @staticmethod
    @once
    def backward(ctx: Any, *cotangents: Any) -> Any:
        ctx.saved_tensors  # an error if they were changed in place: the draw may be made again
        (slope,) = fetched(cotangents, cotangents[0].dtype)
        return sent([ctx.pullback(slope)], cotangents[0].device)[0], None, None


class _Draw:
    """One draw without its loss. z: its weights or, as `options` says, options, of the user's
    layout."""

    z: Any
    options: bool

    def __init__(
        self,
        estimator: draws.Given,
        dtype: torch.dtype,
        asked: LogitLayout,
        shaped: Any,
        picks: int,
        ids: Optional[ArrayLike],
        seed: int,
        again: bool,
    ):
        check_needs_no_loss(estimator, shaped.shape[1:], picks)
        held = draws.held(estimator, dtype)
        self.asked = asked
        given = (shaped, asked.numbers.ndim, picks, None, given_ids(ids, len(shaped)), None)
        mixture = draws.mixture(seed)
        draw = draws.DRAW[dtype]

        def drawn(loss: _NoLoss, later: bool) -> Any:
            count = torch.get_num_threads()
            return draw(
                held, *given, loss, True, seed, False, False, later, mixture, None, None, count
            )

        self._again: Callable[[_NoLoss], Any] = lambda loss: drawn(loss, False)[0]
        loss = _NoLoss()
        *_, self._kept = drawn(loss, True)
        if not again:
            draws.drawn(estimator, held, len(shaped), False)
        self.options = loss.choice.dtype.kind == "i"
        self._example = loss.example
        self._differentiated = loss.differentiated
        layout = asked.options if self.options else asked.weights
        self.z = layout(loss.choice, loss.example)

    def pullback(self, slope: Any) -> Any:
        """The gradient at the logits of slope . z."""
        if self.options:
            return np.zeros_like(slope)
        given = slope.reshape(self.z.shape)
        inside = np.ascontiguousarray(self.asked.at_weights(given, self._example))
        if self._differentiated:  # with the derivative at hand: the same draw again
            gradient = self._again(_NoLoss(inside))
        else:
            gradient = self._kept.through_weights(0, inside)
        return self.asked.at_logits(gradient.reshape(self.asked.numbers.shape)).reshape(slope.shape)


class _NoLoss:
    """A loss in core's calling convention (see _core.pyi): a constant, whose derivative in the
    weights is given (by default 0)."""

    VALUE = 0.7320508  #: such that no baseline happens to equal it

    def __init__(self, slope: Any = None):
        self.slope = slope
        self.runs, self.differentiated = 0, False

    def __call__(self, choice: Any, example: Any, differentiable: bool) -> Any:
        self.runs += 1
        self.choice, self.example = choice, example

        def pull(cotangent: Any) -> Any:
            self.differentiated = True
            slope = np.zeros_like(choice) if self.slope is None else self.slope
            return cotangent[:, None, None] * slope

        return np.full(len(example), self.VALUE), pull if differentiable else None


def check_needs_no_loss(estimator: draws.Given, shape: tuple[int, int], picks: int) -> None:
    """UsageError if the estimator needs the losses of its choices. shape: columns and options."""
    columns, options = min(shape[0], 2), min(shape[1], max(3, picks + 1))  # more make no difference
    if isinstance(estimator, str):
        name, why = estimator, _why_a_loss_named(estimator, columns, options, picks)
    elif isinstance(estimator, _core.Estimator):  # it may be written in Python, without a name
        name = estimator.spec
        why = (
            _why_a_loss_named(name, columns, options, picks)
            if estimator._registered
            else _why_a_loss(estimator, columns, options, picks)
        )
    elif isinstance(estimator, draws.Module):
        name, why = estimator.spec, _why_a_loss_named(estimator.spec, columns, options, picks)
    else:
        return  # refused by `draws.held`
    if why:
        raise UsageError(
            f"{name} {why}, which a sample does not have: use "
            f'hardgrad.torch.expectation(logits, f, "{name}")'
        )


@lru_cache(maxsize=1024)
def _why_a_loss_named(spec: str, columns: int, options: int, picks: int) -> str:
    return _why_a_loss(_core.Estimator(spec), columns, options, picks)


def _why_a_loss(estimator: _core.Estimator, columns: int, options: int, picks: int) -> str:
    """Why the estimator needs the losses of its choices; empty if it does not. Seen from a draw at
    equal logits, whose loss is constant: an estimator that needs it learns, takes more than one
    row, or has a gradient other than 0. Also empty if it does not support the choices, which
    the draw itself refuses."""
    loss, logits = _NoLoss(), np.zeros((1, columns, options))
    none = (None, None, None)
    try:
        slope, _ = _core.draw_double(
            estimator, logits, 3, picks, *none, loss, True, 0, False, False, False, *none, 1
        )
    except UsageError:
        return ""
    if estimator.learns:
        return "learns from the losses of its choices"
    if loss.runs > 1 or len(loss.example) > 1:
        what = f"{loss.runs} runs" if loss.runs > 1 else f"{len(loss.example)} rows"
        return f"weighs the losses of {what}"
    return "weighs the score by the loss" if slope.any() else ""


def with_temperature(
    estimator: draws.Given, temperature: Union[None, float, Tensor]
) -> draws.Given:
    """The estimator with this setting."""
    if temperature is None:
        return estimator
    if not isinstance(estimator, str):
        raise UsageError("temperature= is a setting of an estimator that is given by name")
    if isinstance(temperature, Tensor) and temperature.requires_grad:
        raise UsageError(
            "temperature requires a gradient, which no estimator has for it: pass "
            "temperature.detach()"
        )
    try:
        number = float(temperature)
    except (TypeError, ValueError):
        raise UsageError(f"temperature is a number, got {temperature!r}") from None
    name, _, settings = estimator.partition("[")
    rest = settings.rstrip("] ")
    if any(setting.split("=")[0].strip() == "temperature" for setting in rest.split(",")):
        raise UsageError(f"temperature is given twice: in {estimator} and as {number}")
    return f"{name}[{rest + ',' if rest else ''}temperature={number!r}]"
