"""Errors of callbacks: inside `jax.jit` XLA raises a JaxRuntimeError in their place, which has only
their words. `own_errors` raises the package's own."""

from __future__ import annotations

import functools
import logging
from collections import deque
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional

from .._core import Error

_errors: deque[Error] = deque(maxlen=16)  # of the last callbacks that failed


def stored(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps the callback's error. It leaves without the frames below, which XLA would list."""

    @functools.wraps(callback)
    def called(*given: Any) -> Any:
        try:
            return callback(*given)
        except Error as error:
            _errors.append(error)
            raise error.with_traceback(None) from None

    return called


def own(error: Exception) -> Optional[Error]:
    """The package's error that JAX's quotes: a JaxRuntimeError, of functions compiled ahead of time
    a ValueError."""
    if isinstance(error, Error) or "callback" not in str(error):
        return None
    return next((found for found in reversed(_errors) if str(found) in str(error)), None)


@contextmanager
def own_errors() -> Iterator[None]:
    """A block, or a decorated function, in which a compiled step raises the package's own error
    (`UsageError`, `NotFinite`) instead of a JaxRuntimeError that quotes it:

        with hardgrad.jax.own_errors():
            value = jax.block_until_ready(step(parameters, seed))

    JAX may raise errors of a step only when its result is used, which has to be in the block.
    """
    try:
        yield
    except Exception as error:
        if (found := own(error)) is None:
            raise
        raise found from None


class _InOneLine(logging.Filter):
    """JAX logs an error of a callback with its traceback, before XLA raises its own. Of the
    package's errors only the sentence is logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, Error):
            record.msg, record.args, record.exc_info = f"hardgrad: {error}", (), None
        return True


logging.getLogger("jax._src.callback").addFilter(_InOneLine())
