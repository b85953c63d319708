"""`rloo` on a `belief_network` with one layer of categories, target=elbo, with its own draws, as `belief.py`: choices are not made
one-hot, but take rows of the decoder's transposed weights (`embedding_bag`), which is how the weights are kept."""

from __future__ import annotations

TURNED = "decoder.1.weight"  # kept as [D S, pixels]


def turn(file):
    """The parameter and its gradient in a gradient file as they are kept here."""
    file.parameters[TURNED] = file.parameters[TURNED].detach().T.contiguous().requires_grad_()
    file.gradient[TURNED] = file.gradient[TURNED].T


def prepare(file):
    image = file.batch["image"]
    return {"image": image.reshape(len(image), -1), "options": int(file.settings["options"])}


def belief_network(x, p, data, K, estimator):
    """With the arguments of `plain.py`."""
    assert estimator == "rloo"
    y, S = data["image"], data["options"]
    B = len(y)
    log_q = x.log_softmax(
        x.linear(2 * y - 1, p["posterior.layer1.1.weight"], p["posterior.layer1.1.bias"]).reshape(B, -1, S), -1
    )
    log_p = x.log_softmax(p["prior.logits"].reshape(-1, S), -1)
    D, q = log_q.shape[1], x.exp(log_q)
    z = x.draws(x.constant(q), K)  # [K, B, D]
    odds = x.embedding_bag(p[TURNED], (z + S * x.arange(D)).reshape(K * B, D)) + p["decoder.1.bias"]
    f = x.bernoulli_loss(odds.reshape(K, B, -1), y).sum(-1)
    fixed = x.constant(f)
    signal = (fixed - fixed.mean(0)) * (K / (K - 1))
    of_choices = x.gather(x.broadcast(log_q, (K, *log_q.shape)), z).sum(-1)
    return (signal * of_choices + f).mean() + (q * (log_q - log_p)).sum() / B
