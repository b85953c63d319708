"""Compares presets of policy_gradient with the loss of trl itself (Hugging Face's trainers), where trl is installed; skipped visibly else.

    pip install trl && HARDGRAD_BINARY=build/release/hardgrad python -m pytest tests/peers/trl_losses.py -rs -s

trl's `_compute_loss` runs on the log probabilities of given groups of sequences, and its gradient is averaged over all pairs of the 31
sequences, each with its probability; the mean of `policy_gradient` is exact, too. Advantages are those of trl's
`_generate_and_score_completions`. Written for trl 1.16.0, which has no trainer of `ppo`; test_policies.py has its loss. Rewards and
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


def loss_of_trl(method, self, advantage, correction=None):
    """-> the loss of one group [K], as test_policies' losses have it."""

    def loss(toy, group):
        p, q, mask = toy.p[group], toy.q[group], toy.is_step[group]
        self._get_per_token_logps_and_entropies = lambda *_, **__: (p, torch.zeros_like(p), None)
        none = torch.zeros(len(group), 0, dtype=torch.long)
        inputs = {
            "prompt_ids": none,
            "prompt_mask": none,
            "completion_ids": toy.word[group],
            "completion_mask": mask,
            "advantages": advantage(toy, group),
            "old_per_token_logps": q,
            "old_logps": q.sum(1),
            "ref_per_token_logps": toy.r.detach()[group],
            "num_items_in_batch": mask.sum(),
        }
        if correction:  # the policy of training is fixed but for its own gradient
            inputs |= {"importance_sampling_ratio": correction((p - q).detach(), mask), "old_per_token_logps": p.detach()}
        return method(self, MagicMock(), inputs)

    return loss


def rewards(advantage):
    return lambda toy, group: advantage(toy.rewards[group][None])[0]


def leave_one_out(R):
    return centred(R) * R.shape[1] / (R.shape[1] - 1)


def sequence_masked(l, mask):
    ratio = l.sum(1, keepdim=True).exp()
    return ratio.masked_fill(ratio > 2, 0.0)


def of_trl(advantage=scaled, **settings):
    return loss_of_trl(GRPO._compute_loss, trainer(**settings), rewards(advantage))


def vespo():
    self = trainer(loss_type="vespo")
    self.get_gamma_weights = GRPO.get_gamma_weights
    for name, value in {"k_pos": 2.0, "lambda_pos": 3.0, "k_neg": 3.0, "lambda_neg": 2.0}.items():
        setattr(self.args, f"vespo_{name}", value)
    return loss_of_trl(GRPO._compute_loss, self, rewards(scaled))


def sapo():
    self = trainer(loss_type="sapo")
    self.args.sapo_temperature_pos, self.args.sapo_temperature_neg = 1.0, 1.05
    return loss_of_trl(GRPO._compute_loss, self, rewards(scaled))


CASES = {
    "preset=bnpo": of_trl(loss_type="bnpo"),
    "preset=luspo": of_trl(loss_type="luspo", importance_sampling_level="sequence", epsilon_low=2e-3, epsilon_high=2.5e-3),
    "preset=sapo": sapo(),
    "preset=vespo,aggregation=tokens": vespo(),
    "preset=grpo,beta=0.3": loss_of_trl(GRPO._compute_loss, trainer(beta=0.3), rewards(scaled)),
    "preset=grpo,beta=0.3,where=weighted": loss_of_trl(GRPO._compute_loss, trainer(corrects=True, beta=0.3), rewards(scaled)),
    "preset=dr_grpo": loss_of_trl(GRPO._compute_loss, trainer(loss_type="dr_grpo"), rewards(centred)),
    "preset=dapo": loss_of_trl(GRPO._compute_loss, trainer(loss_type="dapo", epsilon_high=0.28), rewards(scaled)),
    "preset=gspo": loss_of_trl(
        GRPO._compute_loss, trainer(importance_sampling_level="sequence", epsilon_low=3e-4, epsilon_high=4e-4), rewards(scaled)
    ),
    "preset=cispo": loss_of_trl(GRPO._compute_loss, trainer(loss_type="cispo", epsilon_high=1.2), rewards(scaled)),
    "preset=rloo": loss_of_trl(RLOO._compute_loss, trainer(), rewards(leave_one_out)),
    "preset=tis,aggregation=longest": loss_of_trl(
        GRPO._compute_loss, trainer(loss_type="dr_grpo", use_vllm=True), rewards(centred), lambda l, mask: l.exp().clamp(max=2)
    ),
    "preset=mis,aggregation=longest": loss_of_trl(
        GRPO._compute_loss, trainer(loss_type="dr_grpo", use_vllm=True), rewards(centred), sequence_masked
    ),
}


@pytest.mark.parametrize("drift", [0, 0.5])
@pytest.mark.parametrize("settings", CASES)
def test_a_preset_equals_the_loss_of_trl(tmp_path, settings, drift):
    print(f"trl {version('trl')}, torch {version('torch')}")
    toy = Toy(tmp_path, drift)
    total = sum(toy.q.sum(1)[list(group)].sum().exp() * CASES[settings](toy, torch.tensor(group)) for group in GROUPS)
    theirs, (ours,) = toy.gradient(total), toy.measured([f"policy_gradient[samples=2,{settings}]"])
    assert np.abs(theirs).max() > 1e-3
    assert np.abs(ours - theirs).max() < 1e-6
