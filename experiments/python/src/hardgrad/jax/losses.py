"""Logits and losses of `hardgrad.jax`: their dtypes, what `f` returns, and whether numbers are
known."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import Array

from .._core import UsageError
from ..losses import check_shared

#: of users' logits
DTYPES = ("float16", "bfloat16", "float32", "float64")


def of_core(dtype: Any) -> np.dtype[Any]:
    """The dtype of the computation for users' numbers: float32 for shorter ones."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def check_dtype(logits: Array) -> None:
    if str(logits.dtype) not in DTYPES:
        raise UsageError(
            f"logits are {logits.dtype}: they must be of {', '.join(DTYPES[:-1])} or {DTYPES[-1]}"
        )


def is_known(x: Array) -> bool:
    """Whether the numbers are there, as they are outside of `jax.jit`."""
    return not isinstance(x, jax.core.Tracer)


def checked_losses(losses: Any, shape: tuple[int, ...], rows: int) -> Array:
    """The losses [rows] of f. shape: rows and columns of its argument."""
    found = getattr(losses, "shape", ())
    check_shared(found, shape)
    if found != (rows,):
        raise UsageError(
            f"f returned losses of shape {list(found)}, expected {[rows]}: one for each row"
        )
    checked: Array = losses
    return checked
