"""A loss with its figures: a table of its mean gradient, and a sentence."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from ...comparison import aligned
from ...losses import Floats
from . import fields
from .fields import Terms
from .sequences import Sequences

if TYPE_CHECKING:
    import xarray

_WIDTH = 100


@dataclass(frozen=True)
class Follows:
    """A field of the family of policy gradients, near the mean of a loss.

    terms, spec: settings of `policy_gradient`; SAPO's gate is a bound that it does not have.
    factor: it is multiplied by it. divergence, beta: of the reference policy, a term of the loss
    ("" if there is none). rest: the length of the rest, relative to the mean.
    """

    terms: Terms
    factor: float
    rest: float
    divergence: str = ""
    beta: float = 0.0

    @property
    def spec(self) -> str:
        return self.terms.spec + (f",divergence={self.divergence}" if self.divergence else "")


@dataclass(frozen=True, repr=False)
class JudgedLoss:
    """A loss, judged by `policy_loss`; `print` shows a table and the verdict.

    samples: K of a group; groups: how many were visited, each by one call of the loss;
        drawn: whether they were drawn, and so all figures are estimates.
    mean, target: [P] the mean of its gradient at the logits, and the gradient that it should have:
        of the expected -reward, plus beta times KL(policy || reference).
    relative_bias: |mean - target| / |target|; standard_error: of it, from the draws; 0 if exact.
    cosine: of mean and target. factor: by which the target is multiplied to come nearest to the
        mean.
    variance: of one group's gradient, summed over the logits; signal_to_noise: |mean|^2 / variance.
    effective_sample_size: of one drawn sequence, weighted by the ratio of its probabilities:
        1 / E[w^2].
    follows: the nearest of the family of policy gradients; None for the zero gradient.
    beta_found: where there is a reference: the mean is nearest to the gradient of the reward and
        this times that of the divergence.
    by_length: by a sequence's number of tokens, the weight with which its rewards are followed: 1
        for the target. Least squares; by_length_rest: the rest, relative to the mean.
    by_position: by a token's place, factor and cosine, as those of the whole.
    in_parts: the batch split in two (in K for odd K): the root mean square of the difference to the
        gradient of the whole, relative to its own, over the 2,000 most probable groups; 0 if it is
        the same. NaN: unknown.
    notes: remarks. seconds: of the judgement.
    """

    name: str
    sequences: Sequences = field(repr=False)
    samples: int
    groups: int
    drawn: bool
    advantages: str
    beta: float
    mean: Floats
    target: Floats
    relative_bias: float
    standard_error: float
    cosine: float
    factor: float
    variance: float
    signal_to_noise: float
    effective_sample_size: float
    follows: Optional[Follows]
    beta_found: float
    by_length: dict[int, float]
    by_length_rest: float
    by_position: dict[int, tuple[float, float]]
    in_parts: float
    notes: tuple[str, ...]
    seconds: float

    #: Below this relative bias a loss is unbiased: of losses in single precision.
    TOLERANCE = 1e-6

    def unbiased(self, tolerance: float = TOLERANCE, up_to_factor: bool = False) -> bool:
        """Whether the bias is at most this, and four standard errors if groups were drawn.

        up_to_factor: the mean may be the target times a positive number, which a learning rate
            undoes.
        """
        off = self.turn if up_to_factor else self.relative_bias
        return off <= max(tolerance, 4 * self.standard_error) and self.factor > 0

    @property
    def turn(self) -> float:
        """The relative bias that remains if the mean is multiplied by the best factor: the sine of
        the angle; 1 if the mean is 0."""
        length = float(np.linalg.norm(self.mean))
        if length == 0:
            return 1.0
        rest = self.mean - self.factor * self.target
        return float(np.linalg.norm(rest)) / length

    @property
    def verdict(self) -> str:
        """One sentence."""
        return _verdict(self)

    def __str__(self) -> str:
        return "\n".join([*self._table(), "", *self._sentences()])

    def failure(self, words: str) -> str:
        """The text of a failed assertion: these words, then the table."""
        return "\n".join([words, *self.notes, "", *self._table()])

    def _table(self) -> list[str]:
        return [f"{self.name}: {self._setting()}", "", *aligned(_rows(self))]

    def _sentences(self) -> list[str]:
        return [
            line
            for words in (self.verdict, *self.notes)
            for line in textwrap.wrap(
                words,
                _WIDTH,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        ]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A notebook's cell shows the table as it is printed."""
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def _setting(self) -> str:
        of = self.sequences
        what = f"{self.groups:,} groups drawn" if self.drawn else f"all {self.groups:,} groups"
        return (
            f"{what} of {self.samples} of {len(of.rewards)} sequences, "
            f"{'on' if of.behaviour is None else 'off'} policy"
        )

    def to_xarray(self) -> xarray.Dataset:
        """The figures, and mean and target along the logits."""
        import xarray

        numbers = {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
        data: dict[str, Any] = {name: ((), value) for name, value in numbers.items()}
        data |= {name: ("logit", getattr(self, name)) for name in ("mean", "target")}
        data["weight_by_length"] = ("length", list(self.by_length.values()))
        for at, what in enumerate(("factor", "cosine")):
            data[f"{what}_by_position"] = (
                "position",
                [value[at] for value in self.by_position.values()],
            )
        return xarray.Dataset(
            data,
            {"length": list(self.by_length), "position": list(self.by_position)},
            {"name": self.name, "verdict": self.verdict, "notes": " ".join(self.notes)},
        )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else "0" if abs(value) < 1e-9 else f"{value:.3g}"


def _rows(of: JudgedLoss) -> list[list[str]]:
    error = f" (standard error {of.standard_error:.2g})" if of.drawn else ""
    rows = [
        ["", "value"],
        ["relative bias", _number(of.relative_bias) + error],
        ["cosine", f"{of.cosine:.4f}"],
        ["factor", _number(of.factor)],
        ["variance", _number(of.variance)],
        ["|mean|^2 / variance", _number(of.signal_to_noise)],
        ["effective sample size of the ratios", f"{100 * of.effective_sample_size:.3g}%"],
        [
            "weight by length " + ", ".join(map(str, of.by_length)),
            ", ".join(_number(value) for value in of.by_length.values())
            + (f" (leaves {_percent(of.by_length_rest)})" if of.by_length_rest > 1e-6 else ""),
        ],
        [
            "factor by position " + ", ".join(map(str, of.by_position)),
            ", ".join(_number(factor) for factor, _ in of.by_position.values()),
        ],
        [
            "cosine by position",
            ", ".join(_number(cosine) for _, cosine in of.by_position.values()),
        ],
        ["changed by micro-batches", "-" if math.isnan(of.in_parts) else _percent(of.in_parts)],
    ]
    if of.follows is not None:
        rows += [
            [f"nearest field: {what}", words] for what, words in of.follows.terms.words.items()
        ]
    if of.sequences.reference is not None:
        rows.insert(4, ["coefficient of the divergence", _number(of.beta_found)])
    return rows


def _percent(value: float) -> str:
    return "0" if value < 1e-9 else f"{100 * value:.3g}%"


def _verdict(of: JudgedLoss) -> str:
    goal = "the gradient of the expected reward"
    if of.beta:
        goal += f" less {of.beta:g} times the divergence from the reference"
    about = " within its standard error" if of.drawn else ""
    if not of.mean.any():
        return f"Biased: its mean is zero, not {goal}."
    if of.unbiased():
        return f"Unbiased: its mean is {goal}{about}."
    if of.unbiased(up_to_factor=True):
        times = fields.factor_in_words(of.factor, of.samples, of.sequences.longest)
        words = f"Biased in length alone: its mean is {times} times {goal}{about}"
    elif of.turn <= of.TOLERANCE:
        words = f"Biased, of the wrong sign: its mean is {of.factor:.3g} times {goal}"
    else:
        angle = math.degrees(math.acos(min(1.0, max(-1.0, of.cosine))))
        words = (
            f"Biased: its mean is off by {100 * of.relative_bias:.3g}% of {goal}, and turned from "
            f"it by {angle:.2g} degrees"
        )
    return f"{words}; {_followed(of, of.follows)}." if of.follows else f"{words}."


def _followed(of: JudgedLoss, follows: Follows) -> str:
    times = fields.factor_in_words(follows.factor, of.samples, of.sequences.longest, 2e-4)
    what = ("" if times == "1" else f"{times} times ") + f"policy_gradient[{follows.terms.spec}]"
    if follows.divergence:
        what += f" plus {follows.beta:.3g} times its divergence={follows.divergence}"
    if follows.rest < 1e-3:  # e.g. with another epsilon beside the deviation
        return f"it follows {what}"
    return f"the nearest known field, which leaves {100 * follows.rest:.2g}%, is {what}"
