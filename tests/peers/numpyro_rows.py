"""The belief network by NumPyro, with its score-function estimator as it comes: `TraceGraph_ELBO`, by jit. (Its `Trace_ELBO` has no
score-function term.)"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import numpyro.infer

import jax_rows


def about():
    return jax_rows.about() | {"library": "numpyro", "version": numpyro.__version__}


class Row:
    def __init__(self, form, p, data, network, module, asked):
        self.p, self.image, self.seed = {k: jnp.asarray(v) for k, v in p.items()}, jnp.asarray(data["image"]), 0
        elbo = getattr(numpyro.infer, form)(num_particles=asked["samples"])

        def model(y):
            prior, weight, bias = (
                numpyro.param(name, p[name]) for name in ("prior.logits", "decoder.1.weight", "decoder.1.bias")
            )
            # Not by logits: where they are exactly 0, as at the start, the slope of NumPyro 0.22's log_prob is wrong.
            prior = dist.Bernoulli(probs=jax.nn.sigmoid(prior.reshape(-1)))
            with numpyro.plate("images", len(y)):
                b = numpyro.sample("b", prior.to_event(1)).astype(jnp.float32)
                numpyro.sample("y", dist.Bernoulli(logits=(2 * b - 1) @ weight.T + bias).to_event(1), obs=y)

        def guide(y):
            weight, bias = (numpyro.param(name, p[name]) for name in ("posterior.layer1.1.weight", "posterior.layer1.1.bias"))
            with numpyro.plate("images", len(y)):
                numpyro.sample("b", dist.Bernoulli(logits=(2 * y - 1) @ weight.T + bias).to_event(1))

        def gradient(p, y, seed):
            loss = lambda p: elbo.loss(jax.random.key(seed), p, model, guide, y) / len(y)
            return jax.grad(loss)(p)

        self.one = jax.jit(gradient)

    def gradient(self):
        self.seed += 1
        self.found = jax.block_until_ready(self.one(self.p, self.image, np.uint32(self.seed)))

    def result(self):
        return {k: np.asarray(v) for k, v in self.found.items()}
