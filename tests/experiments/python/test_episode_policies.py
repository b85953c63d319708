"""Behaviour and reference policies in an episode: a network that writes words draws the same numbers as the program's writer
at the same parameters, and each of its gradients is that of the published loss in PyTorch."""

import numpy as np
import pytest
import torch

import hardgrad
from hardgrad.torch import Estimator, Site, episode
from sequences import Scene, published, written

OFF_POLICY = [f"policy_gradient[samples=3,{preset}]" for preset in published.PRESETS] + [
    "policy_gradient[samples=2]",
    "policy_gradient[samples=3,preset=ppo]",
    "policy_gradient[samples=2,target=near_reference,near=0.4]",
    *(
        f"policy_gradient[samples=1,advantage=none,divergence={kind},where={where},beta=0.7]"
        for kind in ("k1", "k2", "k3", "exact")
        for where in ("reward", "loss", "weighted")
    ),
    *(f"policy_gradient[samples=2,ratio={ratio}]" for ratio in ("none", "token", "prefix", "sequence", "geometric")),
    *(f"policy_gradient[samples=2,bound={bound},low=0.9,high=1.1]" for bound in ("clip", "truncate", "mask")),
    "policy_gradient[samples=2,advantage=greedy,reward_to_go=true]",
]
ON_POLICY = ["rloo[target=near_reference]", "exact[target=near_reference,near=0.4]", "best_of[samples=3,best=2]"] + [
    "best_of[samples=3,best=3]",
    "exact",
    "unordered_set[samples=3,target=near_reference]",
]
BINARY = ["policy_gradient[samples=4,preset=maxrl]", "best_of[samples=4,best=4]", "policy_gradient[samples=3,preset=grpo]"]


def ours(scene, spec, seed, off):
    """The gradient of an episode at the table."""
    held = hardgrad.Estimator(spec, seed)  # the critic of the program with this seed
    value, table, _ = written(scene, held, behaviour=scene.behaviour if off else None, reference=scene.reference, seed=seed)
    value.sum().backward()
    return table.grad.numpy()


@pytest.mark.parametrize("drift", [0, 0.5])
def test_every_draw_is_the_programs(tmp_path, drift):
    seen = 0
    for spec in OFF_POLICY + (ON_POLICY if drift == 0 else []):
        for seed in (3, 4) if seen % 4 == 0 else (3,):
            scene = Scene(tmp_path, spec, seed, drift)
            found = ours(scene, spec, seed, drift > 0)
            assert np.abs(found - scene.gradient).max() < 1e-10, (spec, seed)
            seen += np.abs(found).max() > 1e-4
    assert seen >= 30, seen


def test_rewards_of_0_and_1(tmp_path):
    """MaxRL and pass@k, also of all samples."""
    seen = 0
    for spec in BINARY:
        for seed in range(4, 12):
            scene = Scene(tmp_path, spec, seed, task="sequences[rewards=binary]", model="writer[policy=table]")
            value, table, _ = written(scene, spec, seed=seed)
            value.sum().backward()
            assert np.abs(table.grad.numpy() - scene.gradient).max() < 1e-10, spec
            seen += np.abs(scene.gradient).max() > 1e-3
    assert seen >= 8, seen


def test_every_draw_is_the_published_loss(tmp_path):
    toy = published.Toy(tmp_path, 0.5)
    scene = Scene(tmp_path, "exact", 3, 0.5)
    assert np.array_equal(scene.policy, toy.theta.detach())
    seen = 0
    for settings, loss in published.PRESETS.items():
        for seed in range(3):
            value, table, found = written(
                scene,
                f"policy_gradient[samples=3,{settings}]",
                behaviour=scene.behaviour,
                reference=scene.reference,
                seed=seed,
            )
            value.sum().backward()
            theirs = toy.gradient(loss(toy, found[0][None]).sum())
            assert np.abs(table.grad.numpy() - theirs).max() < 1e-10, (settings, seed)
            seen += np.abs(theirs).max() > 1e-3
    assert seen >= 25, seen


def test_the_exact_gradient_near_a_reference_policy(tmp_path):
    toy = published.Toy(tmp_path, 0.5)
    scene = Scene(tmp_path, "exact", 3, 0.5)
    for spec, beta in (("exact", 0), ("exact[target=near_reference,near=0.7]", 0.7)):
        # Enumeration draws nothing: the behaviour policy changes nothing.
        for behaviour in (None, scene.behaviour):
            value, table, _ = written(scene, spec, reference=scene.reference, behaviour=behaviour)
            value.sum().backward()
            assert np.abs(table.grad.numpy() - toy.truth(beta)).max() < 1e-12


@pytest.mark.parametrize("spec", ["policy_gradient[samples=3]", "policy_gradient[samples=2,preset=grpo,beta=0.3]"])
def test_a_behaviour_policy_that_is_the_policy_changes_no_bit(tmp_path, spec):
    scene = Scene(tmp_path, "exact", 3)
    found = []
    for behaviour in (None, scene.policy):
        value, table, _ = written(scene, spec, behaviour=behaviour, reference=scene.reference, seed=1, examples=2)
        (value * torch.tensor([1.0, -0.3])).sum().backward()
        found.append((value.detach(), table.grad))
    assert all(torch.equal(a, b) for a, b in zip(*found)) and found[0][1].abs().max() > 1e-3


