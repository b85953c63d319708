"""hardgrad.torch: gradients of logits and of parameters inside f, against the program's and against explicit formulas."""

import copy
import gc
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hardgrad  # noqa: E402
import hardgrad.torch  # noqa: E402
from hardgrad.torch.tensors import fetched  # noqa: E402
from hardgrad.torch import expectation  # noqa: E402
from problem import LOGITS, found_cycles, write_gradient  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "peers"))
import gradient_file  # noqa: E402
from reader import Reader  # noqa: E402

SPECS = [
    "reinforce",
    "rloo[samples=4]",
    "disarm_tree",
    "carms[samples=4]",
    "unordered_set",
    "sum_and_sample",
    "stratified[samples=4]",
    "straight_through[samples=2]",
    "gumbel_softmax",
    "st_gumbel",
    "rebar[samples=2]",
    "relax",
    "muprop",
    "double_cv[alpha=-0.5]",
    "reinmax",
    "gapped_st",
    "local_expectation",
    "exact",
    "arsm",
]


def leaf(numbers):
    return torch.tensor(numbers, dtype=torch.float64, requires_grad=True)


def smooth(theta):
    """A loss that is not linear in the weights, with parameters theta [3]; and the same with its derivative, for numpy."""
    a = torch.linspace(-1, 1, 6, dtype=torch.float64)

    def f(z, *example):
        x = z.reshape(len(z), -1) @ a
        return theta[0] * x**3 + torch.sin(theta[1] * x) + theta[2]

    def of_arrays(w, *example):
        z = torch.from_numpy(np.array(w)).requires_grad_()
        losses = f(z, *example)
        (slope,) = torch.autograd.grad(losses.sum(), z)
        return losses.detach().numpy(), slope.numpy()

    return f, of_arrays


def test_the_gradient_at_the_logits_is_that_of_the_package():
    f, of_arrays = smooth(torch.tensor([0.8, 1.3, 0.2], dtype=torch.float64))
    compared = 0
    for seed, spec in enumerate(SPECS):
        for numbers in (LOGITS, np.stack([LOGITS, LOGITS[::-1], 0 * LOGITS])):
            logits = leaf(numbers.copy())
            value = expectation(logits, f, hardgrad.Estimator(spec, seed), seed=seed)
            value.sum().backward()
            theirs = hardgrad.gradient(numbers, of_arrays, spec, seed, takes="weights")
            np.testing.assert_allclose(logits.grad.numpy(), theirs.value, rtol=1e-12, atol=1e-14, err_msg=spec)
            seen = sum(np.bincount(run.example, run.share * run.losses) for run in theirs.runs)
            np.testing.assert_allclose(value.detach().numpy().reshape(-1), seen, rtol=1e-12)
            assert value.shape == numbers.shape[:-2]
            compared += 1
    assert compared == 2 * len(SPECS) >= 36


READER = "memory_reader[embedding=7,hops=1]"


def memory_reader(file, expected):
    """A reader with one hop; `expected(logits [E, 1, S], f, state)` computes its expected loss."""
    reader = Reader(file)
    u, values = reader.start(), reader.memory(1)

    def f(z, example):
        return reader.loss(u[example] + torch.einsum("rs,rsd->rd", z[:, 0], values[example]), example)

    return expected(reader.scores(u, 1, torch.arange(len(u)))[:, None], f, u)


def test_a_memory_reader_has_the_programs_gradients(tmp_path):
    """For all parameters, before and after the choice, with the same seed."""
    compared = 0
    out = tmp_path / "gradient.h5"
    for seed, spec in enumerate(
        [
            "reinforce",
            "rloo[samples=4]",
            "disarm_tree",
            "unordered_set",
            "sum_and_sample",
            "straight_through",
            "gumbel_softmax",
            "rebar",
            "gapped_st",
            "muprop",
            "double_cv[alpha=-0.5]",
            "reinmax",
            "exact",
        ]
    ):
        write_gradient(out, "qa", READER, spec, seed)
        file = gradient_file.load(str(out))
        memory_reader(
            file, lambda logits, f, u: expectation(logits, f, spec, seed=seed, state=u, ids=file.batch["id"])
        ).mean().backward()
        for name, theirs in file.gradient.items():
            ours = file.parameters[name].grad
            ours = np.zeros_like(theirs) if ours is None else ours.numpy()
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=f"{spec}: {name}")
        compared += 1
    assert compared >= 10


