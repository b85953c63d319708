"""One row of the benchmark in JAX: `jit` of the network in `plain.py`, `networks`, `vectors.py` or `belief.py`, or `tuned jit` of that
in `expert.py`."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np

import expert
import jax_ops
from problem import pool_of

jax.config.update("jax_enable_x64", True)  # signals are computed in double; parameters and data are single
jax.config.update("jax_cpu_enable_async_dispatch", False)


def sgemm_rate():
    a, product, rates = jnp.ones((1024, 1024), jnp.float32), jax.jit(jnp.matmul), []
    for _ in range(5):
        start = time.process_time()
        product(a, a).block_until_ready()
        rates.append(2 * 1024**3 / (time.process_time() - start))
    return max(rates)


def about():
    return {"library": "jax", "version": jax.__version__, "sgemm": sgemm_rate(), "kernels": "XLA"}


class Row:
    def __init__(self, form, p, data, network, module, asked):
        name = network.__name__
        closed = form == "tuned jit" and name in expert.GRADIENTS
        if closed:
            network = expert.GRADIENTS[name]
        elif form == "tuned jit":
            network, data = expert.NETWORKS[name], expert.PREPARE[name](p, data)
        fixed = {k: v for k, v in data.items() if isinstance(v, (int, float))}
        self.p = {k: jnp.asarray(v) for k, v in p.items()}
        self.data = {k: jnp.asarray(v) for k, v in data.items() if k not in fixed}
        K, estimator, self.seed, self.batch = asked["samples"], asked["estimator"], 0, asked["training"]

        def loss(p, data, key):
            jax_ops.set_key(key)
            return network(jax_ops, p, fixed | data, K, estimator)

        slope = loss if closed else jax.grad(loss)

        def gradient(found, p, data, seed):
            """`found`, the last gradient, gives its memory."""
            return slope(p, data, jax.random.key(seed))

        def step(p, m, v, n, pool, data, seed):
            """A batch of the data, drawn choices, the gradient, Adam."""
            key, draw = jax.random.split(jax.random.key(seed))
            chosen = jax.random.randint(draw, (self.batch,), 0, len(next(iter(pool.values()))))
            return adam(p, m, v, n, slope(p, data | {k: value[chosen] for k, value in pool.items()}, key))

        def adam(p, m, v, n, g):
            m = jax.tree.map(lambda a, b: jnp.float32(0.9) * a + jnp.float32(0.1) * b, m, g)
            v = jax.tree.map(lambda a, b: jnp.float32(0.999) * a + jnp.float32(0.001) * b * b, v, g)
            a, b = (jnp.float32(1 / (1 - rate**n)) for rate in (0.9, 0.999))
            p = jax.tree.map(lambda w, m, v: w - jnp.float32(1e-3) * m * a / (jnp.sqrt(v * b) + jnp.float32(1e-8)), p, m, v)
            return p, m, v

        self.one, self.adam = jax.jit(gradient, donate_argnums=0, keep_unused=True), jax.jit(adam)
        self.found = jax.tree.map(jnp.zeros_like, self.p)
        self.state = tuple(jax.tree.map(jnp.zeros_like, self.p) for _ in "mv")
        if self.batch:
            self.pool, self.data = pool_of(self.data, asked["model"])
            self.step = jax.jit(step, donate_argnums=(0, 1, 2))

    def gradient(self):
        self.seed += 1
        if self.batch:
            self.p, *self.state = self.step(
                self.p, *self.state, np.float64(self.seed), self.pool, self.data, np.uint32(self.seed)
            )
            jax.block_until_ready(self.p)
        else:
            self.found = jax.block_until_ready(self.one(self.found, self.p, self.data, np.uint32(self.seed)))

    def stepped(self):
        """The parameters after one step of the optimiser along the last gradient."""
        return {k: np.asarray(v) for k, v in self.adam(self.p, *self.state, np.float64(1), self.found)[0].items()}

    def result(self):
        return {k: np.asarray(v) for k, v in self.found.items()}
