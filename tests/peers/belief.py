"""Estimators on a `belief_network` with one layer of bits in PyTorch, target=elbo. All K samples of all images are computed together;
values that depend only on an image are computed once per image, and only needed gradients are computed. Each function returns the loss
whose gradient is the estimate."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.nn.functional import logsigmoid


class Network:
    """p(b) = Bernoulli(prior), p(y | b) of a decoder, q(b | y) of an encoder; all linear."""

    def __init__(self, parameters, image):
        self.p, self.y = parameters, image
        self.phi = F.linear(2 * image - 1, parameters["posterior.layer1.1.weight"], parameters["posterior.layer1.1.bias"])

    def cost(self, b, learn=True):
        """-log p(y | b) [K, B] of bits (or weights) b [K, B, U]. `learn`: whether the decoder's parameters get a gradient."""
        weight, bias = self.p["decoder.1.weight"], self.p["decoder.1.bias"]
        logits = F.linear(2 * b - 1, weight, bias) if learn else F.linear(2 * b - 1, weight.detach(), bias.detach())
        return F.binary_cross_entropy_with_logits(logits, self.y.expand(len(b), -1, -1), reduction="none").sum(-1)

    def divergence(self):
        """KL(q || p) [B], summed over the options."""
        q, prior = torch.sigmoid(self.phi), self.p["prior.logits"]
        on = q * (logsigmoid(self.phi) - logsigmoid(prior))
        return (on + (1 - q) * (logsigmoid(-self.phi) - logsigmoid(-prior))).sum(-1)


def log_p(phi, b):
    return (b * logsigmoid(phi) + (1 - b) * logsigmoid(-phi)).sum(-1)


def rloo(net, K):
    with torch.no_grad():
        b = torch.bernoulli(torch.sigmoid(net.phi).expand(K, -1, -1))
    f = net.cost(b)
    signal = f.detach()
    signal = (signal - signal.mean(0)) * (K / (K - 1))
    return (signal * log_p(net.phi, b) + f).mean() + net.divergence().mean()


def disarm(net, K):
    """Dong, Mnih & Tucker 2020, eq. 7; K / 2 pairs."""
    with torch.no_grad():
        p = torch.sigmoid(net.phi)
        u = torch.rand(K // 2, *p.shape)
        b, c = (u < p).float(), (u > 1 - p).float()
    f = net.cost(torch.cat([b, c])).view(2, K // 2, -1)
    with torch.no_grad():
        g = 0.5 * (f[0] - f[1])[..., None] * (1 - 2 * c) * (b != c) * torch.sigmoid(net.phi.abs())
    return (net.phi * g.mean(0)).sum(-1).mean() + f.mean() + net.divergence().mean()


def relaxed(net, K):
    """-> hard bits, phi plus their logistic noise, and the same with noise redrawn given the bits, each [K, B, U]."""
    phi = net.phi
    u, v = torch.rand(K, *phi.shape), torch.rand(K, *phi.shape)
    z = phi + torch.log(u) - torch.log1p(-u)
    b = (z > 0).float().detach()
    p = torch.sigmoid(phi)
    held = b * (1 - p + v * p) + (1 - b) * v * (1 - p)  # u given b
    return b, z, phi + torch.log(held) - torch.log1p(-held)


def rebar(net, K, eta=1.0, temperature=0.5):
    """Tucker et al. 2017, sec. 3: one hard and two relaxed evaluations per sample. The decoder learns only from the hard one."""
    b, z, given = relaxed(net, K)
    f = net.cost(b)
    free, held = net.cost(torch.sigmoid(torch.cat([z, given]) / temperature), learn=False).view(2, K, -1)
    signal = (f - eta * held).detach()
    return (signal * log_p(net.phi, b) + eta * (free - held) + f).mean() + net.divergence().mean()


def relax(net, K, temperature=0.5):
    """Grathwohl et al. 2018. As in estimators/relax.cpp, each choice has a control, a function of its weights and the image: one layer
    of tanh units. The image's contribution is computed once per image."""
    b, z, given = relaxed(net, K)
    own = net.p["control"]
    of_image = F.linear(2 * net.y - 1, own["state"], own["bias"])[None, :, None]  # [1, B, 1, H]

    def control(noise):
        w = torch.sigmoid(noise / temperature)[..., None]  # [K, B, U, 1]
        return (torch.tanh(of_image + (1 - w) * own["weight"][0] + w * own["weight"][1]) @ own["out"]).squeeze(-1)

    f, free, held = net.cost(b), control(z), control(given)
    # Each choice has a separate control, and therefore a separate signal.
    of_choice = b * logsigmoid(net.phi) + (1 - b) * logsigmoid(-net.phi)
    signal = f.detach()[..., None] - held.detach()
    return ((signal * of_choice + free - held).sum(-1) + f).mean() + net.divergence().mean()


def control_network(pixels, hidden=10):
    """The initial control network of `relax`."""
    draw = lambda rows, columns: torch.randn(rows, columns) / columns ** 0.5
    return {"state": draw(hidden, pixels), "bias": torch.zeros(hidden), "weight": draw(2, hidden), "out": draw(hidden, 1)}


class Belief:
    """The parameters (requiring gradients) and images of a gradient file."""

    def __init__(self, file, K):
        self.p = {k: v.detach().float().requires_grad_() for k, v in file.parameters.items()}
        self.image = torch.tensor(file.batch["image"]).float().flatten(1)
        self.control = control_network(self.image.shape[1])
        self.K = K

    def gradient(self, estimator):
        for p in self.p.values():
            p.grad = None
        globals()[estimator](Network(self.p | {"control": self.control}, self.image), self.K).backward()
        return {k: p.grad for k, p in self.p.items()}
