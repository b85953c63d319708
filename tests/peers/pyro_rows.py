"""The belief network by Pyro, with its score-function estimators as they come: `Trace_ELBO` or `TraceGraph_ELBO`."""

from __future__ import annotations

import pyro
import pyro.distributions as dist
import pyro.infer
import torch
import torch.nn.functional as F

import torch_rows

pyro.enable_validation(False)
torch.distributions.Distribution.set_default_validate_args(False)


def about():
    return torch_rows.about() | {"library": "pyro", "version": pyro.__version__}


class Row:
    def __init__(self, form, p, data, network, module, asked):
        pyro.clear_param_store()
        for name, value in p.items():
            pyro.param(name, torch.tensor(value))
        self.image = torch.tensor(data["image"])
        K = asked["samples"]
        self.elbo = getattr(pyro.infer, form)(num_particles=K, vectorize_particles=True, max_plate_nesting=1)
        self.names = list(p)

    def model(self, y):
        prior, weight, bias = (pyro.param(name) for name in ("prior.logits", "decoder.1.weight", "decoder.1.bias"))
        with pyro.plate("images", len(y)):
            b = pyro.sample("b", dist.Bernoulli(logits=prior.reshape(-1)).expand([len(y), prior.numel()]).to_event(1))
            pyro.sample("y", dist.Bernoulli(logits=F.linear(2 * b - 1, weight, bias)).to_event(1), obs=y)

    def guide(self, y):
        weight, bias = (pyro.param(f"posterior.layer1.1.{of}") for of in ("weight", "bias"))
        with pyro.plate("images", len(y)):
            pyro.sample("b", dist.Bernoulli(logits=F.linear(2 * y - 1, weight, bias)).to_event(1))

    def gradient(self):
        for name in self.names:
            pyro.param(name).grad = None
        self.elbo.loss_and_grads(self.model, self.guide, self.image)

    def result(self):
        """Of the mean over the images; Pyro's is of the sum."""
        return {name: pyro.param(name).grad.numpy() / len(self.image) for name in self.names}
