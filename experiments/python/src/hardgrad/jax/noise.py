"""The noise of an estimate by a formula: the rows and numbers that core draws at the same seed, by
operations of JAX from the same uniform numbers."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..formulas import Formula
from .operations import one_hot
from .philox import Uniform, uniform, words
from .words import noise_key

#: options: int32 [E K, D]; one_hot: weights [E K, D, S]; bits: numbers [E K, D]; none: no rows
Form = Literal["options", "one_hot", "bits", "none"]


@partial(jax.jit, static_argnames=("formula", "form"))
def drawn(
    formula: Formula, logits: Array, seed: Array, form: Form
) -> tuple[Optional[Array], Optional[Array]]:
    """The drawn rows, and the noise: Gumbels [E, K, D, S], of two options the difference of theirs
    [E, K, D]; for numbered pairs u - 1/2 [E, K / 2, D]; without the axis of one row.

    logits: [E, D, S], or [E, D] of bits; float32 or float64. seed: uint32.
    """
    draws = _Draws(logits, seed, formula)
    noise: Optional[Array] = None
    if formula.law == "gumbels":
        options, noise = draws.gumbels()
    elif formula.law == "samples":
        options = draws.samples()
    else:
        options, noise = draws.pairs(formula.law == "numbered_pairs")
    if noise is not None:
        noise = noise.astype(logits.dtype)
        noise = noise[:, 0] if noise.shape[1] == 1 else noise
    return _rows(options.reshape(-1, logits.shape[1]), form, logits), noise


def _rows(options: Array, form: Form, logits: Array) -> Optional[Array]:
    if form == "none":
        return None
    if form == "bits":
        return options.astype(logits.dtype)
    options = options.astype(np.int32)
    return options if form == "options" else one_hot(options, logits.shape[2], logits.dtype)


class _Draws:
    """As core/choice/plain_draws.cpp, in its order of operations where JAX has double precision."""

    def __init__(self, logits: Array, seed: Array, formula: Formula):
        self.K, self.formula, self.key = formula.samples, formula, noise_key(seed)
        self.two = logits.ndim == 2 or logits.shape[2] == 2
        log_p = log_of_two(logits) if self.two else jax.nn.log_softmax(logits, -1)
        if jax.config.jax_enable_x64:  # rounded to the dtype of the logits, as in core
            log_p = log_p.astype(np.float64)
        self.log_p = log_p  # [E, D, S]
        self.E, self.D, self.S = log_p.shape

    def uniform(self, index: Any = 0, replicas: int = 0) -> Uniform:
        """[E, K, D] at an index, or [E, K, D, S] at indices [E, 1, D, S]."""
        axes = 1 if isinstance(index, Array) else 0
        example, replica = (np.arange(n, dtype=np.uint32) for n in (self.E, replicas or self.K))
        return uniform(
            words(
                self.key,
                example.reshape(-1, 1, 1, *(1,) * axes),
                replica.reshape(-1, 1, *(1,) * axes),
                index if axes else np.uint32(index),
                self.D,
                axes,
            )
        )

    def samples(self) -> Array:
        """[E, K, D]"""
        temperature = self.formula.forward_temperature
        if temperature == 1:
            p = jnp.exp(self.log_p)
        else:
            p = jax.nn.softmax(self.log_p / temperature, -1)
        u, p = self.uniform(), p[:, None]
        if not self.two:
            return _place(u, p)
        zero, one = p[..., 0], p[..., 1]
        return (_passed(u, zero + one, zero, one) | (zero <= 0)) & (one > 0)

    def gumbels(self) -> tuple[Array, Array]:
        """[E, K, D] the options; the noise."""
        log_p = self.log_p[:, None]
        if self.two:
            logistic = _logistic(self.uniform())
            chooses = jnp.isfinite(self.log_p).all(-1)[:, None]
            logistic = jnp.where(chooses, logistic, 0)
            return log_p[..., 1] - log_p[..., 0] + logistic > 0, logistic
        missing = jnp.isinf(log_p)
        index = jnp.cumsum(~missing, -1, dtype=np.int32) - 1  # the missing options draw nothing
        gumbel = _gumbel(self.uniform(index.clip(0).astype(np.uint32)))
        # Two options that are left have the difference of their Gumbels, at the second; one has
        # none.
        left = (~missing).sum(-1, keepdims=True)
        of_two = _logistic(self.uniform())[..., None] * (index == 1)
        gumbel = jnp.where(left > 2, gumbel, jnp.where(left == 2, of_two, 0))
        gumbel = jnp.where(missing, 0, gumbel)
        return (log_p + gumbel).argmax(-1), gumbel

    def pairs(self, numbered: bool) -> tuple[Array, Optional[Array]]:
        """[E, K / 2, 2, D] the bits of K / 2 pairs; u - 1/2 [E, K / 2, D]."""
        p = jnp.exp(self.log_p)[:, None]
        zero, one = p[..., 0], p[..., 1]
        differ = jnp.minimum(zero, one)
        law = jnp.stack([abs(one - zero), differ, differ], -1)
        outcome = _place(self.uniform(replicas=self.K // 2), law)
        same = one > zero
        bits = jnp.stack([jnp.where(outcome == 0, same, outcome == which) for which in (1, 2)], 2)
        if not numbered:
            return bits, None
        v = self.uniform(1, self.K // 2).u
        between, end = (0.5 - differ) * (2 * v - 1), differ * v - 0.5
        numbers = jnp.where(outcome == 0, between, jnp.where(outcome == 1, end, -end))
        return bits, jnp.where(jnp.isfinite(self.log_p).all(-1)[:, None], numbers, 0)


def _place(u: Uniform, p: Array) -> Array:
    """[..., n] the place of u [...] among the sums of p [..., n]: the first with u below the sum,
    or the last that is not 0."""
    sums = jnp.cumsum(p, -1)
    above = jax.lax.cumsum(p, p.ndim - 1, reverse=True) - p
    u = Uniform(u.u[..., None], u.rest[..., None])
    passed = _passed(u, sums[..., -1:], sums, above).sum(-1, dtype=np.int32)
    last = ((p > 0) * np.arange(p.shape[-1], dtype=np.int32)).max(-1)
    return jnp.minimum(passed, last)


def _passed(u: Uniform, total: Array, below: Array, above: Array) -> Array:
    """u total >= below, where below + above = total; in single precision, from the nearer end."""
    from_0 = u.u * total >= below
    if u.u.dtype == np.float64:
        return from_0
    return jnp.where(u.u < 0.5, from_0, u.rest * total <= above)


def _logistic(u: Uniform) -> Array:
    return jnp.log(u.u / u.rest)


def _gumbel(u: Uniform) -> Array:
    if u.u.dtype == np.float64:
        return -jnp.log(-jnp.log(u.u))
    return -jnp.log(jnp.where(u.u < 0.5, -jnp.log(u.u), -jnp.log1p(-u.rest)))


def log_of_two(logits: Array) -> Array:
    """[E, D, 2] log probabilities of two options [E, D, 2], or of bits [E, D]; as core's
    log_softmax."""
    d = logits if logits.ndim == 2 else logits[..., 1] - logits[..., 0]
    log_total = jnp.log1p(jnp.exp(-abs(d)))
    return jnp.stack([(-d).clip(None, 0) - log_total, d.clip(None, 0) - log_total], -1)
