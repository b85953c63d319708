"""Vectorised estimators on `bits` (function=square, options=2) in PyTorch: K samples of D bits and their noise at once. Each function
returns the loss whose gradient is the estimate; the logits may be any tensor."""

from __future__ import annotations

import torch
from torch.nn.functional import logsigmoid


def cost(x, t):
    return ((x - t) ** 2).sum(-1)


def log_p(phi, b):
    return (b * logsigmoid(phi) + (1 - b) * logsigmoid(-phi)).sum(-1)


def reinforce(phi, t, K):
    b = torch.bernoulli(torch.sigmoid(phi.detach()).expand(K, -1))
    return (cost(b, t) * log_p(phi, b)).mean()


def rloo(phi, t, K):
    b = torch.bernoulli(torch.sigmoid(phi.detach()).expand(K, -1))
    f = cost(b, t)
    return ((f - (f.sum() - f) / (K - 1)) * log_p(phi, b)).mean()


def disarm(phi, t, K):
    """Dong, Mnih & Tucker 2020, eq. 7; K / 2 pairs."""
    with torch.no_grad():
        p = torch.sigmoid(phi)
        u = torch.rand(K // 2, len(phi))
        b, c = (u < p).float(), (u > 1 - p).float()
        sign = 1 - 2 * c
        g = 0.5 * (cost(b, t) - cost(c, t))[:, None] * sign * (b != c) * torch.sigmoid(phi.abs())
    return (phi * g.mean(0)).sum()


def arms(phi, t, K):
    """Dimitriev & Zhou 2021: a Dirichlet copula, leave-one-out, debiased by the bits' correlation."""
    with torch.no_grad():
        p = torch.sigmoid(phi)
        e = torch.empty(K, len(phi)).exponential_()
        u = 1 - (1 - e / e.sum(0)) ** (K - 1)  # each is uniform
        high = p > 0.5
        b = torch.where(high, u < p, u > 1 - p).float()
        q = torch.where(high, 1 - p, p)  # probability of the rarer value, drawn as u > 1 - q
        joint = torch.clamp(2 * (q ** (1 / (K - 1))) - 1, min=0) ** (K - 1)  # of two samples
        rho = (joint - q * q) / (q * (1 - q))
        f = cost(b, t)
        g = ((f - f.mean())[:, None] * (b - p)).sum(0) / ((K - 1) * (1 - rho))
    return (phi * g).sum()


def straight_through(phi, t, K):
    p = torch.sigmoid(phi).expand(K, -1)
    b = torch.bernoulli(p.detach())
    return cost(b + p - p.detach(), t).mean()


def rebar(phi, t, K, eta=1.0, temperature=0.5):
    """Tucker et al. 2017, sec. 3: one hard and two relaxed evaluations per sample."""
    u, v = torch.rand(K, len(phi)), torch.rand(K, len(phi))
    z = phi + torch.log(u) - torch.log1p(-u)
    b = (z > 0).float().detach()
    p = torch.sigmoid(phi)
    held = b * (1 - p + v * p) + (1 - b) * v * (1 - p)  # u given b
    given = phi + torch.log(held) - torch.log1p(-held)
    relaxed, relaxed_given = cost(torch.sigmoid(z / temperature), t), cost(torch.sigmoid(given / temperature), t)
    signal = (cost(b, t) - eta * relaxed_given).detach()
    return (signal * log_p(phi, b) + eta * (relaxed - relaxed_given)).mean()


def gradient(estimator, phi, t, K):
    phi.grad = None
    globals()[estimator](phi, t, K).backward()
    return phi.grad
