"""The operations of the peers' networks in PyTorch. `jax_ops.py` has the same names in JAX, so each network is written once. Operations
that both libraries spell alike (indexing, arithmetic, `reshape`, `sum`) are used directly."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

tanh, sigmoid, relu, exp, log, log1p, sqrt, where = (
    torch.tanh,
    torch.sigmoid,
    torch.relu,
    torch.exp,
    torch.log,
    torch.log1p,
    torch.sqrt,
    torch.where,
)
cat, stack, bmm, roll = torch.cat, torch.stack, torch.bmm, torch.roll
maximum, minimum, broadcast, einsum = torch.maximum, torch.minimum, torch.broadcast_to, torch.einsum
linear, log_softmax, softmax, logsigmoid, softplus, conv = (
    F.linear,
    F.log_softmax,
    F.softmax,
    F.logsigmoid,
    F.softplus,
    F.conv2d,
)
logsumexp, arange = torch.logsumexp, torch.arange


def embedding(table, index):
    return F.embedding(index, table)


def embedding_bag(table, index):
    """Sums of rows [N, C]; index [N, n]."""
    return F.embedding_bag(index, table, mode="sum")


def zeros(*shape):
    return torch.zeros(shape)


def repeat(a, copies):
    """Every row of a [B, ...] `copies` times: [B copies, ...]."""
    return a.repeat_interleave(copies, 0) if copies > 1 else a


def constant(a):
    return a.detach()


def double(a):
    return a.double()


def single(a):
    return a.float()


def one_hot(index, options):
    return F.one_hot(index, options).float()


def clip(a, low=None, high=None):
    return torch.clamp(a, low, high)


def gather(a, index):
    """a [..., S], index [...] -> the chosen entries [...]."""
    return take(a, index[..., None])[..., 0]


def take(a, index):
    """a [..., S], index [..., n] -> the chosen entries [..., n]."""
    return a.gather(-1, index)


def pad(a, before, after, axis=1):
    """Zeros before and after along an axis."""
    return F.pad(a, (0, 0) * (a.dim() - 1 - axis) + (before, after))


def cross_entropy(logits, label):
    """logits [N, S], label [N] -> [N]."""
    return F.cross_entropy(logits, label, reduction="none")


def bernoulli_loss(logits, y):
    return F.binary_cross_entropy_with_logits(logits, y.expand_as(logits), reduction="none")


def lstm_cell(a, state, weight, recurrent, bias):
    return torch.lstm_cell(a, state, weight, recurrent, bias, torch.zeros_like(bias))


def bilstm(p, name, a, length):
    """a [B, L, E] -> states [B, L, 2H] and ends [B, 2H]; length [B], or None if there is no padding."""
    hidden = p[f"{name}.forward.recurrent.weight"].shape[1]
    weights = []
    for way in ("forward", "backward"):
        bias = p[f"{name}.{way}.bias"]
        weights += [p[f"{name}.{way}.input.weight"], p[f"{name}.{way}.recurrent.weight"], bias, torch.zeros_like(bias)]
    zero = a.new_zeros(2, len(a), hidden)
    if length is None:
        states, ends, _ = torch._VF.lstm(a, (zero, zero), weights, True, 1, 0.0, True, True, True)
        return states, ends.transpose(0, 1).flatten(1)
    packed = pack_padded_sequence(a, length, batch_first=True, enforce_sorted=False)
    states, ends, _ = torch._VF.lstm(packed.data, packed.batch_sizes, (zero, zero), weights, True, 1, 0.0, True, True)
    states, _ = pad_packed_sequence(packed._replace(data=states), batch_first=True)
    return states, ends[:, packed.unsorted_indices].transpose(0, 1).flatten(1)


def gru(p, name, a, h):
    """a [B, L, E], first state h [B, H] -> states [B, L, H]."""
    weights = [p[f"{name}.{of}"] for of in ("input.weight", "recurrent.weight", "input.bias", "recurrent.bias")]
    return torch._VF.gru(a, h[None], weights, True, 1, 0.0, True, False, True)[0]


def bernoulli(p):
    return torch.rand(p.shape).lt_(p)  # torch.bernoulli takes three times as long


def uniform(*shape):
    return torch.rand(shape)


def exponential(*shape):
    return torch.empty(shape).exponential_()


def categorical(log_p):
    """A draw per row of log_p [R, S]."""
    return torch.multinomial(log_p.detach().exp(), 1)[:, 0]


def draws(p, K):
    """K options for each p [..., S] -> [K, ...]."""
    flat = torch.multinomial(p.reshape(-1, p.shape[-1]), K, replacement=True)
    return flat.reshape(*p.shape[:-1], K).movedim(-1, 0)


def loop(step, state, inputs):
    """`step(state, inputs of one step)` -> (state, output), for every first index of the inputs; -> state, outputs stacked."""
    out = []
    for now in zip(*inputs):
        state, said = step(state, now)
        out.append(said)
    return state, torch.stack(out)
