"""The fields that a loss may follow: the mean gradients of the family of policy gradients, and the
factors by which they are multiplied."""

from __future__ import annotations

from typing import Any, Callable, Iterator, NamedTuple, Optional

import numpy as np

from ...estimators import describe
from ...losses import Floats, Ints
from .sequences import Sequences

_EPSILON = 1e-4  # core's default
# By the sign of A, as in the presets of core: temperatures of SAPO, which are core's defaults, and
# exponents and decays of VESPO.
_SAPO, _SHAPE, _RATE = (1.0, 1.05), (2.0, 3.0), (3.0, 2.0)
_MOST = 20.0  # of ratios, in DPPO
_VESPO = ",shape_positive=2,shape_negative=3,rate_positive=3,rate_negative=2"


def advantages(option: str, rewards: Floats, lengths: Floats) -> Floats:
    """[n, K] of groups, as core's policy_gradient has them (advantage=...)."""
    mean = rewards.mean(1, keepdims=True)
    centred = rewards - mean
    samples = rewards.shape[1]
    if option == "none":
        return rewards
    if option == "group_mean":
        return centred
    if option == "leave_one_out":
        return centred * samples / max(samples - 1, 1)
    if option == "group_std":
        deviation = np.sqrt((centred**2).sum(1, keepdims=True) / max(samples - 1, 1))
        return np.asarray(centred / (deviation + _EPSILON))
    if option == "length_weighted":
        baseline = (lengths * rewards).sum(1, keepdims=True) / lengths.sum(1, keepdims=True)
        return np.asarray(rewards - baseline)
    if option == "relative":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(mean == 0, 0.0, centred / np.abs(mean))
    raise KeyError(option)


ADVANTAGES = {
    "group_mean": "the reward less the group's mean",
    "leave_one_out": "the reward less the mean of the others",
    "group_std": "the reward less the group's mean, over the group's standard deviation",
    "none": "the reward without a baseline",
    "length_weighted": "the reward less the group's mean weighted by lengths",
    "relative": "the reward less the group's mean, over that mean",
}
_RATIOS = {
    "none": "no ratio",
    "token": "each token's ratio",
    "sequence": "the ratio of the whole sequence",
    "geometric": "the geometric mean of the sequence's ratios",
    "prefix": "the ratio of the tokens up to each",
}
_AGGREGATIONS = {
    "sum": "summed over tokens",
    "sequences": "divided by each sequence's own length",
    "tokens": "divided by the group's number of tokens",
    "longest": "divided by the longest length",
}
_NO_RATIO = "sigmoid_without_ratio"  # a mistake that trainers make, and no setting of core
_BOUNDS = {
    "none": "",
    "clip": ", clipped at {low:g} and {high:g}",
    "truncate": ", truncated at {high:g}",
    "mask": ", left out above {high:g}",
    "clip_words": ", each clipped at {low:g} and {high:g}",
    "shift": ", left out where the probability has moved by over {high:g}",
    "taper": ", truncated at {high:g} where the advantage is not positive, else none",
    "gamma": ", by VESPO's smooth function of it",
    "sigmoid": ", by SAPO's gate",
    _NO_RATIO: ", by SAPO's gate without its ratio",
}
#: Limits in trainers, beside those of the presets.
_COMMON = (
    ("clip", 0.8, 1.2),
    ("clip", 0.8, 1.28),
    ("truncate", 0.8, 1.2),
    ("truncate", 0.0, 2.0),
    ("truncate", 0.0, 5.0),
    ("mask", 0.0, 2.0),
)


