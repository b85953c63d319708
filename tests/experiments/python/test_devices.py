"""Tensors in short formats, on a device, in compiled functions and under torch.func. The device is a double of this file: its tensors are
in the CPU's memory, but they have no numpy(), mix with no others, and every transfer is written down."""
import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch.overrides, "TorchFunctionMode"):
    pytest.skip("the double of a device needs PyTorch 1.13", allow_module_level=True)

import hardgrad  # noqa: E402
from hardgrad.torch import Site, episode, expectation  # noqa: E402

PLACE = torch.device("xla:0")  # a name; nothing of it is used


class OnDevice(torch.Tensor):
    pass


class Device(torch.overrides.TorchFunctionMode):
    """Within it, tensors can be moved to PLACE. moved: (to the device?, shape) of each transfer, in order."""

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
        if name in ("numpy", "tolist", "item") and there[0]:
            raise TypeError("its memory is the device's")
        if any(there) and any(isinstance(x, torch.Tensor) and not isinstance(x, OnDevice) and x.dim() > 0 for x in args):
            raise RuntimeError(f"{name}: tensors on two devices")
        return func(*args, **kwargs)

    def to(self, tensor, *wanted):
        device = next((torch.device(x) if isinstance(x, str) else x for x in wanted if isinstance(x, (str, torch.device))), None)
        dtype = next((x for x in wanted if isinstance(x, torch.dtype)), None)
        to_there, is_there = device == PLACE if device is not None else isinstance(tensor, OnDevice), isinstance(tensor, OnDevice)
        if to_there != is_there:
            self.moved.append((to_there, list(tensor.shape)))
            tensor = tensor.as_subclass(OnDevice if to_there else torch.Tensor)
        return tensor if dtype is None else tensor.to(dtype)


def on_device(tensor):
    return tensor.detach().clone().as_subclass(OnDevice).requires_grad_(tensor.requires_grad)


def leaves(dtype=torch.float32):
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(*shape, generator=generator).to(dtype).requires_grad_() for shape in ((4, 2, 3), (6,))]


def square(weight):
    return lambda z, example: (z.flatten(1) @ weight) ** 2


@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through", "rebar[samples=2]", "exact"])
def test_a_device_has_the_cpus_gradients(spec):
    here, there = leaves(), [on_device(x) for x in leaves()]
    value = expectation(here[0], square(here[1]), hardgrad.Estimator(spec), seed=3)
    with Device() as device:
        other = expectation(there[0], square(there[1]), hardgrad.Estimator(spec), seed=3)
        assert other.device == PLACE
        rows = device.moved[1][1][0]
    # The logits and the losses to the host; z, the examples of its rows and the result to the device.
    assert device.moved == [(False, [4, 2, 3]), (True, [rows, 2, 3]), (True, [rows]), (False, [rows]), (True, [4])]
    torch.testing.assert_close(other.as_subclass(torch.Tensor), value)
    for one, two in zip(torch.autograd.grad(value.mean(), here), torch.autograd.grad(other.mean(), there)):
        torch.testing.assert_close(two.as_subclass(torch.Tensor), one)


@pytest.mark.parametrize("spec", ["rloo[samples=4]", "straight_through"])
def test_an_episode_on_a_device(spec):
    sites = {"z": Site(options=3, columns=2, times=2)}
    here, there = leaves(), [on_device(x) for x in leaves()]
    value = episode(4, sites, spec, seed=3).run(lambda e: network_of(e, *here))
    with Device() as device:
        with episode(4, sites, spec, seed=3) as e:
            network_of(e, *there)
        other = e.expected_loss
        assert other.device == PLACE
    # For each choice: its logits to the host; options or weights, and the rows' parents and examples, to the device. The cost; the result.
    assert [to_there for to_there, _ in device.moved] == [False, True, True, True] * 2 + [False, True]
    for one, two in zip(torch.autograd.grad(value.mean(), here), torch.autograd.grad(other.mean(), there)):
        torch.testing.assert_close(two.as_subclass(torch.Tensor), one)


