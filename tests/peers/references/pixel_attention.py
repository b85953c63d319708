"""An independent PyTorch implementation of `pixel_attention`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from gradient_file import GradientFile

CASES = [
    ("canvas[size=8,canvas=14,noise=3]", "layers=2,channels=3,hidden=6,code=3"),
    ("canvas[size=9,canvas=13,noise=4]", "grid=4,layers=3,channels=2,hidden=5,code=2,beta=2.5,background=0.01"),
    ("canvas[size=8,canvas=11,noise=0]", "layers=1,hidden=6,code=3,beta=0"),
    ("canvas[size=8,canvas=10,noise=2]", "layers=1,hidden=6,code=2,background=0.1"),  # windows reach beyond the canvas
]
SOFT = True


def pixel_attention(file: GradientFile, example: int, options):
    """`options` [1]: the place. None: the mean window under the attention."""
    p = file.parameters
    lin = lambda name, x: F.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])
    y = torch.tensor(file.batch["image"][example], dtype=torch.float64)
    side, layers = len(y), int(file.settings.get("layers", 4))
    P = round(p["encoder.1.weight"].shape[1] ** 0.5)
    places = p["attention.place.weight"].shape[0]
    G = round(places**0.5)
    a = y[None, None]
    for k in range(1, layers + 1):
        weight = p[f"attention.{k}.weight"]
        kernel = weight.reshape(len(weight), 3, 3, -1).permute(0, 3, 1, 2)
        a = F.conv2d(torch.relu(a) if k > 1 else a, kernel, p[f"attention.{k}.bias"])
    log_p = F.log_softmax(lin("attention.place", a.flatten()), dim=0)

    padded, inside = F.pad(y, (P, P, P, P)), F.pad(torch.ones_like(y), (P, P, P, P))
    first = lambda i: ((2 * i + 1) * side - P * G + G) // (2 * G) + P  # in the padded canvas
    window = lambda of, c: of[first(c // G) : first(c // G) + P, first(c % G) : first(c % G) + P].flatten()
    if options is None:
        x, covered = (sum(log_p[c].exp() * window(of, c) for c in range(places)) for of in (padded, inside))
        log_probs = []
    else:
        x, covered = (window(of, int(options[0])) for of in (padded, inside))
        log_probs = [log_p[int(options[0])]]
    code = lin("encoder.2", torch.tanh(lin("encoder.1", x)))
    z, s = code.chunk(2)
    ink = float(file.settings.get("background", 1e-8))
    missed = y.sum() - x.sum()
    losses = [-missed * math.log(ink) - (side * side - covered.sum() - missed) * math.log1p(-ink)]
    if "noise" in file.batch:
        losses.append((z.square() + (2 * s).exp() - 1 - 2 * s).sum() / 2)
        z = z + s.exp() * torch.tensor(file.batch["noise"][example][: len(z)], dtype=torch.float64)
    l = lin("decoder.2", torch.tanh(lin("decoder.1", z)))
    losses.append(-(x * F.logsigmoid(l) + (1 - x) * F.logsigmoid(-l)).sum())
    losses.append(float(file.settings.get("beta", 1)) * (log_p.exp() * (log_p + math.log(places))).sum())
    return losses, log_probs
