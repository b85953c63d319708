"""Estimates as array operations: how logits, noise and losses make weights over the options, and
the slope at the logits. On PyTorch's tensors or JAX's arrays.

Shapes: E examples, K rows (samples) of each, D columns of S options; where K is 1 its axis is
absent. Choices of two options are bits: `logits` are the differences of the two, weights those of
the second, and the axis S is absent. Sources: estimators/NAME.cpp of each estimator."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Mapping, Optional, Protocol, Sequence

from . import _core
from ._core import UsageError

Kind = Literal[
    "linear",
    "disarm",
    "arm",
    "straight_through",
    "gumbel_softmax",
    "st_gumbel",
    "reinmax",
    "gapped_st",
    "soft",
]
#: The noise that is drawn: options of independent samples, with Gumbel noise, antithetic pairs of
#: bits, or these with u - 1/2 of the uniform number that made each pair.
Law = Literal["samples", "gumbels", "pairs", "numbered_pairs"]

_LAWS: Mapping[str, Optional[Law]] = {
    "linear": "samples",
    "disarm": "pairs",
    "arm": "numbered_pairs",
    "gumbel_softmax": "gumbels",
    "st_gumbel": "gumbels",
    "soft": None,
}


class Operations(Protocol):
    """Functions of arrays."""

    def sigmoid(self, x: Any) -> Any: ...
    def softmax(self, x: Any) -> Any:
        """Over the last axis."""

    def where(self, condition: Any, one: Any, other: Any) -> Any: ...
    def minimum(self, one: Any, other: Any) -> Any: ...
    def highest(self, x: Any) -> Any:
        """Of the last axis, which is kept."""

    def through_sigmoid(self, slope: Any, w: Any) -> Any:
        """slope w (1 - w)"""

    def through_softmax(self, slope: Any, w: Any) -> Any:
        """(diag(w) - w w') slope, also where a weight rounds to 1: the slope counts from that of
        the largest weight."""


@dataclass(frozen=True)
class Formula:
    """The formula of an estimator with its settings, as `_core.formula` tells it.

    kind: "linear": a score function whose factor of a sample is own f + others (sum of the other
        samples' f) + offset. "disarm", "arm": of antithetic pairs of bits. The others: relaxations.
    samples: K. cap: most rows of a run.
    """

    kind: Kind
    samples: int
    cap: float
    own: float = 0.0
    others: float = 0.0
    offset: float = 0.0
    temperature: float = 1.0
    forward_temperature: float = 1.0
    gap: float = 0.0

    #: The noise; None: nothing is drawn.
    law: Optional[Law] = field(init=False)
    #: Whether it is a formula of bits only.
    pairs: bool = field(init=False)
    #: Whether the loss is differentiated in the weights.
    relaxes: bool = field(init=False)
    #: Whether the rows are drawn options, not weights between them.
    is_hard: bool = field(init=False)
    #: Whether the slope at the logits is 0: it is linear with factors of 0.
    scoreless: bool = field(init=False)
    #: Whether `jacobians` reads z.
    reads_rows: bool = field(init=False)

    def __post_init__(self) -> None:
        for name, value in (
            ("law", _LAWS.get(self.kind, "samples")),
            ("pairs", self.kind in ("disarm", "arm")),
            ("relaxes", self.kind not in ("linear", "disarm", "arm")),
            ("is_hard", self.kind not in ("gumbel_softmax", "soft")),
            ("scoreless", self.kind == "linear" and not (self.own or self.others or self.offset)),
            ("reads_rows", self.kind in ("gumbel_softmax", "soft", "reinmax", "gapped_st")),
        ):
            object.__setattr__(self, name, value)  # once


@lru_cache(maxsize=1024)
def formula_of_spec(spec: str) -> Optional[Formula]:
    """None: the estimator has none, or there is no such estimator."""
    try:
        found = _core.formula(spec)
    except UsageError:
        return None
    return None if found is None else Formula(**found)


def covers(formula: Formula, shape: tuple[int, ...], options_only: bool, bits: bool) -> bool:
    """Whether the formula is that of an expectation at logits of this shape. options_only: the loss
    takes options."""
    if formula.relaxes and options_only:
        return False
    axes, options = len(shape) + bits, 2 if bits else shape[-1] if len(shape) else 0
    if not 1 <= axes <= 3 or 0 in shape or options < 2 or (formula.pairs and options != 2):
        return False
    return (shape[0] if axes == 3 else 1) * formula.samples <= formula.cap


# Score functions.


def factors(formula: Formula, losses: Any) -> Any:
    """[E, K] the factors c of the samples' scores, divided by K, from losses [E, K]. Equal losses
    give exactly 0 where a baseline removes their level."""
    K, own = formula.samples, formula.own - formula.others
    if K == 1:
        c = losses if abs(own - 1) <= 1e-9 else losses * own
        return c + formula.offset if formula.offset else c
    offset = formula.offset
    if abs(own + K * formula.others) <= 1e-9 * abs(own):  # it sums to zero
        above = losses - losses[:, :1]
        c = (above - above.sum(1)[:, None] / K) * (own / K)
    else:
        above = losses
        if offset and own:  # before the product rounds
            above, offset = losses + offset / own, 0.0
        c = above * (own / K)
        if formula.others:
            c = c + (losses.sum(1) * (formula.others / K))[:, None]
    return c + offset / K if offset else c


def of_scores(xp: Operations, logits: Any, z: Any, c: Any, bits: bool) -> Any:
    """[E, D, S] sum_k c_k (z_k - p). c: [E, K]; [E] where K is 1. The 1 - p of a drawn option is
    the sum of the others' p, without cancellation."""
    several = z.ndim > logits.ndim
    p = _of_rows(xp.sigmoid(logits) if bits else xp.softmax(logits), z)
    if bits:
        above = xp.where(z > 0, _of_rows(xp.sigmoid(-logits), z), z - p)
    else:
        of_others = p * (1 - z)
        above = z * of_others.sum(-1)[..., None] - of_others
    weighted = above * c.reshape(c.shape + (1,) * (above.ndim - c.ndim))
    return weighted.sum(1) if several else weighted


# Antithetic pairs of bits.


def of_pairs(xp: Operations, formula: Formula, logits: Any, z: Any, numbers: Any, c: Any) -> Any:
    """[E, D] the slope at the logits of a 1. z: [E, K, D] the bits of K / 2 pairs; c: [E, K] their
    losses times numbers of the examples; numbers [E, K / 2, D]: u - 1/2, for arm."""
    K = formula.samples
    differ = c[:, 0::2] - c[:, 1::2]
    if formula.kind == "arm":
        if K == 2:
            return (differ * -1.0) * numbers.reshape(logits.shape)
        return (differ[:, :, None] * numbers).sum(1) * (-2 / K)
    if K == 2:
        one_side = (z[:, 0] - z[:, 1]) * (differ * 0.5)
    else:
        one_side = ((z[:, 0::2] - z[:, 1::2]) * (differ / K)[:, :, None]).sum(1)
    return one_side * xp.sigmoid(abs(logits))


# Relaxations. The derivative of weights in the logits is a sum of a J(w), J(w) = diag(w) - w w',
# for numbers a and softmax weights w.

#: Pairs (a, w): w [E, K, D, S], or [E, D, S] if it is the same of all rows.
Jacobians = Sequence[tuple[float, Any]]


def softmax(xp: Operations, logits: Any, bits: bool, temperature: float = 1.0) -> Any:
    """softmax(logits / temperature); sigmoid of bits."""
    scaled = logits if temperature == 1 else logits * (1 / temperature)
    return xp.sigmoid(scaled) if bits else xp.softmax(scaled)


def weights(xp: Operations, formula: Formula, logits: Any, noise: Any, bits: bool) -> Any:
    """The weights of "gumbel_softmax" with Gumbel noise [E, K, D, S] (of bits: the difference of
    the two), and of "soft"."""
    if formula.kind == "soft":
        return softmax(xp, logits, bits)
    return softmax(xp, _of_rows(logits, noise) + noise, bits, formula.temperature)


def jacobians(
    xp: Operations, formula: Formula, logits: Any, z: Any, noise: Any, bits: bool
) -> Jacobians:
    """The derivative of the weights z (one-hot, or those of `weights`) at the logits, with the
    noise that made them."""
    T, kind = formula.temperature, formula.kind
    if kind in ("soft", "gumbel_softmax", "st_gumbel"):
        T = 1.0 if kind == "soft" else T
        if kind != "st_gumbel" and not bits:
            return [(1 / T, z)]
        moved = logits if noise is None else _of_rows(logits, noise) + noise
        return [(1 / T, _spread(xp, moved, bits, T))]
    if kind == "reinmax":
        p = _spread(xp, logits, bits)
        if bits:  # of a 1 the complement, which has the same J
            scaled = _of_rows(logits if T == 1 else logits * (1 / T), z)
            return [(2.0, xp.sigmoid(scaled * (1 - 2 * z)) * 0.5), (-0.5, p)]
        at = p if T == 1 else softmax(xp, logits, bits, T)
        return [(2.0, (_of_rows(at, z) + z) * 0.5), (-0.5, p)]
    if kind == "gapped_st":
        moved = (_gapped_bits if bits else _gapped)(xp, _of_rows(logits, z), z, formula.gap)
        return [(1 / T, _spread(xp, moved, bits, T))]
    return [(1 / T, _spread(xp, logits, bits, T))]


def _spread(xp: Operations, logits: Any, bits: bool, temperature: float = 1.0) -> Any:
    """w of J(w) for softmax(logits / temperature). Of bits the smaller of w and 1 - w, which have
    the same J: the other may round to 1."""
    return softmax(xp, -abs(logits) if bits else logits, bits, temperature)


def through(xp: Operations, parts: Jacobians, slope: Any, bits: bool, rows: int) -> Any:
    """[E, D, S] the slope at the logits from that in the weights [E, K, D, S], summed over the
    `rows` K."""
    total: Any = None
    of_sum = slope.sum(1) if rows > 1 and any(w.ndim < slope.ndim for _, w in parts) else slope
    for a, w in parts:
        same_of_rows = w.ndim < slope.ndim
        given = of_sum if same_of_rows else slope
        part = xp.through_sigmoid(given, w) if bits else xp.through_softmax(given, w)
        if rows > 1 and not same_of_rows:
            part = part.sum(1)
        part = part if a == 1 else part * a
        total = part if total is None else total + part
    return total


def _of_rows(x: Any, rows: Any) -> Any:
    """x [E, D, S] with the axis of the rows, if they have one."""
    return x[:, None] if rows.ndim > x.ndim else x


def _gapped(xp: Operations, logits: Any, z: Any, gap: float) -> Any:
    """The chosen logit raised to the highest, the others at least `gap` below."""
    top = xp.highest(logits)
    return xp.where(z > 0, top, xp.minimum(logits, top - gap))


def _gapped_bits(xp: Operations, logits: Any, z: Any, gap: float) -> Any:
    """The same of bits: the difference of the two, whose first is 0."""
    top = logits.clip(0)
    one = top - (top - gap).clip(None, 0)
    return xp.where(z > 0, one, xp.minimum(logits, top - gap) - top)
