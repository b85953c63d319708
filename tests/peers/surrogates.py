"""The surrogates of estimators in PyTorch. As in Hardgrad, signals are computed in double, because f - b cancels."""

from __future__ import annotations

import torch


def sampled(estimator, log_prob, loss, K):
    """`reinforce` without baseline, `rloo` with the other samples' mean: log_prob, loss [B K] of rows (b, k)."""
    signal = loss.detach().double()
    if estimator == "rloo":
        f = signal.view(-1, K)
        signal = ((f - f.mean(1, keepdim=True)) * (K / (K - 1))).flatten()
    return (signal.to(loss.dtype) * log_prob + loss).mean()


def enumerated(estimator, log_p, loss, B):
    """`exact` or `exact_marginal`: log_p, loss [T, ..., S] of independent steps (or of whole paths: T = 1)."""
    if estimator == "exact":
        return (log_p.exp() * loss).sum() / B
    return -torch.logsumexp(log_p - loss, dim=-1).sum() / B
