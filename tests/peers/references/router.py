"""An independent PyTorch implementation of `router`, one example at a time; the balance joins the examples of a batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import picked

CASES = [
    ("features[kind=regimes]", "hidden=4"),
    ("features[kind=regimes]", "hidden=4,gate=none,experts=3"),
    ("features[features=4]", "hidden=3,picks=2"),
    ("features[features=4]", "hidden=3,picks=3,experts=5,gate=none"),
]
BOUNDS = [("features[features=4]", "hidden=3"), ("features[features=4]", "hidden=3,picks=2,gate=none")]


def probabilities(file: GradientFile, e: torch.Tensor) -> torch.Tensor:
    """[n] that each expert is picked; of several by enumeration."""
    k, n = int(file.settings.get("picks", 1)), len(e)
    if k == 1:
        return F.softmax(e, dim=0)
    every = [picked(torch.eye(n)[list(s)].sum(0).numpy(), e, k) for s in torch.combinations(torch.arange(n), k).tolist()]
    return sum(log.exp() * s for s, log in every)


def densely_mixed(file: GradientFile, example: int, dense: bool) -> torch.Tensor:
    """The loss whose gradient is `dense_mixer`: the answers of the experts with the largest logits, and the derivative of the sum over
    all experts, where the others' answers are constants. dense=False: the usual derivative, of the answers themselves."""
    p = file.parameters
    layer = lambda name, v: F.linear(v, p[f"{name}.weight"], p[f"{name}.bias"])
    x, label = torch.tensor(file.batch["x"][example], dtype=torch.float64), int(file.batch["label"][example])
    e = layer("gate", x)
    c, k = probabilities(file, e), int(file.settings.get("picks", 1))
    answer = [torch.relu(layer(f"expert.{i + 1}", x)) for i in range(len(e))]
    best = set(e.topk(k).indices.tolist())
    o = sum(c[i] * answer[i] for i in best)
    if dense:
        mixed = sum(c[i] * (answer[i] if i in best else answer[i].detach()) for i in range(len(e)))
        o = o.detach() + mixed - mixed.detach()
    return -F.log_softmax(layer("readout", o), dim=0)[label]


def router(file: GradientFile, example: int, options):
    p = file.parameters
    layer = lambda name, v: F.linear(v, p[f"{name}.weight"], p[f"{name}.bias"])
    x, label = torch.tensor(file.batch["x"][example], dtype=torch.float64), int(file.batch["label"][example])
    k, n = int(file.settings.get("picks", 1)), int(file.settings.get("experts", 4))
    e = layer("gate", x)
    b, log_p = picked(options[0], e, k)
    c = torch.ones(n, dtype=torch.float64)
    if file.settings.get("gate", "probability") == "probability":
        c = probabilities(file, e)
    o = sum(b[i] * c[i] * torch.relu(layer(f"expert.{i + 1}", x)) for i in range(n))
    loss = -F.log_softmax(layer("readout", o), dim=0)[label]
    if "posterior.gate.weight" not in p:
        return [loss], [log_p]
    log_q = picked(options[0], layer("posterior.gate", x) + p["posterior.label.weight"][label], k)[1]
    return [loss + log_q - log_p], [log_q]
