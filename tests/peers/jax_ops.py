"""The operations of `torch_ops.py` in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp

tanh, exp, log, log1p, sqrt, where = jnp.tanh, jnp.exp, jnp.log, jnp.log1p, jnp.sqrt, jnp.where
cat, stack, bmm, roll = jnp.concatenate, jnp.stack, jnp.matmul, jnp.roll
maximum, minimum, broadcast, einsum = jnp.maximum, jnp.minimum, jnp.broadcast_to, jnp.einsum
sigmoid, relu, logsigmoid, softplus = jax.nn.sigmoid, jax.nn.relu, jax.nn.log_sigmoid, jax.nn.softplus
logsumexp, arange = jax.scipy.special.logsumexp, jnp.arange
constant = jax.lax.stop_gradient


def linear(a, weight, bias=None):
    out = a @ weight.T
    return out if bias is None else out + bias


def log_softmax(a, axis):
    return jax.nn.log_softmax(a, axis)


def softmax(a, axis):
    return jax.nn.softmax(a, axis)


def conv(a, kernel, bias):
    return jax.lax.conv_general_dilated(a, kernel, (1, 1), "VALID") + bias[None, :, None, None]


def embedding(table, index):
    return table[index]


def embedding_bag(table, index):
    return table[index].sum(1)


def zeros(*shape):
    return jnp.zeros(shape, jnp.float32)


def repeat(a, copies):
    return jnp.repeat(a, copies, 0) if copies > 1 else a


def double(a):
    return a.astype(jnp.float64)


def single(a):
    return a.astype(jnp.float32)


def one_hot(index, options):
    return jax.nn.one_hot(index, options, dtype=jnp.float32)


def clip(a, low=None, high=None):
    return jnp.clip(a, low, high)


def gather(a, index):
    return take(a, index[..., None])[..., 0]


def take(a, index):
    return jnp.take_along_axis(a, index, -1)


def pad(a, before, after, axis=1):
    widths = [(0, 0)] * a.ndim
    widths[axis] = (before, after)
    return jnp.pad(a, widths)


def cross_entropy(logits, label):
    return -gather(log_softmax(logits, -1), label)


def bernoulli_loss(logits, y):
    return softplus(logits) - logits * y


def lstm_cell(a, state, weight, recurrent, bias):
    h, c = state
    i, f, g, o = jnp.split(a @ weight.T + h @ recurrent.T + bias, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def bilstm(p, name, a, length):
    """The states past a sentence's end are 0; the backward direction keeps its first state until the sentence begins."""
    B, L, _ = a.shape
    within = jnp.ones((L, B), bool) if length is None else jnp.arange(L)[:, None] < length

    def way(direction, reverse):
        recurrent = p[f"{name}.{direction}.recurrent.weight"]
        gates = linear(a, p[f"{name}.{direction}.input.weight"], p[f"{name}.{direction}.bias"]).swapaxes(0, 1)

        def step(state, now):
            x, real = now
            h, c = state
            i, f, g, o = jnp.split(x + h @ recurrent.T, 4, -1)
            new = sigmoid(f) * c + sigmoid(i) * tanh(g)
            out = sigmoid(o) * tanh(new)
            state = jnp.where(real[:, None], out, h), jnp.where(real[:, None], new, c)
            return state, jnp.where(real[:, None], out, 0)

        start = zeros(B, recurrent.shape[1])
        (end, _), states = jax.lax.scan(step, (start, start), (gates, within), reverse=reverse)
        return states.swapaxes(0, 1), end

    (ahead, last), (back, first) = way("forward", False), way("backward", True)
    return cat([ahead, back], 2), cat([last, first], 1)


def gru(p, name, a, h):
    """a [B, L, E], first state h [B, H] -> states [B, L, H]."""

    def step(h, of_input):
        i, s = (
            jnp.split(of_input, 3, -1),
            jnp.split(linear(h, p[f"{name}.recurrent.weight"], p[f"{name}.recurrent.bias"]), 3, -1),
        )
        r, z = sigmoid(i[0] + s[0]), sigmoid(i[1] + s[1])
        h = (1 - z) * tanh(i[2] + r * s[2]) + z * h
        return h, h

    return jax.lax.scan(step, h, linear(a, p[f"{name}.input.weight"], p[f"{name}.input.bias"]).swapaxes(0, 1))[1].swapaxes(0, 1)


def loop(step, state, inputs):
    return jax.lax.scan(step, state, tuple(inputs))


class _Keys:
    """The random key of the gradient that is being traced. The worker sets it."""

    key = None


def _next():
    _Keys.key, mine = jax.random.split(_Keys.key)
    return mine


def set_key(key):
    _Keys.key = key


def bernoulli(p):
    return jax.random.bernoulli(_next(), p).astype(jnp.float32)


def uniform(*shape):
    return jax.random.uniform(_next(), shape, jnp.float32, 1e-7, 1)


def exponential(*shape):
    return jax.random.exponential(_next(), shape, jnp.float32)


def categorical(log_p):
    return jax.random.categorical(_next(), log_p)


def draws(p, K):
    total = jnp.cumsum(p, -1)
    u = uniform(K, *p.shape[:-1]) * total[..., -1]
    return jnp.minimum((total <= u[..., None]).sum(-1), p.shape[-1] - 1)
