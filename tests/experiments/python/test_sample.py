"""hardgrad.torch.sample: z in the graph, with exactly the gradient that `expectation` gives for a loss of z."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import hardgrad  # noqa: E402
from hardgrad.torch import Estimator, expectation, sample  # noqa: E402
from problem import found_cycles  # noqa: E402

INF = torch.inf
WAYS = [{}, {"bits": True}, {"subset": 2}]


def given(*shape, missing=True, dtype=torch.float64, seed=0):
    logits = torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    if missing:  # also the first and the last option, and all but one
        logits[0, 1, 2] = logits[2, 0, 0] = logits[3, 2, -1] = logits[1, 1, 1:3] = -INF
    return logits.requires_grad_()


def loss(weight):
    """A loss that is not linear in z, with other weights for every example."""

    def f(z, example=None):
        mine = weight if example is None else weight[example]
        return ((mine * z + 0.3 * z**2).flatten(1).sum(1)) ** 2 + torch.sin(z.flatten(1)[:, 0])

    return f


def estimators_that_need_no_loss(**way):
    """Those that draw, of all that are registered."""
    found = []
    for name in hardgrad.estimators():
        try:
            sample(torch.zeros(1, 2, *(() if way.get("bits") else (3,))), name, **way)
            found.append(name)
        except hardgrad.UsageError:
            pass
    return found


@pytest.mark.parametrize("way, count", [(WAYS[0], 15), (WAYS[1], 15), (WAYS[2], 5)], ids=["options", "bits", "subsets"])
def test_the_gradient_of_expectation(way, count):
    """For every such estimator, with asymmetric cotangents. For a loss by the batch as for one by example."""
    names = estimators_that_need_no_loss(**way)
    assert len(names) == count, names
    for seed, name in enumerate(names):
        bits = way.get("bits", False)
        logits = given(4, 3, missing=False) if bits else given(4, 3, 5)
        weight = torch.randn(logits.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
        f = loss(weight)
        z = sample(logits, name, seed=seed, **way)
        assert z.shape == logits.shape and z.dtype == logits.dtype
        value = expectation(logits, f, name, seed=seed, **way)
        torch.testing.assert_close(f(z), value, rtol=1e-12, atol=1e-12)
        (theirs,) = torch.autograd.grad(value.sum(), logits)
        (ours,) = torch.autograd.grad(f(z).sum(), logits)
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12, msg=name)
        assert name == "path_only" or theirs.abs().max() > 0.1
        again = torch.autograd.grad(f(sample(logits, name, seed=seed, **way)).sum(), logits)[0]
        assert torch.equal(ours, again)
        if not bits:
            assert (z[logits == -INF] == 0).all() and (ours[logits == -INF] == 0).all()
            torch.testing.assert_close(z.sum(-1), torch.full((4, 3), way.get("subset", 1.0), dtype=z.dtype))


@pytest.mark.parametrize(
    "spec",
    [
        "sparse_mixer[order=1]",
        "implicit_mle[lambda=0.5,central=true]",
        "straight_through[temperature=0.7,forward_temperature=1.5]",
        "path_only[hard_threshold=true]",
        "reinmax_cv[rao_samples=3,eta=0.4]",
        "gumbel_rao[rao_samples=4]",
        "gapped_st[gap=0.7]",
    ],
)
def test_the_gradient_of_expectation_with_other_settings(spec):
    logits = given(4, 3, 5)
    f = loss(torch.randn(4, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(7)))
    z = sample(logits, spec, seed=2)
    value = expectation(logits, f, spec, seed=2)
    (ours,), (theirs,) = (torch.autograd.grad(of.sum(), logits) for of in (f(z), value))
    torch.testing.assert_close(f(z), value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    assert spec.startswith("path_only") or theirs.abs().max() > 0.1


def test_compare_measures_it_like_expectation():
    """The same replicates, so the same figures."""
    logits = given(2, 2, 3, missing=False)
    f = loss(torch.randn(2, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(7)))

    def by(how):
        def step(estimator):
            return (f(sample(logits, estimator)) if how == "sample" else expectation(logits, f, estimator)).mean()

        return hardgrad.torch.compare(step, [logits], ["reinmax", "gumbel_softmax", "implicit_mle"], replicates=50, seed=3)

    one, two = by("sample"), by("expectation")
    for name in ("reinmax", "gumbel_softmax"):  # implicit_mle's step is as long as the cotangent, here that of a mean
        assert one[name].variance == pytest.approx(two[name].variance, rel=1e-9)
        assert one[name].rows == two[name].rows
    assert one["implicit_mle"].variance > 0


@pytest.mark.parametrize(
    "spec", ["reinmax", "gumbel_softmax[temperature=0.3]", "gumbel_top_k[hard=true]", "simple", "path_only"]
)
def test_one_example_and_many_axes(spec):
    weight = torch.randn(2, 2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    logits = given(4, 3, 5)
    for part in (logits[1, 2], logits[2]):  # [S], [D, S]
        f = loss(weight.flatten(0, 1)[0].narrow(0, 0, 1) if part.dim() == 1 else weight.flatten(0, 1)[0])
        g = lambda z: f(z[None] if z.dim() == 2 else z[None, None])[0]
        (ours,) = torch.autograd.grad(g(sample(part, spec, seed=3)), logits)
        (theirs,) = torch.autograd.grad(expectation(part, f, spec, seed=3), logits)
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    # more axes are examples
    z = sample(logits.reshape(2, 2, 3, 5), spec, seed=3)
    assert torch.equal(z, sample(logits, spec, seed=3).reshape(2, 2, 3, 5))
    for dim in (1, -3):  # the options, in the middle
        moved = sample(logits.reshape(2, 2, 3, 5).movedim(-1, 1), spec, seed=3, dim=dim)
        assert torch.equal(moved.movedim(1, -1), z)
        (slope,) = torch.autograd.grad((moved.movedim(1, -1) * weight).sum(), logits)
        (direct,) = torch.autograd.grad((z * weight).sum(), logits, retain_graph=True)
        assert torch.equal(slope, direct)
    bits = sample(given(2, 3, 2, 4, missing=False), spec, bits=True, seed=3)
    assert bits.shape == (2, 3, 2, 4)


@pytest.mark.parametrize("spec", ["reinmax", "gumbel_softmax", "straight_through", "gapped_st"])
def test_one_choice_with_missing_options(spec):
    logits = torch.tensor([0.0, -INF, 1.0, 0.3], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    (mine,) = torch.autograd.grad((sample(logits, spec, seed=3) * weight).sum(), logits)
    of = lambda z: (z[:, 0] * weight).sum(1)  # noqa: E731
    (theirs,) = torch.autograd.grad(expectation(logits, of, spec, seed=3), logits)
    torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-14)
    assert mine[1] == 0 and mine.abs().max() > 0


def test_hard():
    """gumbel_softmax with hard=True is st_gumbel, and of subsets gumbel_top_k[hard=true]."""
    logits, weight = given(4, 3, 5), torch.randn(4, 3, 5, dtype=torch.float64)
    for soft, hard, way in (
        ("gumbel_softmax", "st_gumbel", {}),
        ("gumbel_top_k", "gumbel_top_k[hard=true]", {"subset": 2}),
        ("reinmax", "reinmax", {}),
    ):
        one, two = sample(logits, soft, hard=True, seed=5, **way), sample(logits, hard, seed=5, **way)
        assert torch.equal(one, two) and set(one.unique().tolist()) == {0.0, 1.0}
        slopes = [torch.autograd.grad((z * weight).sum(), logits)[0] for z in (one, two)]
        assert torch.equal(*slopes) and slopes[0].abs().max() > 0.1
    bits = given(4, 3, missing=False)
    one, two = sample(bits, hard=True, bits=True, seed=5), sample(bits, "st_gumbel", bits=True, seed=5)
    assert torch.equal(one, two)


def test_the_temperature_of_a_schedule():
    logits = given(4, 3, 5)
    fixed = sample(logits, "gumbel_softmax[temperature=0.3]", seed=1)
    for temperature in (0.3, torch.tensor(0.3, dtype=torch.float64)):
        assert torch.equal(sample(logits, "gumbel_softmax", temperature=temperature, seed=1), fixed)
    both = sample(logits, "gumbel_rao[rao_samples=3]", temperature=0.3, seed=1)
    assert torch.equal(both, sample(logits, "gumbel_rao[rao_samples=3,temperature=0.3]", seed=1))


@pytest.mark.parametrize(
    "spec, named, said",
    [
        ("rloo[samples=4]", {}, r"rloo\[samples=4\] weighs the losses of 4 rows, .* hardgrad.torch.expectation"),
        ("reinforce", {}, "reinforce weighs the score by the loss, .* hardgrad.torch.expectation"),
        ("rebar", {}, "rebar learns from the losses of its choices, .* hardgrad.torch.expectation"),
        ("sparsemax", {}, "weighs the losses of 9 rows, .* hardgrad.torch.expectation"),
        ("muprop", {}, "weighs the losses of 2 runs, .* hardgrad.torch.expectation"),
        ("gumbel_softmax[samples=2]", {}, "weighs the losses of 2 rows, .* hardgrad.torch.expectation"),
        ("implicit_mle[adaptive=true]", {}, "learns from the losses .* hardgrad.torch.expectation"),
        ("sparse_mixer", {}, "weighs the losses of 2 runs, .* hardgrad.torch.expectation"),
        ("arm", {}, "arm: needs bits; site `choice` has up to 5 options"),
        ("gumbel_sofmax", {}, "unknown estimator"),
        (4, {}, "an estimator is given by name"),
        ("soft", {"temperature": 0.3}, "temperature"),
        ("gumbel_softmax[temperature=1]", {"temperature": 0.3}, "temperature is given twice"),
        ("gumbel_softmax", {"temperature": torch.ones((), requires_grad=True)}, "pass temperature.detach"),
        ("gumbel_softmax", {"temperature": "cold"}, "temperature is a number, got 'cold'"),
        ("gumbel_softmax", {"temperature": -1.0}, "temperature"),
        ("gumbel_softmax", {"dim": 3}, r"dim is 3, and the logits have shape \[4, 3, 5\]"),
        (
            "gumbel_softmax",
            {"dim": 0, "bits": True},
            "dim= is the axis of a tensor's options; bits and distributions have none",
        ),
        ("gumbel_softmax", {"subset": 2}, "picks 2 of 5 options"),
        ("gumbel_top_k", {"subset": 6}, "from 1 to the 5"),
    ],
)
def test_refusals(spec, named, said):
    with pytest.raises(hardgrad.UsageError, match=said) as refusal:
        sample(given(4, 3, 5), spec, **named)
    assert "\n" not in str(refusal.value)


def test_every_other_estimator_is_refused_in_words():
    """Those that support such choices at all, with the function that has them."""
    refused = 0
    for name in hardgrad.estimators():
        for way in WAYS[:2]:
            try:
                sample(torch.zeros(1, 2, *(() if way else (3,))), name, **way)
            except hardgrad.UsageError as refusal:
                if "expectation(" in str(refusal):
                    refused += 1
                    assert "which a sample does not have: use hardgrad.torch.expectation(logits, f, " in str(refusal)
    assert refused >= 70


def test_estimators_that_are_objects():
    logits = given(4, 3, 5)
    for held in (hardgrad.Estimator("reinmax"), Estimator("reinmax")):
        assert torch.equal(sample(logits, held, seed=2), sample(logits, "reinmax", seed=2))
    refused = hardgrad.Estimator("moving_baseline")
    with pytest.raises(hardgrad.UsageError):
        sample(logits, refused)
    expectation(torch.zeros(4, 8, 5, dtype=torch.float64), lambda z, example: z[:, 0, 0], refused)  # not made for others
    for held in (
        hardgrad.Estimator("nvil"),
        Estimator("nvil"),
        hardgrad.written(lambda of: of.losses[:, None, None] + of.options[..., None] * 0.0 * of.probabilities),
    ):
        with pytest.raises(hardgrad.UsageError, match="which a sample does not have"):
            sample(logits, held)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(dtype):
    logits = given(4, 3, 5).detach().to(dtype).requires_grad_()
    weight = torch.linspace(-1, 1, 60).reshape(4, 3, 5).to(dtype)
    for spec in ("st_gumbel", "gumbel_softmax", "simple"):
        z = sample(logits, spec, seed=3)
        (slope,) = torch.autograd.grad((z * weight).sum(), logits)
        assert z.dtype == slope.dtype == dtype and slope.isfinite().all()
        wide = logits.detach().to(torch.float64 if dtype == torch.float64 else torch.float32).requires_grad_()
        (exact,) = torch.autograd.grad((sample(wide, spec, seed=3) * weight.to(wide.dtype)).sum(), wide)
        torch.testing.assert_close(slope, exact.to(dtype))


def test_seeds_and_generators():
    logits = given(4, 3, 5)
    torch.manual_seed(3)
    one = sample(logits)
    two = sample(logits)
    torch.manual_seed(3)
    assert torch.equal(sample(logits), one) and not torch.equal(one, two)
    generators = [torch.Generator().manual_seed(5) for _ in range(2)]
    assert torch.equal(*(sample(logits, generator=g) for g in generators))
    assert torch.equal(sample(logits[2:], seed=1, ids=[2, 3]), sample(logits, seed=1)[2:])


def test_without_gradients_and_without_choices():
    logits = given(4, 3, 5)
    with torch.no_grad():
        assert not sample(logits).requires_grad
    assert not sample(logits.detach()).requires_grad
    with torch.inference_mode():
        z = sample(logits, seed=1)
    assert torch.equal(z, sample(logits, seed=1))
    for shape in (0, 2, 3), (2, 0, 3), (5, 0, 2, 3):
        empty = torch.zeros(shape, requires_grad=True)
        z = sample(empty)
        z.sum().backward()
        assert z.shape == empty.grad.shape == shape


def test_in_a_graph_with_other_things():
    """Several draws, several backward passes, no second derivatives."""
    logits, weight = given(4, 3, 5), torch.randn(5, dtype=torch.float64, requires_grad=True)
    z = sample(logits, "reinmax", seed=1)
    first = torch.autograd.grad((z @ weight).square().sum(), (logits, weight), retain_graph=True)
    second = torch.autograd.grad((z @ weight).square().sum(), (logits, weight))
    assert all(torch.equal(*both) for both in zip(first, second))
    z = sample(logits, "reinmax", seed=1)
    (slope,) = torch.autograd.grad((z @ weight).square().sum(), logits, create_graph=True)
    with pytest.raises(hardgrad.UsageError, match="first derivatives only"):
        slope.sum().backward()


def test_it_converges_like_the_exact_gradient():
    """st_gumbel is exact for a loss that is linear in z as its temperature vanishes; simple at any (mean of 4000 draws)."""
    logits = torch.tensor([0.3, -0.7, 0.2], dtype=torch.float64, requires_grad=True)
    f = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    z = sample(logits.expand(4000, 1, 3), "simple", seed=1)
    (ours,) = torch.autograd.grad((z @ f).mean(), logits)
    p = logits.detach().softmax(0)
    torch.testing.assert_close(ours, p * (f - p @ f), rtol=1e-9, atol=1e-12)
    assert (z.mean(0)[0] - p).abs().max() < 4 * (0.25 / 4000) ** 0.5


@pytest.mark.parametrize("spec", ["reinmax", "implicit_mle", "path_only"])
def test_a_draw_leaves_no_cycles(spec):
    """Its memory ends with z, not when garbage is collected."""
    logits = given(4, 3, 5)

    def call():
        sample(logits, spec).sum().backward()

    assert found_cycles(call) == 0


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputed_activations(reentrant):
    """A checkpointed block draws the same again."""
    from torch.utils.checkpoint import checkpoint

    logits = given(4, 3, 5)
    weight = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def block(x):
        return torch.sin(sample(x, "reinmax") @ weight)

    def gradient(of):
        torch.manual_seed(3)
        logits.grad = None
        (of() ** 2).sum().backward()
        return logits.grad

    one = gradient(lambda: checkpoint(block, logits, use_reentrant=reentrant))
    assert torch.equal(one, gradient(lambda: block(logits)))


def test_changes_in_place_are_an_error():
    """As elsewhere in PyTorch: the backward pass may draw again."""
    logits = given(4, 3, 5)
    for spec in ("reinmax", "implicit_mle"):
        moved = logits * 1
        z = sample(moved, spec, seed=1)
        with torch.no_grad():
            moved += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


compiler = pytest.mark.skipif(not hasattr(torch.library, "register_autograd"), reason="PyTorch before 2.4")


def compiled(step):
    torch._dynamo.reset()
    return torch.compile(step, backend="aot_eager", fullgraph=True)


@compiler
@pytest.mark.parametrize(
    "spec, named",
    [
        ("reinmax", {}),
        ("gumbel_softmax[temperature=0.3]", {"hard": True}),
        ("gumbel_top_k", {"subset": 2, "hard": True}),
        ("implicit_mle", {}),
        ("simple", {"dim": 1}),
        ("straight_through", {"bits": True}),
        ("path_only", {}),
    ],
)
@pytest.mark.parametrize("seed", [3, None])
def test_compiled_without_a_break(spec, named, seed):
    """The same numbers as without a compiler, in one graph."""
    layer = torch.nn.Linear(4, 4).double()
    x = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    weight = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    missing = torch.zeros(2, 3, 5, 4, dtype=torch.bool)
    missing[0, 1, 2, 0] = missing[1, 2, 3, 3] = missing[1, 2, 3, 1] = True

    def step(x):
        logits = torch.tanh(layer(x))
        if not named.get("bits"):
            logits = logits.masked_fill(missing, -INF)
        z = sample(logits, spec, seed=seed, **named)
        return ((z * weight).flatten(1).sum(1) ** 2).mean() + logits.clamp(min=-9).sum(), z

    def gradients(of):
        layer.zero_grad()
        torch.manual_seed(4)
        value, z = of(x)
        value.backward()
        return [value.detach(), z.detach(), *(p.grad.clone() for p in layer.parameters())]

    for one, two in zip(gradients(compiled(step)), gradients(step)):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-14)


@compiler
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_compiled_in_half_precision(dtype):
    logits, weight = given(4, 3, 5, dtype=dtype), torch.randn(4, 3, 5, dtype=dtype)
    found = []
    for of in (lambda x: sample(x, "gumbel_softmax", seed=4), compiled(lambda x: sample(x, "gumbel_softmax", seed=4))):
        (slope,) = torch.autograd.grad((of(logits) * weight).sum(), logits)
        found.append(slope)
    assert torch.equal(*found) and found[0].dtype == dtype and found[0].abs().max() > 0


@compiler
def test_compiled_draws_are_counted_once():
    logits = given(2, 2, 3, missing=False)

    def step(estimator):
        return sample(logits, estimator).square().sum()

    torch._dynamo.reset()
    whole = torch.compile(step, backend="aot_eager")
    one, two = (hardgrad.torch.compare(of, [logits], ["gumbel_softmax"], replicates=8) for of in (step, whole))
    assert one["gumbel_softmax"].rows == two["gumbel_softmax"].rows


@compiler
def test_compiled_refuses_as_it_does_otherwise():
    for logits, named in ((torch.tensor([[1, 2, 3]]), {}), (torch.zeros(1, 3), {"subset": 0})):
        said = []
        for of in (lambda x: sample(x, "gumbel_softmax", **named), compiled(lambda x: sample(x, "gumbel_softmax", **named))):
            with pytest.raises(hardgrad.UsageError) as error:
                of(logits)
            said.append(str(error.value))
        assert said[0] == said[1]


@compiler
def test_compiled_errors_and_what_breaks_the_graph():
    logits = given(4, 3, 5)
    with pytest.raises(hardgrad.UsageError, match="rloo weighs the losses of 4 rows"):
        compiled(lambda x: sample(x, "rloo"))(logits)
    held = hardgrad.Estimator("reinmax")
    torch._dynamo.reset()
    for named in ({"estimator": held}, {"temperature": torch.tensor(0.5)}, {"generator": torch.Generator().manual_seed(2)}):
        seed = {} if "generator" in named else {"seed": 3}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            z = torch.compile(lambda x: sample(x, **named, **seed) * 2, backend="aot_eager")(logits)
        if seed:
            assert torch.equal(z, sample(logits, **named, **seed) * 2)
        assert z.shape == logits.shape


@compiler
def test_the_operator_is_one_for_pytorch():
    """Its schema, fake tensors and derivatives, as PyTorch checks them."""
    logits = given(4, 3, 5, missing=False)
    for spec in ("gumbel_softmax", "implicit_mle"):
        sampled = torch.ops.hardgrad.sample
        torch.library.opcheck(sampled, (logits, torch.tensor(3), spec, False, False, -1))
    z = torch.ops.hardgrad.sample(logits, torch.tensor(3), "reinmax", False, False, -1)
    weight = torch.randn(4, 3, 5, dtype=torch.float64)
    (ours,) = torch.autograd.grad((z * weight).sum(), logits)
    (theirs,) = torch.autograd.grad((sample(logits, "reinmax", seed=3) * weight).sum(), logits)
    assert torch.equal(ours, theirs)
