"""Training in several processes, with recomputed activations, and with copies of an estimator."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this PyTorch is built without torch.distributed", allow_module_level=True)

import ddp_process as ddp  # noqa: E402
import hardgrad  # noqa: E402
from hardgrad.torch import Estimator, Site, episode, expectation  # noqa: E402

SCRIPT = Path(__file__).with_name("ddp_process.py")


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """The gradients that the processes found."""
    folder = tmp_path_factory.mktemp("ddp")
    running = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), str(folder)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
        )
        for rank in range(ddp.RANKS)
    ]
    said = [process.communicate()[1] for process in running]
    assert all(process.returncode == 0 for process in running), said
    return [torch.load(folder / f"{rank}.pt") for rank in range(ddp.RANKS)]


def assert_all_close(ours, theirs):
    assert len(ours) == len(theirs) > 0
    for one, two in zip(ours, theirs):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "way, spec", [("parts of a batch", "rloo[samples=2]"), ("straight_through", "straight_through"), ("rebar", "rebar")]
)
def test_two_processes_with_parts_of_a_batch_are_one_with_all_of_it(processes, way, spec):
    """The ids of the examples determine their noise, whichever process draws it."""
    whole = ddp.gradients(ddp.Network(spec), torch.arange(ddp.E), 5)
    for found in processes:
        assert_all_close(found[way], whole)


def test_equal_and_different_draws(processes):
    """PyTorch's seed of each process decides: one estimate, or the mean of two."""
    network, drawn = ddp.Network(), []
    for rank in range(ddp.RANKS):
        torch.manual_seed(7 + rank)
        drawn.append(ddp.gradients(network, torch.arange(ddp.E)))
    for found in processes:
        assert_all_close(found["equal"], drawn[0])
        assert_all_close(found["different"], [sum(parts) / ddp.RANKS for parts in zip(*drawn)])
    assert not torch.allclose(drawn[0][0], drawn[1][0])


def test_a_learner_of_the_users_optimiser_is_the_same_in_all_processes(processes):
    one, two = (found["learned"] for found in processes)
    assert_all_close(one, two)
    fresh = Estimator("nvil[samples=2]", Site(options=2, columns=2), learning_rate=None)
    assert any(not torch.equal(x, y) for x, y in zip(one, fresh.parameters()))


def test_averages_are_those_of_one_process_with_the_whole_batch(processes):
    """Of a learner of the user's optimiser, after every step; without the reduction each process has its own."""
    for spec in ddp.AVERAGING:
        one, two = (found[f"averages of {spec}"] for found in processes)
        assert all(torch.equal(x, y) for x, y in zip(one[:3], two[:3])) and len(one[0]) > 0
        network = ddp.averaging(spec)
        for ours, whole in zip(one, ddp.trained(network, network.estimator, torch.arange(ddp.E)), strict=True):
            torch.testing.assert_close(ours, whole, rtol=1e-4, atol=1e-5)
    own, other = (found["own averages"] for found in processes)
    assert not any(torch.allclose(x, y) for x, y in zip(own[:3], other[:3]))


def test_averages_that_some_processes_have_not_observed():
    held = Estimator("moving_baseline", {"a": Site(options=2, columns=2, times=2)}, learning_rate=None)
    values, seen = [[10.0, 0.0, 4.0, 0.0], [20.0, 7.0, 0.0, 0.0]], [[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
    assert len(held.get_extra_state()["averages"]) == 8
    held._held._average(False, [np.array(v + s) for v, s in zip(values, seen)])
    assert held.get_extra_state()["averages"].tolist() == [15.0, 7.0, 4.0, 0.0, 1.0, 1.0, 1.0, 0.0]
    with pytest.raises(hardgrad.UsageError, match="of another estimator, or of other sites"):
        held._held._average(False, [np.zeros(3)])
    state = {"steps": Estimator("soft[linear_start=5]", Site(options=2), learning_rate=None)}
    state["steps"]._held._average(False, [np.array([3.0]), np.array([3.0])])
    assert state["steps"].get_extra_state()["averages"].tolist() == [3.0]


@pytest.mark.filterwarnings("ignore:.* learns, but given by name")
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through", "rebar", "exact"])
def test_recomputed_activations(spec, reentrant):
    """Of a block with draws: PyTorch restores its generator, so the second run draws the same. Of the loss alone, too."""
    from torch.utils.checkpoint import checkpoint

    weight = torch.randn(3, 2, 3, generator=torch.Generator().manual_seed(3)).requires_grad_()
    scale = torch.randn(6, generator=torch.Generator().manual_seed(4)).requires_grad_()

    def loss(z):
        return torch.tanh(z.flatten(1) @ scale) ** 2

    def block(weight):
        value = expectation(torch.tanh(weight), lambda z, example: loss(z), spec)
        with episode(3, {"z": Site(options=3, columns=2)}, spec) as e:
            e.cost(loss(e.choose("z", weight).weights))
        return (value + e.expected_loss).mean()

    if not reentrant and spec in ("straight_through", "rebar") and not hasattr(torch, "compile"):
        pytest.skip("PyTorch 1.13 recomputes no block that calls torch.autograd.grad")

    def whole():
        return checkpoint(block, weight, use_reentrant=reentrant)

    def of_the_loss():
        return expectation(torch.tanh(weight), lambda z, example: checkpoint(loss, z, use_reentrant=False), spec).mean()

    def gradients(run):
        weight.grad = scale.grad = None
        torch.manual_seed(5)
        run().backward()
        return [weight.grad, scale.grad]

    assert_all_close(gradients(whole), gradients(lambda: block(weight)))
    assert_all_close(
        gradients(of_the_loss), gradients(lambda: expectation(torch.tanh(weight), lambda z, example: loss(z), spec).mean())
    )


def test_a_copy_and_a_pickle_go_on_as_the_estimator_does():
    logits = torch.zeros(4, 2, 2, requires_grad=True)
    held = Estimator("nvil[samples=2]")

    def drawn(estimator, seed):
        return torch.autograd.grad(estimator(logits, lambda z, example: 5 + z[:, 0, 1], seed=seed).sum(), logits)[0]

    for seed in range(5):
        drawn(held, seed)
    copies = [copy.deepcopy(held), pickle.loads(pickle.dumps(held))]
    for seed in range(5, 9):
        here = drawn(held, seed)
        assert all(torch.equal(drawn(other, seed), here) for other in copies)
