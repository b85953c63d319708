"""Logits as users give them: with missing options anywhere, or those of bits."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._tensors import shared


def of_bits(logits: Tensor) -> Tensor:
    """[..., 2] from the logits [...] of a 1."""
    return torch.stack([torch.zeros_like(logits), logits], -1)


class Asked:
    """Logits [R, D, S] (or of one row), and the way from core's choices to those of the user. Core's missing options are the last ones.

    bits: the user gave the logits of a 1.
    """

    def __init__(self, logits: Tensor, bits: bool, what: str = "logits"):
        self.logits, self._bits = logits, bits  # logits: those for core
        self.numbers: Any = shared(logits, what)
        self._order = self._back = None
        if self.numbers.min(initial=0) > -np.inf:
            return
        missing = self.numbers == -np.inf
        if (missing[..., :-1] > missing[..., 1:]).any():
            order = np.argsort(missing, -1, kind="stable")
            self._order, self._back = torch.from_numpy(order), torch.from_numpy(np.argsort(order, -1))
            self._shape = (-1, logits.shape[-2] if logits.dim() > 1 else 1, logits.shape[-1])
            self.logits = self.ordered(logits)
            self.numbers = shared(self.logits, what)

    def ordered(self, logits: Tensor) -> Tensor:
        """The logits for core."""
        return logits if self._order is None else logits.gather(-1, self._order)

    def options(self, options: Tensor, row: Tensor) -> Tensor:
        """The user's options [R', D] from core's. row: [R'] the row of the logits for each."""
        return options if self._order is None else self._order.reshape(self._shape)[row].gather(-1, options[..., None])[..., 0]

    def weights(self, weights: Tensor, row: Tensor) -> Tensor:
        """The user's weights [R', D, S], or [R', D] of bits, from core's; differentiable."""
        if self._bits:
            return weights[..., 1]
        return weights if self._back is None else weights.gather(-1, self._back.reshape(self._shape)[row])

    def one_hot(self, options: Tensor) -> Tensor:
        """Such weights of the user's options, as whole numbers."""
        return options if self._bits else torch.nn.functional.one_hot(options, self.logits.shape[-1])
