"""Tensors in short formats, on a device, in compiled functions and under torch.func.

HARDGRAD_DEVICE names the device (e.g. cuda). Without it, the device is a double of this file: its tensors are in the CPU's memory, but they
have no numpy(), and mix with no others. With both, every transfer is written down."""

import copy
import os
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch.overrides, "TorchFunctionMode"):
    pytest.skip("the double of a device needs PyTorch 1.13", allow_module_level=True)

import hardgrad  # noqa: E402
from hardgrad.torch import Estimator, Monitor, Site, compare, episode, expectation, sample  # noqa: E402

NAME = os.environ.get("HARDGRAD_DEVICE", "")
pytestmark = pytest.mark.filterwarnings("ignore:.* learns, but given by name")
PLACE = torch.device("xla:0")  # of the double: a name; nothing of it is used
RTOL, ATOL = (1e-4, 1e-5) if NAME else (1.3e-6, 1e-5)


class OnDevice(torch.Tensor):
    pass


class Double(torch.overrides.TorchFunctionMode):
    """Within it, tensors can be moved to PLACE. moved: (to the device?, number of bytes) of each transfer, in order."""

    def __init__(self):
        super().__init__()
        self.moved = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        there = [isinstance(x, OnDevice) for x in args if isinstance(x, torch.Tensor)]
        if func == torch.Tensor.device.__get__:
            return PLACE if there[0] else torch.device("cpu")
        if name == "to":
            return self.to(*args, **kwargs)
        if kwargs.get("device") == PLACE:
            return func(*args, **{**kwargs, "device": None}).as_subclass(OnDevice)
        if name in ("numpy", "tolist", "item", "cpu", "__bool__", "__float__") and there[0]:
            raise TypeError("its memory is the device's")
        if any(there) and any(isinstance(x, torch.Tensor) and not isinstance(x, OnDevice) and x.dim() > 0 for x in args):
            raise RuntimeError(f"{name}: tensors on two devices")
        return func(*args, **kwargs)

    def to(self, tensor, *wanted, non_blocking=False):
        device = next(
            (torch.device(x) if isinstance(x, str) else x for x in wanted if isinstance(x, (str, torch.device))), None
        )
        dtype = next((x for x in wanted if isinstance(x, torch.dtype)), None)
        to_there, is_there = (
            device == PLACE if device is not None else isinstance(tensor, OnDevice),
            isinstance(tensor, OnDevice),
        )
        if to_there != is_there:
            self.moved.append((to_there, tensor.numel() * tensor.element_size()))
            tensor = tensor.as_subclass(OnDevice if to_there else torch.Tensor)
        return tensor if dtype is None else tensor.to(dtype)


class Observed:
    """The same record for a real device, also of the threads that run backward passes; on CUDA also the number of times at which the host
    waited for it."""

    NAMES = ("to", "cpu", "cuda")

    def __init__(self):
        self.moved, self._caught = [], warnings.catch_warnings(record=True)

    def _recorded(self, method):
        def called(tensor, *given, **named):
            result = method(tensor, *given, **named)
            if result.device != tensor.device:
                self.moved.append((result.device.type != "cpu", result.numel() * result.element_size()))
            return result

        return called

    def __enter__(self):
        self._methods = [getattr(torch.Tensor, name) for name in self.NAMES]
        for name, method in zip(self.NAMES, self._methods):
            setattr(torch.Tensor, name, self._recorded(method))
        if NAME.startswith("cuda"):
            self._warned = self._caught.__enter__()
            warnings.simplefilter("always")
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("warn")
        return self

    def __exit__(self, *error):
        for name in self.NAMES:
            delattr(torch.Tensor, name)  # the inherited methods are seen again
        if NAME.startswith("cuda"):
            torch.cuda.set_sync_debug_mode("default")
            self._caught.__exit__(*error)
            waits = [w for w in self._warned if "called a synchronizing" in str(w.message)]
            assert len(waits) == sum(not to_there for to_there, _ in self.moved), [str(w.message) for w in waits]


