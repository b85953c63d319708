"""The noise of an estimate that is made of tensor operations: the rows and numbers that core draws
at the same seed. In the CPU's memory core draws them, with PyTorch's number of threads. Elsewhere
they are made there by tensor operations, from the same uniform numbers, and nothing is transferred
nor waited for."""

from __future__ import annotations

import itertools
from typing import Any, Literal, Optional

import torch
from torch import Tensor

from .. import _core
from ..formulas import Formula, Law
from .philox import Word, count, uniforms
from .tensors import one_hot

#: options: int64 [R, D]; one_hot: weights [R, D, S]; bits: numbers [R, D]; none: no rows
Form = Literal["options", "one_hot", "bits", "none"]
_DRAWS = {torch.float32: _core.noise_float, torch.float64: _core.noise_double}


def drawn(
    formula: Formula, law: Law, logits: Tensor, rank: int, ids: Any, seed: Word, form: Form
) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """The drawn rows, and the noise: Gumbels [E K, D, S], of two options the difference of theirs
    [E K, D]; for numbered pairs u - 1/2 [E K / 2, D].

    logits: [E, D, S], or [E, D] of bits; `rank` is that of the user's, for messages. ids: [E]
    (NumPy's), or None.
    """
    if logits.device.type == "cpu":
        rows, numbers = _DRAWS[logits.dtype](
            logits.detach().numpy(),
            rank,
            ids,
            seed,
            law,
            formula.samples,
            formula.forward_temperature,
            form,
            torch.get_num_threads(),
        )
        return (
            None if rows is None else torch.from_numpy(rows),
            None if numbers is None else torch.from_numpy(numbers),
        )
    example = count(logits, len(logits)) if ids is None else _sent(ids, logits)
    with torch.no_grad():
        return there(formula, law, logits.detach(), example, seed, form)


def _sent(ids: Any, like: Tensor) -> Tensor:
    return torch.from_numpy(ids.astype("int64")).to(like.device, non_blocking=True)


def there(
    formula: Formula, law: Law, logits: Tensor, example: Tensor, seed: Word, form: Form
) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """The same by tensor operations. example: [E] ids. seed: a tensor there is the key itself."""
    key = seed if isinstance(seed, Tensor) else _core.noise_key(seed)
    draws = _Draws(logits, example, key, formula)
    if law == "gumbels":
        options, noise = draws.gumbels()
    elif law == "samples":
        options, noise = draws.samples(), None
    else:
        options, noise = draws.pairs(law == "numbered_pairs")
    return _rows(options, form, logits), noise


def _rows(options: Tensor, form: Form, logits: Tensor) -> Optional[Tensor]:
    if form == "none":
        return None
    if form == "options":
        return options
    if form == "bits":
        return options.to(logits.dtype)
    return one_hot(options, logits.shape[2], logits.dtype)