class Terms(NamedTuple):
    """One of the family: settings of core's policy_gradient, but for `_NO_RATIO`."""

    advantage: str
    ratio: str = "none"
    bound: str = "none"
    low: float = 0.8
    high: float = 1.2
    aggregation: str = "sum"

    @property
    def spec(self) -> str:
        """Settings in brackets, without those that have no effect."""
        limits = (
            f",low={self.low:g},high={self.high:g}"
            if self.bound in ("clip", "clip_words", "truncate", "mask", "taper", "shift")
            else _VESPO * (self.bound == "gamma")
        )
        limits += f",dual={_MOST:g}" * (self.bound == "shift")
        bound = f",bound={self.bound}{limits}" if self.bound != "none" else ""
        return (
            f"advantage={self.advantage},ratio={self.ratio}{bound},aggregation={self.aggregation}"
        )

    @property
    def words(self) -> dict[str, str]:
        bound = _BOUNDS[self.bound].format(low=self.low, high=self.high)
        return {
            "advantage": ADVANTAGES.get(self.advantage, "those of the function"),
            "ratio": f"{_RATIOS[self.ratio]}{bound}",
            "aggregation": _AGGREGATIONS[self.aggregation],
        }


def _published() -> Iterator[Terms]:
    """The presets of core's policy_gradient that this family has."""
    for preset in describe("policy_gradient")["presets"]:
        given = dict(part.split("=") for part in preset["settings"].split(","))
        if given["advantage"] in ADVANTAGES:
            settings: dict[str, Any] = {
                name: float(given[name]) if name in ("low", "high") else given[name]
                for name in Terms._fields
                if name in given
            }
            terms = Terms(**(dict[str, Any](ratio="sequence") | settings))
            if terms.bound in _BOUNDS and terms.aggregation in _AGGREGATIONS:
                yield terms


def candidates(given: str, others: bool, off_policy: bool) -> Iterator[Terms]:
    """Simple ones first. given: the advantages that the loss gets; others: whether it may make
    other ones."""
    ratios, plain = list(_RATIOS), Terms("")
    bounds: set[tuple[str, str, float, float]] = {("none", "none", plain.low, plain.high)}
    if off_policy:
        bounds |= {(ratio, "none", plain.low, plain.high) for ratio in ratios}
        bounds |= {
            (ratio, *bound) for ratio in ("token", "sequence", "geometric") for bound in _COMMON
        }
        bounds |= {(of.ratio, of.bound, of.low, of.high) for of in _published()}
        bounds |= {("token", _NO_RATIO, plain.low, plain.high)}
    ordered = sorted(bounds, key=lambda of: (of[1] != "none", ratios.index(of[0]), of))
    for advantage in (given, *(name for name in ADVANTAGES if others and name != given)):
        for bound in ordered:
            for aggregation in _AGGREGATIONS:
                yield Terms(advantage, *bound, aggregation)


