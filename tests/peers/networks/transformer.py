"""`transformer` whose heads read one key each, with learned places: layer by layer, all tokens of all rows at once."""

from __future__ import annotations

import numpy as np

from networks import layer
from surrogates import sampled


def prepare(file):
    layers, heads = (int(file.settings.get(name, 2)) for name in ("layers", "heads"))
    steps, rows = file.choices.shape[0] // layers, file.choices.shape[1]
    label = file.batch["label"][:, :steps]
    at = np.arange(steps)
    asked = (label[:, ::-1] >= 0).cumsum(1)[:, ::-1] > 0  # up to the last label
    return {
        "token": np.maximum(file.batch["token"][:, :steps], 0),
        "label": np.maximum(label, 0),
        "labelled": (label >= 0).astype("float32"),
        "asked": asked.astype("float32"),
        "ahead": np.where(at <= at[:, None], 0, -1e9).astype("float32"),
        # [R, layers, heads, T]
        "keys": np.maximum(file.choices, 0).reshape(steps, layers, rows, heads).transpose(2, 1, 3, 0),
        "layers": layers,
        "heads": heads,
    }


def norm(x, p, name, a):
    away = a - a.mean(-1)[..., None]
    return away / x.sqrt((away * away).mean(-1)[..., None] + 1e-5) * p[f"{name}.gain"] + p[f"{name}.bias"]


def transformer(x, p, data, K, estimator):
    M, (B, T) = data["heads"], data["token"].shape
    h = x.embedding(p["embedding.weight"], data["token"]) + p["places.weight"][:T]
    H, labelled, asked, log_p = (
        h.shape[-1],
        x.repeat(data["labelled"], K),
        x.repeat(data["asked"], K),
        0,
    )
    for l in range(data["layers"]):
        name = f"layer{l + 1}.attention"
        u = norm(x, p, f"{name}.norm", h)
        q, k, v = (x.linear(u, p[f"{name}.{of}.weight"]).reshape(len(h), T, M, H // M) for of in ("query", "key", "value"))
        scores = x.einsum("btmc,bsmc->bmts", q, k) * (H // M) ** -0.5 + data["ahead"]
        chosen = x.log_softmax(scores, -1)
        if l == 0:  # tokens before any choice
            h, v, chosen = (x.repeat(a, K) for a in (h, v, chosen))
        keys = data["keys"][:, l]  # [R, M, T]
        log_p = log_p + x.gather(chosen, keys).sum(1) * (asked if l + 1 < data["layers"] else labelled)
        row = x.arange(len(keys))[:, None, None]
        read = v[row, keys, x.arange(M)[None, :, None]]  # [R, M, T, C]
        h = h + layer(x, p, f"{name}.output", read.swapaxes(1, 2).reshape(len(keys), T, H))
        name = f"layer{l + 1}.forward"
        h = h + layer(
            x,
            p,
            f"{name}.outer",
            x.relu(layer(x, p, f"{name}.inner", norm(x, p, f"{name}.norm", h))),
        )
    said = layer(x, p, "output", norm(x, p, "norm", h))
    label = x.repeat(data["label"], K)
    loss = x.cross_entropy(said.reshape(len(h) * T, -1), label.reshape(-1)).reshape(len(h), T) * labelled
    return sampled(x, estimator, log_p.sum(1), loss.sum(1), K)
