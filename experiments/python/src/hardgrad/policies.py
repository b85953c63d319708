"""Behaviour and reference policies beside a user's logits: their checks, and the laws from which
samplers draw instead of the policy: tempered, and cut off below the most likely options."""

from __future__ import annotations

import operator
from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike

from ._core import UsageError
from .losses import Floats


def tempered(logits: ArrayLike, temperature: float) -> Floats:
    """The logits of softmax(logits / temperature), as a behaviour policy.

    logits: [..., S].
    temperature: more than 0; below 1 the likely options get likelier.

    UsageError for any other temperature.
    """
    try:
        found = float(temperature)
    except (TypeError, ValueError):
        found = np.nan
    if not 0 < found < np.inf:
        raise UsageError(f"a temperature is a number above 0, got {temperature!r}")
    return _numbers(logits) / found


def top_k(logits: ArrayLike, k: int) -> Floats:
    """The logits of the law that draws among the k likeliest options; -inf at the others. Options
    as likely as the k-th are kept, too. With k of all options or more, nothing changes.

    logits: [..., S].
    k: at least 1.

    UsageError for any other k. Source: Fan et al. 2018, Hierarchical neural story generation.
    """
    try:
        count = operator.index(k)
    except TypeError:
        count = 0
    if count < 1:
        raise UsageError(f"k is a whole number from 1, got {k!r}")
    given = _numbers(logits)
    options = given.shape[-1]
    if count >= options:
        return given
    least = np.partition(given, options - count, axis=-1)[..., options - count, None]
    return np.where(given >= least, given, -np.inf)


def top_p(logits: ArrayLike, p: float) -> Floats:
    """The logits of the law that draws from the nucleus: the fewest likeliest options that have at
    least probability p; -inf at the others. Options as likely as the last of them are kept, too.
    With p = 1 nothing changes.

    logits: [..., S].
    p: above 0, at most 1.

    UsageError for any other p. Source: Holtzman et al. 2020, The curious case of neural text
    degeneration.
    """
    try:
        share = float(p)
    except (TypeError, ValueError):
        share = np.nan
    if not 0 < share <= 1:
        raise UsageError(f"p is a probability above 0, at most 1, got {p!r}")
    given = _numbers(logits)
    if share == 1:
        return given
    ordered = -np.sort(-given, axis=-1)
    law = np.exp(ordered - ordered[..., :1])
    before = np.cumsum(law, axis=-1) - law  # of the likelier ones
    kept = before < share * law.sum(axis=-1, keepdims=True)
    least = np.where(kept, ordered, np.inf).min(axis=-1, keepdims=True)
    return np.where(given >= least, given, -np.inf)


def policy(given: Any, shape: tuple[int, ...], what: str) -> Optional[Any]:
    """The logits of another policy [E, D, S] for core, from an array in the shape of the logits.
    Core checks their numbers."""
    if given is None:
        return None
    found = np.asarray(given)
    if found.dtype.kind not in "fiu":
        raise UsageError(f"{what}: {found.dtype} is not a type of real numbers")
    check_shape(found.shape, shape, what)
    return np.ascontiguousarray(found, np.float64).reshape((1,) * (3 - found.ndim) + shape)


def check_shape(found: Any, wanted: Any, what: str) -> None:
    """UsageError unless the policy has the shape of the logits."""
    if tuple(found) != tuple(wanted):
        raise UsageError(
            f"{what} has shape {list(found)}; it is in the shape of the logits, {list(wanted)}"
        )


def reached(logits: Floats, behaviour: Optional[Floats]) -> float:
    """The probability, under the policy with logits [D, S], of the options that the
    behaviour policy can draw."""
    if behaviour is None:
        return 1.0
    law = np.exp(logits - logits.max(axis=-1, keepdims=True))
    law /= law.sum(axis=-1, keepdims=True)
    return float(np.where(behaviour == -np.inf, 0, law).sum(axis=-1).prod())


def _numbers(logits: ArrayLike) -> Floats:
    """UsageError unless these are logits with an option in each row."""
    given = np.asarray(logits)
    if given.dtype.kind not in "fiu" or given.ndim < 1 or given.shape[-1] == 0:
        raise UsageError(
            f"logits are {given.dtype} of shape {list(given.shape)}; they are real numbers "
            "[..., options]"
        )
    found = np.asarray(given, np.float64)
    if np.isnan(found).any() or (found == np.inf).any():
        raise UsageError("logits: an entry is neither a finite number nor -inf")
    if (found == -np.inf).all(axis=-1).any():
        raise UsageError("logits: all options of a row are -inf")
    return found
