"""JAX's operations for `hardgrad.formulas`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


class Arrays:
    """The operations of `formulas.Operations`."""

    sigmoid = staticmethod(jax.nn.sigmoid)
    where = staticmethod(jnp.where)
    minimum = staticmethod(jnp.minimum)

    @staticmethod
    def softmax(x: Array) -> Array:
        return jax.nn.softmax(x, -1)

    @staticmethod
    def highest(x: Array) -> Array:
        return x.max(-1, keepdims=True)

    @staticmethod
    def through_sigmoid(slope: Array, w: Array) -> Array:
        return slope * w * (1 - w)

    @staticmethod
    def through_softmax(slope: Array, w: Array) -> Array:
        slope = slope - jnp.take_along_axis(slope, w.argmax(-1, keepdims=True), -1)
        return w * (slope - (slope * w).sum(-1, keepdims=True))


XP: Any = Arrays()


def one_hot(options: Array, count: int, dtype: Any) -> Array:
    """[..., count] of options [...]."""
    return (options[..., None] == np.arange(count, dtype=np.int32)).astype(dtype)
