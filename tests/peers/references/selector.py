"""An independent PyTorch implementation of `selector`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import picked

CASES = [
    ("features[kind=switch]", "hidden=5"),
    ("features[features=6,kind=orange_skin]", "hidden=5,picks=2"),
    ("features[features=4]", "hidden=4,picks=3"),
    ("patches[size=8,patch=4]", "hidden=5,picks=2"),
    ("features[features=5]", "hidden=4,picks=3,law=plackett_luce"),
    ("reviews[longest=7]", "hidden=5,maps=shared"),
    ("reviews[longest=7]", "hidden=5,maps=shared,share=0.5"),
    ("reviews[longest=6]", "hidden=5,maps=own,share=0.4,law=plackett_luce"),
]
BOUNDS = [
    ("features[kind=additive,features=4]", "hidden=5"),
    ("features[kind=regimes,features=6]", "hidden=5,picks=4"),
    ("reviews[longest=6]", "hidden=4,maps=shared,share=0.3"),
]


def selector(file: GradientFile, example: int, options):
    p = file.parameters
    layer = lambda name, v: F.linear(v, p[f"{name}.weight"], p.get(f"{name}.bias"))
    x, label = torch.tensor(file.batch["x"][example], dtype=torch.float64), int(file.batch["label"][example])
    most = file.dimensions["features"]
    n = int(file.batch["length"][example]) if "length" in file.batch else most
    share, k, largest = float(file.settings.get("share", 0)), *[int(file.settings.get("picks", 1))] * 2
    if share > 0:
        k, largest = math.ceil(share * n), math.ceil(share * most)
    words, shared = x.reshape(most, -1)[:n], file.settings.get("maps", "own") == "shared"
    chosen = lambda logits: picked(options[0], logits[:n], k, file.settings.get("law", "conditional_poisson"), largest > 1)
    hidden = layer("selector.hidden", words if shared else x)
    if shared:
        hidden = hidden + layer("selector.context", words.mean(0))
    b, log_p = chosen(layer("selector", torch.relu(hidden)).flatten())
    if "posterior.weight" in p:
        q = layer(
            "posterior", torch.relu(layer("posterior.hidden", words if shared else x) + p["posterior.label.weight"][label])
        )
        log_q = chosen(q.flatten())[1]
    shown = b @ words if shared else F.pad((b[:, None] * words).flatten(), (0, x.numel() - words.numel()))
    o = layer("predictor", torch.relu(layer("predictor.hidden", shown)))
    loss = -F.log_softmax(o, dim=0)[label]
    return ([loss + log_q - log_p], [log_q]) if "posterior.weight" in p else ([loss], [log_p])
