"""Behaviour and reference policies of `expectation`, `moments` and `gradient`: exact means against the published losses in PyTorch
summed over all groups of samples, the exact bias of a truncated behaviour policy, and the laws of samplers."""

import itertools

import numpy as np
import pytest
import torch

import hardgrad
import hardgrad.torch
from problem import LOGITS, probabilities
from sequences import published

REWARDS = np.array([[0.3, 1.1, 0.2], [0.9, 0.05, 1.7], [0.6, 1.3, 0.4]])
OLD = np.array([[0.8, 0.1, -0.4], [-0.2, 0.7, 0.1]])
REFERENCE = np.array([[-0.3, 0.2, 0.6], [0.5, -0.9, 0.4]])
OUTCOMES = list(itertools.product(range(3), repeat=2))


class Columns(published.Toy):
    """Two columns of three options as sequences of one step, whose 9 words are the outcomes."""

    def __init__(self, behaviour, rewards=REWARDS):
        self.theta = torch.tensor(LOGITS, requires_grad=True)
        of = lambda logits: sum(
            torch.log_softmax(torch.as_tensor(x), 0)[[z[d] for z in OUTCOMES]] for d, x in enumerate(logits)
        )[:, None]
        self.p, self.q, self.r = of(self.theta), of(behaviour), of(REFERENCE)
        self.laws, self.reference_laws = self.p.T, self.r.T
        self.state = torch.zeros(9, 1, dtype=torch.long)
        self.length = torch.ones(9, dtype=torch.float64)
        self.is_step = torch.ones(9, 1, dtype=torch.float64)
        self.rewards = torch.tensor(rewards).reshape(-1)

    def mean(self, loss, samples):
        possible = [i for i in range(9) if self.q[i] > -np.inf]
        group = torch.tensor(list(itertools.product(possible, repeat=samples)))
        return self.gradient((self.q.sum(1)[group].sum(1).exp() * loss(self, group)).sum())


def remax(toy, group):
    greedy = OUTCOMES.index(tuple(LOGITS.argmax(1)))
    return -((toy.rewards[group] - toy.rewards[greedy]) * toy.p[group].sum(2)).mean(1)


def maxrl(toy, group):
    R = toy.rewards[group]
    mean = R.mean(1, keepdim=True)
    return -((R - mean) / mean * toy.p[group].sum(2)).mean(1)


def ratio(toy, group):
    """Leave-one-out with the ratio of the whole row, as a default."""
    w = (toy.p - toy.q)[group].sum(2).exp().detach()
    return -(w * 2 * published.centred(toy.rewards[group]) * toy.p[group].sum(2)).mean(1)


CRITIC = hardgrad.Estimator("policy_gradient[preset=ppo,lambda=1,samples=2]", seed=7)
PRESETS = {
    **published.PRESETS,
    "preset=dr_grpo": published.per_token(
        lambda ratio, A, p: published.clipped(ratio, A), published.sum_of_tokens, published.centred
    ),
    "preset=remax": remax,
    "preset=maxrl": maxrl,
    "ratio=sequence": ratio,
}
LAWS = {
    "the policy": lambda: LOGITS,
    "an older policy": lambda: OLD,
    "tempered": lambda: hardgrad.tempered(LOGITS, 1.7),
    "top k": lambda: hardgrad.top_k(OLD, 2),
    "top p": lambda: hardgrad.top_p(LOGITS, 0.6),
}


@pytest.mark.parametrize("law", LAWS)
def test_exact_means_of_every_preset(law):
    """Also of a truncated behaviour policy, whose samples lack some outcomes."""
    behaviour = LAWS[law]()
    toy = Columns(behaviour)
    names = {p["name"] for p in hardgrad.describe("policy_gradient")["presets"]}
    assert names == {s.split(",")[0].removeprefix("preset=") for s in PRESETS if s.startswith("preset=")} | {"ppo"}
    for settings, loss in PRESETS.items():
        of = hardgrad.moments(
            LOGITS, -REWARDS, f"policy_gradient[samples=2,{settings}]", behaviour=behaviour, reference=REFERENCE
        )
        theirs = toy.mean(loss, 2)
        assert np.abs(of.mean - theirs).max() < 1e-10, settings
        assert np.abs(theirs).max() > 1e-3, settings


