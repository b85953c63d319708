"""`tape_machine`: hard heads. Positions are whole numbers that follow from the choices."""

from __future__ import annotations

import math

import numpy as np

from networks import layer, within
from surrogates import sampled


def prepare(file):
    b, N = file.batch, int(file.settings.get("cells", 64))
    B, width, outputs = len(b["length"]), b["input"].shape[2], b["answer"].shape[2]
    wanted = [b["answer"][i, :n][b["answer"][i, :n, 0] >= 0] for i, n in enumerate(b["length"])]
    shown = [b["input"][i, :n][b["answer"][i, :n, 0] < 0] for i, n in enumerate(b["length"])]
    answer, tape = np.zeros((B, max(map(len, wanted)) + 1, outputs), "float32"), np.zeros((B, N, width), "float32")
    for i in range(B):
        answer[i, : len(wanted[i])], tape[i, : len(shown[i])] = wanted[i], shown[i]
    steps = np.array([math.ceil(float(file.settings.get("time", 1)) * n) for n in b["length"]])
    choices = np.zeros((steps.max(), *file.choices.shape[1:]), int)  # steps without a choice at the end are not in the file
    choices[: len(file.choices)] = np.maximum(file.choices, 0)
    return {
        "choices": choices,
        "answer": answer,
        "tape": tape,
        "count": np.array(list(map(len, wanted))),
        "steps": steps,
        "cells": N,
        "input_moves": 2 if file.settings.get("input") == "forward" else 3,
    }


def tape_machine(x, p, data, K, estimator):
    N, B = data["cells"], len(data["count"])
    R = B * K
    rows, example = x.arange(R), x.repeat(x.arange(B), K)
    count, steps = x.repeat(data["count"], K), x.repeat(data["steps"], K)
    W, C = p["write.weight"].shape[0] // 2, p["controller.recurrent.weight"].shape[1]
    option, start = x.arange(3), rows * 0

    def step(state, now):
        h, c, M, action, at_input, at_memory, done, log_prob = state
        moves, left = now[0], steps - now[1]  # [R, 3]
        active = (done < count) & (left > 0)
        read = M[rows, at_memory]
        h, c = x.lstm_cell(
            x.cat([data["tape"][example, at_input], read, action], 1),
            (h, c),
            p["controller.input.weight"],
            p["controller.recurrent.weight"],
            p["controller.bias"],
        )
        gate, value = (lambda v: (v[:, :W], v[:, W:]))(layer(x, p, "write", h))
        M = M + x.one_hot(at_memory, N)[:, :, None] * (x.sigmoid(gate) * (x.tanh(value) - read))[:, None]
        must = count - done >= left  # write now, or there is no time left
        last = left == 1
        legal = (x.where(last, 1, data["input_moves"]), x.where(last, 1, 3), x.where(must, 1, 2))
        scores, parts = layer(x, p, "move", h), []
        for d, (begin, size) in enumerate(((0, 3), (3, 3), (6, 2))):
            beyond = x.where(option[:size] < legal[d][:, None], 0.0, -1e30)
            log_prob = log_prob + x.gather(x.log_softmax(scores[:, begin : begin + size] + beyond, 1), moves[:, d]) * x.single(
                active
            )
            parts.append(x.one_hot(moves[:, d], size))
        moved = lambda at, b: (at + 1 * (b == 1) - 1 * (b == 2)) % N
        at_input, at_memory = moved(at_input, moves[:, 0]), moved(at_memory, moves[:, 1])
        now = active & (must | (moves[:, 2] == 0))
        wanted = data["answer"][example, x.minimum(done, count)]
        loss = x.bernoulli_loss(layer(x, p, "output", h), wanted).sum(1) * x.single(now)
        return (h, c, M, x.cat(parts, 1), at_input, at_memory, done + 1 * now, log_prob), loss

    zero = x.zeros(R, C)
    state = (zero, zero, x.zeros(R, N, W), x.zeros(R, 8), start, start, start, x.zeros(R))
    (*_, log_prob), losses = x.loop(step, state, (data["choices"], x.arange(len(data["choices"]))))
    return sampled(x, estimator, log_prob, losses.sum(0), K)
