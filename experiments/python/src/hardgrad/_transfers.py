"""Numbers on their way between core, in the CPU's memory, and the device of a user's tensors. What goes together is one transfer; only
those to the CPU wait for the device."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import torch
from torch import Tensor


def fetched(tensors: Sequence[Tensor], dtype: torch.dtype) -> list[Any]:
    """The numbers as arrays of this dtype; they share the memory of a tensor in the CPU's."""
    found: list[Any] = [None] * len(tensors)
    far: dict[torch.device, list[int]] = {}
    for place, x in enumerate(tensors):
        if x.device.type == "cpu":
            found[place] = x.detach().to(dtype).contiguous().numpy()
        else:
            far.setdefault(x.device, []).append(place)
    for places in far.values():
        packed = torch.cat([tensors[place].detach().to(dtype).reshape(-1) for place in places]).to("cpu").numpy()
        for place, part in zip(places, np.split(packed, np.cumsum([tensors[place].numel() for place in places])[:-1])):
            found[place] = part.reshape(tensors[place].shape)
    return found


def sent(arrays: Sequence[Any], device: torch.device) -> list[Tensor]:
    """The arrays as tensors on a device."""
    here = [torch.from_numpy(np.ascontiguousarray(x)) for x in arrays]
    if device.type == "cpu":
        return here
    packed = torch.cat([_bytes(x) for x in here]).to(device, non_blocking=device.type == "cuda")
    found, end = [], 0
    for x in here:
        begin, size = end, x.numel() * x.element_size()
        end += _padded(size)
        found.append(packed[begin:begin + size].view(x.dtype).reshape(x.shape))
    return found


def _bytes(x: Tensor) -> Tensor:
    flat = x.reshape(-1).view(torch.uint8)
    return torch.nn.functional.pad(flat, (0, _padded(len(flat)) - len(flat)))


def _padded(size: int) -> int:
    """So that every array begins at a multiple of 8 bytes, the longest of its numbers."""
    return -(-size // 8) * 8
