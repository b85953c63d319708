"""A gradient file as arrays for the batched networks. Values that do not depend on parameters are precomputed."""

from __future__ import annotations

import numpy as np
import torch

import belief
import categories
import networks
import plain
import vectors
from gradient_file import GradientFile


# Of the networks that are trained: the arrays with an entry for each example. The others serve all examples.
OF_EXAMPLES = {
    "translator": ("source", "target"),
    "glimpse_reader": ("pixels", "label"),
    "belief_network": ("image",),
    "memory_reader": (
        *("story", "question", "story_place", "question_place", "mask", "gone", "age", "answer"),
        *("sentence", "asked"),  # of the expert's network
    ),
}


def pool_of(data, model):
    """The data of training, -> the arrays from which batches are taken, and the others. Choices are drawn."""
    pool = {k: data[k] for k in OF_EXAMPLES[model] if k in data}
    return pool, {k: v for k, v in data.items() if k not in pool and k not in ("choices", "places")}


def adam_step(parameter, gradient, rate=1e-3, epsilon=1e-8):
    """The first step of Adam (Kingma & Ba 2015), as an independent reference: the moments' corrections cancel."""
    g = np.asarray(gradient, np.float64)
    return parameter - rate * g / (np.abs(g) + epsilon)


def problem(file: GradientFile, model: str, K: int, noise: bool = False):
    """-> parameters (float arrays), data (arrays and numbers), the network as people write it, and its module. `noise`: the network
    draws its own choices and noise."""
    categorical = model == "belief_network" and noise and int(file.settings.get("options", 2)) > 2
    if categorical:
        categories.turn(file)
    p = {k: v.detach().numpy().astype(np.float32) for k, v in file.parameters.items()}
    data = {}
    if model == "bits":
        logits = p["bits.logits"]
        network = vectors.columns if logits.shape[1] > 1 else vectors.bits
        module, data = vectors, {"t": np.full(len(logits), 0.45)}
    elif categorical:
        module, network, data = categories, categories.belief_network, categories.prepare(file)
    elif noise:
        module, network, data = belief, belief.belief_network, belief.prepare(file)
    elif model in ("translator", "memory_reader") or "locator.weight" in p and "policy" not in file.settings:
        module, network = plain, getattr(plain, model)
        batch = {k: torch.tensor(v) for k, v in file.batch.items() if v.dtype != object}  # not strings
        data = {"translator": _translation, "memory_reader": _story, "glimpse_reader": _image}[model](file, batch)
    else:
        module = networks
        prepare, network = networks.load(model)
        data = prepare(file)
    if not noise and file.choices is not None and len(file.row_example) == K * len(file.batch["id"]):
        choices = np.maximum(file.choices, 0)  # -1: no choice
        data.setdefault("choices", choices)
        if module is plain:
            data["places"] = choices + file.row_example * data["items"]
    if file.value is not None:
        data["value"] = file.value
    return p, {k: _plain(v) for k, v in data.items()}, network, module


def _plain(value):
    """Floats are single, whole numbers int64."""
    if isinstance(value, (int, float)):
        return value
    value = value.numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    return np.ascontiguousarray(
        value, np.float32 if value.dtype.kind == "f" else np.int64 if value.dtype.kind in "iu" else value.dtype
    )


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
    return data | {
        "length": length,
        "beyond": torch.zeros(within.shape).masked_fill(~within, -torch.inf),
        "turned": torch.where(within, length[:, None] - 1 - at, at),
        "said": (torch.arange(T)[:, None] < target_length).float(),
    }


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
    return {
        "story": story,
        "question": question,
        "story_place": _places(story, width),
        "question_place": _places(question, width),
        "mask": (at < length[:, None]).float(),
        "gone": torch.where(at < length[:, None], 0.0, float("-inf")),
        "age": (length[:, None] - 1 - at).clamp(min=0),
        "answer": batch["answer"].long(),
        "items": N,
    }


def _image(file, batch):
    cells = file.parameters["locator.weight"].shape[0]
    grid, P = round(cells**0.5), int(file.settings.get("patch", 8))
    image = batch["image"].float()
    height, width = image.shape[1:]
    pixels = torch.nn.functional.pad(image, (P, P, P, P)).flatten(1)
    first = lambda i, extent: ((2 * i + 1) * extent - P * grid + grid) // (2 * grid) + P
    cell = torch.arange(cells)
    row = first(cell // grid, height)[:, None] + torch.arange(P)
    column = first(cell % grid, width)[:, None] + torch.arange(P)
    return {
        "pixels": pixels,
        "table": (row[:, :, None] * (width + 2 * P) + column[:, None]).flatten(1),
        "label": batch["label"].long(),
        "glimpses": int(file.settings.get("glimpses", 6)),
        "items": cells,
    }
