"""An independent PyTorch implementation of `transformer`: layer by layer, all tokens of a sequence at once."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import picked

RECALL = "recall[pairs=2,queries=2,length=6,vocabulary=6]"
JOINED = "recall[pairs=3,queries=2,length=6,vocabulary=6,joined=true]"
REPEATED = "induction[kind=repeated,length=6,vocabulary=4]"
CASES = [
    (RECALL, "width=6,inner=5"),
    (JOINED, "width=6,inner=5,layers=1,heads=1"),
    (JOINED, "width=6,inner=0,layers=1,heads=3"),
    (REPEATED, "width=8,inner=5,heads=2,places=rotary,layers=3"),
    (REPEATED, "width=6,inner=5,heads=3,share=true,places=sinusoidal"),
    (RECALL, "width=6,inner=5,scorer=indexer,index_heads=3,index_width=4,imitation=0.7"),
    (REPEATED, "width=8,inner=5,scorer=indexer,share=true,places=rotary,index_width=2"),
    ("induction[length=5]", "width=8,inner=5,scorer=indexer,share=true,places=rotary,index_width=4,imitation=1.3"),
    ("answers[kind=sort,symbols=3,size=2]", "width=6,inner=4"),
]
SOFT = True
SUBSETS = [
    (RECALL, "width=6,inner=5,picks=2"),
    (REPEATED, "width=6,inner=5,picks=3,share=true,within=equal,law=plackett_luce"),
    (JOINED, "width=6,inner=5,layers=1,picks=2,scorer=indexer"),
    (REPEATED, "width=8,inner=5,picks=2,scorer=indexer,share=true,places=rotary,imitation=0.7"),
]
FIXED = [
    (RECALL, "width=6,inner=5,picks=0"),
    (REPEATED, "width=8,inner=5,picks=0,places=rotary,scorer=indexer,imitation=0.7"),
    (REPEATED, "width=8,inner=5,picks=2,law=top,places=sinusoidal"),
    (REPEATED, "width=8,inner=5,picks=2,law=top,share=true,scorer=indexer,imitation=0.7"),
    (REPEATED, "width=8,inner=5,picks=2,law=top,share=true,scorer=indexer,imitation=0.7,over=picked"),
    (RECALL, "width=6,inner=5,picks=3,law=top,scorer=indexer,index_width=4,imitation=1.1,over=picked"),
]


def turned(x: torch.Tensor) -> torch.Tensor:
    """x [T, n]: pairs of numbers as complex ones, times exp(i t / 10000^(2 pair / n))."""
    T, n = x.shape
    z = torch.view_as_complex(x.reshape(T, n // 2, 2).contiguous())
    angle = torch.arange(T, dtype=torch.float64)[:, None] / 10000 ** (2 * torch.arange(n // 2, dtype=torch.float64) / n)
    return torch.view_as_real(z * torch.polar(torch.ones_like(angle), angle)).reshape(T, n)


def places(T: int, H: int) -> torch.Tensor:
    """[T, H] sines in the even columns, cosines in the odd ones."""
    angle = torch.arange(T, dtype=torch.float64)[:, None] / 10000 ** (2 * (torch.arange(H) // 2).double() / H)
    return torch.where(torch.arange(H) % 2 == 0, angle.sin(), angle.cos())


def transformer(file: GradientFile, example: int, options, exactly=None):
    """`options`: the choices [T L], one for each head or (picks > 1) indicators of the chosen keys; None: the softmax in place of one
    key. `exactly`: a function of (layer, place, choice) that gives indicators, in their place."""
    p, of = file.parameters, file.settings.get
    layers, M, picks = int(of("layers", 2)), int(of("heads", 2)), int(of("picks", 1))
    D = 1 if of("share", "false") == "true" else M
    scorer, law, weight = of("scorer", "heads"), of("law", "conditional_poisson"), float(of("imitation", 0))
    label = [int(y) for y in file.batch["label"][example]]
    T = max(t for t, y in enumerate(label) if y >= 0) + 1
    h = p["embedding.weight"][torch.tensor([int(x) for x in file.batch["token"][example][:T]])]
    H = h.shape[1]
    kind = of("places", "learned")
    if kind != "rotary":
        h = h + (p["places.weight"][:T] if kind == "learned" else places(T, H))
    turn = turned if kind == "rotary" else lambda x: x
    norm = lambda name, x: F.layer_norm(x, (H,), p[f"{name}.gain"], p[f"{name}.bias"])
    parts = lambda x: list(x.chunk(M, dim=1))
    losses, log_probs = [], []
    for layer in range(1, layers + 1):
        name = f"layer{layer}.attention"
        u = norm(f"{name}.norm", h)
        q, k, v = (parts(u @ p[f"{name}.{x}.weight"].T) for x in ("query", "key", "value"))
        scores = [turn(a) @ turn(b).T / math.sqrt(H / M) for a, b in zip(q, k)]
        if scorer == "indexer":
            seen = u.detach() if weight > 0 else u
            key = turn(seen @ p[f"index.layer{layer}.key.weight"].T)
            C = key.shape[1]
            gain = seen @ p[f"index.layer{layer}.gain.weight"].T
            queries = (seen @ p[f"index.layer{layer}.query.weight"].T).split(C, dim=1)
            J = len(queries) // D
            terms = [gain[:, i : i + 1] * torch.relu(turn(query) @ key.T) for i, query in enumerate(queries)]
            logits = [sum(terms[d * J : (d + 1) * J]) / math.sqrt(J * C) for d in range(D)]
        else:
            logits = scores if D == M else [sum(scores) / M]
        read = []
        for t in range(T):
            s = [x[t, : t + 1] for x in scores]
            e = [x[t, : t + 1] for x in logits]
            dense = [F.softmax(x, dim=0) for x in s]
            if weight > 0:
                of_heads, of_indexer = dense, [F.log_softmax(x, dim=0) for x in e]
                if of("over", "all") == "picked":
                    best = [torch.sort(x, descending=True, stable=True).indices[:picks] for x in e]
                    of_heads = [F.softmax(x[best[0 if D == 1 else m]], dim=0) for m, x in enumerate(s)]
                    of_indexer = [F.log_softmax(x[keys], dim=0) for x, keys in zip(e, best)]
                targets = of_heads if D == M else [sum(of_heads) / M]
                for target, log_q in zip(targets, of_indexer):
                    target = target.detach()
                    losses.append(weight * (target * (target.log() - log_q)).sum())
            if picks == 0:
                read.append(torch.cat([a @ x[: t + 1] for a, x in zip(dense, v)]))
                continue
            chosen = []
            for d in range(D):
                if law == "top":
                    b = torch.zeros(t + 1, dtype=torch.float64)
                    b[torch.sort(e[d], descending=True, stable=True).indices[:picks]] = 1  # rectified scores tie
                elif layer == layers and label[t] < 0:  # one option
                    b = torch.zeros(t + 1, dtype=torch.float64)
                    b[0] = 1
                elif exactly is not None:
                    b, log_p = picked(exactly(layer, t, d), e[d], picks, law, subset=True)
                    log_probs.append(log_p)
                elif options is None:
                    b = F.softmax(e[d], dim=0)
                else:
                    given = options[t * layers + layer - 1]
                    b, log_p = picked(given[d] if D > 1 else given, e[d], picks, law)
                    log_probs.append(log_p)
                chosen.append(b)
            out = []
            for m in range(M):
                b = chosen[0 if D == 1 else m]
                if picks == 1 or of("within", "softmax") == "equal":
                    a = b / min(picks, t + 1)
                else:
                    a = F.softmax(s[m].masked_fill(b == 0, -math.inf), dim=0)
                out.append(a @ v[m][: t + 1])
            read.append(torch.cat(out))
        h = h + torch.stack(read) @ p[f"{name}.output.weight"].T + p[f"{name}.output.bias"]
        name = f"layer{layer}.forward"
        if f"{name}.inner.weight" in p:
            inner = norm(f"{name}.norm", h) @ p[f"{name}.inner.weight"].T + p[f"{name}.inner.bias"]
            h = h + torch.relu(inner) @ p[f"{name}.outer.weight"].T + p[f"{name}.outer.bias"]
    said = norm("norm", h) @ p["output.weight"].T + p["output.bias"]
    losses += [-F.log_softmax(said[t], dim=0)[label[t]] for t in range(T) if label[t] >= 0]
    return losses, log_probs