def device():
    return Observed() if NAME else Double()


def moved(tensor):
    """A leaf on the device."""
    if NAME:
        return tensor.detach().to(NAME).requires_grad_(tensor.requires_grad)
    return tensor.detach().clone().as_subclass(OnDevice).requires_grad_(tensor.requires_grad)


def host(tensor):
    return tensor.cpu() if NAME else tensor.as_subclass(torch.Tensor)


def is_there(tensor):
    return tensor.device.type == torch.device(NAME).type if NAME else isinstance(tensor, OnDevice)


def leaves(dtype=torch.float32):
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(*shape, generator=generator).to(dtype).requires_grad_() for shape in ((4, 2, 3), (6,))]


def both(dtype=torch.float32):
    return leaves(dtype), [moved(x) for x in leaves(dtype)]


def square(weight):
    return lambda z, example: (z.flatten(1) @ weight) ** 2


def assert_equal(value, here, other, there):
    assert is_there(other)
    torch.testing.assert_close(host(other), value, rtol=RTOL, atol=ATOL)
    for one, two in zip(torch.autograd.grad(value.mean(), here), torch.autograd.grad(other.mean(), there)):
        assert is_there(two)
        torch.testing.assert_close(host(two), one, rtol=RTOL, atol=ATOL)


#: One of each family: score functions, sets, enumeration, coupled samples, relaxations, control variates, learners.
FAMILIES = [
    "rloo[samples=4]",
    "nvil",
    "moving_baseline",
    "unordered_set",
    "sum_and_sample",
    "stratified[samples=4]",
    "exact",
    "straight_through",
    "gumbel_softmax",
    "st_gumbel",
    "reinmax",
    "gapped_st",
    "rebar[samples=2]",
    "relax",
    "muprop",
    "double_cv[alpha=-0.5]",
    "self_critic",
]


@pytest.mark.parametrize("spec", FAMILIES)
def test_a_device_has_the_cpus_gradients(spec):
    here, there = both()
    value = expectation(here[0], square(here[1]), hardgrad.Estimator(spec), seed=3)
    with device():
        other = expectation(there[0], square(there[1]), hardgrad.Estimator(spec), seed=3)
    assert_equal(value, here, other, there)


@pytest.mark.parametrize("spec", ["disarm", "arm", "rebar", "straight_through"])
def test_bits_on_a_device(spec):
    generator = torch.Generator().manual_seed(2)
    here = [torch.randn(*shape, generator=generator).requires_grad_() for shape in ((4, 5), (5,))]
    there = [moved(x) for x in here]
    value = expectation(here[0], square(here[1]), spec, bits=True, seed=3)
    with device():
        other = expectation(there[0], square(there[1]), spec, bits=True, seed=3)
    assert_equal(value, here, other, there)


@pytest.mark.parametrize(
    "spec", ["rloo[samples=4]", "unordered_set[samples=3]", "exact", "simple", "gumbel_top_k", "implicit_mle"]
)
def test_subsets_on_a_device(spec):
    here, there = both()
    value = expectation(here[0], square(here[1]), spec, subset=2, seed=3)
    with device():
        other = expectation(there[0], square(there[1]), spec, subset=2, seed=3)
    assert_equal(value, here, other, there)


@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through"])
def test_a_gradient_of_zero_is_there(spec):
    """Losses that do not depend on the choice: the logits' gradient is zero, not missing."""
    _, there = both()
    with device():
        value = expectation(there[0], lambda z, example: 0 * z.flatten(1).sum(1) + there[1].sum(), spec, seed=3)
        gradients = torch.autograd.grad(value.mean(), there)
    assert all(is_there(x) for x in gradients) and (host(gradients[0]) == 0).all() and (host(gradients[1]) != 0).any()


