"""hardgrad.torch.Estimator: an estimator that learns as a module of a network, against `hardgrad.Estimator` and explicit losses."""

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hardgrad  # noqa: E402
from hardgrad.torch import Estimator, Site, compare, episode, expectation  # noqa: E402

LEARNERS = ["nvil[samples=2]", "rebar", "relax", "rodeo", "moving_baseline", "double_cv"]
STATE = torch.randn(16, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)


def f(z, example):
    return (5 * STATE[example, 0].to(z.dtype) + z[:, 0, 1] - 0.3 * z[:, 1, 0]) ** 2


def drawn(estimator, seed, dtype=torch.double):
    logits = torch.zeros(16, 2, 2, dtype=dtype, requires_grad=True)
    return torch.autograd.grad(expectation(logits, f, estimator, state=STATE.to(dtype), seed=seed).sum(), logits)[0]


def taught(estimator, steps=5, dtype=torch.double):
    for seed in range(steps):
        drawn(estimator, seed, dtype)
    return estimator


def state_of(module):
    """All its numbers."""
    state = dict(module.state_dict())
    extra = state.pop("_extra_state")
    return [x.tolist() for x in state.values()] + [extra["averages"].tolist(), extra["optimizer"].tolist()]


@pytest.mark.parametrize("spec", LEARNERS)
def test_a_module_learns_as_the_estimator_does(spec):
    module, plain = taught(Estimator(spec, seed=3)), taught(hardgrad.Estimator(spec, seed=3))
    assert torch.equal(drawn(module, 9), drawn(plain, 9)) and not torch.equal(
        drawn(module, 9), drawn(Estimator(spec, seed=3), 9)
    )
    module.eval()
    before = state_of(module)
    drawn(module, 10)
    with torch.no_grad():
        module.train()
        expectation(torch.zeros(16, 2, 2, dtype=torch.double), f, module, state=STATE)
    assert state_of(module) == before


@pytest.mark.parametrize("spec", LEARNERS)
def test_copies_pickles_and_state_dicts_hold_what_was_learned(spec):
    network = torch.nn.ModuleDict({"estimator": taught(Estimator(spec, seed=3))})
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    loaded = torch.nn.ModuleDict({"estimator": Estimator(spec)})  # not used yet
    loaded.load_state_dict(torch.load(file))
    used = torch.nn.ModuleDict({"estimator": taught(Estimator(spec, seed=8), 2)})
    used.load_state_dict(network.state_dict())
    others = [loaded, used, copy.deepcopy(network), pickle.loads(pickle.dumps(network))]
    for step in range(20, 23):  # the averages and the state of Adam, too
        here = drawn(network["estimator"], step)
        for other in others:
            assert torch.equal(drawn(other["estimator"], step), here), step
    fresh = pickle.loads(pickle.dumps(Estimator(spec, seed=3)))
    assert torch.equal(drawn(fresh, 1), drawn(Estimator(spec, seed=3), 1))


def test_its_parameters_have_names_and_sites_make_them_at_once():
    module = Estimator("nvil[samples=2]", Site(options=2, columns=2, state=3), seed=3, dtype=torch.double)
    assert [name for name, _ in module.named_parameters()] == [
        "baseline_hidden_weight",
        "baseline_hidden_bias",
        "baseline_out_weight",
        "baseline_out_bias",
    ]
    assert (
        module.learns and module.baseline_hidden_weight.shape[1] == 3 and not any(x.requires_grad for x in module.parameters())
    )
    assert torch.equal(taught(module).baseline_out_bias, taught(Estimator("nvil[samples=2]", seed=3)).baseline_out_bias)
    assert not list(Estimator("rloo[samples=4]", Site(options=2)).parameters()) and "nvil" in repr(module)
    before = drawn(module, 7)
    with torch.no_grad():
        module.baseline_out_bias += 1
    assert not torch.equal(drawn(module.eval(), 7), before)