def test_exact_is_differentiated_as_a_sum():
    theta, logits = leaf([0.8, 1.3, 0.2]), leaf(LOGITS)
    f, _ = smooth(theta)
    ours = torch.autograd.grad(expectation(logits, f, "exact") ** 2, (logits, theta))
    p = torch.softmax(logits, -1)
    z = torch.eye(3, dtype=torch.double)[torch.cartesian_prod(torch.arange(3), torch.arange(3))]
    by_hand = torch.autograd.grad((torch.einsum("i,j->ij", p[0], p[1]).reshape(-1) @ f(z)) ** 2, (logits, theta))
    for mine, theirs in zip(ours, by_hand):
        torch.testing.assert_close(mine, theirs)


def test_parameters_inside_a_relaxed_loss():
    """Against straight-through written by hand, with the same draws."""
    theta, logits = leaf([0.8, 1.3, 0.2]), leaf(LOGITS)
    f, of_arrays = smooth(theta)
    ours = torch.autograd.grad(expectation(logits, f, "straight_through[samples=8]", seed=3), (logits, theta))
    (run,) = hardgrad.gradient(LOGITS, lambda w: of_arrays(w), "straight_through[samples=8]", 3, takes="weights").runs
    p = torch.softmax(logits, -1)
    z = torch.from_numpy(run.weights) + p - p.detach()
    theirs = torch.autograd.grad(f(z).mean(), (logits, theta))
    for mine, other in zip(ours, theirs):
        torch.testing.assert_close(mine, other)


def test_cotangents_of_a_batch():
    """Each example's value has a separate weight."""
    logits, weight = leaf(np.stack([LOGITS, 2 * LOGITS])), torch.tensor([3.0, -0.5], dtype=torch.float64)
    f, _ = smooth(leaf([0.8, 1.3, 0.2]))
    for spec in ("rloo[samples=4]", "gumbel_softmax"):
        both = torch.autograd.grad((weight * expectation(logits, f, spec, seed=1)).sum(), logits)[0]
        for e in range(2):
            alone = torch.autograd.grad(expectation(logits, f, spec, seed=1)[e], logits)[0]
            torch.testing.assert_close(both[e], weight[e] * alone[e])
            assert (alone[1 - e] == 0).all()


def test_options_instead_of_weights():
    seen = []

    def f(options):
        seen.append(options)
        return options.double().sum(1)

    value = expectation(leaf(LOGITS), f, "rloo[samples=4]", takes="options", seed=1)
    assert seen[0].dtype == torch.int64 and seen[0].shape == (4, 2) and value.requires_grad
    with pytest.raises(hardgrad.UsageError, match='takes="weights"'):
        expectation(leaf(LOGITS), f, "rebar", takes="options")


