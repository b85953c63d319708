"""Logits as users give them, with missing options anywhere, or those of bits; and the way to core's layout."""
from __future__ import annotations

from typing import Any

import numpy as np


class Asked:
    """The layout of a user's logits: [D, S] of some rows (or of one), or [D] of bits. Core's is [D, S], with the missing options last.
    All arrays are NumPy's.

    numbers: the logits for core. bits: the user gave the logits of a 1.
    """

    def __init__(self, logits: Any, bits: bool):
        self.bits = bits
        self._order: Any = None  # the user's option at each place of core's
        self.numbers = self.ordered(logits)
        if bits or self.numbers.min(initial=0) > -np.inf:  # a 1 that is missing is last
            return
        missing = self.numbers == -np.inf
        if (missing[..., :-1] > missing[..., 1:]).any():
            self._order = np.argsort(missing, -1, kind="stable")
            self._back = np.argsort(self._order, -1)
            self.numbers = self.ordered(logits)

    def ordered(self, logits: Any) -> Any:
        """Logits for core, of the same options."""
        if self.bits:
            return _second(logits)
        return logits if self._order is None else np.take_along_axis(logits, self._order, -1)

    def at_logits(self, slope: Any) -> Any:
        """The slope at the user's logits, from that at core's."""
        if self.bits:
            return slope[..., 1]
        return slope if self._order is None else np.take_along_axis(slope, self._back, -1)

    def options(self, options: Any, row: Any) -> Any:
        """The user's options [R', D], or [R', D, k] of subsets, from core's. row: [R'] the row of the logits for each."""
        if self._order is None:
            return options
        return np.take_along_axis(_of(self._order, row), options.reshape(*options.shape[:2], -1), -1).reshape(options.shape)

    def weights(self, weights: Any, row: Any) -> Any:
        """The user's weights [R', D, S], or [R', D] of bits, from core's."""
        if self.bits:
            return weights[..., 1]
        return weights if self._order is None else np.take_along_axis(weights, _of(self._back, row), -1)

    def at_weights(self, slope: Any, row: Any) -> Any:
        """The slope in core's weights, from that in the user's."""
        if self.bits:
            return _second(slope)
        return slope if self._order is None else np.take_along_axis(slope, _of(self._order, row), -1)


def _second(numbers: Any) -> Any:
    """[..., 2] zeros and the numbers; in less time than np.stack."""
    both = np.zeros((*numbers.shape, 2), numbers.dtype)
    both[..., 1] = numbers
    return both


def _of(places: Any, row: Any) -> Any:
    """[R', D, S] those of the rows."""
    return places.reshape(-1, *places.shape[-2:])[row] if places.ndim > 1 else places[None][np.zeros_like(row)][:, None]
