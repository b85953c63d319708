"""An independent PyTorch implementation of `codebook`, and its training with detached codes, as published."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile

CASES = [
    ("images[size=8]", "vectors=3,codes=5,width=4,hidden=7"),
    ("images[size=8]", "vectors=1,codes=3,width=2,hidden=6,temperature=0.3,commitment=0"),
    ("images[size=8]", "vectors=4,codes=2,width=1,hidden=6,temperature=2,commitment=1.5"),
]
SOFT = True


def layer(p, name: str, v: torch.Tensor) -> torch.Tensor:
    return F.linear(v, p[f"{name}.weight"], p[f"{name}.bias"])


def vectors(file: GradientFile, example: int):
    """The image [P], its vectors [D, d], and their squared distances [D, S] from the codes."""
    p = file.parameters
    y = torch.tensor(file.batch["image"][example], dtype=torch.float64).flatten()
    h = layer(p, "encoder", torch.relu(layer(p, "encoder.hidden", 2 * y - 1))).reshape(-1, p["codes.weight"].shape[1])
    return y, h, ((h[:, None] - p["codes.weight"][None]) ** 2).sum(2)


def cost(file: GradientFile, y: torch.Tensor, v: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
    pixels = layer(file.parameters, "decoder", torch.relu(layer(file.parameters, "decoder.hidden", v.flatten())))
    return (
        F.binary_cross_entropy_with_logits(pixels, y, reduction="sum") + float(file.settings.get("commitment", 0.25)) * distance
    )


def codebook(file: GradientFile, example: int, options):
    """`options`: the codes [1, D]; None: their mixture."""
    y, h, distance = vectors(file, example)
    log_p = F.log_softmax(-distance / float(file.settings.get("temperature", 1)), dim=1)
    w = log_p.exp() if options is None else F.one_hot(torch.tensor(options[0]).reshape(-1), distance.shape[1]).double()
    loss = cost(file, y, w @ file.parameters["codes.weight"], (w * distance).sum())
    return [loss], [] if options is None else [(w * log_p).sum()]


def quantised(file: GradientFile, example: int, gradient: str) -> torch.Tensor:
    """The loss whose gradient is `nearest_code`: van den Oord et al. 2017, sec. 3.2; rotated: Fifty et al. 2024, with a matrix for each
    rotation; directed: Vali et al. 2025, a point and its distance from the code in a fixed direction."""
    y, h, distance = vectors(file, example)
    c, v = file.parameters["codes.weight"][distance.argmin(1)], []
    for point, code in zip(h, c):
        if gradient == "directed":
            apart = code - point
            v.append(point + apart.norm() * (apart / apart.norm()).detach())
            continue
        fixed, code = point.detach(), code.detach()
        e, q = fixed / fixed.norm(), code / code.norm()
        if gradient == "copied" or (e + q).norm() < 1e-6:  # opposite directions, as of numbers of different signs: no rotation
            v.append(point + code - fixed)
            continue
        r = (e + q) / (e + q).norm()
        A = torch.eye(len(e), dtype=torch.float64) - 2 * torch.outer(r, r) + 2 * torch.outer(q, e)
        v.append(code.norm() / fixed.norm() * A @ point)
    return cost(file, y, torch.stack(v), distance.min(1).values.sum())
