"""The surrogates of estimators. As in Hardgrad, signals are computed in double, because f - b cancels. `x`: see `torch_ops.py`."""

from __future__ import annotations


def sampled(x, estimator, log_prob, loss, K):
    """`reinforce` without baseline, `rloo` with the other samples' mean: log_prob, loss [B K] of rows (b, k)."""
    signal = x.double(x.constant(loss))
    if estimator == "rloo":
        f = signal.reshape(-1, K)
        signal = ((f - f.mean(1)[:, None]) * (K / (K - 1))).reshape(-1)
    return (x.single(signal) * log_prob + loss).mean()


def enumerated(x, estimator, log_p, loss, B):
    """`exact` or `exact_marginal`: log_p, loss [T, ..., S] of independent steps (or of whole paths: T = 1)."""
    if estimator == "exact":
        return (x.exp(log_p) * loss).sum() / B
    return -x.logsumexp(log_p - loss, -1).sum() / B
