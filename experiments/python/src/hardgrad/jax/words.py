"""Whole numbers below 2^64 as two uint32, high and low: JAX has no longer ones unless
jax_enable_x64 is set. And the key of a seed's noise, as core makes it (core/random/key.hpp)."""

from __future__ import annotations

from typing import Any, NamedTuple, Union

import jax
import jax.numpy as jnp
import numpy as np

LOW = 0xFFFFFFFF
Bits = Any  #: uint32, an array or a constant of NumPy
_mulhi: Any = getattr(jax.lax, "mulhi", None)  # in recent versions, and faster


class Word(NamedTuple):
    """high 2^32 + low"""

    high: Bits
    low: Bits


def word(number: int) -> Word:
    return Word(np.uint32(number >> 32 & LOW), np.uint32(number & LOW))


def product(x: Bits, m: int) -> Word:
    """x m, of numbers below 2^32."""
    low = x * np.uint32(m)
    if _mulhi is not None and isinstance(x, jax.Array):
        return Word(_mulhi(x, jnp.full_like(x, m)), low)
    x0, x1, m0, m1 = x & 0xFFFF, x >> 16, np.uint32(m & 0xFFFF), np.uint32(m >> 16)
    inner = x1 * m0 + (x0 * m0 >> 16)
    outer = x0 * m1 + (inner & 0xFFFF)
    return Word(x1 * m1 + (inner >> 16) + (outer >> 16), low)


def added(a: Word, b: Word) -> Word:
    """a + b, modulo 2^64 as all that follows."""
    low = a.low + b.low
    return Word(a.high + b.high + (low < a.low).astype(np.uint32), low)


def times(a: Word, m: int) -> Word:
    """a m"""
    of_low = product(a.low, m & LOW)
    return Word(of_low.high + a.low * np.uint32(m >> 32) + a.high * np.uint32(m & LOW), of_low.low)


def xor(a: Word, b: Word) -> Word:
    return Word(a.high ^ b.high, a.low ^ b.low)


def right(a: Word, n: int) -> Word:
    """a shifted by n bits."""
    if n >= 32:
        return Word(jnp.zeros_like(a.high), a.high >> (n - 32) if n > 32 else a.high)
    return Word(a.high >> n, a.low >> n | a.high << (32 - n))


def rotated(a: Word, n: int) -> Word:
    """To the left, by n < 32 bits."""
    return Word(a.high << n | a.low >> (32 - n), a.low << n | a.high >> (32 - n))


# XXH64 of Collet's xxHash (XXH64_finalize and XXH64_avalanche of xxhash.h), for inputs of less than
# 32 bytes.
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _begun(seed: Union[int, Word], length: int) -> Word:
    of = word(seed) if isinstance(seed, int) else seed
    return added(of, word(_P5 + length))


def _mixed(h: Word) -> Word:
    h = times(xor(h, right(h, 33)), _P2)
    h = times(xor(h, right(h, 29)), _P3)
    return xor(h, right(h, 32))


def noise_key(seed: Bits) -> Word:
    """`_core.noise_key` of a traced seed: Key(seed) / "noise"."""
    number = Word(jnp.zeros_like(seed), seed)
    h = xor(_begun(0, 8), times(rotated(times(number, _P2), 31), _P1))
    h = added(times(rotated(h, 27), _P1), word(_P4))
    root = xor(_mixed(h), word(0x6E616D65))
    h, name = _begun(root, 5), b"noise"
    first = int.from_bytes(name[:4], "little") * _P1
    h = xor(h, word(first))
    h = added(times(rotated(h, 23), _P2), word(_P3))
    h = times(rotated(xor(h, word(name[4] * _P5)), 11), _P1)
    return _mixed(h)
