"""`hardgrad.jax.expectation` for estimators that have a formula (hardgrad/formulas.py): operations
of JAX, without a callback. The results at a seed are those of core: the same options, and the same
numbers up to rounding."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core import NotFinite, UsageError, count_options
from ..formulas import Formula, factors, jacobians, of_pairs, of_scores, through, weights
from ..losses import LogitLayout, Takes
from .losses import checked_losses, is_known, of_core
from .noise import Form, drawn
from .operations import XP, one_hot


def expectation(
    formula: Formula,
    logits: Array,
    f: Callable[..., Array],
    seed: Array,
    takes: Takes,
    bits: bool,
    counted: Callable[[int, Array], None],
) -> Array:
    """As `hardgrad.jax.expectation`, for the formula of the estimator. counted: a function
    of the rows and the losses."""
    run = Run(formula, logits, takes, bits)
    z = run.draw(seed)
    of_logits = run.inner(logits)
    if formula.relaxes:
        z = run.relaxed(of_logits, z)
    z = z.astype(logits.dtype) if takes == "weights" else z
    example = jnp.asarray(np.repeat(np.arange(run.E, dtype=np.int32), run.K))
    losses = f(z, example) if run.rank == 3 else f(z)
    losses = checked_losses(losses, z.shape[:2], len(example)).astype(run.dtype)
    _check_losses(losses)
    counted(run.R, losses)
    if formula.relaxes:
        value = losses if run.K == 1 else losses.reshape(run.E, run.K).mean(1)
    else:
        value = _score(formula, run.bits, of_logits, run.rows(z), run.noise, run.bad, losses)
    return value if run.rank == 3 else value[0]


class Run:
    """One run of K rows for each of E examples.

    rank: of the user's logits, with the axis of the options. E, R: examples, rows. bits: whether
    choices are among two options, so that the formulas are those of bits; stacked: though the user
    gave logits of both. dtype: of the computation. bad: [E] whether the example's logits are none.
    """

    def __init__(self, formula: Formula, users: Array, takes: Takes, bits: bool):
        self.formula, self.takes, self.users_bits = formula, takes, bits
        self.rank = users.ndim + bits
        self.dtype = of_core(users.dtype)
        self.users = jax.lax.stop_gradient(self.shaped(users))
        _check_logits(self.users, self.rank, bits)
        self.stacked = not bits and self.users.shape[2] == 2
        self.bits = bits or self.stacked
        self.E, self.K = len(self.users), formula.samples
        self.R = self.E * self.K
        self.bad = _bad(self.users, bits)
        self.noise: Optional[Array] = None

    def shaped(self, logits: Array) -> Array:
        """[E, D, S], of bits [E, D], in the computation's dtype."""
        axes = 3 - self.users_bits
        return logits.reshape((1,) * (axes - logits.ndim) + logits.shape).astype(self.dtype)

    def inner(self, logits: Array) -> Array:
        """The logits as the formulas have them."""
        logits = self.shaped(logits)
        return logits[..., 1] - logits[..., 0] if self.stacked else logits

    def draw(self, seed: Array) -> Array:
        """The rows, as f gets them but for their dtype."""
        formula = self.formula
        form: Form = (
            "options" if self.takes == "options" else "bits" if self.users_bits else "one_hot"
        )
        z: Optional[Array] = None
        if formula.law is not None:
            z, self.noise = drawn(formula, self.users, seed, form if formula.is_hard else "none")
        if formula.is_hard:
            assert z is not None
            return z
        w = _weights_of(formula, self.bits, self.inner(self.users), self.noise)
        w = jnp.stack([1 - w, w], -1) if self.stacked else w
        return w if self.K == 1 else w.reshape(-1, *w.shape[2:])

    def rows(self, z: Array) -> Array:
        """z as numbers [E, K, D, S], [E, K, D] of two; without the axis of one row."""
        if self.takes == "options":
            z = z if self.bits else one_hot(z, self.users.shape[2], self.dtype)
        elif self.stacked:
            z = z[..., 1]
        z = z.astype(self.dtype)
        return z if self.K == 1 else z.reshape(self.E, self.K, *z.shape[1:])

    def relaxed(self, logits: Array, z: Array) -> Array:
        """The rows z as a function of the inner logits."""
        rows = _weights(self.formula, self.bits, logits, self.rows(z), self.noise, self.bad)
        rows = rows if self.K == 1 else rows.reshape(-1, *rows.shape[2:])
        return jnp.stack([1 - rows, rows], -1) if self.stacked else rows


def _bad(logits: Any, bits: bool) -> Any:
    """[E] whether an entry is NaN or +inf, or all options are missing. logits: JAX's or NumPy's."""
    if bits:
        return ~(logits.max(1) < np.inf)
    highest = logits.max(-1)
    return ~((highest > -np.inf) & (highest < np.inf)).all(1)


