"""`programmer`: hard operations and columns."""

from __future__ import annotations

import numpy as np

from networks import layer, within
from surrogates import sampled

SUM, COUNT, DIFFERENCE, GREATER, LESSER, AND, OR, ASSIGN, RESET = range(9)


def prepare(file):
    b = file.batch
    rows, columns, numbers = (
        within(b[name], b[of].shape[axis]).astype("float32")
        for name, of, axis in (("table_rows", "table", 1), ("table_columns", "table", 2), ("numbers", "number", 1))
    )
    real = rows[:, :, None] * columns[:, None]
    table, Q = b["table"], int(b["question_length"].max())
    compare = lambda found: np.stack([found(table, v[:, None, None]) for v in b["number"].T], 1) * real[:, None]  # [B, N, R, C]
    return {
        "question": b["question"][:, :Q],
        "length": b["question_length"],
        "column": b["column_name"],
        "rows": rows,
        "real": real,
        "numbers": numbers,
        "place": np.clip(b["number_place"], 0, Q - 1),
        "table": table * real,
        "greater": compare(np.greater),
        "lesser": compare(np.less),
        "beyond": np.where(columns > 0, 0, -np.inf).astype("float32"),
        "cells": (b["asks_cells"] != 0),
        "answer": b["answer"],
        "steps": int(file.settings.get("steps", 4)),
        "wanted": ((b["wanted"][:, : table.shape[1], None] == np.arange(1, table.shape[2] + 1)) & (real > 0)).astype("float32"),
        "delta": float(file.settings.get("delta", 1)),
    }


def programmer(x, p, data, K, estimator):
    y, q = x.bilstm(p, "question", x.embedding(p["embedding.weight"], data["question"]), data["length"])
    B, U, table = len(y), p["operation.weight"], x.repeat(data["table"], K)
    P = x.embedding(p["embedding.weight"], data["column"])  # [B, C, E]
    states = y[x.arange(B)[:, None], data["place"]]  # of the numbers [B, N, 2H]
    weight = x.softmax(layer(x, p, "pivot", states) @ U.T + x.where(data["numbers"] > 0, 0.0, -1e30)[:, :, None], 1)
    weight = weight * data["numbers"][:, :, None]  # [B, N, 9]
    greater, lesser = (
        x.repeat((weight[:, :, o, None, None] * data[name]).sum(1), K) for o, name in ((GREATER, "greater"), (LESSER, "lesser"))
    )  # [R, rows, C]
    q, P, real, beyond = x.repeat(q, K), x.repeat(P, K), x.repeat(data["rows"], K), x.repeat(data["beyond"], K)
    R = B * K
    h, rows = x.zeros(R, p["history.bias"].shape[0]), x.arange(R)
    r, s, log_prob = [real, real], [x.zeros(R)] * 3, 0
    for t in range(data["steps"]):
        known = x.cat([q, h], 1)
        operation, column = data["choices"][t][:, 0], data["choices"][t][:, 1]
        scores = x.tanh(layer(x, p, "score.operation", known)) @ U.T
        places = x.bmm(P, x.tanh(layer(x, p, "score.column", known))[:, :, None])[:, :, 0] + beyond
        log_prob = log_prob + x.log_softmax(scores, 1)[rows, operation] + x.log_softmax(places, 1)[rows, column]
        a = lambda o: 1.0 * (operation == o)
        of = lambda values: values[rows, :, column]
        number = a(COUNT) * r[-1].sum(1) + a(DIFFERENCE) * (s[-3] - s[-1]) + a(SUM) * (r[-1] * of(table)).sum(1)
        cells = (a(ASSIGN)[:, None] * r[-1])[:, :, None] * x.one_hot(column, table.shape[2])[:, None]
        at = lambda o: a(o)[:, None]
        r.append(
            at(AND) * x.minimum(r[-1], r[-2])
            + at(OR) * x.maximum(r[-1], r[-2])
            + at(RESET) * real
            + at(GREATER) * of(greater)
            + at(LESSER) * of(lesser)
        )
        s.append(number)
        h = x.tanh(layer(x, p, "history", x.cat([U[operation], P[rows, column], h], 1)))
    wanted, delta = x.repeat(data["wanted"], K), data["delta"]
    lookup = -(x.log(0.01 + 0.99 * x.where(wanted > 0, cells, 1 - cells)) * x.repeat(data["real"], K)).sum(2).sum(1)
    error = s[-1] - x.repeat(data["answer"], K)
    far = x.where(error < 0, -error, error)
    huber = x.where(far < delta, 0.5 * error**2, delta * (far - 0.5 * delta)) / delta
    return sampled(x, estimator, log_prob, x.where(x.repeat(data["cells"], K), lookup, huber), K)
