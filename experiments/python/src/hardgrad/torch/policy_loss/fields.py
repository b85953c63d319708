"""The fields that a loss may follow: the mean gradients of the family of policy gradients, and the
factors by which they are multiplied. Names, words and formulas are those of core's terms."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple, Optional

import numpy as np

from ... import _core
from ...estimators import describe
from ...losses import Floats, Ints
from .sequences import Sequences

_POLICY_GRADIENT = describe("policy_gradient")
_DEFAULT: dict[str, Any] = {of["name"]: of["default"] for of in _POLICY_GRADIENT["parameters"]}
_WORDS = _core.policy_terms()
#: Those of a batch of one group, without the learned values of a critic.
ADVANTAGES = {name: words for name, words in _WORDS["advantage"].items() if name != "critic"}
_AGGREGATIONS = [name for name in _WORDS["aggregation"] if name != "batch_tokens"]
_NO_RATIO = "sigmoid_without_ratio"  # a mistake that trainers make, and no setting of core
#: Limits in trainers, beside those of the presets.
_COMMON = (
    ("clip", 0.8, 1.2),
    ("clip", 0.8, 1.28),
    ("truncate", 0.8, 1.2),
    ("truncate", 0.0, 2.0),
    ("truncate", 0.0, 5.0),
    ("mask", 0.0, 2.0),
)


def advantages(option: str, of: Sequences, group: Ints) -> Floats:
    """[n, K] of groups [n, K], as core's policy_gradient has them (advantage=...)."""
    rewards, lengths = of.rewards[group], of.lengths[group]
    if option == "greedy":
        return np.asarray(rewards - of.rewards[of.greedy])
    if option == "batch_std":
        count = lengths.sum(1, keepdims=True)
        centred = rewards - (lengths * rewards).sum(1, keepdims=True) / count
        squares = (lengths * centred**2).sum(1, keepdims=True)
        deviation = np.sqrt(squares / np.maximum(count - 1, 1))
        return np.asarray(centred / (deviation + _DEFAULT["epsilon"]))
    whole = (of.log_p.sum(1)[group], of.log_q.sum(1)[group])
    return _core.policy_advantages(option, rewards, lengths, *whole, _DEFAULT["epsilon"])


#: In the order of `_core.policy_weights`.
_LIMITS = (
    "low",
    "high",
    "dual",
    "shape_positive",
    "shape_negative",
    "rate_positive",
    "rate_negative",
)


class Terms(NamedTuple):
    """One of the family: settings of core's policy_gradient, but for `_NO_RATIO`."""

    advantage: str
    ratio: str = "none"
    bound: str = "none"
    low: float = _DEFAULT["low"]
    high: float = _DEFAULT["high"]
    aggregation: str = "sum"
    dual: float = _DEFAULT["dual"]
    shape_positive: float = _DEFAULT["shape_positive"]
    shape_negative: float = _DEFAULT["shape_negative"]
    rate_positive: float = _DEFAULT["rate_positive"]
    rate_negative: float = _DEFAULT["rate_negative"]
    top_entropy: float = _DEFAULT["top_entropy"]

    @property
    def spec(self) -> str:
        """Settings in brackets, without those that have no effect."""
        limits = ("low", "high") if "{high" in self._bound_words else ()
        settings = [
            f"{name}={value if isinstance(value, str) else f'{value:g}'}"
            for name, value in self._asdict().items()
            if name in ("advantage", "ratio", *limits)
            or name not in ("low", "high", "aggregation")
            and value != self._field_defaults[name]
        ]
        return ",".join([*settings, f"aggregation={self.aggregation}"])

    @property
    def words(self) -> dict[str, str]:
        words = _WORDS["ratio"][self.ratio] + self._bound_words.format(low=self.low, high=self.high)
        if self.top_entropy < 1:
            words += f", of the {self.top_entropy:.0%} of tokens with the highest entropy"
        return {
            "advantage": ADVANTAGES.get(self.advantage, "those of the function"),
            "ratio": words,
            "aggregation": _WORDS["aggregation"][self.aggregation],
        }

    @property
    def _bound_words(self) -> str:
        if self.bound == _NO_RATIO:
            return f"{_WORDS['bound']['sigmoid']} without its ratio"
        return str(_WORDS["bound"][self.bound])

    @property
    def weight(self) -> Terms:
        """The terms that decide the weights of tokens, but for the sign of the advantage."""
        return self._replace(advantage="", aggregation="sum")


def published() -> Iterator[Terms]:
    """The presets of core's policy_gradient; each group is a batch."""
    for preset in _POLICY_GRADIENT["presets"]:
        given = _DEFAULT | dict(part.split("=") for part in preset["settings"].split(","))
        kinds = {name: type(default) for name, default in Terms._field_defaults.items()}
        terms = Terms(
            given["advantage"], **{name: kind(given[name]) for name, kind in kinds.items()}
        )
        over_batch = terms.aggregation == "batch_tokens"
        yield terms._replace(aggregation="tokens") if over_batch else terms


