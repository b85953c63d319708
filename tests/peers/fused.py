"""Operations for the tuned networks. Each replaces several passes, or an allocation at every step, by one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.autograd import Function

aten = torch.ops.aten
CHUNK = 256  # rows of logits that fit in the cache


class Shared:
    """A matrix that is used at every step; its gradient is computed once, after all steps. `rows(index)` gathers its rows, `linear(x)`
    multiplies by its transpose."""

    def __init__(self, x):
        self.x, self.gathered, self.multiplied = x.detach(), [], []
        self.token = _Open.apply(x, self)  # every use depends on it, so its backward runs last

    def rows(self, index):
        return _Rows.apply(self.token, self, index)

    def linear(self, x):
        return _Linear.apply(self.token, x, self)

    def gradient(self):
        total = None
        if self.gathered:
            index, g = (torch.cat(parts) for parts in zip(*self.gathered))
            total = aten.embedding_dense_backward(g, index, len(self.x), -1, False)
        if self.multiplied:
            g, x = (torch.cat(parts) for parts in zip(*self.multiplied))
            total = g.t() @ x if total is None else total.addmm_(g.t(), x)
        return total


class _Open(Function):
    @staticmethod
    def forward(ctx, x, shared):
        ctx.shared = shared
        return x.new_zeros(())

    @staticmethod
    def backward(ctx, _):
        return ctx.shared.gradient(), None


class _Rows(Function):
    @staticmethod
    def forward(ctx, token, shared, index):
        ctx.shared, ctx.index = shared, index
        return shared.x.index_select(0, index)

    @staticmethod
    def backward(ctx, g):
        ctx.shared.gathered.append((ctx.index, g))
        return g.new_zeros(()), None, None


class _Linear(Function):
    @staticmethod
    def forward(ctx, token, x, shared):
        ctx.shared, ctx.x = shared, x
        return x @ shared.x.t()

    @staticmethod
    def backward(ctx, g):
        ctx.shared.multiplied.append((g, ctx.x))
        return g.new_zeros(()), g @ ctx.shared.x, None


class Cell(Function):
    """LSTM cell on gates [R, 4H] (i, f, g, o) and c [R, H] -> h, c."""

    @staticmethod
    def forward(ctx, gates, c):
        H = c.shape[1]
        a = torch.empty_like(gates)
        torch.sigmoid(gates[:, : 2 * H], out=a[:, : 2 * H])
        torch.tanh(gates[:, 2 * H : 3 * H], out=a[:, 2 * H : 3 * H])
        torch.sigmoid(gates[:, 3 * H :], out=a[:, 3 * H :])
        i, f, g, o = a.split(H, 1)
        new = (f * c).addcmul_(i, g)
        t = torch.tanh(new)
        ctx.save_for_backward(a, c, t)
        return o * t, new

    @staticmethod
    def backward(ctx, dh, dc):
        a, c, t = ctx.saved_tensors
        H = c.shape[1]
        i, f, g, o = a.split(H, 1)
        d = aten.tanh_backward(dh * o, t).add_(dc)
        out = torch.empty_like(a)
        torch.mul(d, g, out=out[:, :H])
        torch.mul(d, c, out=out[:, H : 2 * H])
        torch.mul(d, i, out=out[:, 2 * H : 3 * H])
        torch.mul(dh, t, out=out[:, 3 * H :])
        for part in (slice(0, 2 * H), slice(3 * H, 4 * H)):
            aten.sigmoid_backward(out[:, part], a[:, part], grad_input=out[:, part])
        aten.tanh_backward(out[:, 2 * H : 3 * H], g, grad_input=out[:, 2 * H : 3 * H])
        return out, d.mul_(f)


class AdditiveScores(Function):
    """v . tanh(q + k): query [B, K, H], keys [B, L, H], v [1, H] -> [B, K, L]."""

    @staticmethod
    def forward(ctx, query, keys, v):
        t = (query[:, :, None] + keys[:, None]).tanh_()
        ctx.save_for_backward(t, v)
        return t @ v[0]

    @staticmethod
    def backward(ctx, g):
        t, v = ctx.saved_tensors
        gv = g.reshape(1, -1) @ t.view(-1, t.shape[3])
        d = aten.tanh_backward(g[..., None] * v, t)
        return d.sum(2), d.sum(1), gv


class Classify(Function):
    """Cross-entropy [R] of softmax(u W' + b), in chunks. The forward pass also computes the gradient at the logits."""

    @staticmethod
    def forward(ctx, u, weight, bias, label):
        gradient, loss = u.new_empty(len(u), len(weight)), u.new_empty(len(u))
        for first in range(0, len(u), CHUNK):
            part = slice(first, first + CHUNK)
            log_p = gradient[part]
            torch.log_softmax(F.linear(u[part], weight, bias), 1, out=log_p)
            loss[part] = -log_p.gather(1, label[part, None])[:, 0]
            log_p.exp_()
            log_p.scatter_add_(1, label[part, None], log_p.new_full((len(log_p), 1), -1.0))
        ctx.save_for_backward(u, weight, gradient)
        ctx.bias = bias is not None
        return loss

    @staticmethod
    def backward(ctx, g):
        u, weight, gradient = ctx.saved_tensors
        scaled = u * g[:, None]
        return ((gradient @ weight).mul_(g[:, None]), gradient.t() @ scaled, g @ gradient if ctx.bias else None, None)