def test_ppo_with_the_value_of_its_critic():
    """Its critic has one value V, in losses, which is read from an estimate without a bound: w (f - V) grad log p of each sample."""
    spec = "policy_gradient[samples=1,advantage=critic,ratio=sequence]"
    of = hardgrad.gradient(LOGITS, -REWARDS, hardgrad.Estimator(spec, seed=7), 3, behaviour=OLD)
    (run,) = of.runs
    score = np.eye(3)[run.options[0]] - probabilities(LOGITS)
    value = run.losses[0] - (of.value / score / run.ratios[0]).mean()
    assert abs(value) > 1e-3

    def ppo(toy, group):
        A = toy.rewards[group] + value
        return -published.clipped((toy.p - toy.q)[group].sum(2).exp(), A).mean(1)

    found = hardgrad.moments(LOGITS, -REWARDS, CRITIC, behaviour=OLD)
    assert np.abs(found.mean - Columns(OLD).mean(ppo, 2)).max() < 1e-10


UNBIASED = {("k1", "reward"), ("exact", "reward"), ("exact", "loss"), ("k1", "weighted"), ("k3", "weighted")}  # of one question


@pytest.mark.parametrize("where", ["reward", "loss", "weighted"])
@pytest.mark.parametrize("kind", ["k1", "k2", "k3", "exact"])
def test_divergences_from_the_reference_policy(kind, where):
    toy = Columns(OLD)
    spec = f"policy_gradient[samples=1,advantage=none,divergence={kind},where={where},beta=0.7]"
    of = hardgrad.moments(LOGITS, -REWARDS, spec, behaviour=OLD, reference=REFERENCE)
    if (kind, where) != ("exact", "weighted"):
        assert np.abs(of.mean - toy.mean(published.divergence(kind, where), 1)).max() < 1e-10
    assert of.target == "near_reference[beta=0.7]" and np.abs(of.exact - toy.truth(0.7)).max() < 1e-12
    assert (np.abs(of.bias).max() < 1e-12) == ((kind, where) in UNBIASED | {("exact", "weighted")})


def test_targets_with_a_reference_policy_and_the_best_of_all_samples():
    """No bias against the gradient of the objective, written out."""
    toy = Columns(LOGITS)
    for spec in ("rloo[samples=2,target=near_reference,near=0.7]", "sum_and_sample[target=near_reference,near=0.7]"):
        of = hardgrad.moments(LOGITS, -REWARDS, spec, reference=REFERENCE)
        assert np.abs(of.exact - toy.truth(0.7)).max() < 1e-12 and np.abs(of.bias).max() < 1e-12, spec
        other = hardgrad.moments(LOGITS, -REWARDS, spec, reference=OLD)
        assert np.abs(of.exact - other.exact).max() > 1e-2
    for samples, best in ((2, 1), (2, 2), (3, 2), (3, 3), (4, 4)):
        group = torch.tensor(list(itertools.product(range(9), repeat=best)))
        law = toy.p.sum(1)[group].sum(1).exp()
        truth = toy.gradient((law * -toy.rewards[group].max(1).values).sum())
        of = hardgrad.moments(LOGITS, -REWARDS, f"best_of[samples={samples},best={best}]")
        assert np.abs(of.exact - truth).max() < 1e-12 and np.abs(of.bias).max() < 1e-12, (samples, best)
    with pytest.raises(hardgrad.UsageError, match="best must be at most samples"):
        hardgrad.moments(LOGITS, -REWARDS, "best_of[samples=3,best=4]")


def test_the_baseline_of_the_best_of_all_samples_lowers_the_variance():
    """Against the same score without one: sum_i min f grad log p(z_i)."""
    plain = hardgrad.written(
        lambda of: of.losses.reshape(-1, 3).min(1).repeat(3)[:, None, None] * 3 * (of.one_hot - of.probabilities), 3
    )
    far = -REWARDS - 5  # a constant that the baseline removes
    with_baseline = hardgrad.moments(LOGITS, far, "best_of[samples=3,best=3]")
    without = hardgrad.moments(LOGITS, far, plain)
    np.testing.assert_allclose(with_baseline.mean, without.mean, atol=1e-12)
    assert with_baseline.variance.sum() < 0.1 * without.variance.sum()


