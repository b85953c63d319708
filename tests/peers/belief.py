"""Estimators on a `belief_network` with one layer of bits, target=elbo. All K samples of all images are computed together; values that
depend only on an image are computed once per image, and only needed gradients are computed. Each function returns the loss whose
gradient is the estimate. `x`: see `torch_ops.py`."""

from __future__ import annotations

import numpy as np


class Network:
    """p(b) = Bernoulli(prior), p(y | b) of a decoder, q(b | y) of an encoder; all linear."""

    def __init__(self, x, parameters, data):
        self.x, self.p, self.data, self.y = x, parameters, data, data["image"]
        self.phi = x.linear(2 * self.y - 1, parameters["posterior.layer1.1.weight"], parameters["posterior.layer1.1.bias"])

    def cost(self, b, learn=True):
        """-log p(y | b) [K, B] of bits (or weights) b [K, B, U]. `learn`: whether the decoder's parameters get a gradient."""
        weight, bias = self.p["decoder.1.weight"], self.p["decoder.1.bias"]
        if not learn:
            weight, bias = self.x.constant(weight), self.x.constant(bias)
        return self.x.bernoulli_loss(self.x.linear(2 * b - 1, weight, bias), self.y).sum(-1)

    def divergence(self):
        """KL(q || p) [B], summed over the options."""
        q, prior, logsigmoid = self.x.sigmoid(self.phi), self.p["prior.logits"], self.x.logsigmoid
        on = q * (logsigmoid(self.phi) - logsigmoid(prior))
        return (on + (1 - q) * (logsigmoid(-self.phi) - logsigmoid(-prior))).sum(-1)

    def of_choice(self, b):
        return b * self.x.logsigmoid(self.phi) + (1 - b) * self.x.logsigmoid(-self.phi)

    def log_p(self, b):
        return self.of_choice(b).sum(-1)


def reinforce(x, net, K, baseline=False):
    b = x.bernoulli(x.broadcast(x.sigmoid(x.constant(net.phi)), (K, *net.phi.shape)))
    f = net.cost(b)
    signal = x.constant(f)
    if baseline:
        signal = (signal - signal.mean(0)) * (K / (K - 1))
    return (signal * net.log_p(b) + f).mean() + net.divergence().mean()


def rloo(x, net, K):
    return reinforce(x, net, K, True)


def disarm(x, net, K):
    """Dong, Mnih & Tucker 2020, eq. 7; K / 2 pairs."""
    phi = x.constant(net.phi)
    p = x.sigmoid(phi)
    u = x.uniform(K // 2, *p.shape)
    b, c = x.single(u < p), x.single(u > 1 - p)
    f = net.cost(x.cat([b, c])).reshape(2, K // 2, -1)
    fixed = x.constant(f)
    g = 0.5 * (fixed[0] - fixed[1])[..., None] * (1 - 2 * c) * (b != c) * x.sigmoid(abs(phi))
    return (net.phi * g.mean(0)).sum(-1).mean() + f.mean() + net.divergence().mean()


def relaxed(x, net, K):
    """-> hard bits, phi plus their logistic noise, and the same with noise redrawn given the bits, each [K, B, U]."""
    phi = net.phi
    u, v = x.uniform(K, *phi.shape), x.uniform(K, *phi.shape)
    z = phi + x.log(u) - x.log1p(-u)
    b = x.single(z > 0)
    p = x.sigmoid(phi)
    held = b * (1 - p + v * p) + (1 - b) * v * (1 - p)  # u given b
    return b, z, phi + x.log(held) - x.log1p(-held)


def rebar(x, net, K, eta=1.0, temperature=0.5):
    """Tucker et al. 2017, sec. 3: one hard and two relaxed evaluations per sample. The decoder learns only from the hard one."""
    b, z, given = relaxed(x, net, K)
    f = net.cost(b)
    both = net.cost(x.sigmoid(x.cat([z, given]) / temperature), learn=False).reshape(2, K, -1)
    free, held = both[0], both[1]
    signal = x.constant(f - eta * held)
    return (signal * net.log_p(b) + eta * (free - held) + f).mean() + net.divergence().mean()


def relax(x, net, K, temperature=0.5):
    """Grathwohl et al. 2018, with relaxed_model=false. As in estimators/relax.cpp, each choice has a control, a function of its weights and
    the image: one layer of tanh units. The image's contribution is computed once per image."""
    b, z, given = relaxed(x, net, K)
    own = net.data
    of_image = x.linear(2 * net.y - 1, own["control.state"], own["control.bias"])[None, :, None]  # [1, B, 1, H]

    def control(noise):
        w = x.sigmoid(noise / temperature)[..., None]  # [K, B, U, 1]
        weight = own["control.weight"]
        return (x.tanh(of_image + (1 - w) * weight[0] + w * weight[1]) @ own["control.out"])[..., 0]

    f, free, held = net.cost(b), control(z), control(given)
    # Each choice has a separate control, and therefore a separate signal.
    signal = x.constant(f)[..., None] - x.constant(held)
    return ((signal * net.of_choice(b) + free - held).sum(-1) + f).mean() + net.divergence().mean()


def prepare(file, hidden=10):
    """The images, and the initial control network of `relax`."""
    image = file.batch["image"].reshape(len(file.batch["image"]), -1)
    normal = lambda rows, columns: np.random.default_rng(1).normal(size=(rows, columns)) / columns**0.5
    return {
        "image": image,
        "control.state": normal(hidden, image.shape[1]),
        "control.bias": np.zeros(hidden),
        "control.weight": normal(2, hidden),
        "control.out": normal(hidden, 1),
    }


def belief_network(x, p, data, K, estimator):
    """With the arguments of `plain.py`."""
    return globals()[estimator](x, Network(x, p, data), K)
