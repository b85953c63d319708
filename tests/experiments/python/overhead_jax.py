"""The time of a compiled step of hardgrad.jax, compared with the same estimators written by hand in JAX, as in their papers, and with
core behind a callback, which other estimators take. Medians of processor time, in turns.

    PYTHONPATH=build/release/python XLA_FLAGS=--xla_cpu_multi_thread_eigen=false python tests/experiments/python/overhead_jax.py [x64]
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import hardgrad.jax

K = 4
stop = jax.lax.stop_gradient


def uniforms(seed, shape):
    return jax.random.uniform(jax.random.key(seed), shape, minval=1e-7, maxval=1 - 1e-7)


def bernoulli(seed, p, shape=None):
    return jax.random.bernoulli(jax.random.key(seed), stop(p), shape).astype(p.dtype)


def log_prob(logits, bits):
    return (bits * logits - jax.nn.softplus(logits)).sum(-1)


def reinforce(logits, f, seed):
    bits = bernoulli(seed, jax.nn.sigmoid(logits))
    losses = f(bits)
    return stop(losses) * log_prob(logits, bits) + losses


def rloo(logits, f, seed):
    bits = bernoulli(seed, jax.nn.sigmoid(logits), (K, *logits.shape))
    losses = f(bits.reshape(-1, logits.shape[1])).reshape(K, -1)
    others = (losses.sum(0) - losses) / (K - 1)
    return (stop(losses - others) * log_prob(logits, bits) + losses).mean(0)


def disarm(logits, f, seed):
    """Dong, Mnih & Tucker 2020, eq. 6."""
    p = stop(jax.nn.sigmoid(logits))
    u = uniforms(seed, p.shape)
    bits = jnp.stack([u < p, 1 - u < p]).astype(p.dtype)
    losses = f(bits.reshape(-1, p.shape[1])).reshape(2, -1)
    weight = stop(losses[0] - losses[1])[:, None] * (bits[0] - bits[1]) * jnp.maximum(p, 1 - p) / 2
    return (weight * logits).sum(1) + losses.mean(0)


def arm(logits, f, seed):
    """Yin & Zhou 2019, theorem 1."""
    p = stop(jax.nn.sigmoid(logits))
    u = uniforms(seed, p.shape)
    losses = f(jnp.stack([u > 1 - p, u < p]).astype(p.dtype).reshape(-1, p.shape[1])).reshape(2, -1)
    return (stop(losses[0] - losses[1])[:, None] * (u - 0.5) * logits).sum(1) + losses.mean(0)


def straight_through(logits, f, seed):
    p = jax.nn.sigmoid(logits)
    return f(bernoulli(seed, p) + p - stop(p))


def reinmax(logits, f, seed):
    p = jax.nn.sigmoid(logits)
    bits = bernoulli(seed, p)
    middle = jax.nn.sigmoid(stop(jax.scipy.special.logit((p + bits) / 2) - logits) + logits)
    second = 2 * middle - p / 2
    return f(second - stop(second) + bits)


def gapped_st(logits, f, seed):
    """Fan et al. 2022, of the two logits (0, logits)."""
    both = jnp.stack([jnp.zeros_like(logits), logits], -1)
    bits = bernoulli(seed, jax.nn.sigmoid(logits))
    z = jnp.stack([1 - bits, bits], -1)
    top = both.max(-1, keepdims=True)
    moved = stop(jnp.where(z > 0, top, jnp.minimum(both, top - 1)) - both)
    w = jax.nn.softmax(both + moved, -1)[..., 1]
    return f(w - stop(w) + bits)


def relaxed(logits, seed):
    u = uniforms(seed, logits.shape)
    return jax.nn.sigmoid((logits + jnp.log(u) - jnp.log1p(-u)) / 0.5)


def gumbel_softmax(logits, f, seed):
    """Of two options: one logistic number each (Maddison, Mnih & Teh 2017, eq. 17)."""
    return f(relaxed(logits, seed))


def st_gumbel(logits, f, seed):
    w = relaxed(logits, seed)
    return f(stop((w > 0.5).astype(w.dtype) - w) + w)


def path_only(logits, f, seed):
    return f(bernoulli(seed, jax.nn.sigmoid(logits)))


def soft(logits, f, seed):
    return f(jax.nn.sigmoid(logits))


OF_BITS = {
    "arm": arm,
    "disarm": disarm,
    "gapped_st": gapped_st,
    "gumbel_softmax": gumbel_softmax,
    "gumbel_top_k": gumbel_softmax,
    "path_only": path_only,
    "policy_gradient": rloo,
    "reinforce": reinforce,
    "reinmax": reinmax,
    f"rloo[samples={K}]": rloo,
    "simple": straight_through,
    "soft": soft,
    "st_gumbel": st_gumbel,
    "straight_through": straight_through,
}


def step(value):
    def total(given, seed):
        logits, first, second = given
        return value(logits, lambda z, *_: jnp.tanh(z @ first) @ second, seed).mean()

    return jax.jit(jax.value_and_grad(total))


def ours(spec):
    return step(lambda logits, f, seed: hardgrad.jax.expectation(logits, f, spec, bits=True, seed=seed))


def by_core(spec, *given):
    """Compiled where no estimator has a formula."""
    found, module = ours(spec), sys.modules["hardgrad.jax.expectation"]
    there = module.formula_of_spec
    try:
        module.formula_of_spec = lambda spec: None
        found(*given)
    finally:
        module.formula_of_spec = there
    return found


def medians(steps, given, count):
    """Seconds of each, and the ratios to the first."""
    seconds = []
    for turn in range(count + 3):
        row = []
        for run in steps:
            start = time.process_time()
            jax.block_until_ready(run(given, np.uint32(turn)))
            row.append(time.process_time() - start)
        seconds.append(row)
    seconds = np.array(seconds[3:])
    return np.median(seconds, 0), np.median(seconds / seconds[:, :1], 0)


def main():
    jax.config.update("jax_enable_x64", "x64" in sys.argv)
    dtype = np.float64 if "x64" in sys.argv else np.float32
    random = np.random.default_rng(0)
    for examples, bits, count in ((100, 50, 400), (512, 200, 100)):
        given = [jnp.asarray(random.normal(size=shape), dtype) for shape in ((examples, bits), (bits, 200), (200,))]
        ratios = []
        for spec, by_hand in OF_BITS.items():
            steps = [step(by_hand), ours(spec)]
            try:
                steps.append(by_core(spec, given, np.uint32(0)))
            except hardgrad.UsageError:
                pass  # a relaxation
            seconds, ratio = medians(steps, given, count)
            ratios.append(ratio[1])
            core = f"  by core {1e3 * seconds[2]:.3f} ({ratio[2]:.2f})" if len(steps) > 2 else ""
            print(
                f"{examples} examples, {bits} bits, {spec:16} by hand {1e3 * seconds[0]:.3f} ms  ours {1e3 * seconds[1]:.3f} "
                f"({ratio[1]:.2f}){core}",
                flush=True,
            )
        print(f"ratios: median {np.median(ratios):.2f}, most {max(ratios):.2f}")


if __name__ == "__main__":
    main()