def _check_logits(users: Array, rank: int, bits: bool) -> None:
    """The error of core, where the numbers are known: outside of `jax.jit`."""
    if not is_known(users):
        return
    numbers = np.asarray(users, np.float64)
    if _bad(numbers, bits).any():
        numbers = LogitLayout(numbers[(0,) * (3 - rank)], bits).numbers
        count_options(numbers.reshape(len(users), -1, numbers.shape[-1]), rank)


def _check_losses(losses: Array) -> None:
    losses = jax.lax.stop_gradient(losses)
    if is_known(losses) and not np.isfinite(numbers := np.asarray(losses)).all():
        row = int(np.isfinite(numbers).argmin())
        raise NotFinite(f"the loss of row {row} is {numbers[row]}, not a finite number")


# The derivatives. Of a bad example they are NaN. Compiled also where the user's function is not.

_compiled = partial(jax.jit, static_argnums=(0, 1))


@jax.custom_vjp
def _last(slopes: Any, given: Any) -> Any:
    """The slopes, which depend on `given`. Their derivative raises; that of constants would be 0,
    which is wrong."""
    return slopes


def _refused(kept: Any, cotangents: Any) -> Any:
    raise UsageError(
        "the gradient of an estimate was differentiated: an estimate has first derivatives only. "
        "Use jax.lax.stop_gradient on the gradient, or take its second derivatives from an "
        "expected loss of your own"
    )


_last.defvjp(lambda slopes, given: (slopes, None), _refused)


def _like(of_examples: Array, x: Array) -> Array:
    """[E] with the axes of x."""
    return of_examples.reshape(-1, *(1,) * (x.ndim - 1))


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _score(
    formula: Formula,
    bits: bool,
    logits: Array,
    z: Array,
    noise: Optional[Array],
    bad: Array,
    losses: Array,
) -> Array:
    """[E] the mean losses of the examples; the gradient at the logits is the estimate's."""
    return _score_forward(formula, bits, logits, z, noise, bad, losses)[0]


@_compiled
def _score_forward(
    formula: Formula,
    bits: bool,
    logits: Array,
    z: Array,
    noise: Optional[Array],
    bad: Array,
    losses: Array,
) -> Any:
    K = formula.samples
    losses = losses if K == 1 else losses.reshape(-1, K)
    losses = jnp.where(_like(bad, losses), np.nan, losses)
    return losses if K == 1 else losses.mean(1), (logits, z, noise, losses)


@_compiled
def _score_backward(formula: Formula, bits: bool, kept: Any, cotangent: Array) -> Any:
    logits, z, noise, losses = kept
    K = formula.samples
    c = losses if formula.pairs else factors(formula, losses)
    if formula.kind == "linear" and not (formula.own or formula.others or formula.offset):
        slope = jnp.broadcast_to(_like(c if K == 1 else c[:, 0], logits), logits.shape)
    elif formula.pairs:
        slope = of_pairs(XP, formula, logits, z, noise, cotangent[:, None] * c)
    else:
        slope = of_scores(XP, logits, z, cotangent * c if K == 1 else cotangent[:, None] * c, bits)
    at_losses = cotangent if K == 1 else jnp.repeat(cotangent / K, K)
    slope, at_losses = _last((slope, at_losses), (kept, cotangent))
    return slope, None, None, None, at_losses


_score.defvjp(_score_forward, _score_backward)


@_compiled
def _weights_of(formula: Formula, bits: bool, logits: Array, noise: Optional[Array]) -> Any:
    return weights(XP, formula, logits, noise, bits)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _weights(
    formula: Formula, bits: bool, logits: Array, z: Array, noise: Optional[Array], bad: Array
) -> Array:
    """The weights z [E, K, D, S] with the estimate's derivative at the logits."""
    return _weights_forward(formula, bits, logits, z, noise, bad)[0]


@_compiled
def _weights_forward(
    formula: Formula, bits: bool, logits: Array, z: Array, noise: Optional[Array], bad: Array
) -> Any:
    logits, z = (jnp.where(_like(bad, x), np.nan, x) for x in (logits, z))
    return z, (logits, z if formula.reads_rows else None, noise)


@_compiled
def _weights_backward(formula: Formula, bits: bool, kept: Any, slope: Array) -> Any:
    logits, z, noise = kept
    parts = jacobians(XP, formula, logits, z, noise, bits)
    found = through(XP, parts, slope, bits, formula.samples)
    return _last(found, (kept, slope)), None, None, None


_weights.defvjp(_weights_forward, _weights_backward)
