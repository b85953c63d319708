"""Networks as an expert writes them for both libraries: the algebra that leaves the least to compute, and values that do not depend on
parameters made once. The forms *tuned* and *compiled* of PyTorch and *tuned jit* of JAX run them. The arguments are those of `plain.py`.
`GRADIENTS` are closed forms: they return the gradient itself, so nothing is differentiated."""

from __future__ import annotations

import numpy as np

import plain
from surrogates import sampled


def memory_reader(x, p, data, K, estimator):
    """The position encoding a_j - d/D b_j has rank 2, so the sums of word vectors are two products of matrices of word counts with all
    tables side by side. Only distinct sentences and questions are summed."""
    B, N = data["gone"].shape
    hops = sum(k.startswith("memory.") for k in p) - 1
    D = p["memory.0.weight"].shape[1]
    hard = estimator in ("reinforce", "rloo")

    def beside(name):
        return x.cat([p[f"{name}.{k}.weight"] for k in range(hops + 1)], 1)

    def texts(name, tables):
        slopes = data[f"{name}_slopes"] @ tables
        return data[f"{name}_counts"] @ tables - (slopes.reshape(len(slopes), -1, D) * data["depth"]).reshape(*slopes.shape)

    sums, ages = texts("sentence", beside("memory")), beside("temporal")
    u = x.embedding(texts("question", p["memory.0.weight"]), data["asked"])
    gone, answer, sentence, age = (data[k] for k in ("gone", "answer", "sentence", "age"))
    of_hop = lambda a, k: a[..., k * D : (k + 1) * D]
    if not hard:
        memory = x.embedding(sums, sentence) + x.embedding(ages, age)
        memory = [of_hop(memory, k) for k in range(hops + 1)]
        if estimator != "soft":
            return plain.memory_tree(x, p, memory, u, gone, answer, hops, estimator)
        for k in range(hops):
            log_p = x.log_softmax(x.bmm(memory[k], u[:, :, None])[:, :, 0] + gone, 1)
            u = u + x.bmm(x.exp(log_p)[:, None], memory[k + 1])[:, 0]
        return x.cross_entropy(x.linear(u, p["answer.weight"]), answer).mean()
    # All distinct sentences have scores, and each story gathers its own: cheaper than its memories.
    log_prob, rows, u = 0, x.arange(B)[:, None], u[:, None]  # [B, 1 or K, D]
    for k in range(hops):
        copies = u.shape[1]
        by = lambda table, index: x.take(x.linear(u, table), x.broadcast(index[:, None], (B, copies, N)))
        log_p = x.log_softmax(by(of_hop(sums, k), sentence) + by(of_hop(ages, k), age) + gone[:, None], 2)
        log_p = x.broadcast(log_p, (B, K, N))
        choice = data["choices"][k] if "choices" in data else x.categorical(log_p.reshape(B * K, N))
        choice = choice.reshape(B, K)
        log_prob = log_prob + x.gather(log_p, choice)
        u = u + x.embedding(of_hop(sums, k + 1), sentence[rows, choice]) + x.embedding(of_hop(ages, k + 1), age[rows, choice])
    label = x.broadcast(answer[:, None], (B, K)).reshape(-1)
    loss = x.cross_entropy(x.linear(u.reshape(B * K, D), p["answer.weight"]), label)
    return sampled(x, estimator, log_prob.reshape(-1), loss, K)


def counted(texts, V):
    """-> counts and slopes [distinct, V], and the distinct text of each of `texts` [..., W] (0 pads)."""
    distinct, of = np.unique(texts.reshape(-1, texts.shape[-1]), axis=0, return_inverse=True)
    real = distinct > 0
    J = np.maximum(real.sum(1, keepdims=True), 1)
    j = real.cumsum(1)
    counts, slopes = np.zeros((2, len(distinct), V), np.float32)
    for out, factor in ((counts, 1 - j / J), (slopes, 1 - 2 * j / J)):
        np.add.at(out, (np.arange(len(distinct))[:, None], distinct), np.where(real, factor, 0))
    return counts, slopes, of.reshape(texts.shape[:-1])


