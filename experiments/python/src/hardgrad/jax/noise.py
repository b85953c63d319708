"""The noise of an estimate by a formula: the rows and numbers that core draws at the same seed, by
operations of JAX from the same uniform numbers."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import Any, Literal, Optional, Sequence

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

_FEW = 16  # options whose sums are operations of their own


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
        return _once(options.astype(logits.dtype))
    options = options.astype(np.int32)
    if form == "options":
        return options
    return _once(one_hot(options, logits.shape[2], logits.dtype))


def _once(bits: Array) -> Array:
    """The same zeros and ones. XLA repeats cheap operations in every loop that reads their result,
    but not a root: without it the draws would be made twice."""
    return (jnp.sqrt(bits) > 0.5).astype(bits.dtype)


class _Draws:
    """As core/choice/plain_draws.cpp, in its order of operations where JAX has double precision."""

    def __init__(self, logits: Array, seed: Array, formula: Formula):
        self.K, self.formula, self.key = formula.samples, formula, noise_key(seed)
        self.two = logits.ndim == 2 or logits.shape[2] == 2
        # [E, 1, D] of each of two options, else [E, 1, D, S]; rounded to the dtype of the logits,
        # as in core
        log_p = log_of_two(logits) if self.two else [jax.nn.log_softmax(logits, -1)]
        wide = np.float64 if jax.config.jax_enable_x64 else np.float32
        self.log_p = [x[:, None].astype(wide) for x in log_p]
        self.E, self.D = logits.shape[:2]
        self.S = 2 if self.two else logits.shape[2]

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

    @property
    def chooses(self) -> Array:
        """[E, 1, D] whether both of two options are there."""
        zero, one = self.log_p
        return jnp.isfinite(zero) & jnp.isfinite(one)

    def samples(self) -> Array:
        """[E, K, D]"""
        temperature, u = self.formula.forward_temperature, self.uniform()
        p = [jnp.exp(x) for x in self.log_p]
        if temperature != 1:
            tempered = jnp.stack(self.log_p, -1) if self.two else self.log_p[0]
            p = [jax.nn.softmax(tempered / temperature, -1)]
            p = [p[0][..., 0], p[0][..., 1]] if self.two else p
        if not self.two:
            return _place(u, p[0])
        zero, one = p
        return (_passed(u, zero + one, zero, one) | (zero <= 0)) & (one > 0)

    def gumbels(self) -> tuple[Array, Array]:
        """[E, K, D] the options; the noise."""
        if self.two:
            zero, one = self.log_p
            logistic = _logistic(self.uniform())
            logistic = jnp.where(self.chooses, logistic, 0)
            return one - zero + logistic > 0, logistic
        (log_p,) = self.log_p
        missing = jnp.isinf(log_p)
        index = jax.lax.cond(  # the missing options draw nothing
            missing.any(),
            lambda: jnp.cumsum(~missing, -1, dtype=np.int32) - 1,
            lambda: jnp.broadcast_to(np.arange(self.S, dtype=np.int32), missing.shape),
        )
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
        zero, one = (jnp.exp(x) for x in self.log_p)
        differ = jnp.minimum(zero, one)
        law = [abs(one - zero), differ, differ]
        outcome = _place_of_few(self.uniform(replicas=self.K // 2), law)
        same = one > zero
        bits = jnp.stack([jnp.where(outcome == 0, same, outcome == which) for which in (1, 2)], 2)
        if not numbered:
            return bits, None
        v = self.uniform(1, self.K // 2).u
        between, end = (0.5 - differ) * (2 * v - 1), differ * v - 0.5
        numbers = jnp.where(outcome == 0, between, jnp.where(outcome == 1, end, -end))
        return bits, jnp.where(self.chooses, numbers, 0)


def _place(u: Uniform, p: Array) -> Array:
    """The place of u [...] among the sums of p [..., n]: the first with u below the sum, or the
    last that is not 0."""
    if p.shape[-1] <= _FEW:
        return _place_of_few(u, [p[..., place] for place in range(p.shape[-1])])
    sums = jnp.cumsum(p, -1)
    above = jax.lax.cumsum(p, p.ndim - 1, reverse=True) - p
    u = Uniform(u.u[..., None], u.rest[..., None])
    passed = _passed(u, sums[..., -1:], sums, above).sum(-1, dtype=np.int32)
    last = ((p > 0) * np.arange(p.shape[-1], dtype=np.int32)).max(-1)
    return jnp.minimum(passed, last)


def _place_of_few(u: Uniform, p: Sequence[Array]) -> Array:
    """The same of n arrays p: elementwise, which compilers fuse."""
    sums = list(accumulate(p))
    above = [*accumulate(p[:0:-1])][::-1]  # after each but the last
    passed, last = (jnp.zeros((), np.int32) for _ in range(2))
    for place, (below, rest) in enumerate(zip(sums, [*above, jnp.zeros_like(p[-1])])):
        passed = passed + _passed(u, sums[-1], below, rest).astype(np.int32)
        last = jnp.where(p[place] > 0, np.int32(place), last)
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
    lost = u.rest - (1 - u.u)  # in the rounding of u near 1
    return -jnp.log(lost - jnp.log(u.u))


def log_of_two(logits: Array) -> list[Array]:
    """[E, D] log probabilities of each of two options [E, D, 2], or of bits [E, D]; as core's
    log_softmax."""
    d = logits if logits.ndim == 2 else logits[..., 1] - logits[..., 0]
    log_total = jnp.log1p(jnp.exp(-abs(d)))
    return [(-d).clip(None, 0) - log_total, d.clip(None, 0) - log_total]
