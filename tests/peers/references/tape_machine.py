"""An independent PyTorch implementation of `tape_machine`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import lstm

CASES = [
    (f"algorithm[kind={kind},bits=3,min_length=1,max_length={longest},repeats=2]", settings)
    for kind, longest, settings in (
        ("reverse", 3, "cells=4,width=3,hidden=5"),
        ("duplicated_input", 2, "cells=8,width=2,hidden=6,time=1.3"),
        ("copy", 4, "cells=5,width=3,hidden=5,input=forward"),
        ("repeat_copy", 2, "cells=3,width=3,hidden=5,time=1.5"),
        ("priority_sort", 3, "cells=6,width=2,hidden=4,input=forward,time=2"),
        ("reverse", 3, "cells=4,width=3,hidden=5,controller=direct"),
        ("copy", 3, "cells=5,width=2,hidden=4,time=1.4,controller=direct"),
    )
]
SOFT = True  # all heads and the written values, as weights


def tape_machine(file: GradientFile, example: int, options):
    """`options` [T, 3]: moves of the input and the memory head (0 stay, 1 right, 2 left), 0 to write; None: weights."""
    p = file.parameters
    length = int(file.batch["length"][example])
    x, y = (torch.tensor(file.batch[name][example][:length], dtype=torch.float64) for name in ("input", "answer"))
    shown, wanted = x[y[:, 0] < 0], y[y[:, 0] >= 0]
    N, T = int(file.settings.get("cells", 64)), math.ceil(float(file.settings.get("time", 1)) * length)
    W, C = p["write.weight"].shape[0] // 2, p["controller.recurrent.weight"].shape[1]
    lin = lambda name, v: F.linear(v, p[f"{name}.weight"], p[f"{name}.bias"])
    tape = torch.zeros(N, x.shape[1], dtype=torch.float64)
    tape[: len(shown)] = shown
    M, L = torch.zeros(N, W, dtype=torch.float64), len(wanted)
    one = lambda n, i: F.one_hot(torch.tensor(i), n).double()
    at_input, at_memory, done = one(N, 0), one(N, 0), one(L + 1, 0)
    a, state = torch.zeros(8, dtype=torch.float64), (torch.zeros(1, C, dtype=torch.float64),) * 2
    moved = lambda at, b: b[0] * at + b[1] * torch.roll(at, 1) + b[2] * torch.roll(at, -1)
    losses, log_probs = [], []
    for t in range(1, T + 1):
        if options is not None and done[L] == 1:
            break
        symbol, cell = at_input @ tape, at_memory @ M
        state = lstm(p, "controller", torch.cat([symbol, cell, a]), state)
        s = state[0][0]
        gate, value = lin("write", s).split(W)
        value, copied, beside = torch.tanh(value), 0, 0
        if "direct.weight" in p:
            c = torch.sigmoid(lin("direct", s))
            value = value + c[0] * p["direct.input_to_memory.weight"] @ symbol
            copied = c[1] * p["direct.input_to_output.weight"] @ symbol + c[2] * p["direct.memory_to_output.weight"] @ cell
            beside = torch.outer(torch.roll(at_memory, 1) + torch.roll(at_memory, -1), c[3] * cell)
        M = M + torch.outer(at_memory, torch.sigmoid(gate)) * (value - M) + beside
        left = T - t + 1
        must = [L - k >= left for k in range(L)]
        free = any(done[k] > 0 and not must[k] for k in range(L))
        counts = [
            1 if left == 1 else 2 if file.settings.get("input") == "forward" else 3,
            1 if left == 1 else 3,
            2 if free else 1,
        ]
        parts = []
        for d, (scores, count) in enumerate(zip(lin("move", s).split([3, 3, 2]), counts)):
            log_p = F.log_softmax(scores[:count], dim=0)
            if options is None:
                parts.append(F.pad(log_p.exp(), (0, len(scores) - count)))
            else:
                option = int(options[t - 1][d]) if count > 1 else 0
                log_probs.append(log_p[option])
                parts.append(one(len(scores), option))
        a = torch.cat(parts)
        at_input, at_memory = moved(at_input, parts[0]), moved(at_memory, parts[1])
        logits, next_done = lin("output", s) + copied, [done[k] for k in range(L + 1)]
        for k in range(L):
            now = done[k] * (1 if must[k] else parts[2][0])
            losses.append(now * F.binary_cross_entropy_with_logits(logits, wanted[k], reduction="sum"))
            next_done[k], next_done[k + 1] = next_done[k] - now, next_done[k + 1] + now
        done = torch.stack(next_done)
    return losses, log_probs