def candidates(given: str, others: bool, off_policy: bool) -> Iterator[Terms]:
    """Simple ones first. given: the advantages that the loss gets; others: whether it may make
    other ones."""
    ratios = list(_WORDS["ratio"])
    weights = {Terms("")} | {of.weight for of in published() if off_policy or of.top_entropy < 1}
    if off_policy:
        weights |= {Terms("", ratio) for ratio in ratios}
        weights |= {
            Terms("", ratio, *bound)
            for ratio in ("token", "sequence", "geometric")
            for bound in _COMMON
        }
        weights |= {Terms("", "token", _NO_RATIO)}
    ordered = sorted(weights, key=lambda of: (of.bound != "none", ratios.index(of.ratio), of))
    names = sorted(ADVANTAGES, key=lambda name: name == "leave_one_out")  # the mean: as often meant
    for advantage in (given, *(name for name in names if others and name != given)):
        for of in ordered:
            for aggregation in _AGGREGATIONS:
                yield of._replace(advantage=advantage, aggregation=aggregation)


class Family:
    """The mean gradients of the family on groups [n, K] with probabilities [n].

    given: [n, K] or [n, K, T] the advantages that the loss gets.
    """

    def __init__(self, of: Sequences, group: Ints, probability: Floats, given: Optional[Floats]):
        self._of, self._group, self._probability = of, group, probability
        self._log_ratio = of.log_p - of.log_q
        self._lengths = of.lengths[group]
        found = {
            name: advantages(name, of, group)
            for name in ADVANTAGES
            if group.shape[1] > 1 or name in ("none", "greedy")
        } | ({} if given is None else {"given": given})
        shape = (*group.shape, of.longest)
        self._advantages = {
            name: np.broadcast_to(x if x.ndim == 3 else x[..., None], shape)
            for name, x in found.items()
        }
        self._share = {
            name: _core.policy_shares(name, self._lengths, of.longest)[..., None]
            for name in _WORDS["aggregation"]
        }
        self._weighted: tuple[Optional[Terms], Floats] = None, np.empty(0)  # of the last terms

    def has(self, terms: Terms) -> bool:
        return terms.advantage in self._advantages

    def mean(self, terms: Terms) -> Floats:
        """[P] the mean gradient of the loss, -1/K sum of A W grad log p over samples and tokens."""
        of = terms._replace(aggregation="sum")
        if self._weighted[0] != of:
            self._weighted = of, self._advantages[of.advantage] * self._weights(of)
        return self._at_logits(-self._weighted[1] * self._share[terms.aggregation])

    def _weights(self, of: Terms) -> Floats:
        """[n, K, T]"""
        at, bare = self._group, of.bound == _NO_RATIO
        found = _core.policy_weights(
            of.ratio,
            "sigmoid" if bare else of.bound,
            tuple(getattr(of, name) for name in _LIMITS),
            of.top_entropy,
            self._advantages[of.advantage],
            self._log_ratio[at],
            self._of.log_p[at],
            self._of.entropy[at],
            self._lengths,
        )
        return found / np.exp(self._log_ratio[at]) if bare else found

    def divergence(self, name: str, aggregation: str) -> Floats:
        """[P] the mean gradient of a divergence from the reference, as a term of the loss."""
        assert self._of.log_r is not None
        kind, weighted = DIVERGENCES[name]
        m = self._of.log_p - self._of.log_r
        slope = _core.policy_divergence(kind, weighted, m, self._log_ratio)
        return self._at_logits(slope[self._group] * self._share[aggregation])

    def _at_logits(self, slope: Floats) -> Floats:
        """[P] of the mean of slopes [n, K, T] over groups and samples."""
        slope = slope * self._probability[:, None, None] / self._group.shape[1]
        each = [
            np.bincount(self._group.ravel(), slope[..., t].ravel(), len(self._of.rewards))
            for t in range(slope.shape[2])
        ]
        summed = np.asarray(np.stack(each, 1), np.float64)
        return self._of.at_logits(summed[None])[0]


#: Divergences of a token as terms of a loss: core's name, and whether it has the token's ratio.
DIVERGENCES: dict[str, tuple[str, bool]] = {
    f"{kind},where={'weighted' if weighted else 'loss'}": (kind, weighted)
    for weighted in (False, True)
    for kind in reversed(_WORDS["divergence"])
}


class Match(NamedTuple):
    """A field times a factor, and the length of the rest relative to the mean."""

    factor: float
    rest: float


def matched(mean: Floats, field: Floats) -> Match:
    length = float(field @ field)
    factor = float(mean @ field) / length if length > 0 else 0.0
    size = float(np.linalg.norm(mean))
    return Match(factor, float(np.linalg.norm(mean - factor * field)) / size if size > 0 else 0.0)


def factor_in_words(factor: float, samples: int, longest: int, near: float = 1e-6) -> str:
    """E.g. "(K-1)/K = 0.5"; only the number if it is none of those that occur."""
    K, T = samples, longest
    known = [
        (1.0, "1"),
        ((K - 1) / K, "(K-1)/K"),
        (K / max(K - 1, 1), "K/(K-1)"),
        (1 / T, "1/T"),
        ((K - 1) / (K * T), "(K-1)/(K T)"),
        (float(K), "K"),
        (float(K - 1), "K-1"),
        (1 / K, "1/K"),
        (float(T), "T"),
        (K / T, "K/T"),
        ((K - 1) / T, "(K-1)/T"),
    ]
    for value, words in known:
        for sign in (1, -1):
            if value and abs(factor - sign * value) <= near * value:
                minus = "-" if sign < 0 else ""
                number = f"{sign * value:.3g}"
                return minus + words if words.isdigit() else f"{minus}{words} = {number}"
    return f"{factor:.3g}"