@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through", "exact"])
def test_missing_options_on_a_device(spec):
    here, _ = both()
    with torch.no_grad():
        here[0][:2, 0, 1] = here[0][1:, 1, 0] = -torch.inf
    there = [moved(x) for x in here]
    value = expectation(here[0], square(here[1]), spec, seed=3)
    with device():
        other = expectation(there[0], square(there[1]), spec, seed=3)
    assert_equal(value, here, other, there)


@pytest.mark.parametrize("spec, rows", [("stratified[samples=4]", 16), ("exact", 36)])
def test_what_moves_in_a_call(spec, rows):
    """Down: the logits, the losses. Up: options with the examples of their rows; the value with all slopes. Nothing in the backward pass."""
    logits, weight = [moved(x) for x in leaves()]
    with device() as seen:
        expectation(logits, square(weight), spec, seed=3).mean().backward()
    pad = 4 * (rows % 2)
    assert seen.moved == [(False, 4 * 24), (True, 8 * (2 + 1) * rows), (False, 4 * rows), (True, 4 * (4 + rows + 24) + pad)]


def test_what_moves_in_a_relaxed_call():
    """Its backward pass goes through the weights: their slope down, that of the logits up."""
    logits, weight = [moved(x) for x in leaves()]
    with device() as seen:
        expectation(logits, square(weight), "gumbel_rao", seed=3).mean().backward()
    backward = [(False, 4 * 24), (True, 4 * 24)] if NAME else []  # which the double does not see
    assert seen.moved == [(False, 4 * 24), (True, (4 * 6 + 8) * 4), (False, 4 * 4), (True, 4 * (4 + 4)), *backward]


@pytest.mark.parametrize("takes", ["weights", "options"])
@pytest.mark.parametrize(
    "spec",
    ["rloo[samples=4]", "reinforce", "straight_through", "st_gumbel[samples=2]", "gumbel_softmax", "soft", "disarm", "arm"],
)
def test_nothing_moves_where_there_is_a_formula(spec, takes):
    """But ids that the user gives."""
    if takes == "options" and spec not in ("rloo[samples=4]", "reinforce", "disarm", "arm"):
        pytest.skip("relaxations take weights")
    logits, weight = [moved(x) for x in leaves()]
    bits = spec in ("disarm", "arm")
    logits, weight = (
        (logits[:, :, 0].detach().requires_grad_(), weight[:2])
        if bits
        else (logits, weight[:2] if takes == "options" else weight)
    )
    for ids, all_moves in ((None, []), (range(3, 7), [(True, 8 * 4)])):
        ids = None if ids is None else list(ids)
        with device() as seen:
            value = expectation(
                logits, lambda z, example: (z.float().flatten(1) @ weight) ** 2, spec, takes=takes, bits=bits, seed=3, ids=ids
            )
            (slope,) = torch.autograd.grad(value.mean(), logits)
        assert is_there(value) and is_there(slope) and seen.moved == (all_moves if spec != "soft" else [])


SITES = {"z": Site(options=3, columns=2, times=2)}


def network_of(e, logits, weight):
    a = e.choose("z", logits)
    b = e.choose("z", logits[a.example] * (1 + (a.weights.flatten(1) * weight).sum(1))[:, None, None])
    e.cost((b.weights.flatten(1) * weight).sum(1) ** 2)


@pytest.mark.parametrize("spec", [spec for spec in FAMILIES if spec not in ("self_critic", "muprop")])  # these run it twice
def test_an_episode_on_a_device(spec):
    here, there = both()
    value = episode(4, SITES, spec, seed=3).run(lambda e: network_of(e, *here))
    with device():
        with episode(4, SITES, spec, seed=3) as e:
            network_of(e, *there)
        other = e.expected_loss
    assert_equal(value, here, other, there)


def test_what_moves_in_an_episode():
    """For each choice: its logits down; options, parents and examples up. The cost down; the value and all slopes up."""
    logits, weight = [moved(x) for x in leaves()]
    with device() as seen:
        with episode(4, SITES, "rloo[samples=4]", seed=3) as e:
            network_of(e, logits, weight)
        e.expected_loss.mean().backward()
    assert [to_there for to_there, _ in seen.moved] == [False, True] * 2 + [False, True]


