"""Uniform numbers by tensor operations: those of core (core/random/randomness.hpp), bit for bit,
made on the device where they are used, without a transfer. Philox 4x32-10 of Salmon et al. 2011,
"Parallel random numbers: as easy as 1, 2, 3", in 64-bit integers: the place of a draw is the
counter, the noise and the column are the key."""

from __future__ import annotations

from typing import Union

import torch
from torch import Tensor

_LOW = 0xFFFFFFFF
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85  # of the two halves of the key, from round to round
_OF_COLUMN = 0x9E3779B97F4A7C15 - (1 << 64)  # added to the key by each column


def count(like: Tensor, n: int) -> Tensor:
    """[n] 0, 1, ..., on the device of `like`."""
    return like.new_ones(n, dtype=torch.int64).cumsum(0) - 1


#: 64 bits; on a device int64.
Word = Union[int, Tensor]


def words(key: Word, example: Tensor, replica: Tensor, index: Tensor, column: Tensor) -> Tensor:
    """The 64 random bits at these places (int64, which broadcast), as int64."""
    signed = key - (1 << 64) if isinstance(key, int) and key >> 63 else key
    of_column = column * _OF_COLUMN + signed  # modulo 2^64, as in core
    k0, k1 = of_column & _LOW, (of_column >> 32) & _LOW
    c0, c1, c2, c3 = example, replica, torch.zeros_like(index), index
    for turn in range(10):
        if turn:
            k0, k1 = (k0 + _STEPS[0]) & _LOW, (k1 + _STEPS[1]) & _LOW
        a, b = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]  # modulo 2^64
        c0, c1 = ((b >> 32) & _LOW) ^ c1 ^ k0, b & _LOW
        c2, c3 = ((a >> 32) & _LOW) ^ c3 ^ k1, a & _LOW
    return (c0 << 32) | c1


def uniforms(key: Word, example: Tensor, replica: Tensor, index: Tensor, column: Tensor) -> Tensor:
    """The numbers in (0, 1) at these places: the upper 53 bits and half a step, in double
    precision."""
    upper = (words(key, example, replica, index, column) >> 11) & ((1 << 53) - 1)
    return (upper.to(torch.float64) + 0.5) * 2.0**-53
