"""`captioner` on images, with or without a gate."""

from __future__ import annotations

from networks import layer, within
from surrogates import sampled


def prepare(file):
    b = file.batch
    T = int(b["target_length"].max())
    return {"image": b["image"], "target": b["target"][:, :T], "said": within(b["target_length"], T).astype("float32")}


def captioner(x, p, data, K, estimator):
    def convolve(name, a, side):  # the kernel's stride is its side: a product over patches
        B, H, W, C = a.shape
        a = a.reshape(B, H // side, side, W // side, side, C).swapaxes(2, 3)
        return x.relu(layer(x, p, name, a.reshape(B, H // side, W // side, side * side * C)))

    def maps(a):
        B, H, W, C = a.shape
        a = a.reshape(B, H // 2, 2, W // 2, 2, C).swapaxes(2, 3).reshape(B, H * W // 4, 4 * C)
        return layer(x, p, "encoder.second", a)

    target = data["target"]
    B, T = target.shape
    a = x.relu(maps(convolve("encoder.first", data["image"], 4)) + p["encoder.place.weight"])  # [B, L, D]
    mean = a.mean(1)
    h, c = (x.repeat(x.tanh(layer(x, p, f"decoder.{name}", mean)), K) for name in ("h", "c"))
    keys, a, target, rows = x.repeat(layer(x, p, "attention.cell", a), K), x.repeat(a, K), x.repeat(target, K), x.arange(B * K)
    weight = x.cat([p["decoder.lstm.input.weight"], p["decoder.context.weight"]], 1)
    previous = x.pad(target[:, :-1] - 2, 1, 0) + 2
    words = x.embedding(p["decoder.embedding.weight"], previous)
    states, contexts, chosen = [], [], []
    for t in range(T):
        mixed = x.tanh(keys + layer(x, p, "attention.query", h)[:, None])
        choice = data["choices"][t]
        chosen.append(x.log_softmax(mixed @ p["attention.score.weight"][0], 1)[rows, choice])
        z = a[rows, choice]
        if "decoder.gate.weight" in p:
            z = x.sigmoid(layer(x, p, "decoder.gate", h)) * z
        h, c = x.lstm_cell(
            x.cat([words[:, t], z], 1), (h, c), weight, p["decoder.lstm.recurrent.weight"], p["decoder.lstm.bias"]
        )
        states.append(h)
        contexts.append(z)
    u = words + layer(x, p, "readout.state", x.stack(states, 1)) + layer(x, p, "readout.context", x.stack(contexts, 1))
    logits = layer(x, p, "output", u)
    loss = x.cross_entropy(logits.reshape(B * K * T, -1), target.reshape(-1)).reshape(B * K, T)
    said = x.repeat(data["said"], K)
    return sampled(x, estimator, (x.stack(chosen, 1) * said).sum(1), (loss * said).sum(1), K)
