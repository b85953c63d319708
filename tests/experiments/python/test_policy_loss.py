"""hardgrad.torch.policy_loss: figures against brute force and core's exact means; published losses, and mistakes that it must name."""

import functools
import itertools
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hardgrad  # noqa: E402
from hardgrad.torch import Sequences, assert_unbiased, policy_loss  # noqa: E402
from hardgrad.torch.policy_loss.fields import ADVANTAGES, Family, Terms, candidates, published  # noqa: E402
from published_losses import (  # noqa: E402
    PUBLISHED,
    PolicyLossOpenRLHF,
    bnpo_trl,
    cispo_trl,
    dapo_trl,
    gpg_verl,
    grpo_trl,
    mis,
    ppo_verl,
    reinforce,
    rloo_trl,
    sapo_verl,
    sequence_mean,
    tis,
)

sys.path.append(str(Path(__file__).resolve().parents[1] / "measurement"))
from test_policies import SEQUENCES, Toy  # noqa: E402

torch.set_num_threads(1)
SMALL = dict(words=2, longest=2)  # 7 sequences
BY_NAME = {of.name: of for of in PUBLISHED}


def brute_force(loss, of, samples, advantages):
    """Mean and variance of the gradient over all ordered groups, differentiated at the logits; and the gradient of E[-reward]."""
    theta = torch.tensor(of.logits, requires_grad=True)
    steps = [
        [(of.prefixes.index(s[:t]), (s + (of.words,))[t]) for t in range(min(len(s) + of.ends, of.longest))] for s in of.written
    ]

    def tokens(logits, sequence):
        law = torch.log_softmax(logits, 1)
        found = [law[place] for place in steps[sequence]]
        return torch.stack(found + [torch.zeros((), dtype=law.dtype)] * (of.longest - len(found)))

    behaviour = torch.tensor(of.logits if of.behaviour is None else of.behaviour)
    rewards = torch.tensor(of.rewards)
    every = range(len(steps))
    total, square = torch.zeros(theta.numel()), 0.0
    for group in itertools.product(every, repeat=samples):
        p, q = (torch.stack([tokens(x, s) for s in group]) for x in (theta, behaviour))
        mask = torch.stack([(torch.arange(of.longest) < len(steps[s])).double() for s in group])
        (g,) = torch.autograd.grad(loss(p, q, advantages(rewards[list(group)]), mask), theta)
        weight = float(q.sum().exp())
        total = total + weight * g.reshape(-1)
        square += weight * float(g.square().sum())
    p = torch.stack([tokens(theta, s).sum() for s in every]).exp()
    (truth,) = torch.autograd.grad(-(p * rewards).sum(), theta)
    return total.numpy(), square - float(total.square().sum()), truth.reshape(-1).numpy()


@pytest.mark.parametrize("samples, ends", [(2, True), (3, True), (2, False)])
def test_figures_are_those_of_all_groups_in_all_orders(samples, ends):
    of = Sequences.random(**SMALL, ends=ends, drift=0.5, seed=4)
    assert len(of.rewards) == (7 if ends else 4)
    mean, variance, truth = brute_force(grpo_trl, of, samples, lambda r: (r - r.mean()) / (r.std() + 1e-4))
    found = policy_loss(grpo_trl, of, group=samples, advantages="group_std")
    assert found.groups == math.comb(len(of.rewards) + samples - 1, samples) and not found.drawn
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(found.target, truth, atol=1e-12)
    assert found.variance == pytest.approx(variance, rel=1e-9)
    assert found.relative_bias == pytest.approx(np.linalg.norm(mean - truth) / np.linalg.norm(truth))
    assert found.cosine == pytest.approx(mean @ truth / np.linalg.norm(mean) / np.linalg.norm(truth))
    assert found.signal_to_noise == pytest.approx(mean @ mean / variance)
    assert found.effective_sample_size == pytest.approx(1 / (of.p**2 / of.q).sum()) and found.effective_sample_size < 1