@pytest.mark.parametrize("learning_rate", [1e-2, None])
def test_a_module_on_a_device(learning_rate):
    """Its own Adam, or the user's; the parameters are moved with the network."""
    module = Estimator("nvil[samples=2]", Site(options=3, columns=2), learning_rate=learning_rate)
    other = copy.deepcopy(module)
    for name, parameter in list(other.named_parameters()):
        other.register_parameter(name, torch.nn.Parameter(moved(parameter), parameter.requires_grad))
    here, there = both()
    for seed in range(4):
        value = module(here[0], square(here[1]), seed=seed)
        with device():
            on_device = other(there[0], square(there[1]), seed=seed)
        assert_equal(value, here, on_device, there)
        if learning_rate is None:
            for x in (module, other):
                x.zero_grad()
            module(here[0], square(here[1]), seed=seed).mean().backward()
            with device():
                again = other(there[0], square(there[1]), seed=seed)
            again.mean().backward()
            with torch.no_grad():
                for parameter in [*module.parameters(), *other.parameters()]:
                    parameter -= 0.1 * parameter.grad
    for one, two in zip(module.parameters(), other.parameters()):
        torch.testing.assert_close(host(two.detach()), one.detach(), rtol=1e-3, atol=1e-5)


def test_compare_and_monitor_on_a_device(tmp_path):
    here, there = both()
    names = ["reinforce", "rloo[samples=4]", "straight_through", "nvil", "rebar"]
    with device():
        step = [
            lambda estimator, logits=logits, weight=weight: expectation(logits, square(weight), estimator).mean()
            for logits, weight in (here, there)
        ]
        one = compare(step[0], {"logits": here[0], "weight": here[1]}, names, replicates=16, warmup=4)
        two = compare(step[1], {"logits": there[0], "weight": there[1]}, names, replicates=16, warmup=4)
        monitor = Monitor(step[1], there, names[:2], every=2, replicates=8)
        for number in range(3):
            monitor(number)
    assert one.reference == two.reference == "exact, without noise" and list(monitor.results) == [0, 2]
    for name in names:
        assert two[name].status == "ok", two[name].reason
        for figure in ("variance", "squared_bias", "cosine", "rows"):
            assert getattr(two[name], figure) == pytest.approx(getattr(one[name], figure), rel=1e-3, abs=1e-4), (name, figure)
    monitor.save(tmp_path / "along.h5")


def test_what_moves_in_a_comparison():
    """Besides the transfers of the step, one for each gradient: all parts of it, with the loss."""
    logits, weight = [moved(x) for x in leaves()]
    with device() as seen:
        compare(
            None,
            [logits, weight],
            {"one": lambda: ((logits * torch.ones_like(logits)).sum() * weight).sum()},
            replicates=8,
            reference=None,
        )
    assert seen.moved == [(False, 4 * (24 + 6 + 1))] * (
        8 + 3
    )  # two to see whether the seed determines it, one whether options are rare