def test_rewards_of_0_and_1_and_their_likelihood():
    """MaxRL: -(1 - (1 - p)^(K-1)) grad log p of the probability p of success; by rewards, and by likelihoods exp(-f)."""
    success = (REWARDS > 0.85).astype(float)
    toy = Columns(LOGITS, success)
    p = (toy.p.sum(1).exp() * toy.rewards).sum()
    grad = toy.gradient(p)
    p = float(p.detach())
    for K in (2, 3):
        for spec, losses in (
            (f"policy_gradient[preset=maxrl,samples={K}]", -success),
            (f"maxrl[samples={K}]", 800 * (1 - success)),
        ):
            of = hardgrad.moments(LOGITS, losses, spec)
            assert np.abs(of.mean + (1 - (1 - p) ** (K - 1)) * grad / p).max() < 1e-12, spec
    with pytest.raises(
        hardgrad.UsageError, match="the loss of row .* is 1.*: the likelihood of success needs rewards of at least 0"
    ):
        hardgrad.moments(LOGITS, 1 + REWARDS, "policy_gradient[preset=maxrl]")


@pytest.mark.parametrize(
    "cut", [lambda x: hardgrad.top_p(x, 0.6), lambda x: hardgrad.top_k(x, 2), lambda x: hardgrad.top_k(x, 1)]
)
def test_the_bias_of_truncation_is_that_of_the_missing_outcomes(cut):
    behaviour = cut(LOGITS)
    p, f = probabilities(LOGITS), -REWARDS
    drawn = np.isfinite(behaviour)
    bias, reached = np.zeros((2, 3)), 0.0
    for z in OUTCOMES:
        mass, score = p[0, z[0]] * p[1, z[1]], np.eye(3)[list(z)] - p
        inside = drawn[0, z[0]] and drawn[1, z[1]]
        reached += mass * inside
        bias -= mass * f[z] * score * (not inside)
    of = hardgrad.moments(LOGITS, f, "policy_gradient[samples=1,advantage=none]", behaviour=behaviour)
    np.testing.assert_allclose(of.bias, bias, atol=1e-14)
    np.testing.assert_allclose(of.reached, reached, rtol=1e-14)
    np.testing.assert_allclose([of.effective_ratio_share, of.largest_ratio], [1, reached], rtol=1e-12)
    assert np.abs(bias).max() > 1e-2
    assert np.abs(hardgrad.moments(LOGITS, f, "policy_gradient[samples=3]", behaviour=behaviour).bias).max() > 1e-2
    assert np.abs(hardgrad.moments(LOGITS, f, "policy_gradient[samples=3]", behaviour=OLD).bias).max() < 1e-14


def test_ratios_in_numbers():
    """(E R)^2 / E R^2 and the largest R, of all outcomes and of the drawn rows."""
    p, q = (np.prod(np.meshgrid(*probabilities(x), indexing="ij"), axis=0) for x in (LOGITS, OLD))
    of = hardgrad.moments(LOGITS, -REWARDS, "policy_gradient[samples=2]", behaviour=OLD)
    np.testing.assert_allclose(of.effective_ratio_share, 1 / (p * p / q).sum(), rtol=1e-12)
    np.testing.assert_allclose([of.largest_ratio, of.reached], [(p / q).max(), 1], rtol=1e-12)
    one = hardgrad.gradient(LOGITS, -REWARDS, "policy_gradient[samples=8]", 1, behaviour=OLD)
    ratios = (p / q)[tuple(one.runs[0].options.T)]
    np.testing.assert_allclose(one.runs[0].ratios, ratios, rtol=1e-12)
    np.testing.assert_allclose(one.effective_ratio_share, ratios.sum() ** 2 / (8 * (ratios**2).sum()), rtol=1e-12)
    assert one.largest_ratio == one.runs[0].ratios.max()
    none = hardgrad.moments(LOGITS, -REWARDS, "rloo"), hardgrad.gradient(LOGITS, -REWARDS, "rloo", 1)
    assert all(np.isnan([x.effective_ratio_share, x.largest_ratio]).all() for x in none) and none[0].reached == 1
    batch = hardgrad.moments(np.stack([LOGITS, OLD]), -REWARDS, "policy_gradient", behaviour=np.stack([OLD, OLD]))
    assert batch.largest_ratio.shape == (2,) and batch.largest_ratio[1] == 1 and batch.largest_ratio[0] == of.largest_ratio
    assert set(batch.to_xarray().data_vars) >= {"effective_ratio_share", "largest_ratio", "reached"}


def loss_of(weight):
    def f(z, example=None):
        return torch.einsum("ri,rj,ij->r", z[:, 0].to(weight.dtype), z[:, 1].to(weight.dtype), weight)

    return f


