"""Vectorised estimators on `bits` (function=square, options=2): K samples of D bits and their noise at once. Each function returns the
loss whose gradient is the estimate; the logits may be any array. `x`: see `torch_ops.py`."""

from __future__ import annotations


def cost(b, t):
    return ((b - t) ** 2).sum(-1)


def log_p(x, phi, b):
    return (b * x.logsigmoid(phi) + (1 - b) * x.logsigmoid(-phi)).sum(-1)


def drawn(x, phi, K):
    return x.bernoulli(x.broadcast(x.sigmoid(x.constant(phi)), (K, len(phi))))


def score_function(x, phi, b, signal):
    """1/K sum_k signal_k (b_k - p): the score of a bit in closed form, as one product."""
    return (phi * (signal @ (b - x.sigmoid(x.constant(phi))))).sum() / len(b)


def reinforce(x, phi, t, K):
    b = drawn(x, phi, K)
    return score_function(x, phi, b, cost(b, t))


def rloo(x, phi, t, K):
    b = drawn(x, phi, K)
    f = cost(b, t)
    return score_function(x, phi, b, f - (f.sum() - f) / (K - 1))


def disarm(x, phi, t, K):
    """Dong, Mnih & Tucker 2020, eq. 7; K / 2 pairs."""
    fixed = x.constant(phi)
    p = x.sigmoid(fixed)
    u = x.uniform(K // 2, len(phi))
    b, c = x.single(u < p), x.single(u > 1 - p)
    g = 0.5 * (cost(b, t) - cost(c, t))[:, None] * (1 - 2 * c) * (b != c) * x.sigmoid(abs(fixed))
    return (phi * g.mean(0)).sum()


def arms(x, phi, t, K):
    """Dimitriev & Zhou 2021: a Dirichlet copula, leave-one-out, debiased by the bits' correlation."""
    p = x.sigmoid(x.constant(phi))
    e = x.exponential(K, len(phi))
    u = 1 - (1 - e / e.sum(0)) ** (K - 1)  # each is uniform
    high = p > 0.5
    b = x.single(x.where(high, u < p, u > 1 - p))
    q = x.where(high, 1 - p, p)  # probability of the rarer value, drawn as u > 1 - q
    joint = x.clip(2 * (q ** (1 / (K - 1))) - 1, 0) ** (K - 1)  # of two samples
    rho = (joint - q * q) / (q * (1 - q))
    f = cost(b, t)
    g = ((f - f.mean())[:, None] * (b - p)).sum(0) / ((K - 1) * (1 - rho))
    return (phi * g).sum()


def straight_through(x, phi, t, K):
    """The slope of the cost at the bits times that of the sigmoid."""
    p = x.sigmoid(x.constant(phi))
    b = x.bernoulli(x.broadcast(p, (K, len(phi))))
    return (phi * (2 * (b.mean(0) - t) * p * (1 - p))).sum()


def rebar(x, phi, t, K, eta=1.0, temperature=0.5):
    """Tucker et al. 2017, sec. 3: one hard and two relaxed evaluations per sample."""
    u, v = x.uniform(K, len(phi)), x.uniform(K, len(phi))
    z = phi + x.log(u) - x.log1p(-u)
    b = x.single(z > 0)
    p = x.sigmoid(phi)
    held = b * (1 - p + v * p) + (1 - b) * v * (1 - p)  # u given b
    given = phi + x.log(held) - x.log1p(-held)
    relaxed, relaxed_given = cost(x.sigmoid(z / temperature), t), cost(x.sigmoid(given / temperature), t)
    signal = x.constant(cost(b, t) - eta * relaxed_given)
    return (signal * log_p(x, phi, b) + eta * (relaxed - relaxed_given)).mean()


def columns(x, p, data, K, estimator):
    """`rloo` on `bits` of S options, with the arguments of `plain.py`."""
    assert estimator == "rloo"
    log_p = x.log_softmax(p["bits.logits"], -1)  # [D, S]
    z = x.draws(x.exp(x.constant(log_p)), K)
    f = cost(x.single(z) / (log_p.shape[-1] - 1), data["t"])
    chosen = x.gather(x.broadcast(log_p, (K, *log_p.shape)), z).sum(-1)
    return ((f - f.mean()) * chosen).sum() / (K - 1)


def bits(x, p, data, K, estimator):
    """With the arguments of `plain.py`."""
    return globals()[estimator](x, p["bits.logits"].reshape(-1), data["t"], K)
