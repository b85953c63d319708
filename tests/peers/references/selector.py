"""An independent PyTorch implementation of `selector`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import picked

CASES = [("features[kind=switch]", "hidden=5"), ("features[features=6,kind=orange_skin]", "hidden=5,picks=2"),
         ("features[features=4]", "hidden=4,picks=3"), ("patches[size=8,patch=4]", "hidden=5,picks=2")]
BOUNDS = [("features[kind=additive,features=4]", "hidden=5"), ("features[kind=regimes,features=6]", "hidden=5,picks=4")]


def selector(file: GradientFile, example: int, options):
    p = file.parameters
    layer = lambda name, v: F.linear(v, p[f"{name}.weight"], p.get(f"{name}.bias"))
    x, label = torch.tensor(file.batch["x"][example], dtype=torch.float64), int(file.batch["label"][example])
    e = layer("selector", torch.relu(layer("selector.hidden", x)))
    k = int(file.settings.get("picks", 1))
    b, log_p = picked(options[0], e, k)
    shown = b.repeat_interleave(len(x) // len(b)) * x  # features of several numbers each
    if "posterior.weight" in p:
        q = layer("posterior", torch.relu(layer("posterior.hidden", x) + p["posterior.label.weight"][label]))
        log_q = picked(options[0], q, k)[1]
    o = layer("predictor", torch.relu(layer("predictor.hidden", shown)))
    loss = -F.log_softmax(o, dim=0)[label]
    return ([loss + log_q - log_p], [log_q]) if "posterior.weight" in p else ([loss], [log_p])
