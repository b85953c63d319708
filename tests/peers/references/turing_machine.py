"""An independent PyTorch implementation of `turing_machine`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import lstm

CASES = [
    (f"algorithm[kind={kind},bits=3,min_length=2,max_length={longest},repeats=2]", settings)
    for kind, longest, settings in (
        ("copy", 4, "cells=5,width=4,hidden=6"),
        ("reverse", 3, "cells=4,width=3,hidden=5,reads=2,writes=2"),
        ("repeat_copy", 3, "cells=3,width=3,hidden=5,controller=feedforward"),
        ("associative_recall", 3, "cells=9,width=3,hidden=5,reads=2"),
        ("priority_sort", 4, "cells=6,width=3,hidden=5,writes=2"),
        ("copy", 4, "cells=7,width=3,hidden=5,shifts=2,reads=2"),
        ("copy", 3, "cells=4,width=3,hidden=5,shifts=0"),
    )
] + [
    ("algorithm[kind=ngrams,bits=1,context=2,min_length=4,max_length=6]", "cells=5,width=3,hidden=5,shifts=2"),
]
SOFT = True  # the soft form is a published network, too


def turing_machine(file: GradientFile, example: int, options):
    """`options` [T, H]; None: the published soft machine."""
    p = file.parameters
    x, y = file.batch["input"][example], file.batch["answer"][example]
    setting = lambda name, default: int(file.settings.get(name, default))
    N, readers, heads = setting("cells", 128), setting("reads", 1), setting("reads", 1) + setting("writes", 1)
    width = p["memory.initial.weight"].shape[1]
    lin = lambda name, v: F.linear(v, p[f"{name}.weight"], p[f"{name}.bias"])
    lengths = lambda v: torch.sqrt((v * v).sum(-1) + 1e-8)
    S = setting("shifts", 1)
    hidden = p["controller.bias"].shape[0] // (4 if "controller.recurrent.weight" in p else 1)

    M = p["memory.initial.weight"].expand(N, width)
    w = [F.one_hot(torch.tensor(0), N).double() for _ in range(heads)]
    s = c = torch.zeros(hidden, dtype=torch.float64)
    read = lambda: torch.cat([w[h] @ M for h in range(readers)])
    r = read()
    losses, log_probs = [], []
    for t in range(int(file.batch["length"][example])):
        given = torch.cat([torch.tensor(x[t], dtype=torch.float64), r])
        if "controller.recurrent.weight" in p:
            s, c = lstm(p, "controller", given, (s[None], c[None]))
            s, c = s[0], c[0]
        else:
            s = torch.tanh(lin("controller", given))
        asked = lin("head.address", s).reshape(heads, width + 2 * S + 4)
        for h in range(heads):
            k, (b, g, sharp) = asked[h, :width], (asked[h, width + j] for j in (0, 1, 2 * S + 3))
            cosine = (M @ k) / (lengths(M) * lengths(k))
            content = F.softmax(F.softplus(b) * cosine, dim=0)
            gated = torch.sigmoid(g) * content + (1 - torch.sigmoid(g)) * w[h]
            shift = F.softmax(asked[h, width + 2 : width + 3 + 2 * S], dim=0)
            shifted = sum(weight * torch.roll(gated, by) for by, weight in zip(range(-S, S + 1), shift))
            log_p = F.log_softmax((1 + F.softplus(sharp)) * torch.log(shifted + 1e-12), dim=0)
            if options is None:
                w[h] = log_p.exp()
            else:
                log_probs.append(log_p[options[t][h]])
                w[h] = F.one_hot(torch.tensor(int(options[t][h])), N).double()
        uv = lin("head.write", s).reshape(heads - readers, 2 * width)
        kept, added = torch.ones(N, width, dtype=torch.float64), 0
        for h in range(readers, heads):
            u, v = uv[h - readers].split(width)
            kept = kept * (1 - torch.outer(w[h], torch.sigmoid(u)))
            added = added + torch.outer(w[h], torch.tanh(v))
        M = M * kept + added
        r = read()
        if y[t][0] >= 0:
            losses.append(
                F.binary_cross_entropy_with_logits(
                    lin("output", torch.cat([s, r])), torch.tensor(y[t], dtype=torch.float64), reduction="sum"
                )
            )
    return losses, log_probs
