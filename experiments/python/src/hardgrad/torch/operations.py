"""PyTorch's operations for `hardgrad.formulas`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Tensors:
    """The operations of `formulas.Operations`."""

    sigmoid = staticmethod(torch.sigmoid)
    where = staticmethod(torch.where)
    minimum = staticmethod(torch.minimum)
    through_sigmoid = staticmethod(torch.ops.aten.sigmoid_backward.default)

    @staticmethod
    def softmax(x: Tensor) -> Tensor:
        return torch.softmax(x, -1)

    @staticmethod
    def highest(x: Tensor) -> Tensor:
        return x.amax(-1, keepdim=True)

    @staticmethod
    def through_softmax(slope: Tensor, w: Tensor) -> Tensor:
        slope = slope - slope.gather(-1, w.argmax(-1, keepdim=True))
        found: Tensor = torch.ops.aten._softmax_backward_data.default(slope, w, -1, w.dtype)
        return found


XP: Any = Tensors()
