"""Seeds of `hardgrad.jax`: numbers, or keys of `jax.random`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core import UsageError


def number_of(seed: Any) -> Array:
    """The seed as a number; of a key, one that it draws."""
    array = seed if isinstance(seed, jax.Array) else np.asarray(seed)
    number = isinstance(seed, int) or (array.ndim == 0 and jnp.issubdtype(array.dtype, jnp.integer))
    if number and not isinstance(seed, jax.core.Tracer) and not 0 <= int(seed) < 1 << 32:
        raise UsageError(f"seed is a whole number below 2^32, got {seed}")
    given = array if isinstance(array, jax.Array) else jnp.asarray(array)
    if jnp.issubdtype(given.dtype, jax.dtypes.prng_key) and given.ndim == 0:
        return jax.random.bits(given, dtype=jnp.uint32)
    if given.dtype == jnp.uint32 and given.shape == (2,):  # a key of before JAX had a type for it
        return jax.random.bits(given, dtype=jnp.uint32)
    if given.ndim or not jnp.issubdtype(given.dtype, jnp.integer):
        raise UsageError(
            "seed is a whole number below 2^32 or a key of jax.random, got "
            f"{given.dtype} of shape {list(given.shape)}"
        )
    return given.astype(jnp.uint32)
