"""Compares presets of policy_gradient with the loss of trl itself (Hugging Face's trainers), where trl is installed; skipped visibly else.

    pip install trl && HARDGRAD_BINARY=build/release/hardgrad PYTHONPATH=build/release/python python -m pytest tests/peers/trl_losses.py -rs -s

trl's `_compute_loss` runs on the log probabilities of given groups of sequences, and its gradient is averaged over all pairs of the 31
sequences, each with its probability; the mean of `policy_gradient` is exact, too. `hardgrad.torch.policy_loss` judges the same losses.
Written for trl 1.16.0, which has no trainer of `ppo`; test_policies.py has its loss. Rewards and
the policy that draws are those of that file. With trl 1.16.0 and PyTorch 2.13.0 all are equal within 1e-6: `grpo` (also with the
corrected divergence), `dr_grpo`, `dapo`, `gspo`, `cispo`, `rloo`, the ratios of `tis` and `mis`, on policy and at a drift of 0.5.

trl departs from the papers: its RLOO takes the divergence of the policy that drew, not of the current one; its CISPO limits the ratio by
`epsilon_high` itself, not by 1 + `epsilon_high`; its truncation and masking correct for the engine that generates, beside the clipped
ratio.
"""

import sys
from importlib.metadata import version
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest

torch = pytest.importorskip("torch")
GRPO = pytest.importorskip("trl.trainer.grpo_trainer", reason="trl is not installed").GRPOTrainer
RLOO = pytest.importorskip("trl.trainer.rloo_trainer").RLOOTrainer
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments/measurement"))
from test_policies import LONGEST, SEQUENCES, Toy, centred, scaled  # noqa: E402

from hardgrad.torch import Sequences, policy_loss  # noqa: E402

GROUPS = [(i, j) for i in range(len(SEQUENCES)) for j in range(len(SEQUENCES))]


def trainer(corrects=False, **settings):
    """Its settings, with the defaults of GRPOConfig for those that matter; the rest is never read."""
    self = MagicMock()
    given = dict(
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        beta=0.0,
        loss_type="grpo",
        epsilon_low=0.2,
        epsilon_high=0.2,
        use_vllm=False,
        _entropy_bonus_enabled=False,
        aux_loss_enabled=False,
        max_completion_length=LONGEST,
        current_gradient_accumulation_steps=1,
    )
    for name, value in (given | settings).items():
        setattr(self, name, value)
    self.args.delta, self.args.use_bias_correction_kl, self.args.steps_per_generation = None, corrects, 1
    self.accelerator.num_processes = 1
    self.accelerator.gather = lambda x: x
    return self


def loss_of_trl(method, self, correction=None):
    """-> a function as hardgrad.torch.policy_loss takes it."""

    def loss(logprobs, old_logprobs, advantages, mask, num_items_in_batch, ref_logprobs=None):
        self._get_per_token_logps_and_entropies = lambda *_, **__: (logprobs, torch.zeros_like(logprobs), None)
        none = torch.zeros(len(mask), 0, dtype=torch.long)
        inputs = {
            "prompt_ids": none,
            "prompt_mask": none,
            "completion_ids": mask.long(),
            "completion_mask": mask,
            "advantages": advantages,
            "old_per_token_logps": old_logprobs,
            "old_logps": (old_logprobs * mask).sum(1),
            "ref_per_token_logps": ref_logprobs,
            "num_items_in_batch": num_items_in_batch,
        }
        if correction:  # the policy of training is fixed but for its own gradient
            ratio = correction((logprobs - old_logprobs).detach(), mask)
            inputs |= {"importance_sampling_ratio": ratio, "old_per_token_logps": logprobs.detach()}
        return method(self, MagicMock(), inputs)

    return loss


ADVANTAGES = {
    "group_std": scaled,
    "group": centred,
    "leave_one_out": lambda R: centred(R) * R.shape[1] / (R.shape[1] - 1),
}


def sequence_masked(l, mask):
    ratio = (l * mask).sum(1, keepdim=True).exp()
    return ratio.masked_fill(ratio > 2, 0.0)


def of_weights(loss_type, **arguments):
    """With trl's defaults of these arguments."""
    self = trainer(loss_type=loss_type)
    self.get_gamma_weights = GRPO.get_gamma_weights
    for name, value in arguments.items():
        setattr(self.args, name, value)
    return loss_of_trl(GRPO._compute_loss, self)