@pytest.mark.parametrize("spec", ["policy_gradient[samples=3]", "policy_gradient[samples=3,preset=grpo,beta=0.3]"])
def test_expectation_draws_what_gradient_draws(spec):
    """With a cotangent for each example; logits and their parameters in the loss."""
    logits, old, near = (torch.tensor(np.stack([x, x[::-1]])) for x in (LOGITS, hardgrad.top_k(OLD, 2), REFERENCE))
    logits.requires_grad_()
    weight = torch.tensor(-REWARDS, requires_grad=True)
    value = hardgrad.torch.expectation(logits, loss_of(weight), spec, behaviour=old, reference=near, seed=4)
    cotangent = torch.tensor([1.0, -0.4], dtype=torch.float64)
    value.backward(cotangent)
    one = hardgrad.gradient(logits.detach().numpy(), -REWARDS, spec, 4, behaviour=old.numpy(), reference=near.numpy())
    np.testing.assert_allclose(logits.grad, cotangent[:, None, None].numpy() * one.value, atol=1e-14)
    (run,) = one.runs
    np.testing.assert_allclose(value.detach(), np.bincount(run.example, run.share * run.losses), atol=1e-14)
    by_hand = np.zeros((3, 3))
    np.add.at(by_hand, tuple(run.options.T), cotangent.numpy()[run.example] * run.share)
    np.testing.assert_allclose(weight.grad, by_hand, atol=1e-14)
    assert np.isfinite(
        old.numpy()[run.example[:, None], [[0, 1]], run.options]
    ).all()  # only options that the behaviour policy draws


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "settings", ["samples=3", "preset=grpo,samples=3,beta=0.3", "preset=tis,samples=2", "preset=gspo,samples=4"]
)
def test_a_behaviour_policy_that_is_the_policy_changes_no_bit(dtype, settings):
    found = []
    for behaviour in (False, True):
        logits = torch.tensor(np.stack([LOGITS, OLD, REFERENCE]), dtype=dtype, requires_grad=True)
        weight = torch.tensor(-REWARDS, dtype=torch.float32, requires_grad=True)
        value = hardgrad.torch.expectation(
            logits,
            loss_of(weight),
            f"policy_gradient[{settings}]",
            behaviour=logits if behaviour else None,
            reference=torch.zeros(3, 2, 3),
            seed=2,
        )
        value.backward(torch.tensor([1.0, -0.3, 0.7], dtype=value.dtype))
        found.append((value.detach(), logits.grad, weight.grad))
    assert all(torch.equal(a, b) for a, b in zip(*found)) and found[0][1].abs().max() > 1e-3


def test_missing_options_bits_and_subsets():
    """-inf anywhere in the logits, behaviour policies of bits, and of subsets."""
    inf = np.inf
    logits = torch.tensor([[0.3, -inf, 0.2, -0.4], [-inf, 0.4, 0.9, 0.1]], dtype=torch.float64, requires_grad=True)
    order, there = [[0, 2, 3, 1], [1, 2, 3, 0]], lambda x: np.take_along_axis(np.asarray(x), np.array(order), 1)
    old, near = (torch.where(logits == -inf, logits.detach(), torch.tensor(x)) for x in (0.7, -0.1))
    old[0, 3] = -inf
    table = np.arange(16.0).reshape(4, 4) ** 0.5
    f = lambda z: torch.einsum("ri,rj,ij->r", z[:, 0], z[:, 1], torch.tensor(table))
    spec = "policy_gradient[samples=4,divergence=k3,beta=0.2]"
    hardgrad.torch.expectation(logits, f, spec, behaviour=old, reference=near, seed=5).backward()
    one = hardgrad.gradient(there(logits.detach()), table[np.ix_(*order)], spec, 5, behaviour=there(old), reference=there(near))
    np.testing.assert_allclose(there(logits.grad), one.value, atol=1e-14)
    assert np.abs(one.value).max() > 1e-3 and (one.runs[0].options[:, 0] != 2).all()

    bit = torch.tensor([0.4, -0.3], dtype=torch.float64, requires_grad=True)
    of_bits = torch.tensor([[1.0, 0.3], [0.2, 2.0]], dtype=torch.float64)
    hardgrad.torch.expectation(
        bit, lambda z: of_bits[z[:, 0].long(), z[:, 1].long()], "policy_gradient", bits=True, behaviour=-bit, seed=1
    ).backward()
    two = np.stack([np.zeros(2), bit.detach()], -1)
    one = hardgrad.gradient(two, of_bits.numpy(), "policy_gradient", 1, behaviour=-two)
    np.testing.assert_allclose(bit.grad, one.value[:, 1], atol=1e-15)

    pick = torch.tensor([0.3, -0.2, 0.5, 0.1], dtype=torch.float64)
    target = torch.tensor([0.2, 1.0, -0.5, 0.4], dtype=torch.float64)
    g = lambda z: (z[:, 0] * target).sum(1) ** 2
    pairs = list(itertools.combinations(range(4), 2))
    leaf = pick.clone().requires_grad_()
    weight = torch.stack([leaf[list(s)].sum() for s in pairs])
    losses = torch.stack([g(torch.eye(4, dtype=torch.float64)[list(s)].sum(0)[None, None])[0] for s in pairs])
    ((weight - weight.logsumexp(0)).exp() * losses).sum().backward()
    leaf.grad, truth = None, leaf.grad
    total, count = torch.zeros(4, dtype=torch.float64), 4000
    for seed in range(4):
        leaf.grad = None
        many, old = leaf[None, None].expand(count, 1, 4), (-pick).expand(count, 1, 4)
        value = hardgrad.torch.expectation(
            many, lambda z, example: g(z), "policy_gradient[samples=2]", subset=2, seed=seed, behaviour=old
        )
        value.mean().backward()
        total += leaf.grad / 4
    assert (total - truth).abs().max() < 0.05 and truth.abs().max() > 0.15


