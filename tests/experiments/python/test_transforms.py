"""torch.func: grad, vjp, vmap and functional_call of expectations, against autograd and loops at the same seed."""

import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch.library, "register_vmap"):
    pytest.skip("operators have rules of their own for vmap since PyTorch 2.5", allow_module_level=True)
from torch.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap  # noqa: E402

import hardgrad  # noqa: E402
from hardgrad.torch import by_formula, expectation  # noqa: E402

SPECS = [spec for spec in hardgrad.estimators() if by_formula.formula_of(spec)] + [
    "reinforce[samples=3,baseline=0.7]",
    "straight_through[samples=3,temperature=0.7]",
    "gumbel_softmax[samples=2,temperature=1.3]",
    "reinmax[samples=2,temperature=1.4]",
    "gapped_st[samples=2,temperature=0.6,gap=0.4]",
    "disarm[samples=6]",
    "arm[samples=4]",
]
FEW = ["rloo", "disarm", "arm", "st_gumbel[samples=2]", "reinmax", "soft", "reinforce"]
DTYPE = torch.float64


def leaves(spec, bits, examples=6):
    """logits [E, D, S] or bits [E, D], a weight [E], parameters of the loss, all different."""
    torch.manual_seed(len(spec))
    S = 2 if by_formula.formula_of(spec).pairs else 3
    shape = (examples, 4) if bits else (examples, 4, S)
    logits = torch.randn(shape, dtype=DTYPE)
    if not bits and S == 3:
        logits[0, 1, 0] = logits[2, 0, 2] = -torch.inf
    return logits, torch.randn(examples, dtype=DTYPE), torch.randn(shape[1:], dtype=DTYPE).flatten()


def loss(weight, x=0.0):
    """x: [E], or a number; that of the example."""

    def f(z, *example):
        mine = x[example[0]] if example and isinstance(x, torch.Tensor) and x.dim() else x
        product = z.flatten(1) @ weight
        return torch.sin(product) + mine * product**2

    return f


def test_as_many_as_have_a_formula():
    assert len({spec.split("[")[0] for spec in SPECS}) >= 14


