"""Expected losses of discrete choices in PyTorch, differentiable by any of Hardgrad's estimators.

    loss = hardgrad.torch.expectation(logits, f, "rloo[samples=4]").mean()
    loss.backward()

Choices that feed later ones are made in an `episode`. `compare` measures estimators on a network of your own, and `Monitor` does so
along its training. The logits get the estimator's gradient, and parameters inside f their path gradient, both by PyTorch's
`backward`. Tensors may be on any device. Draws are made on the CPU: in double precision for float64, else in single.
"""
from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from . import _core, _draws as draws
from ._asked import Asked, of_bits
from ._core import UsageError
from ._compare import compare
from ._comparison import Comparison, Measured
from ._episode import Choice, Episode, Run, episode
from ._losses import Takes, check_axes, check_takes, given_ids, given_seed
from ._module import Estimator
from ._monitor import Monitor
from ._sites import Site
from ._tensors import Estimate, Slope, check_logits, check_losses, drawn_seed, eager, on_host, once, shared

__all__ = ["Choice", "Comparison", "Episode", "Estimator", "Measured", "Monitor", "Run", "Site", "compare", "episode", "expectation"]

_DRAW = {torch.float32: _core.draw_float, torch.float64: _core.draw_double}


@eager
def expectation(logits: Tensor, f: Callable[..., Tensor], estimator: draws.Given = "rloo[samples=4]", *,
                takes: Takes = "weights", bits: bool = False, state: Optional[Tensor] = None, ids: Optional[ArrayLike] = None,
                generator: Optional[torch.Generator] = None, seed: Optional[int] = None) -> Tensor:
    """E[f(z)], z ~ Cat(softmax(logits)), as an estimate: its value is the losses' weighted mean. Its gradient is the estimator's at the
    logits, and the path gradient for parameters of the losses.

    logits: [S] of one choice, [D, S] of D choices (columns) that share a loss, or [E, D, S] of E examples; on any device, of
        float16, bfloat16, float32 or float64. -inf marks missing options. With bits=True: [D] or [E, D] logits of a 1.
    f: a function of z [R, D, S], one-hot rows or, with relaxations, weights over the options ([R, D] those of a 1 with bits=True); for
        a batch also of example [R], the position of each row's example. z is on the device of the logits, in their dtype. Returns losses
        [R]. It is called once for all rows of a run, and differentiated in z by autograd if the estimator needs that.
    estimator: e.g. "rebar[samples=2]", which starts anew at each call; or an Estimator, of `hardgrad` or of this module, which keeps its
        learned state and learns at each call in which gradients are recorded.
    takes: "options": f is a function of options [R, D] (int64) instead. Relaxations, and estimators that contain them, cannot use it.
    state: [E, C] ([C] without a batch) inputs of learned baselines for each example; by default a 1. Not differentiated.
    ids: [E] ids of the examples (whole numbers), which determine their noise; by default their positions.
    generator, seed: of the noise; by default PyTorch's generator, so that `torch.manual_seed` applies.

    Returns [E], or a number without a batch, on the device of the logits (float32 for shorter dtypes). Raises UsageError; exceptions of f are passed through. Can be differentiated once.
    Source: the estimators' papers, see `hardgrad.describe`.
    """
    check_takes(takes)
    check_logits(logits)
    device, dtype = logits.device, logits.dtype
    logits = on_host(logits)
    if bits:
        logits = of_bits(logits)
    check_axes(logits.shape)
    asked = Asked(logits, bits)
    logits, values = asked.logits, asked.numbers
    batched = values.ndim == 3
    held, learning = draws.held(estimator, logits.dtype), draws.learns_now(estimator)
    loss = _Loss(f, takes, batched, logits, held.spec, asked, device, dtype)
    shaped = values.reshape((1,) * (3 - values.ndim) + values.shape)
    slope, runs, drawn = _DRAW[logits.dtype](held, shaped, values.ndim, _state(state, logits, batched), given_ids(ids, len(shaped)), None,
                                             loss, takes == "weights", given_seed(drawn_seed(seed, generator)),
                                             learning, False, True)
    for way in loss.ways:
        way.drawn = drawn
    value = np.zeros(len(shaped))
    draws.drawn(estimator, held, sum(len(losses) for _, _, _, losses, _ in runs), learning)
    for _, _, example, losses, share in runs:
        value += np.bincount(example, share * losses, len(shaped))
    own_slopes, own = draws.learned(estimator, logits.dtype, drawn.own_gradient)
    slopes: list[Slope] = [(torch.from_numpy(slope) if slope.any() else None, None)]
    slopes += [(torch.from_numpy(share), torch.from_numpy(example)) for _, _, example, _, share in runs]
    result: Tensor = Estimate.apply(torch.from_numpy(value.astype(values.dtype)), slopes + own_slopes, logits, *loss.runs, *own)
    return (result if batched else result[0]).to(device)