def stories(p, data):
    V, D = p["memory.0.weight"].shape
    made = {"depth": np.arange(1, D + 1, dtype=np.float32) / np.float32(D)}
    for name, texts, of in (("sentence", "story", "sentence"), ("question", "question", "asked")):
        made[f"{name}_counts"], made[f"{name}_slopes"], made[of] = counted(data[texts], V)
    return made | {k: data[k] for k in ("gone", "age", "answer", "choices") if k in data}


def cost(b, t):
    return ((b - t) ** 2).sum(-1)


def score(f, b, p):
    """The mean of f_k times the slope of log p(b_k)."""
    return f @ (b - p) / len(f)


def reinforce(x, phi, t, K):
    p = x.sigmoid(phi)
    b = x.bernoulli(x.broadcast(p, (K, len(phi))))
    return score(cost(b, t), b, p)


def rloo(x, phi, t, K):
    p = x.sigmoid(phi)
    b = x.bernoulli(x.broadcast(p, (K, len(phi))))
    f = cost(b, t)
    return score((f - f.mean()) * (K / (K - 1)), b, p)


def disarm(x, phi, t, K):
    p = x.sigmoid(phi)
    u = x.uniform(K // 2, len(phi))
    b, c = x.single(u < p), x.single(u > 1 - p)
    halved = 0.5 * (cost(b, t) - cost(c, t)) / (K // 2)
    return halved @ (b - c) * x.maximum(p, 1 - p)  # where b differs from c, b - c is 1 - 2c


def arms(x, phi, t, K):
    p = x.sigmoid(phi)
    e = x.exponential(K, len(phi))
    u = 1 - (1 - e / e.sum(0)) ** (K - 1)
    b = x.single(x.where(p > 0.5, u < p, u > 1 - p))
    q = x.minimum(p, 1 - p)
    joint = x.clip(2 * (q ** (1 / (K - 1))) - 1, 0) ** (K - 1)
    f = cost(b, t)
    return (f - f.mean()) @ (b - p) * (q * (1 - q)) / ((K - 1) * (q - joint))


def straight_through(x, phi, t, K):
    p = x.sigmoid(phi)
    b = x.bernoulli(x.broadcast(p, (K, len(phi))))
    return 2 * (b.mean(0) - t) * p * (1 - p)


def rebar(x, phi, t, K, eta=1.0, temperature=0.5):
    noise = x.uniform(2, K, len(phi))
    u, v = noise[0], noise[1]
    p = x.sigmoid(phi)
    b = x.single(u > 1 - p)  # phi + the logit of u is positive
    held = x.where(b > 0, 1 - p + v * p, v * (1 - p))  # u given b
    w, held_w = x.sigmoid((phi + x.log(u / (1 - u))) / temperature), x.sigmoid((phi + x.log(held / (1 - held))) / temperature)
    steep = 1 - x.where(b > 0, (1 - p) / held, p / (1 - held))  # of the second noise by phi
    slope = lambda w: (w - t) * w * (1 - w)
    relaxed = (slope(w) - slope(held_w) * steep).sum(0) * (2 * eta / temperature / K)
    return score(cost(b, t) - eta * cost(held_w, t), b, p) + relaxed


def bits(x, p, data, K, estimator):
    logits = p["bits.logits"]
    g = globals()[estimator](x, logits.reshape(-1), data["t"], K)
    return {"bits.logits": g.reshape(*logits.shape)}


def columns(x, p, data, K, estimator):
    """`rloo` on `bits` of S options. Its signals sum to 0, so the probabilities and other constants drop out of the slope."""
    assert estimator == "rloo"
    q = x.softmax(p["bits.logits"], -1)
    D, S = q.shape
    z = x.single(x.uniform(K, D, 1) > q.cumsum(-1)[:, :-1])  # 1 for the options before the drawn one
    f = cost(z.sum(-1) / (S - 1), data["t"])
    chosen = x.pad(z, 1, 0, 2) - x.pad(z, 0, 1, 2)  # one-hot, less the first option's
    return {"bits.logits": ((f - f.mean()) / (K - 1) @ chosen.reshape(K, -1)).reshape(D, S)}


NETWORKS, GRADIENTS = {"memory_reader": memory_reader}, {"bits": bits, "columns": columns}
PREPARE = {"memory_reader": stories}  # -> data, from parameters and the data of the plain network


def has(model):
    return model in NETWORKS or model in GRADIENTS