@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_grad_is_that_of_autograd(spec, bits):
    logits, x, weight = leaves(spec, bits)

    def value(logits, weight):
        return (x * expectation(logits, loss(weight, x), spec, bits=bits, seed=3)).sum()

    found = grad(value, (0, 1))(logits, weight)
    there = [logits.requires_grad_(), weight.requires_grad_()]
    for one, two in zip(found, torch.autograd.grad(value(*there), there)):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-13)
        assert two.abs().max() > 0 or "path_only" in spec


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_gradients_by_example_are_those_of_a_loop(spec, bits, batch):
    """An example of its own, or two at a time; with ids also those of one batch."""
    logits, x, weight = leaves(spec, bits)
    ids = torch.tensor([5, 0, 7, 2, 1 << 31, 9])
    if batch:
        logits, x, ids = logits.unflatten(0, (3, 2)), x.unflatten(0, (3, 2)), ids.unflatten(0, (3, 2))
    else:
        ids = ids[:, None]

    def value(logits, weight, x, ids):
        seen = logits if batch else logits[None]
        return (torch.arange(1.0, 1 + len(seen)) * expectation(seen, loss(weight, x), spec, bits=bits, ids=ids, seed=3)).sum()

    found = vmap(grad(value, (0, 1)), (0, None, 0, 0))(logits, weight, x, ids)
    for place in range(len(logits)):
        there = [logits[place].clone().requires_grad_(), weight.clone().requires_grad_()]
        wanted = torch.autograd.grad(value(*there, x[place], ids[place].numpy()), there)
        for one, two in zip(found, wanted):
            torch.testing.assert_close(one[place], two, rtol=1e-12, atol=1e-13)
    if not batch:
        there = logits.clone().requires_grad_()
        whole = expectation(there, loss(weight, x), spec, bits=bits, ids=ids[:, 0].numpy(), seed=3).sum()
        torch.testing.assert_close(found[0], torch.autograd.grad(whole, there)[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("options", [False, True])
@pytest.mark.parametrize("rank", [1, 2])
def test_lanes_without_a_batch(rank, options):
    """[S] and [D, S], and bits; without ids and with one seed each lane draws the same noise, as in a loop."""
    compared = 0
    for spec in FEW:
        formula = by_formula.formula_of(spec)
        if options and formula.relaxes:
            continue
        for bits in (False, True) if rank == 2 else (False,):
            logits, x, _ = leaves(spec, bits)
            logits = logits[:, 0] if rank == 1 else logits

            def value(logits, x):
                f = lambda z: torch.sin(x + z.to(DTYPE).flatten(1) @ torch.arange(1.0, 1 + z[0].numel(), dtype=DTYPE))  # noqa: E731
                return expectation(logits, f, spec, takes="options" if options else "weights", bits=bits, seed=8)

            found = vmap(grad(value))(logits, x)
            for place in range(len(logits)):
                there = logits[place].clone().requires_grad_()
                (wanted,) = torch.autograd.grad(value(there, x[place]), there)
                torch.testing.assert_close(found[place], wanted, rtol=1e-12, atol=1e-13)
                compared += 1
    assert compared >= 12


@pytest.mark.parametrize("spec", FEW)
def test_the_noise_of_lanes_is_as_vmap_says(spec):
    """Different: as one batch with PyTorch's seed, whether the logits or only the loss have lanes; the same; or an error."""
    logits, x, weight = leaves(spec, True)
    of_one = lambda logits, x: expectation(logits, loss(weight, x), spec, bits=True)  # noqa: E731

    def in_batch(logits):
        with torch.random.fork_rng():
            seed = int(torch.randint(2**63 - 1, (len(x),))[0])
        there = logits.clone().requires_grad_()
        value = expectation(there, loss(weight, x), spec, bits=True, seed=seed)
        return torch.autograd.grad(value.sum(), there)[0]

    for dims in ((0, 0), (None, 0)):
        same = logits if dims[0] == 0 else logits[0]
        wanted = in_batch(same.expand(logits.shape))
        torch.testing.assert_close(vmap(grad(of_one), dims, randomness="different")(same, x), wanted, rtol=1e-12, atol=1e-13)
    equal = vmap(grad(of_one), randomness="same")(logits[:1].expand(6, -1), x[:1].expand(6))
    torch.testing.assert_close(equal, equal[:1].expand(6, -1), rtol=1e-12, atol=1e-13)
    if spec != "soft":  # which draws nothing
        with pytest.raises(RuntimeError, match="randomness"):
            vmap(of_one)(logits, x)


def test_lanes_with_ids_and_seeds_of_pytorch_differ():
    logits = torch.zeros(5, 1, 40, dtype=DTYPE)
    f = lambda z, example: z @ torch.arange(40.0, dtype=DTYPE).exp2()  # noqa: E731
    found = vmap(lambda v, i: expectation(v, f, "reinforce", bits=True, ids=i), (0, None), randomness="different")(
        logits, torch.tensor([3])
    )
    assert len(set(found[:, 0].tolist())) == 5


def test_lanes_of_lanes():
    logits, x, weight = leaves("rloo", True)

    def value(logits, x):
        return expectation(logits, loss(weight, x), "rloo", bits=True, seed=4)

    found = vmap(vmap(grad(value), (0, None)), (None, 0))(logits, x)
    for i in range(6):
        for j in range(6):
            there = logits[j].clone().requires_grad_()
            (wanted,) = torch.autograd.grad(value(there, x[i]), there)
            torch.testing.assert_close(found[i, j], wanted, rtol=1e-12, atol=1e-13)
    different = vmap(
        vmap(lambda v, x: expectation(v, loss(weight), "reinforce", bits=True), (0, None), randomness="different"),
        (None, 0),
        randomness="different",
    )(torch.zeros(6, 40, dtype=DTYPE)[:, :4], x)
    assert different.shape == (6, 6) and len(set(different.flatten().tolist())) > 6


@pytest.mark.parametrize("spec", FEW)
def test_a_network_as_a_function(spec):
    """functional_call, with gradients by example of all parameters, above and below the draw."""
    torch.manual_seed(2)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = torch.nn.Linear(3, 4, dtype=DTYPE), torch.nn.Linear(4, 3, dtype=DTYPE)

        def forward(self, x, ids):
            f = lambda z, example: (torch.tanh(self.decoder(z)) - x[example]).square().sum(1)  # noqa: E731
            return expectation(self.encoder(x), f, spec, bits=True, ids=ids, seed=6).mean()

    net, x, ids = Net(), torch.randn(5, 3, dtype=DTYPE), torch.arange(5)
    of = lambda p, x, i: functional_call(net, p, (x[None], i[None]))  # noqa: E731
    found = vmap(grad(of), (None, 0, 0))(dict(net.named_parameters()), x, ids)
    for place in range(5):
        wanted = torch.autograd.grad(net(x[place : place + 1], ids[place : place + 1].numpy()), list(net.parameters()))
        for one, two in zip(found.values(), wanted):
            torch.testing.assert_close(one[place], two, rtol=1e-12, atol=1e-13)
    net(x, ids).backward()
    for one, p in zip(found.values(), net.parameters()):
        torch.testing.assert_close(one.mean(0), p.grad, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("spec", FEW)
def test_vjp_and_jacobians(spec):
    logits, x, weight = leaves(spec, True)
    of = lambda v: expectation(v, loss(weight, x), spec, bits=True, seed=3)  # noqa: E731
    there = logits.clone().requires_grad_()
    value, pull = vjp(of, logits)
    torch.testing.assert_close(pull(x)[0], torch.autograd.grad(of(there), there, x)[0], rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(value, of(logits), rtol=1e-12, atol=1e-13)
    jacobian = jacrev(of)(logits)
    for e in range(6):
        (wanted,) = torch.autograd.grad(of(there)[e], there)
        torch.testing.assert_close(jacobian[e], wanted, rtol=1e-12, atol=1e-13)
        assert (jacobian[e, torch.arange(6) != e] == 0).all()


@pytest.mark.parametrize("spec", FEW)
def test_second_derivatives_are_refused(spec):
    """Of the logits, of parameters of the loss, and of both."""
    logits, x, weight = leaves(spec, True)

    def value(logits, weight):
        return (x * expectation(logits, loss(weight, x), spec, bits=True, seed=3)).sum()

    for first in (0, 1):
        for second in (0, 1):
            with pytest.raises(hardgrad.UsageError, match="first derivatives only"):
                grad(lambda *given: grad(value, first)(*given).square().sum(), second)(logits, weight)
    with pytest.raises(hardgrad.UsageError, match="first derivatives only"):
        jacrev(grad(value))(logits, weight)
    with pytest.raises((NotImplementedError, RuntimeError)):
        hessian(value)(logits, weight)
    with pytest.raises((NotImplementedError, RuntimeError)):
        jvp(lambda v: value(v, weight), (logits,), (logits,))


@pytest.mark.parametrize("spec", ["rloo", "straight_through"])
def test_compiled_transforms(spec):
    """The graph breaks there."""
    torch._dynamo.reset()
    logits, x, weight = leaves(spec, True)
    ids = torch.arange(6)[:, None]
    value = lambda v, x, i: expectation(v[None], loss(weight, x), spec, bits=True, ids=i, seed=3).sum()  # noqa: E731
    of = vmap(grad(value), (0, 0, 0))
    found = torch.compile(of, backend="aot_eager")(logits, x, ids)
    torch.testing.assert_close(found, of(logits, x, ids), rtol=1e-12, atol=1e-13)


def test_what_transforms_refuse():
    logits, x, weight = leaves("rloo", True)
    wrong = lambda z, example: z.sum(1) / 0  # noqa: E731
    with pytest.raises(hardgrad.NotFinite, match="a loss that f returned is not a finite number"):
        vmap(lambda v: expectation(v[None], wrong, "rloo", bits=True, seed=1))(logits)
    for spec in ("nvil", "exact", "stratified[samples=4]"):
        with pytest.raises(hardgrad.UsageError, match="transformed by torch.func.*a formula only"):
            grad(lambda v: expectation(v, loss(weight, x), spec, bits=True).sum())(logits)
    with pytest.raises(hardgrad.UsageError, match="depend on z"):
        grad(lambda v: expectation(v, lambda z, e: (z * weight).detach().sum(1), "reinmax", bits=True).sum())(logits)
    with pytest.raises(hardgrad.UsageError, match="expected .6.: one for each row"):
        grad(lambda v: expectation(v, lambda z, e: z[:, :2], "reinforce", bits=True).sum())(logits)
    with pytest.raises(hardgrad.UsageError, match="ids are"):
        vmap(lambda v, i: expectation(v[None], loss(weight), "rloo", bits=True, ids=i, seed=1))(
            logits, -torch.ones(6, 1).long()
        )