class _Way:
    """Maps a slope in the weights of a run to the gradient at the logits, after the estimate is drawn."""

    def __init__(self, run: int):
        self.run = run
        self.drawn: Any = None

    def __call__(self, slope: Any) -> Any:
        return self.drawn.through_weights(self.run, slope)


class _Weights(torch.autograd.Function):
    """The weights of a relaxed run. The backward pass continues from them to the logits."""

    @staticmethod
    def forward(ctx: Any, *given: Any, **named: Any) -> Any:
        logits, weights, ctx.way = given
        ctx.shape = logits.shape
        return torch.from_numpy(weights)

    @staticmethod
    @once
    def backward(ctx: Any, *cotangents: Any) -> Any:
        return torch.from_numpy(ctx.way(cotangents[0].numpy())).reshape(ctx.shape), None, None


class _Loss:
    """The user's function in core's calling convention (see _core.pyi). Keeps the losses of its runs, for autograd."""

    def __init__(self, f: Callable[..., Tensor], takes: Takes, batched: bool, logits: Tensor, spec: str, asked: Asked,
                 device: torch.device, dtype: torch.dtype):
        self.f, self.takes, self.batched, self.dtype, self.spec, self.asked = f, takes, batched, logits.dtype, spec, asked
        self.user = device, dtype
        self.logits = logits if logits.requires_grad else logits.detach().requires_grad_()
        self.runs: list[Tensor] = []
        self.ways: list[_Way] = []

    def __call__(self, choice: Any, example: Any, differentiable: bool) -> tuple[Any, Optional[Callable[[Any], Any]]]:
        if not differentiable:
            self.runs.append(self._losses(torch.from_numpy(choice), example))
            return self.runs[-1].detach().numpy(), None
        with torch.enable_grad():
            way = _Way(len(self.runs))
            z = _Weights.apply(self.logits, choice, way)
            losses = self._losses(z, example)
        if not _leads_to(losses, z):
            raise UsageError(f"{self.spec} differentiates the loss in z, but the result of f does not depend on z by operations that "
                             "autograd knows")
        self.runs.append(losses)
        self.ways.append(way)

        def pull(cotangent: Any) -> Any:
            (slope,) = torch.autograd.grad(losses, z, torch.from_numpy(cotangent), retain_graph=True)
            return slope.numpy()

        return losses.detach().numpy(), pull

    def _losses(self, z: Tensor, example: Any) -> Tensor:
        row, (device, dtype) = torch.from_numpy(example), self.user
        choice = self.asked.options(z, row).to(device) if self.takes == "options" else self.asked.weights(z, row).to(device, dtype)
        losses = self.f(choice, row.to(device)) if self.batched else self.f(choice)
        return on_host(check_losses(losses, len(example)), self.dtype)


def _leads_to(losses: Tensor, z: Tensor) -> bool:
    """Whether z is in the autograd graph of the losses; a breadth-first search, since z is near."""
    nodes, seen = [losses.grad_fn], {losses.grad_fn}
    for node in nodes:
        if node is z.grad_fn:
            return True
        for following, _ in node.next_functions if node else ():
            if following not in seen:
                seen.add(following)
                nodes.append(following)
    return False


def _state(state: Optional[Tensor], logits: Tensor, batched: bool) -> Any:
    if state is None:
        return None
    numbers = shared(on_host(state, logits.dtype) if isinstance(state, Tensor) else state, "the numbers of the state")
    examples = len(logits) if batched else 1
    if numbers.ndim != 1 + batched or numbers.shape[-1] == 0 or numbers.size != examples * numbers.shape[-1]:
        raise UsageError(f"state has shape {list(numbers.shape)}; it is {'[examples, numbers]' if batched else '[numbers]'}")
    return numbers
