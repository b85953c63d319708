"""Draws of `hardgrad.jax`: callbacks with static shapes."""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any, ContextManager, Iterator, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .. import _core
from .._core import Estimator, Mixture, UsageError
from ..gradients import Counted
from .errors import own, own_errors, stored

DRAW = {np.dtype(np.float32): _core.draw_float, np.dtype(np.float64): _core.draw_double}
Others = tuple[Optional[Array], Optional[Array]]
_lock = threading.Lock()
_rows_drawn: dict[str, int] = {}  # by spec, in this process
# Functions that are traced in a comparison. They share no cache with others, so that these never
# draw from its mixture. (Old versions of JAX have no such context, and no mixture.)
_compared: Any = jax.make_user_context(False) if hasattr(jax, "make_user_context") else None
_mixture: Optional[Mixture] = None  # of the comparison's present step
_mixing: ContextManager[Any] = threading.Lock()  # a mixture has one new call at a time


class Draws:
    """Draws of an estimator at logits [E, D, S]; equal if their arguments are, and both or none are
    in a comparison."""

    def __init__(
        self,
        spec: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        picks: int,
        policies: tuple[bool, bool],
    ):
        self.key = (spec, shape, dtype, picks, policies)
        self.rows = _rows(*self.key)
        self.compared = _compared is not None and bool(_compared.value)

    def __hash__(self) -> int:
        return hash((self.key, self.compared))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Draws) and (self.key, self.compared) == (other.key, other.compared)

    def options(self, logits: Array, others: Others, seed: Array) -> Any:
        """[R, D] options ([R, D, picks] of subsets) and the examples [R] of the rows. others: the
        logits of a behaviour and of a reference policy."""
        rows, columns, picks = self.rows, self.key[1][1], self.key[3]
        shapes = (
            jax.ShapeDtypeStruct((rows, columns, picks) if picks else (rows, columns), jnp.int32),
            jax.ShapeDtypeStruct((rows,), jnp.int32),
        )
        return _called(self._options, shapes, logits, others, seed)

    def estimate(self, logits: Array, others: Others, losses: Array, seed: Array) -> Any:
        """The value [E], the gradient at the logits [E, D, S] and the weights of the losses [R]."""
        _, shape, dtype, *_ = self.key
        shapes = tuple(jax.ShapeDtypeStruct(of, dtype) for of in (shape[:1], shape, (self.rows,)))
        return _called(self._estimate, shapes, logits, others, losses, seed)

    @stored
    def _options(self, logits: Any, others: Any, seed: Any) -> Any:
        _, run = self._drawn(logits, others, seed, None)
        self._check(run)
        return run[0].astype(np.int32), run[2].astype(np.int32)

    @stored
    def _estimate(self, logits: Any, others: Any, losses: Any, seed: Any) -> Any:
        slope, run = self._drawn(logits, others, seed, np.asarray(losses))
        with _lock:
            _rows_drawn[self.key[0]] = _rows_drawn.get(self.key[0], 0) + self.rows
        self._check(run)
        _, _, example, values, share, _ = run
        value = np.bincount(example, share * values, len(slope))
        return value.astype(slope.dtype), slope, share

    def _drawn(self, logits: Any, others: Any, seed: Any, losses: Any) -> Any:
        """`_drawn` of this estimator."""
        mixture = _mixture if self.compared else None
        with nullcontext() if mixture is None else _mixing:
            return _drawn(
                self.key[0],
                np.asarray(logits),
                self.key[3],
                int(seed),
                losses,
                mixture,
                *(None if x is None else np.asarray(x) for x in others),
            )

    def _check(self, run: Any) -> None:
        if len(run[2]) != self.rows:
            raise UsageError(
                f"{self.key[0]} runs {len(run[2])} rows instead of {self.rows}: under JAX no "
                "logit may be -inf"
            )


def _called(callback: Any, shapes: Any, *given: Array) -> Any:
    """The callback's result. Outside of `jax.jit` its error is raised instead of JAX's."""
    with own_errors():
        found = jax.pure_callback(callback, shapes, *given, vmap_method="sequential")
        traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(found))
        return found if traced else jax.block_until_ready(found)


@contextmanager
def counted(mixture: Optional[Mixture]) -> Iterator[Counted]:
    """Counts the draws in a block, of all threads: JAX calls back in threads of its own. Those of
    functions that are traced in such a block are made from the mixture. Raises their error instead
    of JAX's."""
    global _mixture
    found = Counted()
    with _lock:
        before = dict(_rows_drawn)
    outer, _mixture = _mixture, mixture
    try:
        with _compared(True) if _compared is not None else nullcontext():
            yield found
    except Exception as error:
        if found_own := own(error):
            raise found_own from error
        raise
    finally:
        _mixture = outer
    with _lock:
        drawn = {spec: rows - before.get(spec, 0) for spec, rows in _rows_drawn.items()}
    found.specs |= {spec for spec, rows in drawn.items() if rows}
    found.rows += sum(drawn.values())


@lru_cache(maxsize=1024)
def _rows(
    spec: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    picks: int,
    policies: tuple[bool, bool],
) -> int:
    """The number of rows of a run, which does not depend on the logits. policies: whether there are
    a behaviour and a reference policy."""
    logits = np.zeros(shape, dtype)
    others = (logits if there else None for there in policies)
    return len(_drawn(spec, logits, picks, 0, None, None, *others)[1][2])


def _drawn(
    spec: str,
    logits: Any,
    picks: int,
    seed: int,
    losses: Any,
    mixture: Optional[Mixture],
    behaviour: Any,
    reference: Any,
) -> Any:
    """The gradient at the logits and the run of one draw; the losses are 0 if they are not known
    yet."""
    estimator = Estimator(spec)

    def loss(choice: Any, example: Any, differentiable: bool) -> Any:
        return np.zeros(len(example), logits.dtype) if losses is None else np.ascontiguousarray(
            losses
        ), None

    try:
        slope, runs = DRAW[logits.dtype](
            estimator,
            np.ascontiguousarray(logits),
            3,
            picks,
            None,
            None,
            None,
            loss,
            False,
            seed,
            False,
            True,
            False,
            mixture,
            behaviour,
            reference,
        )
    except UsageError as refusal:
        if "takes=" not in str(refusal):
            raise
        raise UsageError(
            f"{spec} replaces choices by weights: hardgrad.jax has estimators with hard "
            "choices, such as rloo"
        ) from refusal
    if estimator.learns or len(runs) != 1:
        raise UsageError(
            f"{spec} {'learns' if estimator.learns else 'runs the network more than once'}: "
            "hardgrad.jax has estimators that run it once "
            "and learn nothing, such as rloo"
        )
    return slope, runs[0]
