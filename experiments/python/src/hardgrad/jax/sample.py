"""Draws of choices that are differentiable themselves: `hardgrad.jax.sample`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from .. import _core
from .._core import UsageError
from ..formulas import Formula, covers, formula_of_spec
from ..losses import check_axes
from .by_formula import Run
from .losses import check_dtype
from .operations import one_hot
from .seeds import number_of


def sample(
    logits: Array,
    estimator: str = "gumbel_softmax",
    *,
    seed: Any,
    hard: bool = False,
    axis: int = -1,
    bits: bool = False,
) -> Array:
    """z ~ Cat(softmax(logits)), whose derivative is an estimate: for f that is differentiable in z,
    `f(sample(logits, spec, seed=s))` has the gradient at the logits of `expectation(logits, f,
    spec, seed=s)`. No callback.

    logits: [..., S], of float16, bfloat16, float32, or float64 where JAX has it. -inf marks missing
        options. Read as in `expectation`: [S], [D, S] of D columns, [E, D, S] of E examples; of
        more axes, all but the last two are examples. With bits=True: [..., D] logits of a 1.
    estimator: a relaxation with a formula and one row, e.g. "reinmax" or
        "gumbel_softmax[temperature=0.7]"; or "path_only", a draw without a derivative.
    seed: a whole number below 2^32 or a key of `jax.random`; both may be traced. Under `jax.vmap`
        elements with the same seed have the same noise.
    hard: the value is one-hot at the largest weight, the derivative that of the weights.
    axis: of the options.

    Returns the shape of the logits, in their dtype: one-hot rows or weights that sum to 1. Can be
    differentiated once, by reverse mode; logits that are none give NaN in `jax.jit`, an error
    outside. Raises UsageError, also for estimators that need a loss (such as rloo).
    Source: the estimators' papers, see `hardgrad.describe`.
    """
    logits = jnp.asarray(logits)
    check_dtype(logits)
    if axis != -1 and (bits or not -logits.ndim <= axis < logits.ndim):
        raise UsageError(
            f"axis is {axis}, and the logits have shape {list(logits.shape)}"
            + (" of bits, which have no axis of options" if bits else "")
        )
    logits = jnp.moveaxis(logits, axis, -1) if axis != -1 else logits
    axes = 2 - bits
    shaped = logits.reshape(-1, *logits.shape[-axes:]) if logits.ndim > axes + 1 else logits
    check_axes((*shaped.shape, 2) if bits else shaped.shape, empty=True)
    formula = _formula(estimator)
    if 0 in shaped.shape:
        z = shaped
    elif not covers(formula, shaped.shape, False, bits):
        raise UsageError(f"{estimator} has at most {formula.cap:g} rows, its cap")
    else:
        run = Run(formula, shaped, "weights", bits)
        z = run.draw(number_of(seed))
        if formula.relaxes:
            z = run.relaxed(run.inner(shaped), z)
            z = _hard(z, bits) if hard else z
    z = z.astype(logits.dtype).reshape(logits.shape)
    return z if axis == -1 else jnp.moveaxis(z, -1, axis)


def _formula(estimator: str) -> Formula:
    """UsageError unless a sample needs no more than its formula."""
    formula = formula_of_spec(estimator)
    if formula is None:
        _core.Estimator(estimator)  # the error of a name or setting that there is not
    elif formula.samples == 1 and (
        formula.relaxes or not (formula.own or formula.others or formula.offset or formula.pairs)
    ):
        return formula
    raise UsageError(
        f"{estimator} is no relaxation with a formula and one row, which hardgrad.jax.sample "
        f'takes, such as gumbel_softmax or reinmax: use hardgrad.jax.expectation(logits, f, "'
        f'{estimator}")'
    )


def _hard(z: Array, bits: bool) -> Array:
    """The value one-hot, the derivative that of z."""
    most = (z > 0.5).astype(z.dtype) if bits else one_hot(z.argmax(-1), z.shape[-1], z.dtype)
    return most + (z - jax.lax.stop_gradient(z))
