"""`turing_machine` with an LSTM controller: hard heads, or the soft machine as published."""

from __future__ import annotations

import numpy as np

from networks import layer, within
from surrogates import sampled


def prepare(file):
    b, setting = file.batch, lambda name, default: int(file.settings.get(name, default))
    T = int(b["length"].max())
    real = within(b["length"], T)
    asked = real & (b["answer"][:, :T, 0] >= 0)
    return {
        "input": b["input"][:, :T],
        "answer": np.maximum(b["answer"][:, :T], 0).astype("float32"),
        "real": real.astype("float32"),
        "asked": asked.astype("float32"),
        "cells": setting("cells", 128),
        "reads": setting("reads", 1),
        "writes": setting("writes", 1),
    }


def turing_machine(x, p, data, K, estimator):
    hard, N, reads, writes = estimator != "soft", data["cells"], data["reads"], data["writes"]
    copies, (B, T, _) = K if hard else 1, data["input"].shape
    R, width, heads = B * copies, p["memory.initial.weight"].shape[1], reads + writes
    given, real = x.repeat(data["input"], copies).swapaxes(0, 1), x.repeat(data["real"], copies).T
    M = x.broadcast(p["memory.initial.weight"], (R, N, width))
    w = x.broadcast(x.one_hot(x.arange(1) * 0, N)[None], (R, heads, N))
    s = x.zeros(R, p["controller.recurrent.weight"].shape[1])
    read = lambda w, M: x.bmm(w[:, :reads], M).reshape(R, reads * width)

    def step(state, now):
        s, c, M, w, log_prob = state
        s, c = x.lstm_cell(
            x.cat([now[0], read(w, M)], 1),
            (s, c),
            p["controller.input.weight"],
            p["controller.recurrent.weight"],
            p["controller.bias"],
        )
        asked = layer(x, p, "head.address", s).reshape(R, heads, width + 6)
        k = asked[:, :, :width]
        lengths = x.sqrt((M * M).sum(2) + 1e-8)[:, None] * x.sqrt((k * k).sum(2) + 1e-8)[:, :, None]
        content = x.softmax(x.softplus(asked[:, :, width : width + 1]) * x.bmm(k, M.swapaxes(1, 2)) / lengths, 2)
        g = x.sigmoid(asked[:, :, width + 1 : width + 2])
        gated = g * content + (1 - g) * w
        move = x.softmax(asked[:, :, width + 2 : width + 5], 2)
        shifted = move[:, :, :1] * x.roll(gated, -1, 2) + move[:, :, 1:2] * gated + move[:, :, 2:] * x.roll(gated, 1, 2)
        log_p = x.log_softmax((1 + x.softplus(asked[:, :, width + 5 :])) * x.log(shifted + 1e-12), 2)
        if hard:
            log_prob = log_prob + x.gather(log_p, now[2]).sum(1) * now[1]
            w = x.one_hot(now[2], N)  # of choices [R, heads]
        else:
            w = x.exp(log_p)
        uv = layer(x, p, "head.write", s).reshape(R, writes, 2 * width)
        places = w[:, reads:]
        kept = 1 - places[:, :, :, None] * x.sigmoid(uv[:, :, None, :width])  # [R, writes, N, width]
        M = M * (kept[:, 0] if writes == 1 else kept.prod(1)) + x.bmm(places.swapaxes(1, 2), x.tanh(uv[:, :, width:]))
        return (s, c, M, w, log_prob), x.cat([s, read(w, M)], 1)

    inputs = (given, real, data["choices"][:T]) if hard else (given, real)
    (*_, log_prob), said = x.loop(step, (s, s, M, w, x.zeros(R)), inputs)
    logits = layer(x, p, "output", said)  # [T, R, O]
    answer, asked = x.repeat(data["answer"], copies).swapaxes(0, 1), x.repeat(data["asked"], copies).T
    loss = (x.bernoulli_loss(logits, answer).sum(2) * asked).sum(0)
    return sampled(x, estimator, log_prob, loss, K) if hard else loss.mean()