VESPO = {"vespo_k_pos": 2.0, "vespo_lambda_pos": 3.0, "vespo_k_neg": 3.0, "vespo_lambda_neg": 2.0}
CASES = {  # with the advantages of trl's _generate_and_score_completions
    "preset=bnpo": ("group_std", loss_of_trl(GRPO._compute_loss, trainer(loss_type="bnpo"))),
    "preset=luspo": (
        "group_std",
        loss_of_trl(
            GRPO._compute_loss,
            trainer(loss_type="luspo", importance_sampling_level="sequence", epsilon_low=2e-3, epsilon_high=2.5e-3),
        ),
    ),
    "preset=sapo": ("group_std", of_weights("sapo", sapo_temperature_pos=1.0, sapo_temperature_neg=1.05)),
    "preset=vespo,aggregation=tokens": ("group_std", of_weights("vespo", **VESPO)),
    "preset=grpo,beta=0.3": ("group_std", loss_of_trl(GRPO._compute_loss, trainer(beta=0.3))),
    "preset=grpo,beta=0.3,where=weighted": ("group_std", loss_of_trl(GRPO._compute_loss, trainer(corrects=True, beta=0.3))),
    "preset=dr_grpo": ("group", loss_of_trl(GRPO._compute_loss, trainer(loss_type="dr_grpo"))),
    "preset=dapo": ("group_std", loss_of_trl(GRPO._compute_loss, trainer(loss_type="dapo", epsilon_high=0.28))),
    "preset=gspo": (
        "group_std",
        loss_of_trl(GRPO._compute_loss, trainer(importance_sampling_level="sequence", epsilon_low=3e-4, epsilon_high=4e-4)),
    ),
    "preset=cispo": ("group_std", loss_of_trl(GRPO._compute_loss, trainer(loss_type="cispo", epsilon_high=1.2))),
    "preset=rloo": ("leave_one_out", loss_of_trl(RLOO._compute_loss, trainer())),
    "preset=tis,aggregation=longest": (
        "group",
        loss_of_trl(GRPO._compute_loss, trainer(loss_type="dr_grpo", use_vllm=True), lambda l, mask: l.exp().clamp(max=2)),
    ),
    "preset=mis,aggregation=longest": (
        "group",
        loss_of_trl(GRPO._compute_loss, trainer(loss_type="dr_grpo", use_vllm=True), sequence_masked),
    ),
}


def of_groups(toy, settings):
    """The mean gradient, summed over all pairs."""
    advantages, loss = CASES[settings]
    total = 0.0
    for pair in GROUPS:
        group = torch.tensor(pair)
        mask = toy.is_step[group]
        given = ADVANTAGES[advantages](toy.rewards[group][None])[0]
        value = loss(toy.p[group], toy.q[group], given, mask, mask.sum(), toy.r.detach()[group])
        total = total + toy.q.sum(1)[group].sum().exp() * value
    return toy.gradient(total)


@pytest.mark.parametrize("drift", [0, 0.5])
@pytest.mark.parametrize("settings", CASES)
def test_a_preset_equals_the_loss_of_trl(tmp_path, settings, drift):
    print(f"trl {version('trl')}, torch {version('torch')}")
    toy = Toy(tmp_path, drift)
    theirs, (ours,) = of_groups(toy, settings), toy.measured([f"policy_gradient[samples=2,{settings}]"])
    assert np.abs(theirs).max() > 1e-3
    assert np.abs(ours - theirs).max() < 1e-6


@pytest.mark.parametrize("drift", [0, 0.5])
@pytest.mark.parametrize("settings", CASES)
def test_a_loss_of_trl_is_judged(tmp_path, settings, drift):
    """The judge's mean is core's; it names the field, the multiple that trl's loss is of it, and what micro-batches do."""
    toy = Toy(tmp_path, drift)
    of = Sequences(toy.theta.detach().numpy(), toy.behaviour if drift else None, toy.reference, toy.rewards.numpy())
    advantages, loss = CASES[settings]
    counted = settings in (
        "preset=dapo",
        "preset=cispo",
    )  # by num_items_in_batch; the others average, and trl averages micro-batches
    judged = policy_loss(loss, of, advantages=advantages, accumulation="sum" if counted else "mean")
    print(f"\n{settings}, drift {drift}: {judged.verdict}")
    (core,) = toy.measured([f"policy_gradient[samples=2,{settings}]"])
    assert np.abs(judged.mean.reshape(15, 3) - core).max() < 1e-6
    assert judged.follows.rest < 1e-3 and not judged.notes
    assert judged.in_parts < 1e-6
    assert judged.unbiased() == (settings == "preset=rloo" and not drift)