def test_estimators_that_cannot_work_off_policy_refuse():
    """Every estimator: it corrects, draws nothing, is refused for another reason, or says that it does not correct."""
    logits, weight = torch.tensor(LOGITS), torch.tensor(-REWARDS)
    quiet, refused, others = set(), set(), {}
    for name in hardgrad.estimators():
        try:
            hardgrad.torch.expectation(logits, loss_of(weight), name, behaviour=torch.tensor(OLD), seed=0)
            quiet.add(name)
        except hardgrad.UsageError as error:
            if str(error).endswith(f"{name} does not correct for samples of an older network: take policy_gradient"):
                refused.add(name)
            else:
                others[name] = str(error)
    assert quiet == {"policy_gradient", "dense_mixer", "exact", "exact_marginal", "kmax_marginal", "soft", "sparsemax"}, quiet
    assert len(refused) >= 35 and all(
        any(why in said for why in ("needs", "posterior", "dream", "differentiates", "no place")) for said in others.values()
    ), others
    mine = hardgrad.written(lambda of: of.one_hot - of.probabilities, 2)
    for call in (hardgrad.moments, hardgrad.gradient):
        for estimator in ("rloo", mine, hardgrad.Estimator("nvil")):
            with pytest.raises(
                hardgrad.UsageError, match="does not correct for samples of an older network: take policy_gradient"
            ):
                call(LOGITS, -REWARDS, estimator, behaviour=OLD)
    with pytest.raises(hardgrad.UsageError, match="rloo: there is no reference policy: pass reference=, its logits"):
        hardgrad.moments(LOGITS, -REWARDS, "rloo[target=near_reference]")


@pytest.mark.parametrize(
    "which, change, said",
    [
        ("behaviour", lambda x: x[:, :2], r"behaviour has shape \[2, 2\]; it is in the shape of the logits, \[2, 3\]"),
        (
            "behaviour",
            lambda x: np.where(x == x[1, 0], np.nan, x),
            r"behaviour: entry \[1, 0\] is nan: its logits are finite, or -inf",
        ),
        ("behaviour", lambda x: np.where(x == x[1, 0], np.inf, x), r"behaviour: entry \[1, 0\] is inf"),
        ("behaviour", lambda x: np.full_like(x, -np.inf), r"behaviour: all options of entry \[0, 0\] are -inf"),
        ("reference", lambda x: hardgrad.top_k(x, 2), r"reference: entry \[0, 2\] is -inf: the policy may choose this option"),
        ("reference", lambda x: x.astype(complex), "reference: complex128 is not a type of real numbers"),
    ],
)
def test_other_logits_that_are_wrong(which, change, said):
    for call in (hardgrad.moments, hardgrad.gradient):
        with pytest.raises(hardgrad.UsageError, match=said):
            call(LOGITS, -REWARDS, "policy_gradient", **{which: change(OLD)})
    if "complex" not in said:
        with pytest.raises(hardgrad.UsageError, match=said):
            hardgrad.torch.expectation(
                torch.tensor(LOGITS), loss_of(torch.tensor(REWARDS)), "policy_gradient", **{which: torch.tensor(change(OLD))}
            )


