"""Which gradient does a trainer's loss follow? `policy_loss`, exactly, on short sequences."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Mapping, Optional

import numpy as np

from ..._core import UsageError
from ...estimators import name_of
from . import figures
from .enumeration import Advantages, Losses
from .figures import Accumulation
from .judged import JudgedLoss
from .sequences import Sequences

__all__ = ["JudgedLoss", "Sequences", "assert_unbiased", "policy_loss"]

Loss = Callable[..., Any]


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
    by_length, rest = figures.by_length(of, mean)
    in_parts, why = figures.in_parts(losses, groups, probability, given, gradients, accumulation)
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
        follows=figures.followed(of, groups, probability, given, losses, mean),
        beta_found=beta_found,
        by_length=by_length,
        by_length_rest=rest,
        by_position=figures.by_position(of, mean, target),
        in_parts=in_parts,
        notes=tuple(figures.notes(of, groups, probability, slopes, losses) + why),
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
