"""An independent PyTorch implementation of `belief_network`."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from gradient_file import GradientFile

CASES = [
    ("images[size=8]", "units=20"),
    ("images[size=8]", "units=8,layers=3"),
    ("images[size=8]", "units=4,layers=2,options=9"),
    ("images[size=8]", "units=7,layers=2,hidden_layers=2,hidden=9"),
    ("images[size=8]", "units=7,layers=2,conditional=true"),
    ("images[size=8]", "units=3,options=4,hidden_layers=1,hidden=9,conditional=true"),
]
BOUNDS = CASES


def belief_network(file: GradientFile, example: int, options):
    """If the parameters include a posterior, choices are from the posterior, and the divergence log q - log p is added to the losses."""
    p = file.parameters
    S = int(file.settings.get("options", 2))
    image = torch.tensor(file.batch["image"][example], dtype=torch.float64)
    height = image.shape[0] // 2 if file.settings.get("conditional") == "true" else 0
    y = image[height:].flatten()

    def network(name, x, also=0):
        k = 1
        v = p[f"{name}.1.weight"] @ x + p[f"{name}.1.bias"] + also
        while f"{name}.{k + 1}.weight" in p:
            k += 1
            v = p[f"{name}.{k}.weight"] @ F.leaky_relu(v, 0.3) + p[f"{name}.{k}.bias"]
        return v

    def log_probability(logits, z):
        if S == 2:
            return -F.binary_cross_entropy_with_logits(logits, z.double(), reduction="sum")
        return -F.cross_entropy(logits.reshape(-1, S), z, reduction="sum")

    x, losses, log_probs = None, [], []
    for l, chosen in enumerate(options, start=1):
        z = torch.tensor(np.atleast_1d(chosen))
        if l == 1:
            logits = network("prior.layer1", 2 * image[:height].flatten() - 1) if height else p["prior.logits"][0]
        else:
            logits = network(f"prior.layer{l}", x)
        log_p = log_probability(logits, z)
        if "posterior.layer1.1.weight" in p:
            below = p[f"posterior.layer{l}.below.weight"] @ x if l > 1 else 0
            log_q = log_probability(network(f"posterior.layer{l}", 2 * image.flatten() - 1, below), z)
            losses.append(log_q - log_p)
            log_probs.append(log_q)
        else:
            log_probs.append(log_p)
        x = 2 * z.double() - 1 if S == 2 else F.one_hot(z, S).double().flatten()
    losses.append(F.binary_cross_entropy_with_logits(network("decoder", x), y, reduction="sum"))
    return losses, log_probs
