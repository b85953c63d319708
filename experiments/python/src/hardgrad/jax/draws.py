"""Draws of `hardgrad.jax`: callbacks with static shapes."""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any, ContextManager, Iterator, Literal, Optional

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
#: How a function is traced: in a comparison, which counts its rows, or draws from a mixture, too.
Mode = Literal["alone", "counted", "mixed"]
# Functions of different modes share no cache, so that others never draw from the mixture of a
# comparison. (Old versions of JAX have no such context, and no mixture.)
_tracing: Any = jax.make_user_context("alone") if hasattr(jax, "make_user_context") else None
_blocks = 0  # of `counted` that are open
_mixture: Optional[Mixture] = None  # of the comparison's present step
_mixing: ContextManager[Any] = threading.Lock()  # a mixture has one new call at a time


def _mode() -> Mode:
    if _tracing is not None:
        found: Mode = _tracing.value
        return found
    return "counted" if _blocks else "alone"


def plain() -> bool:
    """Whether draws that are traced now are made from plain noise."""
    return _mode() != "mixed"


def noted(spec: str, rows: int, losses: Array) -> None:
    """Counts the rows of a draw without a callback, in a comparison (by a callback)."""
    if _mode() == "alone":
        return

    def count(loss: Any) -> None:
        _count(spec, rows)

    # Under `jax.vmap` it is called for each loss.
    jax.debug.callback(count, jax.lax.stop_gradient(losses[0]))


def _count(spec: str, rows: int) -> None:
    with _lock:
        _rows_drawn[spec] = _rows_drawn.get(spec, 0) + rows


class Draws:
    """Draws of an estimator at logits [E, D, S]; equal if their arguments are, and both or none are
    from a comparison's mixture."""

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
        self.mixed = not plain()

    def __hash__(self) -> int:
        return hash((self.key, self.mixed))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Draws) and (self.key, self.mixed) == (other.key, other.mixed)

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
        _count(self.key[0], self.rows)
        self._check(run)
        _, _, example, values, share, _ = run
        value = np.bincount(example, share * values, len(slope))
        return value.astype(slope.dtype), slope, share

    def _drawn(self, logits: Any, others: Any, seed: Any, losses: Any) -> Any:
        """`_drawn` of this estimator."""
        mixture = _mixture if self.mixed else None
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
    global _blocks, _mixture
    found = Counted()
    with _lock:
        before = dict(_rows_drawn)
    outer, _mixture = _mixture, mixture
    _blocks += 1
    mode: Mode = "counted" if mixture is None else "mixed"
    try:
        with _tracing(mode) if _tracing is not None else nullcontext():
            yield found
    except Exception as error:
        if found_own := own(error):
            raise found_own from error
        raise
    finally:
        _mixture = outer
        _blocks -= 1
    jax.effects_barrier()
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
            0,
        )
    except UsageError as refusal:
        if "takes=" not in str(refusal):
            raise
        raise UsageError(
            f"{spec} replaces choices by weights: of such estimators hardgrad.jax has those with "
            "a closed formula, such as gumbel_softmax, for losses of weights of single options"
        ) from refusal
    if estimator.learns or len(runs) != 1:
        raise UsageError(
            f"{spec} {'learns' if estimator.learns else 'runs the network more than once'}: "
            "hardgrad.jax has estimators that run it once "
            "and learn nothing, such as rloo"
        )
    return slope, runs[0]