def test_a_divergence_from_the_reference():
    """k1 in the reward follows the objective, and k3 in the loss another field."""
    of = Sequences.random(drift=0.5, reference=0.5)
    both = np.exp(of.log_p).prod(1), (of.log_p - of.log_r).sum(1)
    slopes = of.expected(-of.rewards + 0.3 * both[1])  # the derivative of p log(p / r) is log(p / r), beside a constant
    found = policy_loss(
        mis_without_limit,
        of,
        advantages=lambda rewards, logprobs, ref_logprobs: rewards - 0.3 * (logprobs - ref_logprobs).sum(1),
        beta=0.3,
    )
    np.testing.assert_allclose(found.target, slopes, atol=1e-12)
    assert found.unbiased() and found.beta_found == pytest.approx(0.3) and "less 0.3 times the divergence" in found.verdict

    def k3(logprobs, old_logprobs, ref_logprobs, advantages, mask):
        m = ref_logprobs - logprobs
        return grpo_trl(logprobs, old_logprobs, advantages, mask) + 0.3 * sequence_mean(m.exp() - m - 1, mask)

    found = policy_loss(k3, of, advantages="group_std", beta=0.3)
    assert (
        found.follows.rest < 1e-9 and found.follows.divergence == "k3,where=loss" and found.follows.beta == pytest.approx(0.3)
    )
    assert found.follows.terms == Terms("group_std", "token", "clip", 0.8, 1.2, "sequences") and not found.unbiased()


def mis_without_limit(logprobs, old_logprobs, advantages, mask):
    w = ((logprobs - old_logprobs) * mask).sum(1).exp().detach()
    return -(w * advantages * (logprobs * mask).sum(1)).mean()


def with_k3(beta):
    def loss(logprobs, old_logprobs, ref_logprobs, advantages, mask):
        m = ref_logprobs - logprobs
        return grpo_trl(logprobs, old_logprobs, advantages, mask) + beta * sequence_mean(m.exp() - m - 1, mask)

    return loss


def rloo_with_k1(rewards, logprobs, ref_logprobs):
    R = rewards - 0.3 * (logprobs - ref_logprobs).sum(1)
    return (R - R.mean()) * len(R) / (len(R) - 1)


def opo(rewards, lengths):
    return rewards - (lengths * rewards).sum() / lengths.sum()


OF_CORE = {
    "preset=grpo,beta=0.3": (with_k3(0.3), "group_std"),
    "preset=dr_grpo": (BY_NAME["Dr. GRPO, trl"].loss, "group"),
    "preset=dapo": (dapo_trl, "group_std"),
    "preset=gspo": (BY_NAME["GSPO, verl"].loss, "group_std"),
    "preset=cispo,high=5": (cispo_trl, "group_std"),
    "preset=tis,aggregation=longest": (tis, "group"),
    "preset=mis": (mis, "group"),
    "preset=gpg": (gpg_verl, "group"),
    "preset=opo": (reinforce, opo),
    "preset=rloo,beta=0.3": (rloo_trl, rloo_with_k1),
}


@pytest.mark.parametrize("drift", [0, 0.5])
def test_core_and_judge_agree(tmp_path, drift):
    toy = Toy(tmp_path, drift)
    of = Sequences(toy.theta.detach().numpy(), toy.behaviour if drift else None, toy.reference, toy.rewards.numpy())
    assert of.written == SEQUENCES and np.allclose(of.log_p, toy.p.detach()) and np.allclose(of.log_q, toy.q)
    for settings, core in zip(OF_CORE, toy.measured([f"policy_gradient[samples=2,{settings}]" for settings in OF_CORE])):
        loss, advantages = OF_CORE[settings]
        found = policy_loss(loss, of, advantages=advantages)
        assert np.abs(found.mean.reshape(15, 3) - core).max() < 1e-10 < 1e-3 < np.abs(core).max(), settings
        assert found.relative_bias == pytest.approx(np.linalg.norm(core - toy.truth(0)) / np.linalg.norm(toy.truth(0)))


def test_the_fields_are_cores(tmp_path):
    toy = Toy(tmp_path, 0.5)
    of = Sequences(toy.theta.detach().numpy(), toy.behaviour, toy.reference, toy.rewards.numpy())
    groups, probability = of.groups(2, ordered=False)
    assert len(groups) == 496 and probability.sum() == pytest.approx(1)
    family = Family(of, groups, probability, None)
    every = [terms for terms in candidates("none", True, True) if terms.bound != "sigmoid_without_ratio"]
    presets = [terms for terms in published() if terms.advantage not in ("critic", "relative")]
    assert len(presets) >= 22
    some = [terms for terms in every if terms.advantage != "relative"][::5]  # which needs rewards of at least 0
    some = list(dict.fromkeys(some + presets))
    assert len(some) >= 160 and {terms.advantage for terms in some} == set(ADVANTAGES) - {"relative"}
    assert {terms.ratio for terms in some} == {"none", "token", "sequence", "geometric", "prefix"}
    for terms, core in zip(some, toy.measured([f"policy_gradient[samples=2,{terms.spec}]" for terms in some])):
        assert np.abs(family.mean(terms).reshape(15, 3) - core).max() < 1e-10, terms