def network_of(e, logits, weight):
    a = e.choose("z", logits)
    b = e.choose("z", logits[a.example] * (1 + (a.weights.flatten(1) * weight).sum(1))[:, None, None])
    e.cost((b.weights.flatten(1) * weight).sum(1) ** 2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_short_formats(dtype):
    """z is in the logits' format. Sums are of float32: the gradient is that of the same numbers in float32, rounded once."""
    for spec in ("rloo[samples=4]", "straight_through", "exact"):
        mine = leaves(dtype)
        wide = [x.detach().float().requires_grad_() for x in mine]
        seen = []
        value = expectation(mine[0], lambda z, example: seen.append(z.dtype) or ((z.float().flatten(1) @ mine[1].float()) ** 2), spec, seed=3)
        other = expectation(wide[0], square(wide[1]), spec, seed=3)
        assert set(seen) == {dtype} and value.dtype == torch.float32 and (spec == "straight_through" or torch.equal(value, other))
        for one, two in zip(torch.autograd.grad(value.mean(), mine), torch.autograd.grad(other.mean(), wide)):
            assert one.dtype == dtype
            torch.testing.assert_close(one.float(), two, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)
        with episode(4, {"z": Site(options=3, columns=2, times=2)}, spec, seed=3) as e:
            network_of(e, mine[0], mine[1])
        assert all(x.dtype == dtype and x.isfinite().all() for x in torch.autograd.grad(e.expected_loss.mean(), mine))


def test_autocast():
    logits, weight = leaves()
    layer = torch.nn.Linear(6, 1)
    with torch.autocast("cpu", torch.bfloat16):
        value = expectation(logits, lambda z, example: layer(z.flatten(1))[:, 0] * weight[0], "rloo[samples=4]", seed=3)
    other = expectation(logits, lambda z, example: layer(z.flatten(1))[:, 0] * weight[0], "rloo[samples=4]", seed=3)
    torch.testing.assert_close(value, other, rtol=0.05, atol=0.02)
    for one, two in zip(torch.autograd.grad(value.mean(), [logits, layer.weight]), torch.autograd.grad(other.mean(), [logits, layer.weight])):
        torch.testing.assert_close(one, two, rtol=0.05, atol=0.02)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="PyTorch 2 has torch.compile")
def test_a_compiled_function_has_a_break():
    logits, weight = leaves()

    def loss(logits, weight):
        scaled = logits * 2
        value = expectation(scaled, square(weight), "rloo[samples=4]", seed=3)
        with episode(4, {"z": Site(options=3, columns=2, times=2)}, "rloo[samples=4]", seed=3) as e:
            network_of(e, scaled, weight)
        return value.mean() + e.expected_loss.mean()

    compiled = torch.compile(loss, backend="eager")
    for one, two in zip(torch.autograd.grad(compiled(logits, weight), [logits, weight]), torch.autograd.grad(loss(logits, weight), [logits, weight])):
        assert torch.equal(one, two)


@pytest.mark.skipif(not hasattr(torch, "func"), reason="PyTorch 2 has torch.func")
def test_transforms_are_refused():
    logits, weight = leaves()
    for transform in (torch.func.grad, torch.func.vmap):
        with pytest.raises(hardgrad.UsageError, match="logits are transformed by torch.func.*differentiate by backward"):
            transform(lambda x: expectation(x, lambda z: z[:, 0, 0], "rloo").sum())(logits.detach()[0])


@pytest.mark.skipif(not hasattr(torch, "set_default_device"), reason="PyTorch 2 has set_default_device")
def test_a_default_device_does_not_matter():
    logits, weight = leaves()
    torch.manual_seed(4)
    value = expectation(logits, square(weight), "rloo[samples=4]")
    torch.manual_seed(4)
    torch.set_default_device("meta")
    try:
        assert torch.equal(expectation(logits, square(weight), "rloo[samples=4]"), value)
    finally:
        torch.set_default_device("cpu")
