"""Losses of trainers as their code has them, and a table of their exact biases:

    OMP_NUM_THREADS=1 PYTHONPATH=build/release/python /usr/bin/python3 tests/experiments/python/published_losses.py [group]

Each was read in the repository and the file that it names (trl f2cd577, verl b178a3c, OpenRLHF 3c3be62, open-instruct e6c3044), and is
written anew: arithmetic, limits and arguments' names are theirs.
"""

import sys
from typing import Any, Callable, NamedTuple

import torch

import hardgrad.torch


class Published(NamedTuple):
    name: str
    source: str
    loss: Callable[..., Any]
    advantages: Any = "group_std"


def sequence_mean(x, mask):
    return ((x * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()


def token_mean(x, mask):
    return (x * mask).sum() / mask.sum().clamp(min=1.0)


def clipped(ratio, advantages, low=0.2, high=0.2):
    return -torch.min(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def reinforce(log_prob, advantages, response_mask):
    return (-advantages * log_prob * response_mask).sum(-1).mean()


def rloo_trl(per_token_logps, old_per_token_logps, advantages, completion_mask):
    ratio = ((per_token_logps - old_per_token_logps) * completion_mask).sum(1).exp()
    return clipped(ratio, advantages).mean()


def grpo_trl(per_token_logps, old_per_token_logps, advantages, completion_mask):
    ratio = (per_token_logps - old_per_token_logps).exp()
    return sequence_mean(clipped(ratio, advantages.unsqueeze(1)), completion_mask)


def bnpo_trl(per_token_logps, old_per_token_logps, advantages, completion_mask):
    ratio = (per_token_logps - old_per_token_logps).exp()
    return token_mean(clipped(ratio, advantages.unsqueeze(1)), completion_mask)


def dr_grpo_trl(per_token_logps, old_per_token_logps, advantages, completion_mask, max_completion_length):
    loss = clipped((per_token_logps - old_per_token_logps).exp(), advantages.unsqueeze(1))
    return (loss * completion_mask).sum() / (loss.size(0) * max_completion_length)


def dapo_trl(per_token_logps, old_per_token_logps, advantages, completion_mask, num_items_in_batch):
    loss = clipped((per_token_logps - old_per_token_logps).exp(), advantages.unsqueeze(1), high=0.28)
    return (loss * completion_mask).sum() / num_items_in_batch.clamp(min=1.0)


def cispo_trl(per_token_logps, old_per_token_logps, advantages, completion_mask, num_items_in_batch):
    ratio = (per_token_logps - old_per_token_logps).exp().clamp(max=5.0).detach()
    loss = -ratio * advantages.unsqueeze(1) * per_token_logps
    return (loss * completion_mask).sum() / num_items_in_batch.clamp(min=1.0)


def luspo_trl(per_token_logps, old_per_token_logps, advantages, completion_mask):
    n = completion_mask.sum(-1).clamp(min=1.0)
    ratio = (((per_token_logps - old_per_token_logps) * completion_mask).sum(-1) / n).exp()
    return (clipped(ratio, advantages) * n).mean()


def gspo_verl(old_log_prob, log_prob, advantages, response_mask):
    l = log_prob - old_log_prob
    mean = (l * response_mask).sum(-1) / response_mask.sum(-1).clamp(min=1)
    ratio = (log_prob - log_prob.detach() + mean.detach().unsqueeze(-1)).clamp(max=10.0).exp()
    return sequence_mean(clipped(ratio, advantages, 3e-4, 4e-4), response_mask)


def sapo_verl(old_log_prob, log_prob, advantages, response_mask, without_ratio=False):
    ratio = (log_prob - old_log_prob).clamp(-20.0, 20.0).exp()
    tau = torch.where(advantages > 0, 1.0, 1.05).to(ratio.dtype)
    gate = torch.sigmoid(tau * (ratio - 1.0))
    if without_ratio:  # a mutant: the gate's slope times the score
        return sequence_mean(-4 * (gate * (1 - gate)).detach() * advantages * log_prob, response_mask)
    return sequence_mean(-gate * 4.0 / tau * advantages, response_mask)


def gpg_verl(log_prob, advantages, response_mask):
    return token_mean(-log_prob * advantages, response_mask)


def gmpo_verl(old_log_prob, log_prob, advantages, response_mask):
    l, sign = log_prob - old_log_prob, advantages.sign()
    least = sign * torch.min(sign * l, sign * l.clamp(-0.4, 0.4))
    n = response_mask.sum(-1) + 1e-8
    advantage = (advantages * response_mask).sum(-1) / n
    return (-advantage * ((least * response_mask).sum(-1) / n).exp()).mean()


def cispo_verl(old_log_prob, log_prob, advantages, response_mask):
    ratio = (log_prob - old_log_prob).clamp(-20.0, 20.0).exp().clamp(0.8, 1.2).detach()
    return token_mean(-ratio * advantages * log_prob, response_mask)


def ppo_verl(old_log_prob, log_prob, advantages, response_mask, loss_agg_mode="token-mean"):
    ratio = (log_prob - old_log_prob).clamp(-20.0, 20.0).exp()
    loss = clipped(ratio, advantages)
    loss = torch.where(advantages < 0, torch.min(-advantages * 3.0, loss), loss)
    if loss_agg_mode == "token-mean":
        return token_mean(loss, response_mask), {}
    return ((loss * response_mask).sum(-1) / (response_mask.sum(-1) + 1e-8)).mean(), {}


def reinforce_with_ratio_verl(rollout_log_prob, log_prob, advantages, response_mask):
    """Its weights rollout_is_weights are those of whole sequences, truncated at 2."""
    weights = ((log_prob - rollout_log_prob) * response_mask).sum(-1, keepdim=True).exp().clamp(max=2.0).detach()
    return (-advantages * log_prob * weights * response_mask).sum(-1).mean(), {}


class PolicyLossOpenRLHF(torch.nn.Module):
    def __init__(self, token_level_loss=True, policy_loss_type="ppo"):
        super().__init__()
        self.token_level_loss, self.type = token_level_loss and policy_loss_type != "gspo", policy_loss_type

    def forward(self, log_probs, old_log_probs, advantages, action_mask=None, batch_num_tokens=None):
        l = log_probs - old_log_probs
        if self.type == "gspo":
            n = action_mask.sum(dim=-1).clamp(min=1)
            ratio = ((l * action_mask).sum(dim=-1) / n).exp().unsqueeze(-1) * action_mask
        else:
            ratio = l.clamp(min=-20.0, max=20.0).exp()
        loss = clipped(ratio, advantages)
        if self.token_level_loss:
            return (loss * action_mask).sum() / (action_mask.sum() if batch_num_tokens is None else batch_num_tokens), None
        return sequence_mean(loss, action_mask), None


def dapo_open_instruct(new_logprobs, ratio, advantages, response_mask):
    loss = torch.max(-advantages * ratio, -advantages * torch.clamp(ratio, 0.8, 1.272))
    return (loss * response_mask).sum() / response_mask.sum()


def tis(logprobs, old_logprobs, advantages, mask, max_length):
    """The engine that draws differs from the policy: trl's importance_sampling_ratio, truncated at 2, of one step on policy."""
    ratio = (logprobs - old_logprobs).exp().clamp(max=2.0).detach()
    return -(ratio * advantages.unsqueeze(1) * logprobs * mask).sum() / (len(mask) * max_length)


def mis(logprobs, old_logprobs, advantages, mask):
    w = ((logprobs - old_logprobs) * mask).sum(1).exp().detach()
    return -(w * (w <= 2) * advantages * (logprobs * mask).sum(1)).mean()


def opo_verl(rewards, response_mask):
    """compute_opo_outcome_advantage."""
    n = response_mask.sum(-1)
    return rewards - (n * rewards).sum() / n.sum()


OF_TRL = "trl/trainer/grpo_trainer.py, _compute_loss"
OF_VERL = "verl/trainer/ppo/core_algos.py"
OF_OPENRLHF = "openrlhf/models/loss.py, PolicyLoss"
PUBLISHED = [
    Published("REINFORCE", "Williams 1992; verl's compute_policy_loss_reinforce", reinforce, "none"),
    Published("RLOO", "Ahmadian et al. 2024, without ratio", reinforce, "leave_one_out"),
    Published("RLOO, trl", "trl/trainer/rloo_trainer.py, _compute_loss", rloo_trl, "leave_one_out"),
    Published("GRPO, trl", OF_TRL, grpo_trl),
    Published("BNPO, trl", OF_TRL, bnpo_trl),
    Published("Dr. GRPO, trl", OF_TRL, dr_grpo_trl, "group"),
    Published("DAPO, trl", OF_TRL, dapo_trl),
    Published("CISPO, trl", OF_TRL, cispo_trl),
    Published("LUSPO, trl", OF_TRL, luspo_trl),
    Published("PPO clip, token mean, verl", f"{OF_VERL}, compute_policy_loss_vanilla", ppo_verl, "group"),
    Published("GSPO, verl", f"{OF_VERL}, compute_policy_loss_gspo", gspo_verl),
    Published("SAPO, verl", f"{OF_VERL}, compute_policy_loss_sapo", sapo_verl),
    Published("GPG, verl", f"{OF_VERL}, compute_policy_loss_gpg", gpg_verl, "group"),
    Published("GMPO, verl", f"{OF_VERL}, compute_policy_loss_geo_mean", gmpo_verl),
    Published("CISPO, verl", f"{OF_VERL}, compute_policy_loss_cispo", cispo_verl),
    Published("OPO, verl", f"{OF_VERL}, compute_opo_outcome_advantage", reinforce, opo_verl),
    Published(
        "REINFORCE with a truncated ratio, verl",
        f"{OF_VERL}, compute_policy_loss_reinforce",
        reinforce_with_ratio_verl,
        "group",
    ),
    Published("PPO clip, token mean, OpenRLHF", OF_OPENRLHF, PolicyLossOpenRLHF(), "group"),
    Published("PPO clip, sequence mean, OpenRLHF", OF_OPENRLHF, PolicyLossOpenRLHF(token_level_loss=False), "group"),
    Published("GSPO, OpenRLHF", OF_OPENRLHF, PolicyLossOpenRLHF(policy_loss_type="gspo")),
    Published("DAPO, open-instruct", "open_instruct/grpo_utils.py, compute_grpo_loss", dapo_open_instruct),
    Published("TIS, trl", OF_TRL, tis, "group"),
    Published("MIS", "Liu et al. 2025, When speed kills stability", mis, "group"),
]


def table(group, drift=0.5):
    """Of each loss on and off policy: relative bias (cosine); the field that it follows; what micro-batches change."""
    yield f"| | on policy | drift {drift:g} | follows | micro-batches |"
    yield "|---|---|---|---|---|"
    for of in PUBLISHED:
        on, off = (hardgrad.torch.policy_loss(of.loss, advantages=of.advantages, group=group, drift=d) for d in (0, drift))
        cells = [f"{x.relative_bias:.2f} ({x.cosine:.2f})".replace("0.", ".") for x in (on, off)]
        follows = f"`{off.follows.spec}`" if off.follows.rest < 1e-3 else f"({100 * off.follows.rest:.2g}% is no known field)"
        parts = "same" if off.in_parts < 1e-9 else f"{100 * off.in_parts:.2g}%"
        yield f"| {of.name} | {' | '.join(cells)} | {follows} | {parts} |"


if __name__ == "__main__":
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        print(line, flush=True)
