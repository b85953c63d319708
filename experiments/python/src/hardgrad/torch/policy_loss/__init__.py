"""Which gradient does a trainer's loss follow? `policy_loss`, exactly, on short sequences."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Literal, Mapping, Optional

import numpy as np

from ..._core import NotFinite, UsageError
from ...estimators import name_of
from ...losses import Floats, Ints
from .enumeration import Advantages, Losses
from .fields import DIVERGENCES, Family, candidates, matched
from .judged import Follows, JudgedLoss
from .sequences import Sequences

__all__ = ["JudgedLoss", "Sequences", "assert_unbiased", "policy_loss"]

Loss = Callable[..., Any]
Accumulation = Literal["auto", "mean", "sum"]
_EXACTLY = 1e-6  #: of the mean: a field that leaves less is followed
_SPLIT = 2000  #: groups that are split, the most probable ones


def policy_loss(
    loss: Loss,
    sequences: Optional[Sequences] = None,
    *,
    group: int = 2,
    advantages: Advantages = "group",
    beta: float = 0.0,
    arguments: Optional[Mapping[str, Any]] = None,
    drift: float = 0.0,
    reference: float = 0.0,
    success: Optional[float] = None,
    words: int = 2,
    longest: int = 4,
    ends: bool = True,
    accumulation: Accumulation = "auto",
    samples: Optional[int] = None,
    seed: int = 0,
) -> JudgedLoss:
    """The exact mean of a policy-gradient loss's gradient, its bias, and the field that it follows:

        def grpo(logprobs, old_logprobs, advantages, mask):
            ratio = (logprobs - old_logprobs).exp()
            clipped = ratio.clamp(0.8, 1.2)
            a = advantages[:, None]
            token = torch.min(ratio * a, clipped * a) * mask
            return -(token.sum(1) / mask.sum(1)).mean()

        print(hardgrad.torch.policy_loss(grpo, advantages="group_std", drift=0.5))

    loss: a function, or a module, as your trainer has it. Its arguments are found by their names,
        ours or those of trl, verl and OpenRLHF: logprobs (log_prob, per_token_logps), old_logprobs
        (old_log_prob), ref_logprobs, mask (response_mask, completion_mask), ratio: [B, T] in double
        precision, 0 after the end; advantages: [B], or [B, T] if it does not take these; rewards,
        lengths: [B]; num_items_in_batch: the batch's tokens; max_length: T; group_size: B. It is
        called with one group, B = `group`, and returns a number, alone or first in a tuple. Each
        group is one call, or PyTorch 2 makes one of many (vmap).
    sequences: policies and rewards; None: `Sequences.random` with drift, reference, success, words,
        longest, ends and seed.
    group: K sequences, drawn independently by the behaviour policy.
    advantages: "group" (the reward less the group's mean), "group_std" (divided by the standard
        deviation + 1e-4, too: GRPO), "leave_one_out" (RLOO), "none" (the reward), or a function,
        whose arguments are found as the loss's, e.g. of rewards [B], to [B] or [B, T].
    beta: the target is the gradient of E[-reward] + beta KL(policy || reference).
    arguments: further arguments of the loss by name, e.g. {"config": config}.
    accumulation: how the gradients of micro-batches are joined: by their "mean", or their "sum", or
        "auto": the sum if the loss takes a count of the whole batch (num_items_in_batch,
        global_batch_size), else the mean.
    samples: draw so many groups if there are more than 60,000; figures are then estimates.

    Every group of sequences is visited once, with its probability. 31 sequences have 496 groups of
    2, 5,456 of 3, 46,376 of 4: less than a minute. A loss that depends on the order within a group
    is found, and visited in all orders. UsageError: an argument is unknown, there are too many
    groups, the loss fails or returns no number; NotFinite: a gradient is not finite.
    """
    begin = time.monotonic()
    if accumulation not in ("auto", "mean", "sum"):
        raise UsageError(f'accumulation is "auto", "mean" or "sum", got {accumulation!r}')
    if group < 1:
        raise UsageError(f"group is at least 1, got {group}")
    if samples is not None and samples < 2:
        raise UsageError(f"samples are at least 2, got {samples}")
    of = sequences or Sequences.random(
        words, longest, ends=ends, drift=drift, reference=reference, success=success, seed=seed
    )
    if beta and of.log_r is None:
        raise UsageError("beta weighs the divergence from a reference policy: give reference=, too")
    losses = Losses(loss, of, group, advantages, arguments or {})
    groups, probability, drawn = losses.enumerated(samples, seed)
    given = losses.advantages(groups)
    slopes = losses.slopes(groups, given)
    gradients = of.at_logits(slopes, groups)
    if not gradients.any():
        raise UsageError("the loss's gradient is zero for every group: does it use logprobs?")
    mean = probability @ gradients
    square = float(probability @ (gradients**2).sum(1))
    variance = max(0.0, square - float(mean @ mean))
    if drawn:
        variance *= len(groups) / (len(groups) - 1)
    target = of.expected(-of.rewards)
    reward = target
    beta_found = math.nan
    if of.log_r is not None:
        divergence = of.divergence()
        weights = np.linalg.lstsq(np.stack([reward, divergence], 1), mean, rcond=None)[0]
        beta_found = float(weights[1] / weights[0])
        target = reward + beta * divergence
    size = float(np.linalg.norm(target))
    if size == 0:
        raise UsageError("the expected reward has no gradient: give rewards that differ")
    length = float(np.linalg.norm(mean))
    factor = float(mean @ target) / size**2
    by_length, rest = _by_length(of, mean)
    in_parts, why = _in_parts(losses, groups, probability, given, gradients, accumulation)
    name = name_of(loss)
    return JudgedLoss(
        name=name,
        sequences=of,
        samples=group,
        groups=len(groups),
        drawn=drawn,
        advantages=advantages if isinstance(advantages, str) else name_of(advantages),
        beta=beta,
        mean=mean,
        target=target,
        relative_bias=float(np.linalg.norm(mean - target)) / size,
        standard_error=math.sqrt(variance / len(groups)) / size if drawn else 0.0,
        cosine=factor * size / length if length > 0 else math.nan,
        factor=factor,
        variance=variance,
        signal_to_noise=length**2 / variance if variance > 0 else math.inf,
        effective_sample_size=float(1 / (of.p**2 / of.q).sum()),
        follows=_followed(of, groups, probability, given, losses, mean),
        beta_found=beta_found,
        by_length=by_length,
        by_length_rest=rest,
        by_position=_by_position(of, mean, target),
        in_parts=in_parts,
        notes=tuple(_notes(of, groups, probability, slopes, losses) + why),
        seconds=time.monotonic() - begin,
    )


def assert_unbiased(
    loss: Loss,
    sequences: Optional[Sequences] = None,
    *,
    tolerance: float = JudgedLoss.TOLERANCE,
    up_to_factor: bool = False,
    in_parts: bool = False,
    **options: Any,
) -> None:
    """AssertionError, with the verdict as its text, unless the mean of the loss's gradient is that
    of the target; for the tests of a trainer:

        def test_our_loss():
            hardgrad.torch.assert_unbiased(our_loss, advantages="leave_one_out", group=3)

    tolerance: of the relative bias.
    up_to_factor: the mean may be the target times a positive number, e.g. (K-1)/K.
    in_parts: also the batch's parts must give its gradient (micro-batches).
    sequences, options: as for `policy_loss`.
    """
    of = policy_loss(loss, sequences, **options)
    if not of.unbiased(tolerance, up_to_factor):
        raise AssertionError(of.failure(of.verdict))
    if in_parts and not of.in_parts <= tolerance:
        raise AssertionError(of.failure("Its micro-batches give another gradient."))


def _followed(
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


def _by_length(of: Sequences, mean: Floats) -> tuple[dict[int, float], float]:
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


def _by_position(of: Sequences, mean: Floats, target: Floats) -> dict[int, tuple[float, float]]:
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


def _in_parts(
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
    notes = []
    if rest < 1e-18 * size and abs(factor - 1) > 1e-9:
        notes.append(
            f"In {parts} micro-batches its gradient is {factor:.3g} times that of the batch."
        )
    return math.sqrt(change / size), notes


def _notes(
    of: Sequences, groups: Ints, probability: Floats, slopes: Floats, losses: Losses
) -> list[str]:
    notes = []
    mask = of.mask[groups]
    near = 1e-9 * np.abs(slopes).max()
    if (np.abs(slopes * (1 - mask)) > near).any():
        notes.append(
            "Gradient reaches tokens after the end of a sequence: the mask is not applied to them, "
            "or is shifted."
        )
    elif losses.reads_padding():
        notes.append("It reads log probabilities after the end of a sequence, which are 0 here.")
    reached = np.zeros(of.mask.shape, bool)
    for t in range(of.longest):
        reached[groups[np.abs(slopes[..., t]) > near], t] = True
    last = of.lengths.astype(int) - 1
    several = of.lengths > 1
    if not reached[:, 0].any():
        notes.append(
            "No gradient reaches the first token of any sequence: the mask may be shifted by one."
        )
    elif not reached[np.arange(len(last)), last][several].any() and several.any():
        notes.append(
            "No gradient reaches the last token of any sequence: the mask may be shifted by one, "
            "or leave out the end."
        )
    return notes
