"""A loss on every group of sequences: its slopes at the log probabilities, exactly or sampled."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Callable, Mapping, Optional, Union

import numpy as np
import torch
from torch import Tensor

from ..._core import NotFinite, UsageError
from ...losses import Floats, Ints
from . import fields
from .arguments import FORMS, Arguments, Batch, Form
from .sequences import MOST_GROUPS, Sequences, count_groups

Loss = Callable[..., Any]
Advantages = Union[str, Callable[..., Any]]
#: The option's words, and core's.
OPTIONS = {
    "group": "group_mean",
    "group_std": "group_std",
    "leave_one_out": "leave_one_out",
    "none": "none",
}
_CHUNK = 4096
_NEAR = 1e-9
_PROBED = 6  # groups, on which properties of the loss are tried


class Losses:
    """A user's loss on groups of sequences. samples: K of a group; fixed: arguments by name."""

    def __init__(
        self,
        loss: Loss,
        of: Sequences,
        samples: int,
        advantages: Advantages,
        fixed: Mapping[str, Any],
    ):
        self.of, self.samples = of, samples
        self.arguments = Arguments(loss, fixed, "the loss")
        self._advantages = advantages
        if isinstance(advantages, str) and advantages not in OPTIONS:
            raise UsageError(
                f"advantages are {', '.join(map(repr, OPTIONS))} or a function, got {advantages!r}"
            )
        if samples < 2 and advantages in ("group", "group_std", "leave_one_out"):
            raise UsageError(f"advantages={advantages!r} needs group=2 or more")
        self._own_advantages = (
            Arguments(advantages, {}, "advantages") if callable(advantages) else None
        )
        as_tensor = torch.from_numpy
        self._p, self._q = as_tensor(of.log_p.copy()), as_tensor(of.log_q.copy())
        self._r = None if of.log_r is None else as_tensor(of.log_r.copy())
        if self._r is None and "ref_logprobs" in self.arguments.required:
            raise UsageError(
                "the loss needs log probabilities of a reference policy: give its distance "
                "reference=, e.g. 0.5"
            )
        self._mask, self._rewards = as_tensor(of.mask.copy()), as_tensor(of.rewards.copy())
        self._parallel: Optional[bool] = None
        self._find_form()

    @property
    def advantages_name(self) -> str:
        """Core's name of the advantages that the loss gets; "given" for those of a function."""
        return OPTIONS[self._advantages] if isinstance(self._advantages, str) else "given"

    def enumerated(self, limit: Optional[int], seed: int) -> tuple[Ints, Floats, bool]:
        """Groups [n, K], their probabilities, and whether they were drawn: all, or `limit` drawn if
        there are more."""
        every = len(self.of.rewards)
        ordered = not self._symmetric()
        if limit is not None and count_groups(every, self.samples, ordered) > MOST_GROUPS:
            return *self.of.drawn(self.samples, limit, seed), True
        return *self.of.groups(self.samples, ordered), False

    def advantages(self, group: Ints) -> Optional[Floats]:
        """[n, K] or [n, K, T] of groups."""
        rewards = self.of.rewards[group]
        if isinstance(self._advantages, str):
            return fields.advantages(OPTIONS[self._advantages], self.of, group)
        assert self._own_advantages is not None
        found = []
        for rows in group:
            with torch.no_grad():
                given = self._own_advantages(
                    self._batch(torch.from_numpy(rows), self._p, self._q, None)
                )
            given = given[0] if isinstance(given, (tuple, list)) else given
            value = np.asarray(given.detach() if isinstance(given, Tensor) else given, np.float64)
            if value.shape not in ((len(rows),), (len(rows), self.of.longest)):
                raise UsageError(
                    f"advantages returned shape {list(value.shape)}, expected [{len(rows)}] or "
                    f"[{len(rows)}, {self.of.longest}]"
                )
            if not np.isfinite(value).all():
                raise NotFinite(
                    f"advantages are not finite where rewards are {rewards[0].tolist()}"
                )
            found.append(value)
        return np.stack(found)

    def slopes(
        self, group: Ints, advantages: Optional[Floats], whole: Optional[Ints] = None
    ) -> Floats:
        """[n, K', T] of batches [n, K'] at their log probabilities. whole: the group [n, K] of
        which each is a part."""
        every = group if whole is None else whole
        tokens = self._mask.sum(1)[torch.from_numpy(every)].sum(1)
        given = None if advantages is None else torch.from_numpy(np.ascontiguousarray(advantages))
        rows = torch.from_numpy(np.ascontiguousarray(group))
        found = np.empty((*group.shape, self.of.longest))
        for first in range(0, len(group), _CHUNK):
            part = slice(first, first + _CHUNK)
            chunk = (
                rows[part],
                None if given is None else given[part],
                tokens[part],
                every.shape[1],
            )
            found[part] = self._several(*chunk).numpy()
        if not np.isfinite(found).all():
            bad = int(np.argmin(np.isfinite(found).all((1, 2))))
            raise NotFinite(
                "the gradient is not finite for the group with rewards "
                f"{np.round(self.of.rewards[group[bad]], 3).tolist()} and lengths "
                f"{self.of.lengths[group[bad]].astype(int).tolist()}"
            )
        return found

    def reads_padding(self) -> bool:
        """Whether other log probabilities after the ends would change the gradient."""
        group = self._probes()
        given = self.advantages(group)
        filled = [x - (1 - self._mask) * by for x, by in ((self._p, 0.7), (self._q, 1.1))]
        for i, rows in enumerate(torch.from_numpy(group)):
            advantage = None if given is None else torch.from_numpy(given[i])
            plain, other = (
                self._slope(self._batch(rows, p, q, advantage)) * self._mask[rows]
                for p, q in ((self._p, self._q), (filled[0], filled[1]))
            )
            if not torch.allclose(plain, other, rtol=1e-6, atol=1e-9):
                return True
        return False

    def _probes(self) -> Ints:
        generator = np.random.default_rng(7)
        count = len(self.of.rewards)
        return np.stack(
            [
                generator.choice(count, self.samples, replace=self.samples > count)
                for _ in range(_PROBED)
            ]
        ).astype(np.int64)

    def _symmetric(self) -> bool:
        """Whether the order of a group has no effect."""
        if self.samples == 1:
            return True
        group = self._probes()
        order = np.random.default_rng(8).permutation(self.samples)
        order = order if (order != np.arange(self.samples)).any() else order[::-1].copy()
        one, other = (self.slopes(g, self.advantages(g)) for g in (group, group[:, order].copy()))
        return bool(np.allclose(one[:, order], other, rtol=1e-6, atol=1e-9))

    def _batch(
        self,
        rows: Tensor,
        p: Tensor,
        q: Tensor,
        advantages: Optional[Tensor],
        tokens: Optional[Tensor] = None,
        sequences: int = 0,
    ) -> Batch:
        mask = self._mask[rows]
        return Batch(
            p[rows],
            q[rows],
            None if self._r is None else self._r[rows],
            mask,
            self._rewards[rows],
            advantages,
            mask.sum() if tokens is None else tokens,
            sequences or len(rows),
        )

    def _find_form(self) -> None:
        """The form of masks and advantages that the loss takes."""
        rows = torch.from_numpy(self._probes()[0])
        given = self.advantages(rows[None].numpy())
        advantage = None if given is None else torch.from_numpy(given[0])
        batch = self._batch(rows, self._p, self._q, advantage)
        while batch.mask.shape[1] in (1, self.samples):  # which would be taken for another axis
            batch = _wider(batch)
        failure: Optional[Exception] = None
        for form in FORMS if self.samples > 1 else [*FORMS[1::3], *FORMS]:
            self.arguments.form = form
            try:
                self._slope(batch)
                return
            except UsageError:
                raise
            except Exception as error:  # of the user's own code
                failure = failure or error
        self.arguments.form = Form()
        assert failure is not None
        raise UsageError(
            f"the loss fails: {type(failure).__name__}: {' '.join(str(failure).split())}"
        ) from failure

    def _value(self, of: Batch) -> Tensor:
        answer = self.arguments(of)
        if isinstance(answer, Mapping):
            answer = answer.get("loss")
        if isinstance(answer, (tuple, list)) and answer:
            answer = answer[0]
        if not isinstance(answer, Tensor) or answer.numel() != 1:
            what = (
                f"a tensor of shape {list(answer.shape)}"
                if isinstance(answer, Tensor)
                else f"an object of type {type(answer).__name__}"
            )
            raise UsageError(
                f"the loss returned {what}, expected one number (or a tuple that begins with it): "
                "reduce it over the batch as your trainer does"
            )
        return answer.reshape(())

    def _slope(self, of: Batch) -> Tensor:
        of.logprobs = of.logprobs.detach().requires_grad_()
        value = self._value(of)
        if not value.requires_grad:  # e.g. all is clipped
            return torch.zeros_like(of.logprobs)
        (slope,) = torch.autograd.grad(value, of.logprobs, allow_unused=True)
        return torch.zeros_like(of.logprobs) if slope is None else slope.detach()

    def _several(
        self, rows: Tensor, given: Optional[Tensor], tokens: Tensor, sequences: int
    ) -> Tensor:
        if self._parallel is None and len(rows) > 1:
            self._parallel = self._can_be_mapped(rows, given, tokens, sequences)
        if self._parallel:
            return self._mapped(rows, given, tokens, sequences)
        return self._looped(rows, given, tokens, sequences)

    def _looped(
        self, rows: Tensor, given: Optional[Tensor], tokens: Tensor, sequences: int
    ) -> Tensor:
        advantages = [None] * len(rows) if given is None else list(given)
        each = zip(rows, advantages, tokens)
        return torch.stack(
            [self._slope(self._batch(r, self._p, self._q, a, n, sequences)) for r, a, n in each]
        )

    def _mapped(
        self, rows: Tensor, given: Optional[Tensor], tokens: Tensor, sequences: int
    ) -> Tensor:
        """All groups in one call, as PyTorch's vmap has it: each still sees its group alone."""

        def value(p: Tensor, q: Tensor, rows: Tensor, a: Optional[Tensor], n: Tensor) -> Tensor:
            batch = self._batch(rows, self._p, self._q, a, n, sequences)
            batch.logprobs, batch.old_logprobs = p, q
            return self._value(batch)

        of = torch.func
        axes = (0, 0, 0, None if given is None else 0, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return of.vmap(of.grad(value), axes)(self._p[rows], self._q[rows], rows, given, tokens)

    def _can_be_mapped(
        self, rows: Tensor, given: Optional[Tensor], tokens: Tensor, sequences: int
    ) -> bool:
        if not hasattr(torch, "func"):  # PyTorch 1
            return False
        few = slice(0, _PROBED)
        some = (rows[few], None if given is None else given[few], tokens[few], sequences)
        try:
            return torch.allclose(self._mapped(*some), self._looped(*some), rtol=1e-9, atol=1e-12)
        except Exception:  # e.g. it reads numbers with item()
            return False


def _wider(of: Batch) -> Batch:
    """With a column more, after the ends of all sequences."""
    names = ("logprobs", "old_logprobs", "ref_logprobs", "mask", "advantages")
    given = {name: getattr(of, name) for name in names}
    return replace(
        of,
        **{
            name: torch.cat([x, torch.zeros_like(x[:, :1])], 1)
            for name, x in given.items()
            if x is not None and x.dim() == 2
        },
    )