def test_the_users_optimiser_trains_its_parameters():
    """As its own Adam does, with the same settings; and the gradient does not depend on the weight of the loss."""
    site = Site(options=2, columns=2, state=3)
    own = Estimator("nvil[samples=2]", site, seed=3, learning_rate=0.01, dtype=torch.double)
    mine = Estimator("nvil[samples=2]", site, seed=3, learning_rate=None, dtype=torch.double)
    adam = torch.optim.Adam(mine.parameters(), 0.01)
    assert all(x.requires_grad for x in mine.parameters())
    for seed in range(8):
        theirs = drawn(own, seed)
        logits = torch.zeros(16, 2, 2, dtype=torch.double, requires_grad=True)
        loss = mine(logits, f, state=STATE, seed=seed)
        adam.zero_grad()
        (1e3 * loss).sum().backward()
        torch.testing.assert_close(logits.grad, 1e3 * theirs, rtol=1e-6, atol=1e-7)
        adam.step()
    for one, other in zip(mine.parameters(), own.parameters()):
        torch.testing.assert_close(one.data, other.data, rtol=1e-6, atol=1e-8)
    with pytest.raises(hardgrad.UsageError, match="your optimiser trains its parameters, so they are made now: pass its sites"):
        Estimator("nvil", learning_rate=None)


def test_both_precisions_share_what_is_learned():
    module = taught(taught(Estimator("nvil[samples=2]", seed=3), 5, torch.float32), 5)
    assert module.baseline_out_bias.dtype == torch.float32
    narrow = Estimator("nvil[samples=2]", seed=3)
    taught(narrow, 5, torch.float32)
    torch.testing.assert_close(drawn(module, 9), drawn(taught(narrow), 9))
    assert not torch.allclose(drawn(module, 9), drawn(taught(Estimator("nvil[samples=2]", seed=3)), 9), rtol=1e-6)


def test_in_episodes_in_moments_and_in_comparisons():
    sites = {"bit": Site(options=2, times=2)}
    module, plain = Estimator("nvil", sites, dtype=torch.double), hardgrad.Estimator("nvil")
    mine = Estimator("nvil", sites, learning_rate=None, dtype=torch.double)

    def found(estimator, seed):
        logits = torch.zeros(4, 2, dtype=torch.double, requires_grad=True)
        with episode(4, sites, estimator, dtype=torch.double, seed=seed) as e:
            first = e.choose("bit", logits)
            second = e.choose("bit", logits[first.example] + first.options)
            e.cost((3 + second.options[:, 0]).double())
        e.expected_loss.mean().backward()
        return logits.grad

    for seed in range(3):
        assert torch.equal(found(module, seed), found(plain, seed))
    found(mine, 0)
    assert all(x.grad is not None for x in mine.parameters()) and any(x.grad.abs().sum() > 0 for x in mine.parameters())

    held = Estimator("moving_baseline")
    for _ in range(200):
        expectation(torch.tensor([[0.0, 0.5]], dtype=torch.double, requires_grad=True), lambda z: 10 + z[:, 0, 1], held)
    fresh, now = (
        hardgrad.moments([0.0, 0.5], np.array([10.0, 11.0]), x).variance.sum()
        for x in (Estimator("moving_baseline").core, held.core)
    )
    assert now < 0.05 * fresh
    before = state_of(held)
    logits = torch.tensor([0.0, 0.5], dtype=torch.double, requires_grad=True)
    result = compare(
        lambda estimator: expectation(logits, lambda z: 10 + z[:, 0, 1], estimator),
        [logits],
        [held, "reinforce"],
        replicates=60,
    )
    assert result["moving_baseline"].variance < 0.2 * result["reinforce"].variance and state_of(held) == before


def test_refusals():
    with pytest.raises(hardgrad.UsageError, match="unknown estimator"):
        Estimator("nvill")
    module = taught(Estimator("nvil[samples=2]"))
    with pytest.raises(
        hardgrad.UsageError, match="nvil learns, and was made for 2 columns of 2 options at most 1 times with a state of 3"
    ):
        expectation(torch.zeros(3, 4, requires_grad=True), lambda z: z[:, 0, 0], module)
    with pytest.raises((RuntimeError, hardgrad.UsageError), match="size mismatch|another estimator"):
        Estimator("nvil[samples=2]", Site(options=2, state=9)).load_state_dict(module.state_dict())
