"""`attentive_reader`, both kinds."""

from __future__ import annotations

import numpy as np

from networks import layer, within
from surrogates import sampled


def prepare(file):
    b, data = file.batch, {"answer": file.batch["answer"]}
    for name in ("document", "question"):
        longest = int(b[f"{name}_length"].max())
        data |= {name: b[name][:, :longest], f"{name}_length": b[f"{name}_length"]}
        data[f"{name}_real"] = within(b[f"{name}_length"], longest).astype("float32")
    data["gone"] = np.where(data["document_real"] > 0, 0, -np.inf).astype("float32")
    return data


def attentive_reader(x, p, data, K, estimator):
    read = lambda name: x.bilstm(p, name, x.embedding(p["embedding.weight"], data[name]), data[f"{name}_length"])
    (y, _), (asked, u) = read("document"), read("question")  # [B, L, 2H], [B, Q, 2H], [B, 2H]
    R = len(y) * K
    rows, score, gone = x.arange(R), p["attention.score.weight"][0], x.repeat(data["gone"], K)
    keys, y, u = x.repeat(layer(x, p, "attention.document", y), K), x.repeat(y, K), x.repeat(u, K)
    if "read.initial" in p:
        queries, real = x.repeat(layer(x, p, "attention.question", asked), K), x.repeat(data["question_real"], K)
        r = x.broadcast(p["read.initial"], (R, p["read.initial"].shape[1]))
        log_prob = 0
        for i in range(queries.shape[1]):
            query = layer(x, p, "attention.read", r) + queries[:, i]
            log_p = x.log_softmax(x.tanh(keys + query[:, None]) @ score + gone, 1)
            choice = data["choices"][i]
            log_prob = log_prob + log_p[rows, choice] * real[:, i]
            new = y[rows, choice] + x.tanh(layer(x, p, "read.recurrent", r))
            r = x.where(real[:, i : i + 1] > 0, new, r)
    else:
        choice = data["choices"][0]
        log_p = x.log_softmax(x.tanh(keys + layer(x, p, "attention.question", u)[:, None]) @ score + gone, 1)
        log_prob, r = log_p[rows, choice], y[rows, choice]
    g = x.tanh(layer(x, p, "answer.read", r) + layer(x, p, "answer.question", u))
    return sampled(x, estimator, log_prob, x.cross_entropy(layer(x, p, "answer.entity", g), x.repeat(data["answer"], K)), K)
