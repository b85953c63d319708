"""`pixel_attention`: one place of a canvas, and an autoencoder of the window there."""

from __future__ import annotations

import math

import numpy as np

from networks import layer
from surrogates import sampled


def prepare(file):
    image, P = file.batch["image"], round(file.parameters["encoder.1.weight"].shape[1] ** 0.5)
    side, places = image.shape[1], file.parameters["attention.place.weight"].shape[0]
    G = round(places**0.5)
    padded = np.pad(image, ((0, 0), (P, P), (P, P)))
    first = ((2 * np.arange(G) + 1) * side - P * G + G) // (2 * G) + P
    start = (first[:, None] * padded.shape[2] + first).reshape(-1)
    offset = (np.arange(P)[:, None] * padded.shape[2] + np.arange(P)).reshape(-1)
    number = lambda name, default: float(file.settings.get(name, default))
    return {
        "image": image,
        "padded": padded.reshape(len(image), -1),
        "start": start,
        "offset": offset,
        "noise": file.batch["noise"],
        "layers": int(number("layers", 4)),
        "ink": number("background", 1e-8),
        "beta": number("beta", 1),
    }


def pixel_attention(x, p, data, K, estimator):
    y, start, ink = data["image"], data["start"], data["ink"]
    B, side, places = len(y), y.shape[1], len(start)
    a = y[:, None]
    for k in range(1, data["layers"] + 1):
        weight = p[f"attention.{k}.weight"]
        kernel = weight.reshape(len(weight), 3, 3, -1).swapaxes(1, 3).swapaxes(2, 3)  # [out, in, 3, 3]
        a = x.conv(x.relu(a) if k > 1 else a, kernel, p[f"attention.{k}.bias"])
    log_p = x.log_softmax(layer(x, p, "attention.place", a.reshape(B, -1)), 1)
    choice = data["choices"][0]
    example = x.repeat(x.arange(B), K)
    window = data["padded"][example[:, None], start[choice][:, None] + data["offset"]]  # [R, P P]
    z, s = (lambda code: (code[:, : code.shape[1] // 2], code[:, code.shape[1] // 2 :]))(
        layer(x, p, "encoder.2", x.tanh(layer(x, p, "encoder.1", window)))
    )
    missed = x.repeat(y.reshape(B, -1).sum(1), K) - window.sum(1)
    loss = -missed * math.log(ink) - (side * side - window.shape[1] - missed) * math.log1p(-ink)
    loss = loss + (z**2 + x.exp(2 * s) - 1 - 2 * s).sum(1) / 2
    z = z + x.exp(s) * x.repeat(data["noise"], K)[:, : z.shape[1]]
    logits = layer(x, p, "decoder.2", x.tanh(layer(x, p, "decoder.1", z)))
    loss = loss + x.bernoulli_loss(logits, window).sum(1)
    loss = loss + x.repeat(data["beta"] * (x.exp(log_p) * (log_p + math.log(places))).sum(1), K)
    return sampled(x, estimator, log_p[example, choice], loss, K)
