"""Expected losses of discrete choices in PyTorch: `hardgrad.torch.expectation`."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core import UsageError
from ..losses import (
    Columns,
    LogitLayout,
    Takes,
    check_axes,
    check_columns,
    check_shared,
    check_subset,
    check_takes,
    given_ids,
    given_seed,
)
from . import by_formula, draws, in_graph, policies
from .columns import Separate
from .laws import Law, logits_of
from .tensors import (
    Estimate,
    Slope,
    check_logits,
    check_losses,
    drawn_seed,
    eager_unless,
    fetched,
    leads_to,
    normal,
    of_core,
    once,
    one_hot,
    sent,
)


@eager_unless(in_graph.expectation)
def expectation(
    logits: Law,
    f: Callable[..., Tensor],
    estimator: draws.Given = "rloo[samples=4]",
    *,
    takes: Takes = "weights",
    columns: Columns = "shared",
    probs: Optional[Tensor] = None,
    bits: bool = False,
    subset: Optional[int] = None,
    behaviour: Optional[Tensor] = None,
    reference: Optional[Tensor] = None,
    state: Optional[Tensor] = None,
    ids: Optional[ArrayLike] = None,
    generator: Optional[torch.Generator] = None,
    seed: Optional[int] = None,
) -> Tensor:
    """E[f(z)], z ~ Cat(softmax(logits)), as an estimate: its value is the losses' weighted mean
    (without a divergence from a reference policy, which the gradient has).
    Its gradient is the estimator's at the logits, and the path gradient for parameters of the
    losses.

    logits: [S] of one choice, [D, S] of D choices (columns) that share a loss, or [E, D, S] of E
        examples; on any device, of float16, bfloat16, float32 or float64. -inf marks missing
        options. With bits=True: [D] or [E, D] logits of a 1. Or a distribution of
        `torch.distributions`: its batch shape [E] (or none) are examples with one choice each, and
        Independent(..., 1) makes [E, D] of them D columns. Categorical and OneHotCategorical are
        the same; Bernoulli means bits=True. With columns="separate" all axes are a batch's.
    f: a function of z [R, D, S], one-hot rows or, with relaxations, weights over the options ([R,
        D] those of a 1 with bits=True); for a batch also of example [R], the position of each row's
        example. z is on the device of the logits, in their dtype. Returns losses [R]. It is called
        once for all rows of a run, and differentiated in z by autograd if the estimator needs that.
    estimator: e.g. "rebar[samples=2]", which starts anew at each call; or an Estimator, of
        `hardgrad` or of this module, which keeps its learned state and learns at each call in which
        gradients are recorded.
    takes: "options": f is a function of options [R, D] (int64) instead. Relaxations, and estimators
        that contain them, cannot use it.
    columns: "separate": each column is a choice with a loss of its own, e.g. a token. f returns
        losses [R, D], where that of a column depends on the choice of this column; the result is
        [E, D], and each column's gradient is estimated from its own losses. The same as E D
        examples with one choice each (so is the Site of an Estimator), with ids D e + d, but f sees
        all columns of a row at once.
    probs: the probabilities, with logits=None, in the same shape; they need not sum to 1. They get
        the gradient (a bit that is certainly 1 gets none). 0 marks a missing option.
    subset: every choice picks so many of its options, without order: p(z) is the product of
        exp(logit) over those picked, divided by its sum over all subsets. z has that many ones, its
        weights that sum; options are [R, D, subset], ascending. `hardgrad.describe(name)` says
        which estimators can, in "needs" and "supports".
    behaviour: logits, in the shape of the given ones (beside a distribution [E, D, S]), of the
        policy that draws: an older one, or its own as a sampler changes it (`tempered`, `top_k`,
        `top_p`). `policy_gradient` corrects for it by ratios. Others that draw raise UsageError;
        those that enumerate need no draws. -inf marks options that it never draws. No ratio makes
        up for those that the policy may choose: the estimate lacks them, a bias that
        `hardgrad.moments` gives exactly.
    reference: logits, in the same shape, of a policy to stay near, for `target=near_reference` and
        `policy_gradient`'s divergences; finite for options that are there. Neither of the two is
        differentiated.
    state: [E, C] ([C] without a batch) inputs of learned baselines for each example; by default a
        1. Not differentiated.
    ids: [E] ids of the examples (whole numbers), which determine their noise; by default their
        positions.
    generator, seed: of the noise; by default PyTorch's generator, so that `torch.manual_seed`
        applies.

    Relaxations, pairs of bits, and score functions that are linear in the losses are tensor
    operations where the logits are: on a device nothing is transferred but `ids`, nothing is waited
    for, and an infinite or NaN loss gives NaN instead of an error. They do not break the graph of
    torch.compile (recent PyTorch 2; of the arguments from probs on, with bits and seed only), and
    torch.func transforms them (also with ids and generator): in vmap, lanes with equal ids and seed
    draw the same noise. Without seed its `randomness` decides; "different" draws as one batch.

    The other estimators draw in core. Large batches are drawn in parts, on PyTorch's threads; the
    numbers do not depend on how many there are, and the caller's thread calls f.

    As with PyTorch's own operations, logits or losses that are changed in place before the backward
    pass raise RuntimeError where it reads them, and changes through `.data` go unseen.

    Returns [E], or a number without a batch ([E, D] or [D] of separate columns), on the device of
    the logits (float32 for shorter dtypes). Raises UsageError; exceptions of f are passed through.
    Can be differentiated once; differentiating its gradient at the logits again raises UsageError.
    Source: the estimators' papers, see `hardgrad.describe`.
    """
    if probs is not None or columns != "shared" or not isinstance(logits, Tensor):
        check_takes(takes)
        check_columns(columns)
        logits, bits = logits_of(logits, probs, bits, columns)
    if columns == "separate":
        each = Separate(logits, bits)
        return expectation(
            each.logits,
            each.loss(f),
            estimator,
            takes=takes,
            bits=bits,
            subset=subset,
            behaviour=each.policy(behaviour, "behaviour"),
            reference=each.policy(reference, "reference"),
            state=each.state(state),
            ids=each.ids(ids),
            generator=generator,
            seed=seed,
        ).reshape(each.shape)
    if subset is state is behaviour is reference is None:
        formula = by_formula.applicable(estimator, logits, takes, bits)
        if formula is not None:
            return by_formula.expectation(
                formula, logits, f, estimator, takes, bits, ids, generator, seed
            )
    check_takes(takes)
    check_logits(logits)
    dtype = of_core(logits.dtype)
    wide = normal(logits).to(dtype)  # sums of gradients are in core's precision
    others = (("behaviour", behaviour), ("reference", reference))
    inputs = [wide] if state is None else [wide, _tensor(state)]
    numbers, *seen = fetched(inputs, dtype)
    asked = LogitLayout(numbers, bits)
    values = asked.numbers
    check_axes(values.shape, empty=True)
    picks = check_subset(subset, values.shape[-1], bits)
    batched = values.ndim == 3
    if values.size == 0:  # no examples, or no choices: nothing is drawn
        return _nothing_drawn(f, takes, wide, asked, logits.dtype, picks)
    held, learning = draws.held(estimator, dtype), draws.learns_now(estimator)
    loss = _Loss(f, takes, batched, wide, held.spec, asked, logits.dtype)
    shaped = values.reshape((1,) * (3 - values.ndim) + values.shape)
    noise = given_seed(drawn_seed(seed, generator))
    drawing, near = policies.for_core(others, logits, asked, dtype, shaped.shape)
    slope, runs, drawn = draws.DRAW[dtype](
        held,
        shaped,
        values.ndim,
        picks,
        _state(seen, len(shaped), batched),
        given_ids(ids, len(shaped)),
        None,
        loss,
        takes == "weights",
        noise,
        learning,
        False,
        True,
        draws.mixture(noise),
        drawing,
        near,
        torch.get_num_threads(),
    )
    for pullback in loss.pullbacks:
        pullback.drawn = drawn
    rows = sum(len(losses) for _, _, _, losses, *_ in runs)
    draws.drawn(estimator, held, rows, learning, drawn.ratios)
    value = np.zeros(len(shaped))
    for _, _, example, losses, share, _ in runs:
        value += np.bincount(example, share * losses, len(shaped))
    own_slopes, own = draws.learned(estimator, dtype, drawn.own_gradient)
    parts = [value.astype(values.dtype), *(share for *_, share, _ in runs)]
    if slope.any() or not loss.pullbacks:  # through the weights a gradient comes anyway
        parts.append(asked.at_logits(slope.reshape(values.shape)))
    there, *rest = sent(parts, logits.device)
    slopes: list[Slope] = [
        (rest[-1] if len(rest) > len(runs) else None, None),
        *zip(rest, loss.examples),
    ]
    result: Tensor = Estimate.apply((there, slopes + own_slopes), wide, *loss.runs, *own)
    return result if batched else result[0]


def _nothing_drawn(
    f: Callable[..., Tensor],
    takes: Takes,
    wide: Tensor,
    asked: LogitLayout,
    dtype: torch.dtype,
    picks: int,
) -> Tensor:
    """[E] the losses of E examples without choices, which do not depend on the logits."""
    examples, columns = asked.numbers.shape[:2]
    value = wide.sum(tuple(range(1, wide.dim())))
    if examples == 0:
        return value
    loss = _Loss(f, takes, True, wide, "", asked, dtype)
    loss(
        np.zeros((examples, columns, *(picks,) * (picks > 0)), np.int64), np.arange(examples), False
    )
    return value + loss.runs[0]


class _RelaxedPullback:
    """The weights of a relaxed run, and the way from a slope in them to the gradient at the logits,
    once the estimate is drawn."""

    def __init__(self, run: int, asked: LogitLayout, weights: Tensor, example: Any):
        self.run, self.asked, self.weights, self.example = run, asked, weights, example
        self.drawn: Any = None

    def __call__(self, slope: Any) -> Any:
        if self.drawn is None:
            raise UsageError(
                "f differentiated its losses: it returns them, and the estimator differentiates"
            )
        gradient = self.drawn.through_weights(self.run, self.asked.at_weights(slope, self.example))
        return self.asked.at_logits(gradient.reshape(self.asked.numbers.shape))


class _Weights(torch.autograd.Function):
    """The weights of a relaxed run. The backward pass continues from them to the logits."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        logits, ctx.pullback = given
        ctx.save_for_backward(logits)
        weights, ctx.pullback.weights = (
            ctx.pullback.weights,
            None,
        )  # kept, they would keep the whole estimate until garbage is collected
        return weights

    @staticmethod
    @once
    def backward(ctx: Any, *cotangents: Any) -> Any:
        (slope,) = fetched(cotangents, cotangents[0].dtype)
        return sent([ctx.pullback(slope)], cotangents[0].device)[0], None