def test_every_preset_is_a_candidate():
    """But for the values that a critic learns; a batch is one group here."""
    found, presets = set(candidates("none", True, True)), hardgrad.describe("policy_gradient")["presets"]
    every = dict(zip((preset["name"] for preset in presets), published()))
    assert len(every) == len(presets) >= 24
    assert {name for name, terms in every.items() if terms not in found} == {"ppo"}
    assert every["ppo"]._replace(advantage="group_mean") in found and every["high_entropy"].top_entropy == 0.2


def test_the_fields_of_rewards_over_their_mean_and_of_sapo():
    of = Sequences.random(drift=0.5, success=0.5)
    family = Family(of, *of.groups(2, ordered=False), None)
    maxrl = lambda rewards: (rewards - rewards.mean()) / (rewards.mean() if rewards.any() else 1)  # noqa: E731
    np.testing.assert_allclose(family.mean(Terms("relative")), policy_loss(reinforce, of, advantages=maxrl).mean, atol=1e-12)
    terms = Terms("group_mean", "token", "sigmoid", aggregation="sequences")
    np.testing.assert_allclose(family.mean(terms), policy_loss(sapo_verl, of).mean, atol=1e-12)


@pytest.mark.parametrize("drift", [0, 0.5])
def test_published_losses(drift):
    """Which are unbiased, on policy and off; which are so but for a factor; and whether micro-batches change them."""
    found = {of.name: policy_loss(of.loss, advantages=of.advantages, drift=drift, longest=3) for of in PUBLISHED}
    assert len(found) >= 20
    unbiased = {name for name, of in found.items() if of.unbiased()}
    assert unbiased == (set() if drift else {"REINFORCE", "RLOO", "RLOO, trl"})
    straight = {name: of.factor for name, of in found.items() if of.unbiased(up_to_factor=True)}
    by_half = {"REINFORCE with a truncated ratio, verl": 1 / 2, "MIS": 1 / 2, "Dr. GRPO, trl": 1 / 6, "TIS, trl": 1 / 6}
    assert straight == pytest.approx({} if drift else dict.fromkeys(unbiased, 1.0) | by_half)
    changed = {name for name, of in found.items() if of.in_parts > 1e-9}
    assert changed == {
        "BNPO, trl",
        "PPO clip, token mean, verl",
        "GPG, verl",
        "CISPO, verl",
        "PPO clip, token mean, OpenRLHF",
        "DAPO, open-instruct",
    }
    unknown = {name for name, of in found.items() if of.follows.rest > 1e-6}
    assert unknown == set()
    for name, of in found.items():
        assert not of.notes, name
        assert of.unbiased() == of.verdict.startswith("Unbiased"), name
        assert of.verdict.count(".\n") == 0 and of.verdict in " ".join(str(of).split()), name


def mutant_length(logprobs, old_logprobs, advantages, mask):
    ratio = (logprobs - old_logprobs).exp()
    return (torch.max(-ratio * advantages[:, None], -ratio.clamp(0.8, 1.2) * advantages[:, None]) * mask).sum(1).mean()


def mutant_sum(logprobs, old_logprobs, advantages, mask):
    return len(mask) * grpo_trl(logprobs, old_logprobs, advantages, mask)


def shifted(by):
    def loss(logprobs, old_logprobs, advantages, mask):
        wrong = torch.roll(mask, by, 1)
        wrong[:, 0 if by > 0 else -1] = 0
        return grpo_trl(logprobs, old_logprobs, advantages, wrong)

    return loss


def sign(logprobs, old_logprobs, advantages, mask):
    return -mis_without_limit(logprobs, old_logprobs, advantages, mask)


