"""The law of the choices as users give it: logits, probabilities, or a distribution of
`torch.distributions`."""

from __future__ import annotations

import math
from typing import Optional, Union

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, Distribution, Independent, OneHotCategorical

from .._core import UsageError
from ..losses import Columns
from .tensors import check_logits, of_core

#: None: the probabilities are given instead.
Law = Union[Tensor, Distribution, None]


def logits_of(
    law: Law, probs: Optional[Tensor], bits: bool, columns: Columns = "shared"
) -> tuple[Tensor, bool]:
    """The logits with the axes of `expectation`, and whether they are those of a 1."""
    logits, bits, event = _logits(law, probs, bits)
    if event is None or columns == "separate":
        return logits, bits
    options = logits.shape[logits.dim() - (not bits) :]
    batch = logits.shape[: logits.dim() - len(event) - len(options)]
    if len(event) > 1 or len(batch) > 1:
        raise UsageError(
            f"the distribution has batch shape {list(batch)} and event shape "
            f"{list(event + options)}: the batch is one axis of examples, whose choices share a "
            'loss by Independent(..., 1), or have one each by columns="separate"'
        )
    return logits.reshape(*batch, *_one(tuple(event), bits or len(batch) > 0), *options), bits


def each_of(law: Law, probs: Optional[Tensor], bits: bool) -> tuple[Tensor, bool, tuple[int, ...]]:
    """Logits with any axes, whether they are those of a 1, and their shape in `expectation`: all
    axes before the columns are examples."""
    logits, bits, event = _logits(law, probs, bits)
    options = tuple(logits.shape[logits.dim() - (not bits) :])
    rest = tuple(logits.shape[: logits.dim() - len(options)])
    columns = rest[-1:] if event is None else tuple(event)
    batch = rest[: len(rest) - len(columns)]
    if event is None and len(batch) <= 1:
        return logits, bits, tuple(logits.shape)
    examples = (math.prod(batch),) * (len(batch) > 0)
    return logits, bits, (*examples, *_one(columns, bits or len(batch) > 0), *options)


def _one(columns: tuple[int, ...], there: bool) -> tuple[int, ...]:
    """The axes of a distribution's columns as one; none if it has none, unless it must be there."""
    return (math.prod(columns),) if columns or there else ()


def _logits(
    law: Law, probs: Optional[Tensor], bits: bool
) -> tuple[Tensor, bool, Optional[torch.Size]]:
    """Also the event shape over the options of a distribution; None for tensors."""
    if (law is None) == (probs is None):
        raise UsageError(
            "logits and probs= are two laws: pass one of them"
            if law is not None
            else "there is no law: pass logits, a distribution, or probs="
        )
    if probs is not None:
        return log_of(probs, bits), bits, None
    if not isinstance(law, Distribution):
        check_logits(law)
        assert isinstance(law, Tensor)
        return law, bits, None
    base, event = law, torch.Size()
    while isinstance(base, Independent):
        base, ndims = base.base_dist, base.reinterpreted_batch_ndims
        event = base.batch_shape[len(base.batch_shape) - ndims - len(event) :]
    if isinstance(base, OneHotCategorical):
        base = base._categorical
    if not isinstance(base, (Bernoulli, Categorical)):
        raise UsageError(
            f"a law is Bernoulli, Categorical, OneHotCategorical or Independent of these, got "
            f"{type(base).__name__}"
        )
    found = isinstance(base, Bernoulli)
    if bits and not found:
        raise UsageError("bits=True takes a Bernoulli, not a law of categories")
    if base.__dict__.get("probs") is base._param:  # its own logits have no zero probability
        return log_of(base.probs, found), found, event
    check_logits(base.logits)
    return base.logits, found, event


def log_of(probs: Tensor, bits: bool) -> Tensor:
    """Logits of these probabilities, which need no sum. Those of 0 are -inf, with gradient 0. Of
    bits: of a 1; a 1 that is certain has the largest probability below 1."""
    check_logits(probs, "probs")
    most = 1 if bits else torch.inf
    if not ((probs >= 0) & (probs <= most)).all():
        raise UsageError(
            f"probs are numbers {'from 0 to 1' if bits else 'of at least 0, for each option'}; an "
            "entry is not"
        )
    there = probs > 0
    positive = torch.where(there, probs, torch.ones_like(probs) / 2).to(of_core(probs.dtype))
    if bits:
        positive = positive.clamp(max=1 - torch.finfo(probs.dtype).eps / 2)
    logits = positive.log() - torch.log1p(-positive) if bits else positive.log()
    return torch.where(there, logits.to(probs.dtype), torch.full_like(probs, -torch.inf))
