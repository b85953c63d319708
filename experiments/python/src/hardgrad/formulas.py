"""Estimates as array operations: how logits, noise and losses make weights over the options, and the
slope at the logits. On PyTorch's tensors or JAX's arrays: `xp` has the functions of PyTorch that are
used here.

Shapes: E examples, K rows (samples) of each, D columns of S options. Choices of two options are
bits: `logits` are the differences of the two, weights those of the second, and the axis S is absent.
The derivative of weights over the options in the logits is a sum of a J(w), J(w) = diag(w) - w w',
for numbers a and softmax weights w: see `Jacobians`.
Sources: estimators/NAME.cpp of each estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Mapping, Optional, Sequence

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
#: Pairs (a, w) [E, 1 or K, D, S], [E, 1 or K, D] of bits.
Jacobians = Sequence[tuple[float, Any]]

_LAWS: Mapping[str, Optional[Law]] = {
    "linear": "samples",
    "disarm": "pairs",
    "arm": "numbered_pairs",
    "gumbel_softmax": "gumbels",
    "st_gumbel": "gumbels",
    "soft": None,
}


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

    @property
    def law(self) -> Optional[Law]:
        """None: nothing is drawn."""
        return _LAWS.get(self.kind, "samples")

    @property
    def pairs(self) -> bool:
        """Whether it is a formula of bits only."""
        return self.kind in ("disarm", "arm")

    @property
    def relaxes(self) -> bool:
        """Whether the loss is differentiated in the weights."""
        return self.kind != "linear" and not self.pairs

    @property
    def is_hard(self) -> bool:
        """Whether the rows are drawn options, not weights between them."""
        return self.kind not in ("gumbel_softmax", "soft")


# Score functions.


def factors(formula: Formula, losses: Any) -> Any:
    """[E, K] the factors c of the samples' scores, from losses [E, K]. Equal losses give exactly 0
    where a baseline removes their level."""
    K, own = formula.samples, formula.own - formula.others
    sums_to_zero = abs(own + K * formula.others) <= 1e-9 * abs(own)
    if sums_to_zero and K > 1:
        above = losses - losses[:, :1]
        c = (above - above.sum(1)[:, None] / K) * own
    else:
        c = losses if abs(own - 1) <= 1e-9 else losses * own
        if formula.others:
            c = c + (losses.sum(1) * formula.others)[:, None]
    return c + formula.offset if formula.offset else c


def of_scores(xp: Any, logits: Any, z: Any, c: Any, bits: bool) -> Any:
    """[E, D, S] sum_k c_k (z_k - p) of z [E, K, D, S]; of bits [E, D] and [E, K, D]. c: [E, K]."""
    p = xp.sigmoid(logits) if bits else xp.softmax(logits, -1)
    above = z - p[:, None]
    c = c[:, :, None] if bits else c[:, :, None, None]
    return (above * c)[:, 0] if z.shape[1] == 1 else (above * c).sum(1)


# Antithetic pairs of bits.


def of_pairs(xp: Any, formula: Formula, logits: Any, z: Any, numbers: Any, c: Any) -> Any:
    """[E, D] the slope at the logits of a 1. z: [E, G, 2, D] the bits of G pairs; c: [E, G, 2]
    their losses times numbers of the examples; numbers [E, G, D]: u - 1/2, for arm."""
    differ = c[:, :, 0] - c[:, :, 1]
    if formula.kind == "arm":
        return -(differ[:, :, None] * numbers).sum(1) / z.shape[1]
    one_side = (differ[:, :, None] * (z[:, :, 0] - z[:, :, 1])).sum(1) / (2 * z.shape[1])
    return one_side * xp.sigmoid(xp.abs(logits))


# Relaxations.


def softmax(xp: Any, logits: Any, bits: bool, temperature: float = 1.0) -> Any:
    """softmax(logits / temperature); sigmoid of bits."""
    scaled = logits if temperature == 1 else logits / temperature
    return xp.sigmoid(scaled) if bits else xp.softmax(scaled, -1)


def weights(xp: Any, formula: Formula, logits: Any, noise: Any, bits: bool) -> Any:
    """The weights of "gumbel_softmax" at logits [E, 1, D, S] and Gumbel noise [E, K, D, S] (of bits:
    the difference of the two), and of "soft"."""
    if formula.kind == "soft":
        return softmax(xp, logits, bits)
    return softmax(xp, logits + noise, bits, formula.temperature)


def jacobians(
    xp: Any, formula: Formula, logits: Any, z: Any, noise: Any, bits: bool
) -> Jacobians:
    """The derivative of the weights z [E, K, D, S] (one-hot, or those of `weights`) at logits
    [E, 1, D, S], with the noise that made them."""
    temperature = formula.temperature
    if formula.kind == "soft":
        return [(1.0, z)]
    if formula.kind == "gumbel_softmax":
        return [(1 / temperature, z)]
    if formula.kind == "st_gumbel":
        return [(1 / temperature, softmax(xp, logits + noise, bits, temperature))]
    if formula.kind == "reinmax":
        p = softmax(xp, logits, bits)
        at = p if temperature == 1 else softmax(xp, logits, bits, temperature)
        return [(2.0, (at + z) / 2), (-0.5, p)]
    if formula.kind == "gapped_st":
        moved = _gapped_bits if bits else _gapped
        return [
            (1 / temperature, softmax(xp, moved(xp, logits, z, formula.gap), bits, temperature))
        ]
    return [(1 / temperature, softmax(xp, logits, bits, temperature))]


def _gapped(xp: Any, logits: Any, z: Any, gap: float) -> Any:
    """The chosen logit raised to the highest, the others at least `gap` below."""
    top = xp.amax(logits, -1)[..., None]
    return xp.where(z > 0, top, xp.minimum(logits, top - gap))


def _gapped_bits(xp: Any, logits: Any, z: Any, gap: float) -> Any:
    """The same of bits: the difference of the two, whose first is 0."""
    top = logits.clip(0)
    one = top - (top - gap).clip(None, 0)
    return xp.where(z > 0, one, xp.minimum(logits, top - gap) - top)


def through(parts: Jacobians, slope: Any, bits: bool) -> Any:
    """[E, D, S] the slope at the logits from that in the weights [E, K, D, S], summed over the
    rows."""
    total: Any = None
    for a, w in parts:
        if w.shape[1] == 1 and slope.shape[1] > 1:
            of_rows = slope.sum(1)[:, None]
        else:
            of_rows = slope
        part = of_rows * w
        part = part - part * w if bits else part - part.sum(-1)[..., None] * w
        if a != 1:
            part = part * a
        part = part[:, 0] if part.shape[1] == 1 else part.sum(1)
        total = part if total is None else total + part
    return total