@pytest.mark.parametrize(
    "loss, advantages, said",
    [
        (
            mutant_length,
            "group_std",
            r"policy_gradient\[advantage=group_std,ratio=token,bound=clip,low=0.8,high=1.2,aggregation=sum\]",
        ),
        (mutant_sum, "group_std", r"follows 3 times policy_gradient\[.*aggregation=sequences\]|follows K = 3 times"),
        (shifted(1), "group_std", "No gradient reaches the first token"),
        (shifted(1), "group_std", "Gradient reaches tokens after the end"),
        (shifted(-1), "group_std", "No gradient reaches the last token"),
        (functools.partial(sapo_verl, without_ratio=True), "group_std", "bound=sigmoid_without_ratio"),
        (sapo_verl, "group_std", "follows policy_gradient.*bound=sigmoid,aggregation=sequences"),
        (sign, "leave_one_out", "of the wrong sign: its mean is -1 times"),
        (mis_without_limit, "group", r"Biased in length alone: its mean is \(K-1\)/K = 0.667 times the gradient"),
        (mis_without_limit, "leave_one_out", "Unbiased: its mean is the gradient of the expected reward"),
    ],
)
def test_mistakes_are_named(loss, advantages, said):
    of = policy_loss(loss, group=3, advantages=advantages, drift=0.5, longest=3)
    assert re.search(said, " ".join([of.verdict, *of.notes])), str(of)


def test_padding_that_is_read():
    def unmasked(logprobs, advantages):
        return -(advantages * logprobs.sum(1)).mean()

    assert "Gradient reaches tokens after the end" in policy_loss(unmasked, advantages="leave_one_out").notes[0]

    def ratio_of_all(logprobs, old_logprobs, advantages, mask):
        w = (logprobs - old_logprobs).sum(1).exp().detach()
        return -(w * advantages * (logprobs * mask).sum(1)).mean()

    of = policy_loss(ratio_of_all, drift=0.5, advantages="leave_one_out")
    assert of.unbiased() and "reads log probabilities after the end" in of.notes[0]


def test_micro_batches():
    halved = policy_loss(dapo_trl, advantages="group_std", group=4, accumulation="mean", longest=2)
    assert halved.in_parts == pytest.approx(0.5) and "In 2 micro-batches its gradient is 0.5 times" in halved.notes[0]
    assert policy_loss(dapo_trl, advantages="group_std", group=4, longest=2).in_parts < 1e-12
    module = PolicyLossOpenRLHF()
    assert policy_loss(module, group=3, longest=2).in_parts > 0.1
    counted = lambda log_probs, old_log_probs, advantages, action_mask, batch_num_tokens: module(  # noqa: E731
        log_probs, old_log_probs, advantages, action_mask, batch_num_tokens
    )
    assert policy_loss(counted, group=3, longest=2).in_parts < 1e-12
    whole = policy_loss(
        lambda rewards, logprobs, mask: reinforce(logprobs, ((rewards - rewards.mean()) / (rewards.std() + 1))[:, None], mask)
    )
    assert math.isnan(whole.in_parts) and "not finite" in whole.notes[0]


def test_parts_of_the_gradient():
    """The weights by length are those of a loss that has them; positions are the prefixes' logits."""
    weights = torch.tensor([0.0, 2.0, 0.5, 1.0, 0.25], dtype=torch.double)

    def weighed(logprobs, old_logprobs, rewards, mask):
        w = ((logprobs - old_logprobs) * mask).sum(1).exp().detach()
        return -(w * (rewards - value) * weights[mask.sum(1).long()] * (logprobs * mask).sum(1)).mean()

    of = Sequences.random(drift=0.5)
    value = of.p @ of.rewards
    found = policy_loss(weighed, of)
    assert found.by_length == pytest.approx({1: 2.0, 2: 0.5, 3: 1.0, 4: 0.25}) and found.by_length_rest < 1e-9
    exact = policy_loss(mis_without_limit, of, advantages="leave_one_out")
    assert exact.by_length == pytest.approx(dict.fromkeys(range(1, 5), 1.0))
    assert exact.by_position == {t: pytest.approx((1.0, 1.0)) for t in range(1, 5)}
    first = (
        lambda logprobs, old_logprobs, advantages, mask: mis_without_limit(  # noqa: E731
            torch.cat([logprobs[:, :1], logprobs[:, 1:].detach()], 1), old_logprobs, advantages, mask
        )
    )
    only = policy_loss(first, of, advantages="leave_one_out").by_position
    assert only[1] == pytest.approx((1.0, 1.0)) and all(only[t][0] == 0 and math.isnan(only[t][1]) for t in (2, 3, 4))


