"""`ponderer` with law=geometric and ask=bits. States do not depend on choices: they are computed once per example."""

from __future__ import annotations

import numpy as np

from networks import layer
from surrogates import sampled


def prepare(file):
    number = lambda name, default: float(file.settings.get(name, default))
    N, halted = int(number("steps", 10)), file.choices == 0  # [N - 1, R]
    stop = np.where(halted.any(0), halted.argmax(0), N - 1)
    label = file.batch["label"]
    return {
        "x": file.batch["x"],
        "label": np.maximum(label, 0),
        "asked": (label >= 0).astype("float32"),
        "stop": stop,
        "steps": N,
        "prior": number("prior", 0.2),
        "beta": number("beta", 0.01),
        "tau": number("tau", 0),
    }


def ponderer(x, p, data, K, estimator):
    N, rate, stop, label = data["steps"], data["prior"], data["stop"], data["label"]
    B, positions = label.shape
    h = c = x.zeros(B, p["core.recurrent.weight"].shape[1])
    states = []
    for _ in range(N):
        h, c = x.lstm_cell(data["x"], (h, c), p["core.input.weight"], p["core.recurrent.weight"], p["core.bias"])
        states.append(h)
    s = x.stack(states, 1)  # [B, N, H]
    score = layer(x, p, "halt", s)[:, : N - 1, 0]
    on, off = x.logsigmoid(score), x.logsigmoid(-score)
    passed = x.pad(off.cumsum(1), 1, 0)  # log P(not halted before n) [B, N]
    log_law = passed + x.pad(on, 0, 1)
    halt = x.sigmoid(score)
    divergence = halt * (on - np.log(rate)) + (1 - halt) * (off - np.log(1 - rate))
    example = x.repeat(x.arange(B), K)
    reached = x.arange(N - 1) <= stop[:, None]  # [R, N - 1]
    loss = data["beta"] * (x.repeat(divergence, K) * reached).sum(1) + data["tau"] * (stop + 1)
    logits = layer(x, p, "answer", s[example, stop]).reshape(B * K * positions, -1)
    said = x.cross_entropy(logits, x.repeat(label, K).reshape(-1)).reshape(B * K, positions)
    return sampled(x, estimator, log_law[example, stop], loss + (said * x.repeat(data["asked"], K)).sum(1), K)
