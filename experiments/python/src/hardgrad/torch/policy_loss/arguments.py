"""The arguments of a trainer's loss, by the names that trainers give them."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any, Callable, Mapping, NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor

from ..._core import UsageError

#: Ours, and the names of each argument in trl, verl, OpenRLHF, open-instruct and textbooks.
NAMES = {
    "logprobs": "log_probs log_prob logps logp per_token_logps new_logprobs new_log_probs "
    "new_logps current_logprobs curr_logprobs policy_logprobs policy_log_probs action_log_probs "
    "pi_logprobs token_logprobs log_pi log_p",
    "old_logprobs": "old_log_probs old_log_prob old_logps old_logp old_per_token_logps "
    "old_action_log_probs logprobs_old behavior_logprobs behaviour_logprobs behavior_log_probs "
    "rollout_log_probs rollout_log_prob rollout_logprobs sampling_logprobs "
    "sampling_per_token_logps inference_logprobs vllm_logprobs prev_logprobs log_q",
    "ref_logprobs": "ref_log_probs ref_log_prob ref_logps ref_logp ref_per_token_logps "
    "reference_logprobs reference_log_probs base_action_log_probs log_r",
    "advantages": "advantage adv advs A",
    "rewards": "reward scores score returns outcome_rewards sequence_rewards R",
    "token_level_rewards": "token_rewards token_level_scores",
    "mask": "response_mask completion_mask action_mask loss_mask token_mask masks response_masks "
    "completion_masks loss_masks eos_mask",
    "lengths": "response_lengths completion_lengths seq_lengths length response_length",
    "ratio": "ratios importance_ratio",
    "log_ratio": "log_ratios logratio",
    "index": "uid group_ids prompt_ids prompt_index",
    "num_items_in_batch": "batch_num_tokens num_tokens total_tokens n_tokens",
    "global_batch_size": "batch_num_sequences num_sequences",
    "group_size": "num_generations n_samples_per_prompt num_samples samples_per_prompt K",
    "max_length": "max_completion_length max_tokens max_response_length max_len T",
}
_MEANS = {name: ours for ours, names in NAMES.items() for name in [ours, *names.split()]}
#: Counts of the whole batch, which make the parts of a split batch a sum.
COUNTS = {"num_items_in_batch", "global_batch_size"}
_IN_ORDER = ("logprobs", "old_logprobs", "advantages", "mask", "ref_logprobs")
_OPTIONAL = set(NAMES) - COUNTS  # are given also where the function has a default


@dataclass
class Batch:
    """The sequences [B, T] that a loss sees at once.

    logprobs, old_logprobs, ref_logprobs, mask: [B, T]; rewards: [B]; advantages: [B] or [B, T].
    tokens, sequences: counts of the whole batch; this may be a part.
    """

    logprobs: Tensor
    old_logprobs: Tensor
    ref_logprobs: Optional[Tensor]
    mask: Tensor
    rewards: Tensor
    advantages: Optional[Tensor]
    tokens: Tensor
    sequences: int


class Form(NamedTuple):
    """How a function wants its tensors. mask: of numbers or of booleans; advantages: [B], [B, T] or
    [B, 1]."""

    mask: str = "numbers"
    advantages: str = "[B]"


FORMS = [
    Form(mask, advantages)
    for mask in ("numbers", "booleans")
    for advantages in ("[B]", "[B, T]", "[B, 1]")
]


def _advantages(of: Batch, form: Form) -> Optional[Tensor]:
    given = of.advantages
    if given is None or given.dim() == 2 or form.advantages == "[B]":
        return given
    return given[:, None] * of.mask if form.advantages == "[B, T]" else given[:, None]


def _token_level(of: Batch) -> Tensor:
    """[B, T] the reward at the last token."""
    last = of.mask.sum(1).long() - 1
    return torch.zeros_like(of.mask).scatter(1, last[:, None], of.rewards[:, None])


_VALUES: dict[str, Callable[[Batch, Form], Any]] = {
    "logprobs": lambda of, form: of.logprobs,
    "old_logprobs": lambda of, form: of.old_logprobs,
    "ref_logprobs": lambda of, form: of.ref_logprobs,
    "advantages": _advantages,
    "rewards": lambda of, form: of.rewards,
    "token_level_rewards": lambda of, form: _token_level(of),
    "mask": lambda of, form: of.mask.bool() if form.mask == "booleans" else of.mask,
    "lengths": lambda of, form: of.mask.sum(1),
    "ratio": lambda of, form: (of.logprobs - of.old_logprobs).exp(),
    "log_ratio": lambda of, form: of.logprobs - of.old_logprobs,
    "index": lambda of, form: np.zeros(len(of.mask), int),
    "num_items_in_batch": lambda of, form: of.tokens,
    "global_batch_size": lambda of, form: of.sequences,
    "group_size": lambda of, form: of.sequences,
    "max_length": lambda of, form: of.mask.shape[1],
}
assert _VALUES.keys() == NAMES.keys()


class Arguments:
    """The arguments of a function, found by their names. fixed: values by name, as of a config."""

    def __init__(self, function: Callable[..., Any], fixed: Mapping[str, Any], what: str):
        self.function, self.what, self.form = function, what, Form()
        self._positional: list[str] = []
        self._named: dict[str, str] = {}
        self._optional: set[str] = set()  # may be left out
        self._fixed = dict(fixed)
        # a module's own __call__ takes anything
        read = function.forward if isinstance(function, torch.nn.Module) else function
        try:
            parameters = list(inspect.signature(read).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        left = set(fixed)
        unknown: list[str] = []
        for parameter in parameters:
            name, required = parameter.name, parameter.default is parameter.empty
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                if parameter.kind == parameter.VAR_KEYWORD:
                    left.clear()
                continue
            if name in fixed:
                left.discard(name)
                continue
            ours = _MEANS.get(re.sub("_[A-Z]+$", "", name), "")  # logprobs_BT
            if ours and (required or ours in _OPTIONAL):
                if parameter.kind == parameter.POSITIONAL_ONLY:
                    self._positional.append(ours)
                else:
                    self._named[name] = ours
                    self._optional |= set() if required else {name}
            elif required:
                unknown.append(name)
        if left:
            raise UsageError(f"{what} has no argument {sorted(left)[0]!r}, which arguments= gives")
        if len(unknown) == 1 and not self.needs and what == "advantages":
            self._positional, unknown = ["rewards"], []  # lambda r: r - r.mean()
        if unknown:
            raise UsageError(
                f"{what} needs the argument {unknown[0]!r}, which is none of those that are known: "
                f"give it by arguments={{{unknown[0]!r}: ...}}, or rename it to one of "
                f"{', '.join(NAMES)} (or a trainer's name of these)"
            )
        if not self.needs:  # *args, or nothing is known of it
            self._positional, self._optional = list(_IN_ORDER), {_IN_ORDER[-1]}

    @property
    def needs(self) -> set[str]:
        """Our names of its arguments."""
        return {*self._positional, *self._named.values()}

    @property
    def required(self) -> set[str]:
        """Those of them without a default."""
        return self.needs - {self._named.get(name, name) for name in self._optional}

    @property
    def whole(self) -> bool:
        """Whether it knows counts of the whole batch."""
        return bool(self.needs & COUNTS)

    def __call__(self, of: Batch) -> Any:
        value = {ours: _VALUES[ours](of, self.form) for ours in self.needs}
        named = {
            name: value[ours]
            for name, ours in self._named.items()
            if not (value[ours] is None and name in self._optional)
        }
        inputs = [value[ours] for ours in self._positional]
        if inputs and inputs[-1] is None and self._positional[-1] in self._optional:
            inputs.pop()
        return self.function(*inputs, **named, **self._fixed)