def test_arguments_by_a_trainers_names():
    one = policy_loss(grpo_trl, advantages="group_std", drift=0.5, longest=3).mean
    forms = 0

    def check(loss, **options):
        nonlocal forms
        forms += 1
        np.testing.assert_allclose(
            policy_loss(loss, advantages="group_std", drift=0.5, longest=3, **options).mean, one, atol=1e-12
        )

    check(lambda *given: grpo_trl(*given))
    check(
        lambda log_prob, old_log_prob, advantages, response_mask: (
            grpo_trl(log_prob, old_log_prob, advantages, response_mask),
            {},
        )
    )
    check(lambda logps, /, old_logps, adv, mask: {"loss": grpo_trl(logps, old_logps, adv, mask), "other": 3})
    check(
        lambda new_logprobs_BT, ratio_BT, adv, mask: (
            -sequence_mean(torch.min(ratio_BT * adv, ratio_BT.clamp(0.8, 1.2) * adv), mask)
        )
    )
    check(
        lambda log_ratio, adv, mask: (
            -sequence_mean(torch.min(log_ratio.exp() * adv, log_ratio.exp().clamp(0.8, 1.2) * adv), mask)
        )
    )
    check(
        lambda logprobs, old_logprobs, advantages, mask, config: config * grpo_trl(logprobs, old_logprobs, advantages, mask),
        arguments={"config": 1.0},
    )
    check(
        lambda logprobs, old_logprobs, advantages, mask, ref_logprobs=None: grpo_trl(logprobs, old_logprobs, advantages, mask)
    )

    class Module(torch.nn.Module):
        def forward(self, log_probs, old_log_probs, advantages, action_mask=None):
            return grpo_trl(log_probs, old_log_probs, advantages, action_mask)

    check(Module())

    def boolean(logprobs, old_logprobs, advantages, loss_mask):
        return grpo_trl(logprobs, old_logprobs, advantages, (loss_mask & ~(~loss_mask)).double())

    check(boolean)

    def its_own(logprobs, old_logprobs, token_level_rewards, mask, index, num_generations, max_length):
        assert token_level_rewards.shape == mask.shape and len(index) == len(mask) and max_length == 3
        R = token_level_rewards.sum(1).reshape(-1, num_generations)
        return grpo_trl(
            logprobs, old_logprobs, ((R - R.mean(1, keepdim=True)) / (R.std(1, keepdim=True) + 1e-4)).reshape(-1), mask
        )

    check(its_own)
    assert forms == 10


@pytest.mark.parametrize(
    "options, said",
    [
        (dict(loss=lambda logprobs, values: logprobs.sum()), "needs the argument 'values'.*arguments={'values'"),
        (dict(loss=lambda logprobs, ref_logprobs: logprobs.sum()), "reference policy: give its distance"),
        (dict(loss=reinforce, arguments={"config": 1}), "has no argument 'config'"),
        (dict(loss=lambda logprobs: logprobs), r"shape \[2, 4\], expected one number"),
        (dict(loss=lambda logprobs: 1.0), "type float"),
        (dict(loss=lambda logprobs: logprobs.sum() * 0), "gradient is zero for every group"),
        (dict(loss=lambda logprobs: logprobs.detach().sum()), "gradient is zero for every group"),
        (dict(loss=lambda logprobs: logprobs.sum() / torch.zeros(1, 2, 3)[5]), "the loss fails: IndexError"),
        (dict(loss=reinforce, advantages="grpo"), "advantages are 'group', 'group_std'"),
        (dict(loss=reinforce, group=1), "needs group=2"),
        (dict(loss=reinforce, group=0), "group is at least 1"),
        (dict(loss=reinforce, group=5), "324,632 groups of 5 of 31 sequences are more than 60,000: give samples="),
        (dict(loss=reinforce, words=20), "more than 4096 sequences"),
        (dict(loss=reinforce, words=1, ends=False), "words at least 2 with ends=False"),
        (dict(loss=reinforce, success=1.5), "success is a probability"),
        (dict(loss=reinforce, beta=0.1), "give reference="),
        (dict(loss=reinforce, samples=1), "samples are at least 2"),
        (dict(loss=reinforce, accumulation="both"), "accumulation is"),
        (dict(loss=reinforce, advantages=lambda r: r[:1]), r"advantages returned shape \[1\]"),
        (dict(loss=reinforce, longest=0), "longest are at least 1"),
    ],
)
def test_refusals(options, said):
    with pytest.raises(hardgrad.UsageError, match=said):
        policy_loss(**options)