def test_bits_and_missing_options_anywhere():
    """As stacked logits, and as logits without the missing options; the same draws."""
    theta = leaf([0.8, 1.3, 0.2])
    a = torch.tensor([0.3, -0.7], dtype=torch.double)
    for spec in ("rloo[samples=4]", "rebar", "disarm", "gumbel_softmax", "exact"):
        on = leaf([[0.4, -0.2], [1.0, 0.3], [0.0, -2.0]])
        value = expectation(on, lambda b, example: theta[0] * (b @ a - theta[1] * example) ** 2, spec, bits=True, seed=4)
        other = expectation(
            torch.stack([torch.zeros_like(on), on], -1),
            lambda z, example: theta[0] * (z[..., 1] @ a - theta[1] * example) ** 2,
            spec,
            seed=4,
        )
        assert torch.equal(value, other)
        for one, two in zip(torch.autograd.grad(value.sum(), (on, theta)), torch.autograd.grad(other.sum(), (on, theta))):
            assert torch.equal(one, two)
    worth = torch.tensor([[5.0, 1.0, -2.0], [0.5, 7.0, 3.0]], dtype=torch.double)
    for spec in ("rloo[samples=4]", "rebar", "gumbel_softmax", "exact"):
        few = leaf([[-0.7, 0.2], [-1.1, 0.9]])
        all_ = torch.full((2, 3), -np.inf, dtype=torch.double)
        all_[[0, 0, 1, 1], [1, 2, 0, 2]] = few.detach().flatten()
        all_.requires_grad_()
        value = expectation(all_, lambda z: (z * worth).sum((1, 2)) ** 2, spec, seed=4)
        other = expectation(
            few, lambda z: (z * torch.stack([worth[0, [1, 2]], worth[1, [0, 2]]])).sum((1, 2)) ** 2, spec, seed=4
        )
        torch.testing.assert_close(value, other)
        slope, theirs = torch.autograd.grad(value, all_)[0], torch.autograd.grad(other, few)[0]
        torch.testing.assert_close(slope[[0, 0, 1, 1], [1, 2, 0, 2]], theirs.flatten())
        assert slope[0, 0] == slope[1, 1] == 0
    seen = []
    expectation(
        all_, lambda options: seen.append(options) or options.double().sum(1), "rloo[samples=64]", takes="options", seed=1
    )
    assert set(seen[0][:, 0].tolist()) == {1, 2} and set(seen[0][:, 1].tolist()) == {0, 2}


def test_single_precision_and_copies():
    logits = torch.tensor(LOGITS, dtype=torch.float32, requires_grad=True)
    theta = torch.tensor([0.8, 1.3, 0.2], requires_grad=True)
    value = expectation(
        logits, lambda z: theta[0] * (z[:, 0, 0] - z[:, 1, 2]).double() ** 2 + theta[1], "gumbel_softmax", seed=2
    )
    value.backward()
    assert value.dtype == logits.grad.dtype == theta.grad.dtype == torch.float32 and logits.grad.abs().sum() > 0
    assert fetched([logits], logits.dtype)[0].ctypes.data == logits.data_ptr()


def test_pytorchs_seed_decides_and_recording_is_pytorchs():
    logits, f = leaf(LOGITS), smooth(leaf([0.8, 1.3, 0.2]))[0]

    def drawn(**named):
        return torch.autograd.grad(expectation(logits, f, "reinforce", **named), logits)[0]

    torch.manual_seed(1)
    first, second = drawn(), drawn()
    torch.manual_seed(1)
    assert torch.equal(drawn(), first) and not torch.equal(second, first)
    generator = torch.Generator().manual_seed(1)
    assert torch.equal(drawn(generator=generator), first)
    with torch.no_grad():
        for spec in ("rloo", "gumbel_softmax", "rebar"):
            assert not expectation(logits, f, spec).requires_grad
    value = expectation(logits, f, "rloo", seed=0)
    (slope,) = torch.autograd.grad(value, logits, create_graph=True)
    assert torch.equal(slope, torch.autograd.grad(expectation(logits, f, "rloo", seed=0), logits)[0])


@pytest.mark.parametrize("spec", ["exact", "rloo", "rebar", "straight_through"])
def test_second_derivatives_are_refused(spec):
    """As constants the slopes would make them zero silently. Parameters of the loss have right ones where all that depends on the logits
    are its weights: those of `sample`."""
    theta = leaf([0.8, 1.3, 0.2])
    f, tried = smooth(theta)[0], 0
    for differentiated in (
        lambda of: of.backward(),
        lambda of: torch.autograd.grad(of, logits),
        lambda of: torch.autograd.grad(of, theta),
    ):
        for inputs in ([logits := leaf(LOGITS)], [theta]):
            value = expectation(logits, f, spec, seed=0)
            (slope,) = torch.autograd.grad(value, inputs, create_graph=True)
            assert torch.equal(slope, torch.autograd.grad(expectation(logits, f, spec, seed=0), inputs)[0])
            if spec != "straight_through" or inputs[0] is logits:
                with pytest.raises(hardgrad.UsageError, match="first derivatives only"):
                    differentiated(value + slope.square().sum())
            tried += 1
    assert tried == 6
    if spec == "straight_through":
        found = []
        for value in (value, f(hardgrad.torch.sample(logits, spec, seed=0)[None])[0]):
            (slope,) = torch.autograd.grad(value, theta, create_graph=True)
            found.append(torch.autograd.grad(value + slope.square().sum(), (logits, theta)))
        for one, two in zip(*found):
            torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-13)