def test_other_tables_get_no_gradient(tmp_path):
    scene = Scene(tmp_path, "exact", 3, 0.5)
    others = [torch.tensor(x, requires_grad=True) for x in (scene.behaviour, scene.reference)]
    value, table, _ = written(scene, "policy_gradient[preset=grpo,beta=0.3]", behaviour=others[0], reference=others[1], seed=2)
    value.sum().backward()
    assert table.grad.abs().max() > 1e-3 and others[0].grad is None and others[1].grad is None


def test_a_relaxation_goes_through_the_reference_policys_state():
    """Two choices of three, the second network reads the first choice. Straight-through by hand: one-hot values, softmax's slope; the
    reference logits of the second choice depend on the first."""
    generator = torch.Generator().manual_seed(4)
    normal = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)
    first, second, near, loss = normal(3), normal(3, 3), normal(3, 3), normal(3, 3)
    beta = 0.7
    kl = lambda a, b: (a.log_softmax(-1).exp() * (a.log_softmax(-1) - b.log_softmax(-1))).sum(-1)
    for seed in range(4):
        logits = first.clone().requires_grad_()
        spec = f"straight_through[target=near_reference,near={beta}]"
        with episode(1, {"a": Site(3), "b": Site(3)}, spec, reference=True, dtype=torch.float64, seed=seed) as e:
            a = e.choose("a", logits[None], reference=torch.zeros(1, 3, dtype=torch.float64))
            w = a.weights[:, 0]
            b = e.choose("b", w @ second, reference=w @ near)
            e.cost((w @ loss * b.weights[:, 0]).sum(1))
        e.expected_loss.sum().backward()

        by_hand = first.clone().requires_grad_()
        through = lambda hard, x: hard + x.softmax(-1) - x.softmax(-1).detach()
        z = through(a.weights.detach()[0, 0], by_hand)
        y = through(b.weights.detach()[0, 0], z @ second)
        for reference, right in ((z @ near, True), (z.detach() @ near, False)):
            total = z @ loss @ y + beta * (kl(by_hand, torch.zeros(3, dtype=torch.float64)) + kl(z @ second, reference))
            (theirs,) = torch.autograd.grad(total, by_hand, retain_graph=True)
            assert ((theirs - logits.grad).abs().max() < 1e-12) == right


def test_a_policy_that_is_missing_or_not_asked_for_is_refused():
    logits = torch.zeros(2, 3)

    def ask(spec="policy_gradient", given=(), **declared):
        with episode(2, {"a": Site(3)}, spec, **declared) as e:
            e.cost(e.choose("a", logits, **dict.fromkeys(given, logits)).options[:, 0].float())

    for name in ("behaviour", "reference"):
        ask(given=(name,), **{name: True})
        with pytest.raises(hardgrad.UsageError, match=f"a {name} policy is required"):
            ask(**{name: True})
        with pytest.raises(hardgrad.UsageError, match=f"a {name} policy is given, but the episode has none"):
            ask(given=(name,))
    with pytest.raises(hardgrad.UsageError, match="there is no reference policy: pass reference="):
        ask("rloo[target=near_reference]")
    with pytest.raises(
        hardgrad.UsageError, match="rloo does not correct for samples of an older network: take policy_gradient$"
    ):
        ask("rloo", given=("behaviour",), behaviour=True)
    with pytest.raises(hardgrad.UsageError, match="needs rewards of at least 0"):
        with episode(2, {"a": Site(3)}, "policy_gradient[preset=maxrl]") as e:
            e.cost(1 + e.choose("a", logits).options[:, 0].float())
    with episode(2, {"a": Site(3)}, "policy_gradient", behaviour=True) as e:
        with pytest.raises(
            hardgrad.UsageError, match=r"behaviour has shape \[2, 2\]; it is in the shape of the logits, \[2, 3\]"
        ):
            e.choose("a", logits, behaviour=logits[:, :2])
        e.cost(torch.zeros(2))


def test_a_module_serves_on_and_off_policy():
    """The critic of PPO is the same, with and without a behaviour policy."""
    sites = {"word": Site(options=3, times=2)}
    module = Estimator("policy_gradient[preset=ppo,divergence=k3,where=loss,beta=0.1]", sites, dtype=torch.float64)
    before = [p.clone() for p in module.parameters()]
    for names in (["reference"], ["reference", "behaviour"]):
        with episode(2, sites, module, dtype=torch.float64, seed=3, **dict.fromkeys(names, True)) as e:
            word, count = None, 2
            for _ in range(2):
                logits = torch.linspace(0, 1, 3, dtype=torch.float64).expand(count, -1)
                word = e.choose("word", logits, **dict.fromkeys(names, logits * 0.5))
                count = len(word.example)
            e.cost(word.options[:, 0].double())
    assert any((a != b).any() for a, b in zip(before, module.parameters()))
    with pytest.raises(hardgrad.UsageError, match="there is no reference policy"):
        with episode(2, sites, module, dtype=torch.float64) as e:
            e.cost(e.choose("word", torch.zeros(2, 3)).options[:, 0].double())