def test_a_gradient_that_is_not_finite_is_named():
    def divides(logprobs, rewards, mask):
        return reinforce(logprobs, ((rewards - rewards.mean()) / rewards.std())[:, None], mask)

    with pytest.raises(hardgrad.NotFinite, match=r"rewards \[1.0, 1.0\] and lengths|rewards \[0.0, 0.0\] and lengths"):
        policy_loss(divides, success=0.4)


def test_a_rate_of_success():
    for success in (0.1, 0.5, 0.8):
        of = Sequences.random(success=success)
        assert set(of.rewards) == {0.0, 1.0} and abs(of.p @ of.rewards - success) < 0.15
    assert policy_loss(reinforce, success=0.3, advantages="leave_one_out").unbiased()


def test_a_loss_that_depends_on_the_order():
    """The first sample alone has a gradient: half of that of both."""
    first = lambda logprobs, advantages, mask: -advantages[0] * (logprobs * mask)[0].sum()  # noqa: E731
    of = policy_loss(first, advantages="leave_one_out")
    assert of.groups == 961 and of.unbiased() and math.isnan(of.in_parts) is False
    assert policy_loss(reinforce, advantages="leave_one_out").groups == 496


def test_large_groups_are_drawn_with_a_stated_error():
    of = policy_loss(reinforce, advantages="leave_one_out", group=8, samples=2000, seed=5)
    assert of.drawn and of.groups == 2000 and 0 < of.standard_error < 0.2
    assert of.relative_bias < 4 * of.standard_error and of.unbiased() and "within its standard error" in of.verdict
    assert "2,000 groups drawn of 8" in str(of) and "standard error" in str(of)
    biased = policy_loss(reinforce, advantages="none", group=8, samples=2000, seed=5, drift=1.0)
    assert not biased.unbiased() and biased.follows.spec.startswith("advantage=none,ratio=none") and biased.follows.rest < 1e-9
    exact = policy_loss(reinforce, advantages="leave_one_out", group=2, samples=5)
    assert not exact.drawn and exact.standard_error == 0


def of_two(logprobs, advantages, mask):
    return (-advantages[:, None] * logprobs * mask).sum() / 2


def test_it_may_be_asserted():
    assert_unbiased(reinforce, longest=3, advantages="leave_one_out", group=3, in_parts=True)
    assert_unbiased(reinforce, longest=3, advantages="group", up_to_factor=True)
    with pytest.raises(AssertionError, match="Biased in length alone: its mean is .K-1./K = 0.5 times the gradient"):
        assert_unbiased(reinforce, longest=3, advantages="group")
    with pytest.raises(AssertionError, match="turned from it by"):
        assert_unbiased(grpo_trl, longest=3, advantages="group_std", up_to_factor=True)
    with pytest.raises(AssertionError, match="Its micro-batches give another gradient"):
        assert_unbiased(of_two, longest=3, advantages="leave_one_out", in_parts=True)
    assert_unbiased(of_two, longest=3, advantages="leave_one_out")
    with pytest.raises(AssertionError, match="wrong sign"):
        assert_unbiased(sign, longest=3, advantages="leave_one_out", up_to_factor=True)


def test_what_it_shows():
    of = policy_loss(grpo_trl, advantages="group_std", drift=0.5)
    assert of.__repr__() == str(of) and of._repr_html_().startswith(
        "<pre>grpo_trl: all 496 groups of 2 of 31 sequences, off policy"
    )
    assert "relative bias" in str(of) and max(map(len, str(of).splitlines())) <= 110
    with pytest.raises(AttributeError):
        of.factor = 1
    data = of.to_xarray()
    assert data.relative_bias.item() == of.relative_bias and data["mean"].shape == (45,) and data.attrs["verdict"] == of.verdict
    assert data.weight_by_length.sel(length=2).item() == of.by_length[2]


def test_modules_of_one_group_and_ppo():
    assert policy_loss(reinforce, group=1, advantages="none").unbiased()
    assert policy_loss(ppo_verl, group=1, advantages="none").follows.terms.aggregation in ("tokens", "sequences")
    assert policy_loss(ppo_verl, arguments={"loss_agg_mode": "sequence"}).follows.terms.aggregation == "sequences"
    assert policy_loss(bnpo_trl).follows.terms.aggregation == "tokens"