def test_the_slope_of_an_episode_is_not_differentiated_again():
    logits = leaf(LOGITS[:1])
    with hardgrad.torch.episode(1, {"item": hardgrad.torch.Site(options=3)}, "rloo", dtype=torch.double, seed=1) as e:
        choice = e.choose("item", logits)
        e.cost((choice.weights[:, 0, 0] - 0.3) ** 2)
    value = e.expected_loss.sum()
    (slope,) = torch.autograd.grad(value, logits, create_graph=True)
    with pytest.raises(hardgrad.UsageError, match="first derivatives only"):
        torch.autograd.grad(value + slope.square().sum(), logits)


def test_an_estimator_learns_while_gradients_are_recorded():
    """A moving average removes the loss's level, which leaves far less noise."""

    def f(z):
        return 10 + z[:, 0, 1]

    logits = torch.tensor([[0.0, 0.5]], dtype=torch.float64, requires_grad=True)
    loss = np.array([10.0, 11.0])
    estimator = hardgrad.Estimator("moving_baseline")
    fresh = hardgrad.moments([0.0, 0.5], loss, estimator).variance.sum()
    with torch.no_grad():
        for _ in range(200):
            expectation(logits, f, estimator)
    assert hardgrad.moments([0.0, 0.5], loss, estimator).variance.sum() == fresh
    for _ in range(200):
        expectation(logits, f, estimator)
    assert hardgrad.moments([0.0, 0.5], loss, estimator).variance.sum() < 0.05 * fresh
    with pytest.raises(hardgrad.UsageError, match="moving_baseline learns, and was made for 1 columns of 2 options"):
        hardgrad.moments(LOGITS, np.eye(3), estimator)


