"""Expected losses of discrete choices in JAX: `hardgrad.jax.expectation`."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core import UsageError
from ..formulas import covers, formula_of_spec
from ..losses import (
    Columns,
    Takes,
    check_axes,
    check_columns,
    check_separate,
    check_subset,
    check_takes,
    wrong_separate,
)
from ..policies import check_shape
from . import by_formula
from .draws import Draws, Others, noted, plain
from .losses import check_dtype, checked_losses, is_known, of_core
from .operations import one_hot
from .seeds import number_of


def expectation(
    logits: Array,
    f: Callable[..., Array],
    estimator: str = "rloo[samples=4]",
    *,
    seed: Any,
    takes: Takes = "weights",
    columns: Columns = "shared",
    bits: bool = False,
    subset: Optional[int] = None,
    behaviour: Optional[Array] = None,
    reference: Optional[Array] = None,
) -> Array:
    """E[f(z)], z ~ Cat(softmax(logits)), as an estimate. Its gradient is the estimator's at the
    logits, and the path gradient for what f depends on.

    logits: [S] of one choice, [D, S] of D choices (columns) that share a loss, or [E, D, S] of E
        examples; of float16, bfloat16, float32, or float64 where JAX has it. -inf marks missing
        options, for estimators with a formula. With bits=True: [D] or [E, D] logits of a 1.
    f: a function of z [R, D, S], one-hot rows or, with relaxations, weights ([R, D] with
        bits=True), in the dtype of the logits; for a batch also of example [R], the position of
        each row's example. Returns losses [R]. Called once, for all rows.
    estimator: one that runs the network once and learns nothing. Relaxations, pairs of bits, and
        score functions that are linear in the losses have a formula: they are operations of JAX,
        without a callback. Others, with hard choices (coupled samples, sets without replacement,
        enumerations), call core back.
    seed: a whole number below 2^32 or a key of `jax.random`; both may be traced. Under `jax.vmap`
        elements with the same seed have the same noise: give each its own.
    takes: "options": f is a function of options [R, D] (int32) instead.
    columns: "separate": each column has a loss of its own, as in `hardgrad.torch.expectation`: f
        returns losses [R, D], and the result is [E, D].
    subset: every choice picks so many of its options, as in `hardgrad.torch.expectation`.
    behaviour, reference: logits of the policy that draws, in which -inf marks options that it
        never draws, and of one to stay near, as in `hardgrad.torch.expectation`.

    Without jax_enable_x64 formulas draw in single precision: the same options, unless a number is
    within its rounding of the end of an option.

    Returns [E], or a number without a batch; float32 for shorter dtypes. Can be differentiated
    once, by reverse mode; differentiating its gradient again raises. UsageError at tracing for
    wrong shapes and estimators. Numbers that are none raise outside of `jax.jit` (UsageError for
    logits, NotFinite for losses); inside, callbacks raise JAX's error, which quotes it, and by a
    formula the value and the gradient of the example are NaN. Source: the estimators' papers, see
    `hardgrad.describe`.
    """
    check_takes(takes)
    check_columns(columns)
    logits = jnp.asarray(logits)
    if columns == "separate":
        batched = check_separate(logits.shape, bits)
        shape = logits.shape[: 1 + batched]

        def each(given: Optional[Array], what: str) -> Optional[Array]:
            if given is None:
                return None
            check_shape(jnp.shape(given), logits.shape, what)
            return jnp.reshape(given, (-1, 1, *logits.shape[1 + batched :]))

        return expectation(
            logits.reshape(-1, 1, *logits.shape[1 + batched :]),
            _separately(f, (1,) * (not batched) + shape, batched),
            estimator,
            seed=seed,
            takes=takes,
            bits=bits,
            subset=subset,
            behaviour=each(behaviour, "behaviour"),
            reference=each(reference, "reference"),
        ).reshape(shape)
    check_dtype(logits)
    if subset is behaviour is reference is None and isinstance(estimator, str):
        formula = formula_of_spec(estimator)
        if formula is not None and covers(formula, logits.shape, takes == "options", bits):
            if plain() or formula.relaxes:
                return by_formula.expectation(
                    formula, logits, f, number_of(seed), takes, bits, partial(noted, estimator)
                )
    if bits:
        logits = jnp.stack([jnp.zeros_like(logits), logits], -1)
    check_axes(logits.shape, empty=True)
    dtype, logits = logits.dtype, logits.astype(of_core(logits.dtype))
    if is_known(logits) and not np.isfinite(np.asarray(logits)).all():
        raise UsageError(
            f"logits: an entry is not finite: under JAX no option of {estimator} may be missing"
        )
    picks = check_subset(subset, logits.shape[-1], bits)
    number = number_of(seed)
    drawing = _policy(behaviour, logits, bits, "behaviour")
    others: Others = (drawing, _policy(reference, logits, bits, "reference"))
    batched, shaped = logits.ndim == 3, logits.reshape((1,) * (3 - logits.ndim) + logits.shape)
    if 0 in shaped.shape:  # no examples, or no choices: nothing is drawn
        example = jnp.arange(len(shaped), dtype=jnp.int32)
        options = jnp.zeros((*shaped.shape[:2], *(picks,) * (picks > 0)), jnp.int32)
    else:
        given = (behaviour is not None, reference is not None)
        draws = Draws(estimator, shaped.shape, np.dtype(logits.dtype), picks, given)
        options, example = draws.options(jax.lax.stop_gradient(shaped), others, number)
    choice = options
    if takes == "weights" and not bits:
        choice = one_hot(options, logits.shape[-1], dtype)
        choice = choice.sum(2) if picks else choice
    if bits and takes == "weights":
        choice = choice.astype(dtype)
    losses = checked_losses(
        f(choice, example) if batched else f(choice), choice.shape[:2], len(example)
    )
    if 0 in shaped.shape:
        return losses.astype(logits.dtype) + shaped.sum((1, 2))
    value = _estimate(draws, shaped, others, losses.astype(logits.dtype), number, example)
    return value if batched else value[0]


def _separately(
    f: Callable[..., Array], shape: tuple[int, int], batched: bool
) -> Callable[[Array, Array], Array]:
    """The loss [R'] of E D examples with one choice each, by one call of f with all columns of a
    row. All have the same number of rows."""
    examples, columns = shape

    def losses(z: Array, example: Array) -> Array:
        rows = len(example) // max(1, examples * columns)
        order = jnp.argsort(example, stable=True).reshape(examples, columns, rows)
        place = order.transpose(0, 2, 1).reshape(examples * rows, columns)
        of = jnp.repeat(jnp.arange(examples, dtype=jnp.int32), rows)
        found = f(z[:, 0][place], of) if batched else f(z[:, 0][place])
        if getattr(found, "shape", None) != place.shape:
            raise wrong_separate(place.shape, found)
        return jnp.zeros(len(example), found.dtype).at[place.reshape(-1)].set(found.reshape(-1))

    return losses


def _policy(given: Optional[Array], logits: Array, bits: bool, what: str) -> Optional[Array]:
    """The logits of another policy [E, D, S], if there is one."""
    if given is None:
        return None
    found = jax.lax.stop_gradient(jnp.asarray(given, logits.dtype))
    if bits:
        found = jnp.stack([jnp.zeros_like(found), found], -1)
    check_shape(found.shape, logits.shape, what)
    return found.reshape((1,) * (3 - found.ndim) + found.shape)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _estimate(
    draws: Draws, logits: Array, others: Others, losses: Array, seed: Array, example: Array
) -> Array:
    return _forward(draws, logits, others, losses, seed, example)[0]


def _forward(
    draws: Draws, logits: Array, others: Others, losses: Array, seed: Array, example: Array
) -> Any:
    value, slope, share = draws.estimate(logits, others, losses, seed)
    return value, (slope, share, example)


def _backward(draws: Draws, kept: Any, cotangent: Array) -> Any:
    slope, share, example = kept
    return cotangent[:, None, None] * slope, None, cotangent[example] * share, None, None


_estimate.defvjp(_forward, _backward)