def test_an_option_that_the_policy_lacks_is_no_option_of_the_others():
    logits = np.where([[False, False, True], [False] * 3], -np.inf, LOGITS)
    for which in ("behaviour", "reference"):
        with pytest.raises(hardgrad.UsageError, match=rf"{which}: entry \[0, 2\] is -0.4: the logits have no such option"):
            hardgrad.moments(logits, -REWARDS, "policy_gradient", **{which: OLD})
        same = {"reference": logits, which: np.where(np.isinf(logits), logits, OLD)}
        of = hardgrad.moments(logits, -REWARDS, "policy_gradient[beta=0.2,divergence=exact]", **same)
        assert np.abs(of.bias).max() < 1e-14 and (of.mean[0, 2] == 0)
    with pytest.raises(hardgrad.UsageError, match="behaviour: entry .* of subsets all its logits are finite"):
        hardgrad.torch.expectation(
            torch.zeros(4),
            lambda z: z.sum((1, 2)),
            "policy_gradient",
            subset=2,
            behaviour=hardgrad.torch.top_k(torch.arange(4.0), 3),
        )


def test_laws_of_samplers():
    """Ties, whole and single options, rows, and -inf that stay."""
    inf = np.inf
    x = np.log([[0.4, 0.3, 0.2, 0.1], [0.1, 0.4, 0.1, 0.4]])
    same = lambda found, kept: np.array_equal(found, np.where(kept, x, -inf))
    assert same(hardgrad.top_k(x, 2), [[1, 1, 0, 0], [0, 1, 0, 1]])
    assert same(hardgrad.top_k(x, 1), [[1, 0, 0, 0], [0, 1, 0, 1]])  # both that are as likely as the first
    assert same(hardgrad.top_k(x, 3), [[1, 1, 1, 0], [1, 1, 1, 1]])
    assert same(hardgrad.top_k(x, 4), np.ones((2, 4))) and same(hardgrad.top_k(x, 9), np.ones((2, 4)))
    assert same(hardgrad.top_p(x, 0.65), [[1, 1, 0, 0], [0, 1, 0, 1]])
    assert same(hardgrad.top_p(x, 0.75), [[1, 1, 1, 0], [0, 1, 0, 1]])
    assert same(hardgrad.top_p(x, 0.35), [[1, 0, 0, 0], [0, 1, 0, 1]])
    assert same(hardgrad.top_p(x, 1e-9), [[1, 0, 0, 0], [0, 1, 0, 1]]) and same(hardgrad.top_p(x, 1), np.ones((2, 4)))
    assert np.array_equal(hardgrad.tempered(x, 2), x / 2)
    few = hardgrad.top_p(hardgrad.top_k(hardgrad.tempered(x, 0.5), 3), 0.99)
    assert few[0].tolist()[3] == -inf and np.isfinite(few[0, :3]).all()
    np.testing.assert_allclose(probabilities(hardgrad.tempered(x, 0.5))[0], np.array([16, 9, 4, 1]) / 30)
    generator = np.random.default_rng(1)
    many = generator.normal(size=(50, 40))
    for share in (0.1, 0.5, 0.9, 0.999):
        law = probabilities(many)
        kept = np.isfinite(hardgrad.top_p(many, share))
        mass = (law * kept).sum(1)
        assert (mass >= share - 1e-12).all() and (mass - np.where(kept, law, 1).min(1) < share + 1e-12).all()
        assert (np.where(kept, many, inf).min(1) > np.where(kept, -inf, many).max(1)).all()
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        tensor = torch.tensor(many, dtype=dtype, requires_grad=True)
        for name, setting in (("tempered", 0.8), ("top_k", 5), ("top_p", 0.9)):
            theirs = getattr(hardgrad.torch, name)(tensor, setting)
            ours = getattr(hardgrad, name)(tensor.detach().double().numpy(), setting)
            assert theirs.dtype == dtype and not theirs.requires_grad and theirs.device == tensor.device
            assert torch.equal(theirs, torch.tensor(ours).to(dtype))


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: hardgrad.tempered([0.0, 1.0], 0), "a temperature is a number above 0, got 0"),
        (lambda: hardgrad.tempered([0.0, 1.0], np.inf), "a temperature is a number above 0"),
        (lambda: hardgrad.tempered([0.0, 1.0], "hot"), "a temperature is a number above 0, got 'hot'"),
        (lambda: hardgrad.top_k([0.0, 1.0], 0), "k is a whole number from 1, got 0"),
        (lambda: hardgrad.top_k([0.0, 1.0], 1.5), "k is a whole number from 1, got 1.5"),
        (lambda: hardgrad.top_p([0.0, 1.0], 0), "p is a probability above 0, at most 1, got 0"),
        (lambda: hardgrad.top_p([0.0, 1.0], 1.2), "p is a probability above 0, at most 1, got 1.2"),
        (lambda: hardgrad.top_p([0.0, np.nan], 0.5), "an entry is neither a finite number nor -inf"),
        (lambda: hardgrad.top_p([-np.inf, -np.inf], 0.5), "all options of a row are -inf"),
        (lambda: hardgrad.top_k(3.0, 1), r"logits are float64 of shape \[\]; they are real numbers"),
        (lambda: hardgrad.torch.top_k([0.0, 1.0], 1), "logits are of type list, expected a tensor"),
    ],
)
def test_settings_of_samplers_that_are_wrong(call, said):
    with pytest.raises(hardgrad.UsageError, match=said):
        call()