def test_networks_of_estimators_learn():
    estimator = hardgrad.Estimator("nvil[samples=2]", seed=3, learning_rate=0.02)
    state, logits = torch.randn(16, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(16, 1, 4, requires_grad=True)

    def f(z, example):
        return 5 * state[example, 0] + z[:, 0, 1]

    def noise():
        draws = torch.stack(
            [
                torch.autograd.grad(expectation(logits, f, estimator, state=state, seed=seed).sum(), logits)[0]
                for seed in range(20)
            ]
        )
        return draws.var(0).sum()

    before = noise()
    for seed in range(400):
        expectation(logits, f, estimator, state=state, seed=seed)
    assert noise() < 0.5 * before


def backward_inside(z):
    losses = z[:, 0, 0] + 0
    losses.sum().backward()
    return losses


@pytest.mark.parametrize(
    "logits, f, named, said",
    [
        (torch.zeros(2, 3, dtype=torch.int32), None, {}, "logits are torch.int32"),
        (torch.zeros(2, 3, device="meta"), None, {}, "logits are on meta, where tensors have no numbers"),
        (torch.zeros(2, 3).to_sparse(), None, {}, "logits are torch.float32 in layout torch.sparse_coo"),
        ([0.0, 1.0], None, {}, "logits are of type list, expected a tensor"),
        (torch.tensor([0.0, np.nan]), lambda z: z[:, 0, 0], {}, r"logits: entry \[1\] is nan"),
        (torch.zeros(0), None, {}, r"logits have shape \[0\]"),
        (torch.zeros(2, 3), lambda z: z.sum(), {}, r"losses of shape \[\], expected \[4\]"),
        (torch.zeros(2, 3), lambda z: z[:, 0], {}, r"losses of shape \[4, 3\], expected \[4\]"),
        (torch.zeros(2, 3), lambda z: z.numpy()[:, 0, 0], {}, "losses of type ndarray, expected a tensor"),
        (torch.zeros(2, 3), lambda z: z[:, 0, 0].to("meta"), {}, "losses that f returned are on meta"),
        (torch.zeros(2, 3), lambda z: z[:, 0, 0].long(), {}, "losses that f returned are torch.int64"),
        (
            torch.zeros(2, 3),
            lambda z: z[:, 0, 0].detach(),
            {"estimator": "gumbel_softmax"},
            "does not depend on z by operations that autograd knows",
        ),
        (torch.zeros(2, 3), lambda z: z[:, 0, 0], {"takes": "both"}, "takes is"),
        (torch.zeros(2, 3), lambda z: z[:, 0, 0], {"state": torch.zeros(2, 2)}, r"state has shape \[2, 2\]; it is \[numbers\]"),
        (torch.zeros(2, 3), lambda z: z[:, 0, 0], {"estimator": "rlo"}, "unknown estimator"),
        (torch.zeros(2, 3), lambda z: z[:, 0, 0], {"estimator": None}, "or as an Estimator; got NoneType"),
        (
            torch.tensor([np.inf, 0.0]),
            lambda z: z[:, 0, 0],
            {},
            r"entry \[0\] is inf: logits are finite, or -inf for missing options",
        ),
        (torch.zeros(0, 3), None, {}, r"logits have shape \[0, 3\]"),
        (torch.zeros(2, 3), backward_inside, {"estimator": "st_gumbel"}, "f differentiated its losses"),
    ],
)
def test_refusals(logits, f, named, said):
    with pytest.raises(hardgrad.UsageError, match=said):
        expectation(logits, f, **named)


def test_a_learner_names_the_sites_that_it_was_made_for():
    estimator = hardgrad.torch.Estimator("nvil", {"a": hardgrad.torch.Site(3, times=2)})
    said = "1 columns of 3 options at most 2 times .* cannot be used with 1 columns of 3 options at most 5 times"
    with pytest.raises(hardgrad.UsageError, match=said):
        with hardgrad.torch.episode(2, {"a": hardgrad.torch.Site(3, times=5)}, estimator):
            pass


@pytest.mark.parametrize("spec", SPECS)
def test_inference_mode(spec):
    weight = torch.tensor([1.0, 2.0, 4.0])
    f = lambda z: (z * weight).sum((1, 2))
    logits = torch.tensor([[0.1, 0.2, 0.3], [0.5, -0.2, 0.0]])
    value = expectation(logits, f, spec, seed=3)
    with torch.inference_mode():
        within, scaled = logits + 0, weight + 0  # made in this mode
        assert torch.equal(expectation(within, lambda z: (z * scaled).sum((1, 2)), spec, seed=3), value)
    assert torch.equal(expectation(within, f, spec, seed=3), value)
    network = lambda e, given: e.cost((e.choose("a", given).weights * weight).sum((1, 2)))

    def episode(given):
        return hardgrad.torch.episode(2, {"a": hardgrad.torch.Site(3)}, spec, seed=3).run(lambda e: network(e, given))

    if spec not in ("arsm", "disarm_tree"):  # these need more of their sites
        value = episode(logits)
        with torch.inference_mode():
            assert torch.equal(episode(within), value)
        assert torch.equal(episode(within), value)


@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("spec", ["rloo", "st_gumbel", "exact"])
def test_a_batch_without_examples_or_columns(spec, bits):
    last = () if bits else (3,)
    f = lambda z, example: z.sum(tuple(range(1, z.dim()))) + theta * (1 + example)
    theta = torch.tensor(2.0, requires_grad=True)
    for shape, losses in ((0, 2), []), ((2, 0), [2.0, 4.0]):
        logits = torch.zeros(*shape, *last, requires_grad=True)
        value = expectation(logits, f, spec, bits=bits)
        assert value.tolist() == losses
        value.sum().backward()
        assert logits.grad.shape == logits.shape
    assert theta.grad == 3


def test_objects_show_what_they_are():
    episode = hardgrad.torch.episode(2, {"a": hardgrad.torch.Site(3)}, "rloo[samples=4]", seed=1)
    assert repr(episode) == "Episode(rloo[samples=4], 2 examples, sites: a)"
    with episode as e:
        choice = e.choose("a", torch.zeros(2, 3))
        assert repr(choice) == "Choice(options of shape [8, 1], 8 rows, rloo[samples=4])"
        e.cost(choice.options[:, 0].float())
        assert repr(e) == "Run(rloo[samples=4], 1 choice)"
    assert "expected_loss=tensor(" in repr(e)


def test_losses_that_are_no_numbers():
    with pytest.raises(hardgrad.NotFinite, match="the loss of row 0 is inf"):
        expectation(torch.zeros(2, 3), lambda z: z[:, 0, 0] + np.inf)


class Ours(Exception):
    pass


def test_what_f_raises_comes_out_and_nothing_is_kept():
    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.fails = False

        def forward(self, z):
            if self.fails:
                raise Ours
            return (z[:, 0] * self.weight).sum(-1) ** 2

    kept = []
    for spec in ("rloo", "gumbel_softmax", "rebar", "muprop"):
        loss, logits = Loss(), torch.zeros(3, requires_grad=True)
        expectation(logits, loss, spec).backward()
        assert loss.weight.grad is not None
        expectation(logits, loss, spec)  # without a backward pass
        loss.fails = True
        with pytest.raises(Ours):
            expectation(logits, loss, spec)
        kept += [weakref.ref(loss), weakref.ref(logits)]
        del loss, logits
    gc.collect()
    assert len(kept) == 8 and all(ref() is None for ref in kept)


def test_threads():
    """Separate networks and one shared estimator that learns: no draw is lost, no thread hangs."""
    held, done = hardgrad.Estimator("moving_baseline"), []

    def work(seed):
        network = torch.nn.Linear(3, 4)
        for step in range(10):
            logits = network(torch.ones(5, 3))[:, None]
            expectation(logits, lambda z, example: z[:, 0, 1] + example, held, seed=10 * seed + step).sum().backward()
        done.append(network.weight.grad.isfinite().all())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4 and all(done)


def test_logits_that_are_not_contiguous():
    numbers = torch.tensor(LOGITS.T.copy())
    logits = numbers.T.requires_grad_()
    assert not logits.is_contiguous()
    f = smooth(torch.tensor([0.8, 1.3, 0.2], dtype=torch.float64))[0]
    (ours,) = torch.autograd.grad(expectation(logits, f, "exact"), logits)
    other = leaf(copy.deepcopy(LOGITS))
    torch.testing.assert_close(ours, torch.autograd.grad(expectation(other, f, "exact"), other)[0])


@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through", "rebar", "nvil"])
def test_a_call_leaves_no_cycles(spec):
    """An estimate and its memory end with the loss, not when garbage is collected."""
    logits, weight = torch.zeros(4, 2, 3, requires_grad=True), torch.ones(6)

    def call():
        expectation(logits, lambda z, example: (z.flatten(1) @ weight) ** 2, spec).mean().backward()

    assert found_cycles(call) == 0


@pytest.mark.parametrize("spec", ["rloo[samples=4]", "unordered_set", "disarm_tree", "straight_through", "rebar"])
def test_zero_is_a_gradient(spec):
    """Where no choice matters, e.g. since the draws agree: PyTorch and its DistributedDataParallel tell 0 from None."""
    scale = torch.ones((), requires_grad=True)
    value = expectation(torch.zeros(4, 2, 3) * scale, lambda z, example: 0 * z.sum((1, 2)), spec, seed=1)
    (gradient,) = torch.autograd.grad(value.sum(), scale)
    assert gradient == 0
