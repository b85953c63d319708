"""An independent PyTorch implementation of `sentence_pair`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile

CASES = [
    ("pairs", "width=5,window=3"),
    ("pairs[kind=entailment]", "width=4,window=2,attention=top"),
    ("pairs[kind=entailment,words=4]", "width=4,window=3,attention=both,layers=2"),
    ("pairs", "width=5,window=1,attention=both"),
]
SOFT = True


def sentence_pair(file: GradientFile, example: int, options):
    """`options` [T, D]: for the tokens of the first sentence, then of the second, their partners or units of their windows. None: the
    published network."""
    p = file.parameters
    w, attention = int(file.settings.get("window", 3)), file.settings.get("attention", "bottom")
    sides = ("first", "second")
    x = [
        p["embedding.weight"][
            torch.tensor(file.batch[side][example][: file.batch[f"{side}_length"][example]], dtype=torch.long)
        ]
        for side in sides
    ]
    log_probs, asked = [], 0

    def match(a, b):
        difference = a[:, None] - b[None]
        square = difference.square().sum(2)
        # The distance of equal words is 0 and not differentiable.
        return 1 / (1 + torch.where(square > 0, square, torch.ones(())).sqrt() * (square > 0))

    def mixed(p_of_options, values, side):  # [s, S] and [s, S, C] -> [s, C]
        if options is None:
            return (p_of_options[:, :, None] * values).sum(1)
        first = len(x[0]) if side else 0
        chosen = torch.tensor(options[asked][first : first + len(values)], dtype=torch.long)
        tokens = torch.arange(len(values))
        log_probs.append(p_of_options[tokens, chosen].log().sum())
        return values[tokens, chosen]

    levels = [[words.mean(0) for words in x]]
    for k in range(1, int(file.settings.get("layers", 1)) + 1):
        seen = x
        if attention in ("bottom", "both"):
            seen = []
            for side in (0, 1):
                A = match(x[side], x[1 - side])
                R = A.sum(1, keepdim=True)
                P = p["attention.place.weight"][: A.shape[1]].expand(len(A), -1, -1)
                seen.append(torch.cat([x[side], R * mixed(A / R, P, side)], dim=1))
            asked += 1
        f = []
        for side in (0, 1):
            padded = F.pad(seen[side], (0, 0, w - 1, w - 1))
            windows = torch.stack([padded[u : u + w].flatten() for u in range(len(x[side]) + w - 1)])
            f.append(torch.tanh(F.linear(windows, p[f"block{k}.weight"], p[f"block{k}.bias"])))
        pooled = []
        for side in (0, 1):
            windows = torch.stack([f[side][i : i + w] for i in range(len(x[side]))])  # [s, w, D]
            if attention in ("top", "both"):
                v = match(f[side], f[1 - side]).sum(1)
                v = torch.stack([v[i : i + w] for i in range(len(x[side]))])
                V = v.sum(1, keepdim=True)
                pooled.append(V * mixed(v / V, windows, side))
            else:
                pooled.append(windows.mean(1))
        asked += attention in ("top", "both")
        x = pooled
        levels.append([words.mean(0) for words in x])
    features = torch.cat([part for r, t in levels for part in (r, t, r * t)])
    logits = F.linear(features, p["classifier.weight"], p["classifier.bias"])
    return [-F.log_softmax(logits, dim=0)[int(file.batch["label"][example])]], log_probs