def test_compare_finds_the_bias_of_truncation():
    """The step gives the same policies to all estimators; enumeration, the reference, draws nothing."""
    logits, weight = torch.tensor(LOGITS, requires_grad=True), torch.tensor(-REWARDS)
    cut = hardgrad.torch.top_p(logits, 0.6)

    def step(behaviour):
        return lambda estimator: hardgrad.torch.expectation(logits, loss_of(weight), estimator, behaviour=behaviour)

    spec = "policy_gradient[samples=4]"
    whole, truncated = (
        hardgrad.torch.compare(step(x), [logits], [spec, "rloo"], replicates=400) for x in (torch.tensor(OLD), cut)
    )
    exact = hardgrad.moments(LOGITS, -REWARDS, spec, behaviour=cut.numpy())
    for found in (whole, truncated):
        assert "exact" in found.reference and found["rloo"].status == "skipped" and "does not correct" in found["rloo"].reason
    p, q = (np.prod(np.meshgrid(*probabilities(x), indexing="ij"), axis=0) for x in (LOGITS, OLD))
    np.testing.assert_allclose(whole[spec].effective_ratio_share, 1 / (p * p / q).sum(), rtol=0.1)
    np.testing.assert_allclose(whole[spec].largest_ratio, (p / q).max(), rtol=1e-12)
    np.testing.assert_allclose([truncated[spec].effective_ratio_share, truncated[spec].largest_ratio], [1, exact.reached])
    assert whole[spec].bias_p_value_plain > 1e-4
    assert truncated[spec].bias_p_value_plain < 1e-4
    np.testing.assert_allclose(np.sqrt(truncated[spec].squared_bias), np.linalg.norm(exact.bias), rtol=0.3)


def test_jax_draws_the_same():
    jax = pytest.importorskip("jax")
    import hardgrad.jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        weight = jax.numpy.asarray(-REWARDS)
        policies = {"behaviour": hardgrad.top_k(OLD, 2), "reference": REFERENCE}

        @jax.jit
        def loss(logits, policies, seed):
            f = lambda z: jax.numpy.einsum("ri,rj,ij->r", z[:, 0], z[:, 1], weight)
            return hardgrad.jax.expectation(logits, f, "policy_gradient[preset=grpo,beta=0.3]", seed=seed, **policies)

        gradient = jax.grad(loss)(jax.numpy.asarray(LOGITS), policies, 3)
        one = hardgrad.gradient(LOGITS, -REWARDS, "policy_gradient[preset=grpo,beta=0.3]", 3, **policies)
        np.testing.assert_allclose(gradient, one.value, atol=1e-14)
        with pytest.raises(hardgrad.UsageError, match="rloo does not correct"):
            hardgrad.jax.expectation(weight, lambda z: z.sum((1, 2)), "rloo", seed=1, behaviour=weight)
        with pytest.raises(hardgrad.UsageError, match="reference has shape"):
            hardgrad.jax.expectation(weight, lambda z: z.sum((1, 2)), "rloo", seed=1, reference=weight[0])
    finally:
        jax.config.update("jax_enable_x64", before)
