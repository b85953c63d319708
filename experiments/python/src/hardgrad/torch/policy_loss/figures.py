"""The figures of a judged loss: the field that it follows, its parts, micro-batches, remarks."""

from __future__ import annotations

import math
from typing import Literal, Optional

import numpy as np

from ..._core import NotFinite
from ...losses import Floats, Ints
from .enumeration import Losses
from .fields import DIVERGENCES, Family, candidates, matched
from .judged import Follows
from .sequences import Sequences

Accumulation = Literal["auto", "mean", "sum"]
_EXACTLY = 1e-6  #: of the mean: a field that leaves less is followed
_SPLIT = 2000  #: groups that are split, the most probable ones


def followed(
    of: Sequences,
    groups: Ints,
    probability: Floats,
    given: Optional[Floats],
    losses: Losses,
    mean: Floats,
) -> Optional[Follows]:
    """The simplest of the family that leaves nothing, or the one that leaves least."""
    if not mean.any():
        return None
    family = Family(of, groups, probability, given)
    best: Optional[Follows] = None
    others = losses.advantages_name == "none" or "rewards" in losses.arguments.needs
    for terms in candidates(losses.advantages_name, others, of.behaviour is not None):
        if not family.has(terms):
            continue
        field = family.mean(terms)
        found = matched(mean, field)
        if best is None or found.rest < best.rest - 1e-9:
            best = Follows(terms, *found)
        if of.log_r is not None and found.rest > _EXACTLY:
            for divergence in DIVERGENCES:
                other = family.divergence(divergence, terms.aggregation)
                both = np.stack([field, other], 1)
                a, b = (float(x) for x in np.linalg.lstsq(both, mean, rcond=None)[0])
                rest = float(np.linalg.norm(mean - a * field - b * other) / np.linalg.norm(mean))
                if rest < best.rest - 1e-9:
                    best = Follows(terms, a, rest, divergence, b)
        if best.rest < _EXACTLY:
            break
    return best


def by_length(of: Sequences, mean: Floats) -> tuple[dict[int, float], float]:
    """The weights a_n for which the mean is nearest to the sum over n of a_n times the part of the
    gradient of the expected -reward that is due to sequences of n tokens."""
    lengths = sorted({int(n) for n in of.lengths})
    centred = of.p * (of.rewards - of.p @ of.rewards)
    parts = np.stack(
        [
            of.at_logits((-(centred * (of.lengths == n))[:, None] * of.mask)[None])[0]
            for n in lengths
        ],
        1,
    )
    weights = np.linalg.lstsq(parts, mean, rcond=None)[0]
    size = float(np.linalg.norm(mean))
    rest = float(np.linalg.norm(mean - parts @ weights)) / size if size > 0 else 0.0
    return {n: float(a) for n, a in zip(lengths, weights)}, rest


def by_position(of: Sequences, mean: Floats, target: Floats) -> dict[int, tuple[float, float]]:
    """By the place of a token, from 1: factor and cosine of the logits that choose there."""
    place = np.array([len(prefix) for prefix in of.prefixes])
    found = {}
    for t in range(of.longest):
        here = np.repeat(place == t, of.logits.shape[1])
        a, b = mean[here], target[here]
        lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
        found[t + 1] = (
            float(a @ b / (b @ b)) if b.any() else math.nan,
            float(a @ b) / lengths if lengths > 0 else math.nan,
        )
    return found


def in_parts(
    losses: Losses,
    groups: Ints,
    probability: Floats,
    given: Optional[Floats],
    gradients: Floats,
    accumulation: Accumulation,
) -> tuple[float, list[str]]:
    """The root mean square of the change if a group is split, and remarks."""
    samples = groups.shape[1]
    if samples == 1:
        return math.nan, []
    parts = 2 if samples % 2 == 0 else samples
    most = np.argsort(-probability, kind="stable")[:_SPLIT]
    generator = np.random.default_rng(9)
    order = generator.permuted(np.tile(np.arange(samples), (len(most), 1)), axis=1)
    group = np.take_along_axis(groups[most], order, 1)
    whole = np.repeat(group, parts, 0)
    advantage = given
    if given is not None:
        along = order if given.ndim == 2 else order[..., None]
        advantage = np.take_along_axis(given[most], along, 1)
        advantage = advantage.reshape(len(most) * parts, samples // parts, *given.shape[2:])
    part = group.reshape(len(most) * parts, samples // parts)
    try:
        slopes = losses.slopes(part, advantage, whole)
    except NotFinite:
        return math.nan, ["In micro-batches its gradient is not finite."]
    except Exception as error:  # of the user's code: it needs the whole group
        said = " ".join(str(error).split())
        return math.nan, [f"It does not take a part of a group ({type(error).__name__}: {said})."]
    split = losses.of.at_logits(slopes, part).reshape(len(most), parts, -1)
    summed = accumulation == "sum" or accumulation == "auto" and losses.arguments.whole
    joined = split.sum(1) if summed else split.mean(1)
    weight, one = probability[most], gradients[most]
    change = float(weight @ ((joined - one) ** 2).sum(1))
    size = float(weight @ (one**2).sum(1))
    factor = float(weight @ (joined * one).sum(1)) / size
    rest = float(weight @ ((joined - factor * one) ** 2).sum(1))
    remarks = []
    if rest < 1e-18 * size and abs(factor - 1) > 1e-9:
        remarks.append(
            f"In {parts} micro-batches its gradient is {factor:.3g} times that of the batch."
        )
    return math.sqrt(change / size), remarks


def notes(
    of: Sequences, groups: Ints, probability: Floats, slopes: Floats, losses: Losses
) -> list[str]:
    remarks = []
    mask = of.mask[groups]
    near = 1e-9 * np.abs(slopes).max()
    if (np.abs(slopes * (1 - mask)) > near).any():
        remarks.append(
            "Gradient reaches tokens after the end of a sequence: the mask is not applied to them, "
            "or is shifted."
        )
    elif losses.reads_padding():
        remarks.append("It reads log probabilities after the end of a sequence, which are 0 here.")
    reached = np.zeros(of.mask.shape, bool)
    for t in range(of.longest):
        reached[groups[np.abs(slopes[..., t]) > near], t] = True
    last = of.lengths.astype(int) - 1
    several = of.lengths > 1
    if not reached[:, 0].any():
        remarks.append(
            "No gradient reaches the first token of any sequence: the mask may be shifted by one."
        )
    elif not reached[np.arange(len(last)), last][several].any() and several.any():
        remarks.append(
            "No gradient reaches the last token of any sequence: the mask may be shifted by one, "
            "or leave out the end."
        )
    return remarks
