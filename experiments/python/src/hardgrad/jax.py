"""Expected losses of discrete choices in JAX, differentiable by Hardgrad's estimators with hard choices, inside `jax.jit`.

    def loss(parameters, seed):
        return hardgrad.jax.expectation(logits(parameters), f, "rloo[samples=4]", seed=seed).mean()

    gradient = jax.jit(jax.grad(loss))(parameters, seed)

Options and weights of the samples come from callbacks with static shapes; f is traced by JAX. The same seed draws the same numbers as in
`hardgrad.torch`.
"""
from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Callable, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from . import _core
from ._core import Estimator, UsageError
from ._losses import Takes, check_axes, check_subset, check_takes

__all__ = ["expectation"]

_DRAW = {np.dtype(np.float32): _core.draw_float, np.dtype(np.float64): _core.draw_double}


def expectation(logits: Array, f: Callable[..., Array], estimator: str = "rloo[samples=4]", *, seed: Any, takes: Takes = "weights",
                bits: bool = False, subset: Optional[int] = None) -> Array:
    """E[f(z)], z ~ Cat(softmax(logits)), as an estimate. Its gradient is the estimator's at the logits, and the path gradient for what f
    depends on.

    logits: [S] of one choice, [D, S] of D choices (columns) that share a loss, or [E, D, S] of E examples; float32, or float64 where JAX
        has it. All options are there: no -inf. With bits=True: [D] or [E, D] logits of a 1.
    f: a function of z [R, D, S], one-hot rows ([R, D] with bits=True); for a batch also of example [R], the position of each row's
        example. Returns losses [R]. Called once, for all rows.
    estimator: one with hard choices that runs the network once and learns nothing: score functions, coupled samples, sets without
        replacement, enumerations.
    seed: a whole number below 2^32, which may be traced, e.g. `jax.random.bits(key)`.
    takes: "options": f is a function of options [R, D] (int32) instead.
    subset: every choice picks so many of its options, as in `hardgrad.torch.expectation`.

    Returns [E], or a number without a batch. Can be differentiated once, by reverse mode. UsageError at tracing for wrong shapes and
    estimators. Source: the estimators' papers, see `hardgrad.describe`.
    """
    check_takes(takes)
    logits = jnp.asarray(logits)
    if logits.dtype not in _DRAW:
        raise UsageError(f"logits are {logits.dtype}: they must be of float32 or float64")
    if bits:
        logits = jnp.stack([jnp.zeros_like(logits), logits], -1)
    check_axes(logits.shape)
    picks = check_subset(subset, logits.shape[-1], bits)
    batched, shaped = logits.ndim == 3, logits.reshape((1,) * (3 - logits.ndim) + logits.shape)
    draws = _Draws(estimator, shaped.shape, np.dtype(logits.dtype), picks)
    number = jnp.asarray(seed, jnp.uint32)
    options, example = draws.options(jax.lax.stop_gradient(shaped), number)
    choice = options
    if takes == "weights" and not bits:
        choice = jax.nn.one_hot(options, logits.shape[-1], dtype=logits.dtype)
        choice = choice.sum(2) if picks else choice
    if bits and takes == "weights":
        choice = choice.astype(logits.dtype)
    losses = f(choice, example) if batched else f(choice)
    if losses.shape != example.shape:
        raise UsageError(f"f returned losses of shape {list(losses.shape)}, expected {list(example.shape)}: one for each row")
    value = _estimate(draws, shaped, losses.astype(logits.dtype), number, example)
    return value if batched else value[0]


class _Draws:
    """Draws of an estimator at logits [E, D, S]; equal if their arguments are."""

    def __init__(self, spec: str, shape: tuple[int, ...], dtype: np.dtype[Any], picks: int):
        self.key = (spec, shape, dtype, picks)
        self.rows = _rows(*self.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Draws) and self.key == other.key

    def options(self, logits: Array, seed: Array) -> Any:
        """[R, D] options ([R, D, picks] of subsets) and the examples [R] of the rows."""
        rows, columns, picks = self.rows, self.key[1][1], self.key[3]
        shapes = jax.ShapeDtypeStruct((rows, columns, picks) if picks else (rows, columns), jnp.int32), jax.ShapeDtypeStruct((rows,), jnp.int32)
        return jax.pure_callback(self._options, shapes, logits, seed, vmap_method="sequential")

    def estimate(self, logits: Array, losses: Array, seed: Array) -> Any:
        """The value [E], the gradient at the logits [E, D, S] and the weights of the losses [R]."""
        _, shape, dtype, _ = self.key
        shapes = tuple(jax.ShapeDtypeStruct(of, dtype) for of in (shape[:1], shape, (self.rows,)))
        return jax.pure_callback(self._estimate, shapes, logits, losses, seed, vmap_method="sequential")

    def _options(self, logits: Any, seed: Any) -> Any:
        _, run = _drawn(self.key[0], np.asarray(logits), self.key[3], int(seed), None)
        self._check(run)
        return run[0].astype(np.int32), run[2].astype(np.int32)

    def _estimate(self, logits: Any, losses: Any, seed: Any) -> Any:
        slope, run = _drawn(self.key[0], np.asarray(logits), self.key[3], int(seed), np.asarray(losses))
        self._check(run)
        _, _, example, values, share = run
        value = np.bincount(example, share * values, len(slope))
        return value.astype(slope.dtype), slope, share

    def _check(self, run: Any) -> None:
        if len(run[2]) != self.rows:
            raise UsageError(f"{self.key[0]} runs {len(run[2])} rows instead of {self.rows}: under JAX no logit may be -inf")


@lru_cache(maxsize=1024)
def _rows(spec: str, shape: tuple[int, ...], dtype: np.dtype[Any], picks: int) -> int:
    """The number of rows of a run, which does not depend on the logits."""
    return len(_drawn(spec, np.zeros(shape, dtype), picks, 0, None)[1][2])


def _drawn(spec: str, logits: Any, picks: int, seed: int, losses: Any) -> Any:
    """The gradient at the logits and the run of one draw; the losses are 0 if they are not known yet."""
    held = Estimator(spec)

    def loss(choice: Any, example: Any, differentiable: bool) -> Any:
        return np.zeros(len(example), logits.dtype) if losses is None else np.ascontiguousarray(losses), None

    try:
        slope, runs = _DRAW[logits.dtype](held, np.ascontiguousarray(logits), 3, picks, None, None, None, loss, False, seed, False, True, False)
    except UsageError as refusal:
        if "takes=" not in str(refusal):
            raise
        raise UsageError(f"{spec} replaces choices by weights: hardgrad.jax has estimators with hard choices, such as rloo") from refusal
    if held.learns or len(runs) != 1:
        raise UsageError(f"{spec} {'learns' if held.learns else 'runs the network more than once'}: hardgrad.jax has estimators that run it once "
                         "and learn nothing, such as rloo")
    return slope, runs[0]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _estimate(draws: _Draws, logits: Array, losses: Array, seed: Array, example: Array) -> Array:
    return _forward(draws, logits, losses, seed, example)[0]


def _forward(draws: _Draws, logits: Array, losses: Array, seed: Array, example: Array) -> Any:
    value, slope, share = draws.estimate(logits, losses, seed)
    return value, (slope, share, example)


def _backward(draws: _Draws, kept: Any, cotangent: Array) -> Any:
    slope, share, example = kept
    return cotangent[:, None, None] * slope, cotangent[example] * share, None, None


_estimate.defvjp(_forward, _backward)
