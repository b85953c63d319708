"""A gradient file as float tensors for the batched networks. Values that do not depend on parameters are precomputed."""

from __future__ import annotations

import torch

from gradient_file import GradientFile


def tensors(file: GradientFile, model: str, K: int):
    """-> parameters (float leaves), data."""
    p = {k: v.detach().float().requires_grad_() for k, v in file.parameters.items()}
    batch = {k: torch.tensor(v) for k, v in file.batch.items() if v.dtype != object}  # not strings
    data = {"translator": _translation, "memory_reader": _story, "glimpse_reader": _image}[model](file, batch)
    if file.choices is not None and len(file.row_example) == K * len(batch["id"]):
        choices = torch.tensor(file.choices).clamp_(min=0)  # -1: no choice
        data["choices"] = choices
        data["places"] = choices + torch.tensor(file.row_example) * data["items"]
    return p, data


def _translation(file, batch):
    """Sentences of different lengths have more fields. `length` [B]: of the sources. `beyond` [B, L]: 0, or -inf past the source's end,
    to add to scores. `turned` [B, L]: positions of the reversed source. `said` [T, B]: 1 where there is a target word."""
    length, target_length = batch["source_length"].long(), batch["target_length"].long()
    L, T = int(length.max()), int(target_length.max())
    data = {"source": batch["source"].long()[:, :L], "target": batch["target"].long()[:, :T], "items": L}
    if (length == L).all() and (target_length == T).all():
        return data
    at = torch.arange(L)
    within = at < length[:, None]
    return data | {"length": length, "beyond": torch.zeros(within.shape).masked_fill(~within, -torch.inf),
                   "turned": torch.where(within, length[:, None] - 1 - at, at),
                   "said": (torch.arange(T)[:, None] < target_length).float()}


def _places(tokens, width):
    """Position encoding [..., W, D] of tokens [..., W] (0 pads), as in the head of core/models/memory_reader.cpp."""
    real = tokens != 0
    J = real.sum(-1, keepdim=True).clamp(min=1)[..., None].double()
    j = real.cumsum(-1)[..., None].double()
    d = torch.arange(1, width + 1).double()
    return (((1 - j / J) - d / width * (1 - 2 * j / J)) * real[..., None]).float()


def _story(file, batch):
    length = batch["story_length"].long()
    N, width = int(length.max()), file.parameters["memory.0.weight"].shape[1]
    story, question = batch["story"].long()[:, :N], batch["question"].long()
    at = torch.arange(N)
    return {"story": story, "question": question, "story_place": _places(story, width),
            "question_place": _places(question, width), "mask": (at < length[:, None]).float(),
            "age": (length[:, None] - 1 - at).clamp(min=0), "answer": batch["answer"].long(), "items": N}


def _image(file, batch):
    cells = file.parameters["locator.weight"].shape[0]
    grid, P = round(cells ** 0.5), int(file.settings.get("patch", 8))
    image = batch["image"].float()
    height, width = image.shape[1:]
    pixels = torch.nn.functional.pad(image, (P, P, P, P)).flatten(1)
    first = lambda i, extent: ((2 * i + 1) * extent - P * grid + grid) // (2 * grid) + P
    cell = torch.arange(cells)
    row = first(cell // grid, height)[:, None] + torch.arange(P)
    column = first(cell % grid, width)[:, None] + torch.arange(P)
    return {"pixels": pixels, "table": (row[:, :, None] * (width + 2 * P) + column[:, None]).flatten(1),
            "label": batch["label"].long(), "glimpses": int(file.settings.get("glimpses", 6)), "items": cells}