class _Loss:
    """The user's function in core's calling convention (see _core.pyi). Keeps the losses of its
    runs, for autograd.

    wide: the logits in core's dtype; dtype: that of the user.
    """

    def __init__(
        self,
        f: Callable[..., Tensor],
        takes: Takes,
        batched: bool,
        wide: Tensor,
        spec: str,
        asked: LogitLayout,
        dtype: torch.dtype,
    ):
        self.f = f
        self.takes = takes
        self.batched = batched
        self.dtype = dtype
        self.spec = spec
        self.asked = asked
        self.logits = wide if wide.requires_grad else wide.detach().requires_grad_()
        self.runs: list[Tensor] = []
        self.examples: list[Tensor] = []
        self.pullbacks: list[_RelaxedPullback] = []

    def __call__(
        self, choice: Any, example: Any, differentiable: bool
    ) -> tuple[Any, Optional[Callable[[Any], Any]]]:
        if choice.dtype.kind == "f":
            return self._relaxed(choice, example, differentiable)
        z, row = sent([self.asked.options(choice, example), example], self.logits.device)
        if self.takes == "weights":
            z = (
                z.to(self.dtype)
                if self.asked.bits
                else one_hot(z, self.asked.numbers.shape[-1], self.dtype)
            )
        return self._numbers(self._losses(z, row)), None

    def _relaxed(
        self, weights: Any, example: Any, differentiable: bool
    ) -> tuple[Any, Optional[Callable[[Any], Any]]]:
        z, row = sent([self.asked.weights(weights, example), example], self.logits.device)
        inference = torch.is_inference_mode_enabled()
        if inference or not differentiable:
            value = self._numbers(self._losses(z.to(self.dtype), row))
            # No gradient can be asked for.
            return value, (lambda cotangent: np.zeros_like(weights)) if differentiable else None
        with torch.enable_grad():
            self.pullbacks.append(_RelaxedPullback(len(self.runs), self.asked, z, example))
            z = _Weights.apply(self.logits, self.pullbacks[-1])
            losses = self._losses(z.to(self.dtype), row)
        if not leads_to(losses, z):
            raise by_formula.no_slope(self.spec)

        def pull(cotangent: Any) -> Any:
            (slope,) = torch.autograd.grad(
                losses, z, sent([cotangent], z.device), retain_graph=True
            )
            return self.asked.at_weights(fetched([slope], z.dtype)[0], example)

        return self._numbers(losses), pull

    def _losses(self, z: Tensor, row: Tensor) -> Tensor:
        losses = self.f(z, row) if self.batched else self.f(z)
        check_shared(tuple(getattr(losses, "shape", ())), tuple(z.shape[:2]))
        self.runs.append(check_losses(losses, len(row)).to(self.logits.device, self.logits.dtype))
        self.examples.append(row)
        return self.runs[-1]

    def _numbers(self, losses: Tensor) -> Any:
        return fetched([losses], losses.dtype)[0]


def _tensor(state: Any) -> Tensor:
    check_logits(state, "the numbers of the state")
    checked: Tensor = state
    return checked


def _state(seen: list[Any], examples: int, batched: bool) -> Any:
    if not seen:
        return None
    (numbers,) = seen
    if (
        numbers.ndim != 1 + batched
        or numbers.shape[-1] == 0
        or numbers.size != examples * numbers.shape[-1]
    ):
        raise UsageError(
            f"state has shape {list(numbers.shape)}; it is "
            f"{'[examples, numbers]' if batched else '[numbers]'}"
        )
    return numbers
