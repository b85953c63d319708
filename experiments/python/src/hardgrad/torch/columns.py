"""Columns with a loss of their own: `expectation(..., columns="separate")` takes each column as an
example with one choice, and shows the loss function all columns of a row side by side."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._core import UsageError
from ..losses import check_separate, given_ids, wrong_separate
from ..policies import check_shape
from .tensors import check, fetched, sent


class Separate:
    """The arguments of `expectation` for E T examples with one choice each, of logits [E, T, S]
    ([T, S] without a batch; without S of bits)."""

    def __init__(self, logits: Tensor, bits: bool):
        self.batched = check_separate(tuple(logits.shape), bits)
        self.shape = logits.shape[: 1 + self.batched]
        self.examples, self.columns = self.shape if self.batched else (1, *self.shape)
        self.given = tuple(logits.shape)
        self.logits = self._each(logits)

    def _each(self, logits: Tensor) -> Tensor:
        return logits.reshape(-1, 1, *self.given[1 + self.batched :])

    def policy(self, logits: Optional[Tensor], what: str) -> Optional[Tensor]:
        """The logits of another policy, in the shape of these."""
        if not isinstance(logits, Tensor):
            return logits
        check_shape(logits.shape, self.given, what)
        return self._each(logits)

    def ids(self, ids: Optional[ArrayLike]) -> Any:
        """[E T] id T + t for column t of the example with this id; by default their positions."""
        if ids is None or self.columns == 0:
            return None
        of_examples = given_ids(ids, self.examples)
        assert of_examples is not None
        wide = of_examples.astype(np.int64)[:, None] * self.columns + np.arange(self.columns)
        if wide.size and wide.max() >= 1 << 32:
            raise UsageError(
                f"ids of {self.columns} separate columns are below 2^32 / {self.columns}, got "
                f"{int(of_examples.max())}"
            )
        return wide.reshape(-1)

    def state(self, state: Optional[Tensor]) -> Optional[Tensor]:
        """[E T, C] of [E, C] ([C] without a batch), the same for all columns of an example."""
        if state is None or not isinstance(state, Tensor) or state.dim() != 1 + self.batched:
            return state
        if self.batched and len(state) != self.examples:
            raise UsageError(
                f"state has shape {list(state.shape)}; it is [{self.examples} examples, numbers]"
            )
        return state.reshape(-1, state.shape[-1]).repeat_interleave(self.columns, 0)

    def loss(self, f: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        """The loss [R'] of the examples' rows, by one call of f with all of them."""

        def losses(z: Tensor, example: Tensor) -> Tensor:
            places = self._places(fetched([example], torch.int64)[0])
            place, of, row, column = sent(places, z.device)
            wide = z[:, 0][place]  # [R, T, ...]
            found = f(wide, of) if self.batched else f(wide)
            if not isinstance(found, Tensor) or found.shape != place.shape:
                raise wrong_separate(tuple(place.shape), found)
            check(found, "the losses that f returned")
            return found[row, column]

        return losses

    def _places(self, example: Any) -> tuple[Any, Any, Any, Any]:
        """For rows [R'] of the examples: [R, T] the row that f sees at each place; [R] the example
        of each of its rows; [R'] the row and column where f sees each. A column with fewer rows
        than others (missing options, enumerated) repeats its first."""
        columns = np.arange(self.columns)
        order = np.argsort(example, kind="stable")
        count = np.bincount(example, minlength=self.examples * self.columns)
        first = np.cumsum(count) - count
        within = np.empty_like(order)
        within[order] = np.arange(len(order)) - first[example[order]]
        most = count.reshape(self.examples, self.columns).max(1)  # rows of each example
        begin = np.cumsum(most) - most
        of = np.repeat(np.arange(self.examples), most)
        cell = of[:, None] * self.columns + columns
        nth = (np.arange(len(of)) - begin[of])[:, None]
        place = order[first[cell] + np.where(nth < count[cell], nth, 0)]
        return place, of, begin[example // self.columns] + within, example % self.columns