class Family:
    """The mean gradients of the family on groups [n, K] with probabilities [n].

    given: [n, K] or [n, K, T] the advantages that the loss gets.
    """

    def __init__(self, of: Sequences, group: Ints, probability: Floats, given: Optional[Floats]):
        self._of, self._group, self._probability = of, group, probability
        self._lengths = of.lengths[group]
        rewards = of.rewards[group]
        self._advantages = {
            name: advantages(name, rewards, self._lengths)[..., None]
            for name in ADVANTAGES
            if group.shape[1] > 1 or name == "none"
        }
        if given is not None:
            self._advantages["given"] = given if given.ndim == 3 else given[..., None]
        token = of.log_p - of.log_q
        whole = token.sum(1, keepdims=True)
        self._log_ratio = {
            "none": np.zeros_like(token),
            "token": token,
            "sequence": whole + np.zeros_like(token),
            "geometric": whole / of.lengths[:, None] + np.zeros_like(token),
            "prefix": token.cumsum(1),
        }
        mine, samples = self._lengths, group.shape[1]
        self._share = {
            "sum": np.ones_like(mine),
            "sequences": 1 / mine,
            "tokens": samples / mine.sum(1, keepdims=True) + np.zeros_like(mine),
            "longest": np.full_like(mine, 1 / of.longest),
        }

    def has(self, terms: Terms) -> bool:
        return terms.advantage in self._advantages

    def mean(self, terms: Terms) -> Floats:
        """[P] the mean gradient of the loss, -1/K sum of A W grad log p over samples and tokens."""
        advantage = self._advantages[terms.advantage]
        if terms.bound == "clip_words":
            w = self._of_clipped_words(advantage, terms)
        else:
            w = _bounded(np.exp(self._log_ratio[terms.ratio])[self._group], advantage, terms)
        if terms.bound == "shift":
            rise = (np.exp(self._of.log_p) - np.exp(self._of.log_q))[self._group]
            too_far = np.where(advantage > 0, rise > terms.high, rise < -terms.low)
            w = np.where(too_far, 0.0, np.minimum(w, _MOST))
        slope = -advantage * w * self._share[terms.aggregation][..., None]
        return self._of.at_logits(self._summed(slope)[None])[0]

    def _of_clipped_words(self, advantage: Floats, terms: Terms) -> Floats:
        """[n, K, T] the geometric mean of the tokens' ratios, each clipped on the side of the
        advantage, and 0 for a token whose own is."""
        log_ratio = self._log_ratio["token"][self._group]
        ratio = np.exp(log_ratio)
        flat = np.where(advantage > 0, ratio > terms.high, ratio < terms.low)
        clipped = np.where(flat, np.log(np.clip(ratio, terms.low, terms.high)), log_ratio)
        mean = np.exp(clipped.sum(2) / self._lengths)
        return np.where(flat, 0.0, mean[..., None])

    def divergence(self, name: str, aggregation: str) -> Floats:
        """[P] the mean gradient of a divergence from the reference, as a term of the loss."""
        assert self._of.log_r is not None
        m, w = self._of.log_p - self._of.log_r, np.exp(self._log_ratio["token"])
        slope = DIVERGENCES[name](m, w)[self._group] * self._share[aggregation][..., None]
        return self._of.at_logits(self._summed(slope)[None])[0]

    def _summed(self, slope: Floats) -> Floats:
        """[S, T] the mean of slopes [n, K, T], by sequence."""
        slope = slope * self._probability[:, None, None] / self._group.shape[1]
        return np.stack(
            [
                np.bincount(self._group.ravel(), slope[..., t].ravel(), len(self._of.rewards))
                for t in range(slope.shape[2])
            ],
            1,
        )


#: Slopes in log p of divergences of a token, as terms of a loss, from m = log p - log r and the
#: token's ratio: those of core's policy_gradient, where their sources are.
DIVERGENCES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "k3,where=loss": lambda m, w: -np.expm1(-m),
    "k2,where=loss": lambda m, w: m,
    "k1,where=loss": lambda m, w: np.ones_like(m),
    "k3,where=weighted": lambda m, w: w * m,
}


def _bounded(w: Floats, advantage: Floats, terms: Terms) -> Floats:
    """The factor of the score."""
    if terms.bound == "clip":
        return np.where(np.where(advantage > 0, w > terms.high, w < terms.low), 0.0, w)
    if terms.bound == "truncate":
        return np.clip(w, terms.low, terms.high)
    if terms.bound == "mask":
        return np.where((w < terms.low) | (w > terms.high), 0.0, w)
    if terms.bound == "taper":
        return np.where(advantage > 0, 1.0, np.clip(w, terms.low, terms.high))
    if terms.bound == "gamma":
        shape, rate = np.where(advantage > 0, *_SHAPE), np.where(advantage > 0, *_RATE)
        return np.asarray(w**shape * np.exp(rate * (1 - w)))
    if terms.bound in ("sigmoid", _NO_RATIO):
        gate = 1 / (1 + np.exp(-np.where(advantage > 0, *_SAPO) * (w - 1)))
        return np.asarray(4 * gate * (1 - gate) * (w if terms.bound == "sigmoid" else 1.0))
    return w


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