class _Draws:
    """As core/choice/plain_draws.cpp, in its order of operations."""

    def __init__(self, logits: Tensor, example: Tensor, key: Word, formula: Formula):
        self.K, self.formula, self.key, self.dtype = formula.samples, formula, key, logits.dtype
        self.bits = logits.dim() == 2
        self.two = self.bits or logits.shape[2] == 2
        log_p = log_of_two(logits) if self.two else torch.log_softmax(logits, -1)
        self.log_p = log_p.double()  # [E, D, S], rounded to the dtype of the logits, as in core
        self.E, self.D, self.S = log_p.shape
        self.example = example.reshape(-1, 1, 1)

    def uniforms(self, index: Any = 0, replicas: int = 0) -> Tensor:
        """[E, K, D] at an index, or [E, K, D, S] at indices [E, 1, D, S]."""
        of = self.example
        replica = count(of, replicas or self.K).reshape(1, -1, 1)
        column = count(of, self.D).reshape(1, 1, -1)
        if isinstance(index, Tensor):
            return uniforms(self.key, of[..., None], replica[..., None], index, column[..., None])
        return uniforms(self.key, of, replica, torch.zeros_like(column) + index, column)

    def samples(self) -> Tensor:
        """[E K, D]"""
        temperature = self.formula.forward_temperature
        if temperature == 1:
            p = self.log_p.exp()
        else:
            p = torch.softmax(self.log_p / temperature, -1)
        return self._options(self.uniforms(), p).reshape(-1, self.D)

    def _options(self, u: Tensor, p: Tensor) -> Tensor:
        """[E, K, D] the options whose intervals hold u, with probabilities p [E, D, S]."""
        p = p[:, None]
        if self.two:
            zero, one = p[..., 0], p[..., 1]
            return (((u * (zero + one) >= zero) | (zero <= 0)) & (one > 0)).long()
        return _place(u, p)

    def gumbels(self) -> tuple[Tensor, Tensor]:
        """[E K, D] the options; the noise."""
        log_p = self.log_p[:, None]
        if self.two:
            u = self.uniforms()
            chooses = torch.isfinite(self.log_p).all(-1)[:, None]
            logistic = torch.where(chooses, (u / (1 - u)).log(), torch.zeros_like(u))
            options = log_p[..., 1] - log_p[..., 0] + logistic > 0
            return options.long().reshape(-1, self.D), logistic.to(self.dtype).reshape(-1, self.D)
        missing = torch.isinf(log_p)
        index = (~missing).long().cumsum(-1) - 1  # the missing options draw nothing
        gumbel = -(-self.uniforms(index.clamp(min=0)).log()).log()
        # Two options that are left have the difference of their Gumbels, at the second; one has
        # none.
        left = (~missing).sum(-1, keepdim=True)
        u = self.uniforms()[..., None]
        of_two = (u / (1 - u)).log() * (index == 1)
        gumbel = torch.where(left > 2, gumbel, torch.where(left == 2, of_two, torch.zeros_like(u)))
        gumbel = torch.where(missing, torch.zeros_like(gumbel), gumbel)
        options = (log_p + gumbel).argmax(-1).reshape(-1, self.D)
        return options, gumbel.to(self.dtype).reshape(-1, self.D, self.S)

    def pairs(self, numbered: bool) -> tuple[Tensor, Optional[Tensor]]:
        """[E K, D] the bits of K / 2 pairs; u - 1/2 [E K / 2, D]."""
        p = self.log_p.exp()[:, None]
        zero, one = p[..., 0], p[..., 1]
        differ = torch.minimum(zero, one)
        law = torch.stack([(one - zero).abs(), differ, differ], -1)
        outcome = _place(self.uniforms(replicas=self.K // 2), law)
        same = (one > zero).long()
        bits = torch.stack(
            [torch.where(outcome == 0, same, (outcome == which).long()) for which in (1, 2)], 2
        )
        numbers = None
        if numbered:
            v = self.uniforms(1, self.K // 2)
            between, end = (0.5 - differ) * (2 * v - 1), differ * v - 0.5
            numbers = torch.where(outcome == 0, between, torch.where(outcome == 1, end, -end))
            numbers = torch.where(torch.isfinite(self.log_p).all(-1)[:, None], numbers, 0 * numbers)
            numbers = numbers.to(self.dtype).reshape(-1, self.D)
        return bits.reshape(-1, self.D), numbers


def _place(u: Tensor, p: Tensor) -> Tensor:
    """[..., n] the place of u [...] among the sums of p [..., n]: the first with u below the sum,
    or the last that is not 0."""
    apart = p.is_cuda and torch.are_deterministic_algorithms_enabled()  # which refuse CUDA's cumsum
    sums = torch.stack(list(itertools.accumulate(p.unbind(-1))), -1) if apart else p.cumsum(-1)
    passed = (u[..., None] * sums[..., -1:] >= sums).sum(-1)
    last = ((p > 0).long() * count(p, p.shape[-1])).amax(-1)
    return torch.minimum(passed, last)


def log_of_two(logits: Tensor) -> Tensor:
    """[E, D, 2] log probabilities of two options [E, D, 2], or of bits [E, D]; as core's
    log_softmax."""
    d = logits if logits.dim() == 2 else logits[..., 1] - logits[..., 0]
    log_total = torch.log1p(torch.exp(-d.abs()))
    return torch.stack([(-d).clamp(max=0) - log_total, d.clamp(max=0) - log_total], -1)
