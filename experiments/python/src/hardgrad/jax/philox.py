"""Uniform numbers by operations of JAX: those of core (core/random/randomness.hpp), bit for bit,
made where they are used, without a callback. Philox 4x32-10 of Salmon et al. 2011, "Parallel random
numbers: as easy as 1, 2, 3", in uint32: the place of a draw is the counter, the noise and the
column are the key."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .words import Bits, Word, added, product

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85  # of the two halves of the key, from round to round
_OF_COLUMN = 0x9E3779B97F4A7C15  # added to the key by each column


class Uniform(NamedTuple):
    """u in (0, 1), and 1 - u with its own digits."""

    u: Any
    rest: Any


def words(key: Word, example: Bits, replica: Bits, index: Bits, columns: int, axes: int) -> Word:
    """The 64 random bits at these places (uint32, which broadcast), for columns 0, 1, ... along the
    axis that has `axes` more after it."""
    shape = (columns, *(1,) * axes)
    multiples = (np.arange(columns, dtype=np.uint64) * np.uint64(_OF_COLUMN)).reshape(shape)
    of_column = Word((multiples >> np.uint64(32)).astype(np.uint32), multiples.astype(np.uint32))
    k1, k0 = added(Word(*(jnp.asarray(x) for x in of_column)), key)
    c0, c1, c2, c3 = example, replica, np.zeros((), np.uint32), index
    for turn in range(10):
        if turn:
            k0, k1 = k0 + np.uint32(_STEPS[0]), k1 + np.uint32(_STEPS[1])
        a, b = product(c0, _MULTIPLIERS[0]), product(c2, _MULTIPLIERS[1])
        c0, c1, c2, c3 = b.high ^ c1 ^ k0, b.low, a.high ^ c3 ^ k1, a.low
    return Word(c0, c1)


def uniform(bits: Word) -> Uniform:
    """The numbers of these bits: the upper 53 of them and half a step. In double precision, if JAX
    has it, core's numbers; else these, rounded."""
    if jax.config.jax_enable_x64:
        upper = bits.high.astype(np.float64) * 2.0**21 + (bits.low >> 11).astype(np.float64)
        u = (upper + 0.5) * 2.0**-53
        return Uniform(u, 1 - u)
    return Uniform(_single(bits), _single(Word(~bits.high, ~bits.low)))


def _single(bits: Word) -> Any:
    low = (bits.low >> 11).astype(np.float32) + 0.5
    return bits.high.astype(np.float32) * 2.0**-32 + low * 2.0**-53