@pytest.mark.parametrize("place", ["cpu", "device"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_short_formats(dtype, place):
    """z is in the logits' format. Sums are of float32: the gradient is that of the same numbers in float32, rounded once."""
    for spec in ("rloo[samples=4]", "straight_through", "exact"):
        mine = leaves(dtype)
        wide = [x.detach().float().requires_grad_() for x in mine]
        mine = [moved(x) for x in mine] if place == "device" else mine
        seen = []
        with device():
            value = expectation(
                mine[0],
                lambda z, example: seen.append(z.dtype) or ((z.float().flatten(1) @ mine[1].float()) ** 2),
                spec,
                seed=3,
            )
            with episode(4, SITES, spec, seed=3) as e:
                network_of(e, mine[0], mine[1])
        other = expectation(wide[0], square(wide[1]), spec, seed=3)
        assert set(seen) == {dtype} and value.dtype == torch.float32
        torch.testing.assert_close(host(value), other, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)
        for one, two in zip(torch.autograd.grad(value.mean(), mine), torch.autograd.grad(other.mean(), wide)):
            assert one.dtype == dtype
            torch.testing.assert_close(host(one).float(), two, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)
        assert all(x.dtype == dtype and x.isfinite().all() for x in torch.autograd.grad(e.expected_loss.mean(), mine))


@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through"])
def test_autocast(spec):
    logits, weight = [moved(x) if NAME else x for x in leaves()]
    layer = torch.nn.Linear(6, 1).to(NAME or "cpu")

    def found():
        value = expectation(logits, lambda z, example: layer(z.flatten(1))[:, 0] * weight[0], spec, seed=3)
        with episode(4, SITES, spec, seed=3) as e:
            network_of(e, logits, weight)
        return value + e.expected_loss

    with torch.autocast(torch.device(NAME or "cpu").type, torch.bfloat16):
        value = found()
    other = found()
    torch.testing.assert_close(value, other, rtol=0.05, atol=0.05)
    for one, two in zip(
        torch.autograd.grad(value.mean(), [logits, layer.weight]), torch.autograd.grad(other.mean(), [logits, layer.weight])
    ):
        torch.testing.assert_close(one, two, rtol=0.1, atol=0.1)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="PyTorch 2 has torch.compile")
@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through"])
def test_a_compiled_function_has_a_break(spec):
    logits, weight = [moved(x) if NAME else x for x in leaves()]

    def loss(logits, weight):
        scaled = logits * 2
        value = expectation(scaled, square(weight), spec, seed=3)
        with episode(4, SITES, spec, seed=3) as e:
            network_of(e, scaled, weight)
        return value.mean() + e.expected_loss.mean()

    compiled = torch.compile(loss, backend="eager")
    for one, two in zip(
        torch.autograd.grad(compiled(logits, weight), [logits, weight]),
        torch.autograd.grad(loss(logits, weight), [logits, weight]),
    ):
        torch.testing.assert_close(one, two)


@pytest.mark.skipif(not hasattr(torch.library, "custom_op"), reason="PyTorch 2.4 has operators of one's own")
@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize(
    "spec",
    [
        "rloo[samples=4]",
        "reinforce[baseline=0.3]",
        "straight_through[samples=3]",
        "gumbel_softmax[samples=2]",
        "st_gumbel",
        "reinmax[samples=2]",
        "gapped_st",
        "soft",
        "disarm",
        "arm[samples=4]",
    ],
)
def test_a_formula_does_not_break_the_graph(spec, bits):
    """Also with missing options; the same draws and gradients as without compilation."""
    if spec in ("disarm", "arm[samples=4]") and not bits:
        pytest.skip("bits only")
    torch._dynamo.reset()
    logits, weight = torch.randn(6, 4, *(3,) * (not bits)), torch.randn(4 if bits else 12)
    logits[0, 1] = logits[2, 0] = -torch.inf
    if not bits:
        logits[0, 1, 1:] = logits[2, 0, :2] = 0.3
    logits, weight = logits.requires_grad_(), weight.requires_grad_()

    def loss(logits, weight):
        f = lambda z, example: torch.sin(z.flatten(1) @ weight) + 0.1 * example
        return (expectation(logits * 1, f, spec, bits=bits) * torch.arange(1.0, 7.0)).sum()

    compiled, found = torch.compile(loss, backend="aot_eager", fullgraph=True), []
    for function in (compiled, loss):
        torch.manual_seed(5)
        value = function(logits, weight)
        found.append([value.detach(), *torch.autograd.grad(value, (logits, weight))])
    for one, two in zip(*found):
        torch.testing.assert_close(one, two)
    nan = torch.compile(
        lambda x: expectation(x, lambda z, example: z.sum() / 0 * (1 + example), spec, bits=bits), backend="eager"
    )
    with pytest.raises(RuntimeError, match="a loss that f returned is not a finite number"):
        nan(logits)


@pytest.mark.skipif(not hasattr(getattr(torch, "compiler", None), "set_stance"), reason="PyTorch 2.6 has stances")
def test_a_compiled_step_is_compared_as_written():
    """Where options are rare, draws are not plain."""
    logits = torch.tensor([[[6.0, -1.0, 0.0]]], requires_grad=True)
    step = lambda estimator: expectation(logits, lambda z, example: 1000 * z[:, 0, 1] + z[:, 0, 2], estimator).mean()
    one, two = [compare(f, [logits], ["rloo"], replicates=64)["rloo"] for f in (step, torch.compile(step, backend="eager"))]
    assert one.status == two.status == "ok" and two.variance == pytest.approx(one.variance, rel=1e-4)


@pytest.mark.skipif(not hasattr(torch, "func"), reason="PyTorch 2 has torch.func")
def test_transforms_of_estimators_without_a_formula_are_refused():
    logits, weight = [moved(x) if NAME else x for x in leaves()]
    for transform in (torch.func.grad, torch.func.vmap):
        with pytest.raises(hardgrad.UsageError, match="logits are transformed by torch.func.*differentiate by backward"):
            transform(lambda x: expectation(x, lambda z: z[:, 0, 0], "stratified").sum())(logits.detach()[0])


@pytest.mark.skipif(not hasattr(torch, "set_default_device"), reason="PyTorch 2 has set_default_device")
@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through"])
def test_a_default_device_does_not_matter(spec):
    logits, weight = leaves()

    def found():
        torch.manual_seed(4)
        value = expectation(logits, square(weight), spec)
        with episode(4, SITES, spec) as e:
            network_of(e, logits, weight)
        return (value + e.expected_loss).detach(), compare(
            lambda s: expectation(logits, square(weight), s).mean(), [weight], [spec], replicates=8
        )[spec].variance

    value = found()
    torch.set_default_device(NAME or "meta")
    try:
        other = found()
        assert torch.equal(other[0], value[0]) and other[1] == value[1]
    finally:
        torch.set_default_device("cpu")


class Baseline(torch.nn.Module):
    """REINFORCE with a learned baseline of the logits. off: of the gradient."""

    def __init__(self, off=0.0):
        super().__init__()
        self.weight, self.off = torch.nn.Parameter(torch.tensor(0.3)), off

    def forward(self, logits, f):
        law = torch.distributions.OneHotCategorical(logits=logits)
        z = law.sample()
        losses = f(z, torch.arange(len(z), device=z.device))
        weight = (1 + self.off) * (losses - self.weight * logits[:, 0, 0]).detach()
        return losses + weight * law.log_prob(z).sum(-1)


@pytest.mark.skipif(not NAME, reason="without HARDGRAD_DEVICE there is no real device")
@pytest.mark.parametrize("off", [0.0, 0.3])
def test_a_module_on_a_device_is_verified_there(off):
    module = Baseline(off).to(NAME)
    verdict = hardgrad.torch.test(module, first_failure=True)
    assert verdict.passed == (off == 0), str(verdict)
    assert is_there(module.weight) and module.weight.dtype == torch.float32
    assert all("off by" in check.detail for check in verdict.checks)


@pytest.mark.skipif(not NAME, reason="without HARDGRAD_DEVICE there is no real device")
def test_tensors_on_two_devices():
    """Logits there and losses here, and the other way round: results are where the logits are; in an episode, where its last cost is."""
    here, there = both()
    value = expectation(here[0], square(here[1]), "straight_through", seed=3)
    other = expectation(there[0], lambda z, example: square(here[1])(z.cpu(), example), "straight_through", seed=3)
    assert_equal(value, here[:1], other, there[:1])
    with episode(4, SITES, "straight_through", seed=3) as e:
        a = e.choose("z", there[0])
        b = e.choose("z", here[0][a.example.cpu()] * a.weights.cpu())
        e.cost((b.weights.flatten(1) * here[1]).sum(1))
    assert e.expected_loss.device.type == "cpu"
    gradients = torch.autograd.grad(e.expected_loss.mean(), [*here, there[0]])
    assert is_there(gradients[2]) and all(x.isfinite().all() and x.abs().sum() > 0 for x in gradients)
    assert np.isfinite(value.detach().numpy()).all()


@pytest.mark.skipif(not NAME.startswith("cuda"), reason="CUDA has graphs")
def test_a_cuda_graph_is_refused_where_the_cpu_draws():
    logits, weight = [moved(x) for x in leaves()]
    with pytest.raises(hardgrad.UsageError, match="captured into a CUDA graph"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        expectation(logits, square(weight), "stratified[samples=4]")


@pytest.mark.skipif(not NAME.startswith("cuda"), reason="CUDA has graphs")
@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through", "gumbel_softmax"])
def test_a_cuda_graph_draws_anew_when_it_is_replayed(spec):
    logits, weight = [moved(x) for x in leaves()]

    def step():
        (slope,) = torch.autograd.grad(expectation(logits, square(weight), spec).mean(), logits)
        return slope

    beside = torch.cuda.Stream()
    with torch.cuda.stream(beside):
        step()
    torch.cuda.synchronize()
    graph, found = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        slope = step()
    for _ in range(400):
        graph.replay()
        found.append(host(slope).double())
    assert len({x.sum().item() for x in found[:20]}) == 20
    other = torch.stack([host(step()).double() for _ in range(400)])
    mine = torch.stack(found)
    error = ((mine.var(0) + other.var(0)) / 400).sqrt()
    assert ((mine.mean(0) - other.mean(0)).abs() <= 5 * error + 1e-6).all()


@pytest.mark.skipif(bool(NAME) or not hasattr(torch, "func"), reason="needs the double of a device, with PyTorch 2")
@pytest.mark.parametrize("capturing", [False, True])
def test_nothing_on_a_device_depends_on_numbers(monkeypatch, capturing):
    """No operation reads a number or has a result whose size depends on one. While a graph is captured, PyTorch's generator there
    makes the seed, and nothing of it is known to the CPU."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from hardgrad.torch import by_formula, tensors

    asked, seen = set(), set()

    class Fixed(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            name = func.name().split("::")[1].split(".")[0]
            asked.add(name)
            assert name not in ("_local_scalar_dense", "item", "equal", "is_nonzero", "nonzero", "masked_select", "_unique2"), (
                name
            )
            return func(*args, **(kwargs or {}))

    monkeypatch.setattr(by_formula, "captured", lambda tensor: capturing)
    monkeypatch.setattr(tensors, "captured", lambda tensor: capturing)
    for spec in hardgrad.estimators():
        formula = by_formula.formula_of(spec)
        for bits in (False, True) if formula else ():
            for takes in ("weights",) if formula.relaxes else ("weights", "options"):
                logits = moved(torch.randn(5, 4, *(2 if formula.pairs else 3,) * (not bits), requires_grad=True))
                weight = moved(torch.randn(4, requires_grad=True))
                of = lambda z, example: torch.sin((z if z.dim() == 2 else z.sum(-1)) * weight + example[:, None]).sum(1)
                with Double() as there, Fixed():
                    value = expectation(logits, of, spec, takes=takes, bits=bits, seed=None if capturing else 3)
                    slopes = torch.autograd.grad(value.sum(), (logits, weight))
                assert value.shape == (5,) and there.moved == [] and all(is_there(x) for x in (value, *slopes))
                seen.add(spec)
    assert len(seen) >= 14 and ("randint" in asked) == capturing, asked
    if capturing:
        with Double():
            with pytest.raises(hardgrad.UsageError, match="captured into a CUDA graph"):
                expectation(logits, of, "stratified[samples=4]", bits=bits)
            for named in ({"seed": 3}, {"ids": range(5)}, {"generator": torch.default_generator}):
                with pytest.raises(hardgrad.UsageError, match="leave out ids, generator and seed"):
                    expectation(logits, of, "rloo", bits=bits, **named)
