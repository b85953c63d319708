"""`belief_network` of bits with any number of layers and hidden layers, target=elbo with kl=sampled, or the K-sample bound of `vimco`.
`belief.py` has estimators with their own noise."""

from __future__ import annotations

from networks import layer
from surrogates import sampled


def prepare(file):
    image = file.batch["image"]
    return {"image": image.reshape(len(image), -1)}


def belief_network(x, p, data, K, estimator):
    y = data["image"]
    B, bits = len(y), x.single(data["choices"])  # [layers, R, D]

    def rest(name, v):  # the map's layers after the first
        k = 1
        while f"{name}.{k + 1}.weight" in p:
            k += 1
            v = layer(x, p, f"{name}.{k}", x.where(v > 0, v, 0.3 * v))
        return v

    log_q, log_p, above = 0, 0, None
    for l in range(len(bits)):
        z, name = bits[l], f"layer{l + 1}"
        prior = (
            x.broadcast(p["prior.logits"], z.shape) if l == 0 else rest(f"prior.{name}", layer(x, p, f"prior.{name}.1", above))
        )
        log_p = log_p - x.bernoulli_loss(prior, z).sum(1)
        seen = x.repeat(layer(x, p, f"posterior.{name}.1", 2 * y - 1), K)  # once per image
        if l:
            seen = seen + layer(x, p, f"posterior.{name}.below", above)
        log_q = log_q - x.bernoulli_loss(rest(f"posterior.{name}", seen), z).sum(1)
        above = 2 * z - 1
    cost = x.bernoulli_loss(rest("decoder", layer(x, p, "decoder.1", above)), x.repeat(y, K)).sum(1)
    loss = cost + log_q - log_p
    if estimator != "vimco":
        return sampled(x, estimator, log_q, loss, K)
    return vimco(x, -loss.reshape(B, K), log_q.reshape(B, K))


def vimco(x, log_w, log_q):
    """Mnih & Rezende 2016, eq. 8 and 10: geometric mean of the other weights; log_w, log_q [B, K]."""
    K = log_w.shape[1]
    bound = x.logsumexp(log_w, 1)  # less log K, which is in both terms of the signal
    w = x.double(x.constant(log_w))
    mean = (w.sum(1)[:, None] - w) / (K - 1)
    same = x.one_hot(x.arange(K), K) > 0
    without = x.logsumexp(x.where(same, mean[:, :, None], w[:, None]), 2)  # [B, K]
    signal = x.single(x.logsumexp(w, 1)[:, None] - without)
    return -((signal * log_q).sum(1) + bound).mean()
