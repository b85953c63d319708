"""hardgrad.jax: inside jit, equal to `hardgrad.torch` with the same seed; without JAX it is skipped."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
torch = pytest.importorskip("torch")

import jax.numpy as jnp  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")  # accelerators round otherwise

import hardgrad  # noqa: E402
import hardgrad.jax  # noqa: E402
import hardgrad.torch  # noqa: E402

LOGITS = np.random.default_rng(0).standard_normal((5, 2, 3))
WEIGHT = np.random.default_rng(1).standard_normal((6, 4))
SPECS = [
    "reinforce",
    "rloo[samples=4]",
    "disarm_tree",
    "carms[samples=4]",
    "stratified[samples=3]",
    "unordered_set",
    "sum_and_sample",
    "local_expectation",
    "exact",
]


def in_torch(spec, seed, logits=LOGITS, **named):
    given = [torch.tensor(x, requires_grad=True) for x in (logits, WEIGHT)]

    def f(z, *example):
        x = torch.tanh(z.flatten(1) @ given[1][: z[0].numel()])
        return x.square().sum(1) + (example[0] * x[:, 0] if example else 0)

    value = hardgrad.torch.expectation(given[0], f, spec, seed=seed, **named)
    return value.detach().numpy(), [x.numpy() for x in torch.autograd.grad(value.sum(), given)]


def loss(logits, weight, seed, spec, **named):
    def f(z, *example):
        x = jnp.tanh(z.reshape(len(z), -1) @ weight[: z[0].size])
        return (x**2).sum(1) + (example[0] * x[:, 0] if example else 0)

    value = hardgrad.jax.expectation(logits, f, spec, seed=seed, **named)
    return value.sum(), value


@pytest.mark.parametrize("spec", SPECS)
def test_equal_to_pytorch_inside_jit(spec):
    step = jax.jit(jax.grad(loss, (0, 1), has_aux=True), static_argnames="spec")
    for seed in (0, 7, 2**32 - 1):
        slopes, value = step(LOGITS, WEIGHT, np.uint32(seed), spec=spec)
        theirs, other = in_torch(spec, seed)
        np.testing.assert_allclose(value, theirs, rtol=1e-9, atol=1e-12)
        for one, two in zip(slopes, other):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)
    assert step._cache_size() == 1


def test_shapes_bits_and_options():
    for logits in (LOGITS[0, 0], LOGITS[0]):
        slopes, value = jax.jit(jax.grad(loss, (0, 1), has_aux=True), static_argnames="spec")(
            logits, WEIGHT, 3, spec="rloo[samples=4]"
        )
        theirs, other = in_torch("rloo[samples=4]", 3, logits)
        np.testing.assert_allclose(value, theirs, rtol=1e-9)
        np.testing.assert_allclose(slopes[0], other[0], rtol=1e-9, atol=1e-12)
    slopes, value = jax.grad(loss, (0, 1), has_aux=True)(LOGITS[:, 0], WEIGHT, 3, "disarm", bits=True)
    theirs, other = in_torch("disarm", 3, LOGITS[:, 0], bits=True)
    np.testing.assert_allclose(value, theirs, rtol=1e-9)
    np.testing.assert_allclose(slopes[0], other[0], rtol=1e-9, atol=1e-12)
    narrow = LOGITS.astype(np.float32)
    slopes, value = jax.grad(loss, (0, 1), has_aux=True)(narrow, WEIGHT.astype(np.float32), 3, "rloo[samples=4]")
    other = in_torch("rloo[samples=4]", 3)[0]
    assert value.dtype == slopes[0].dtype == jnp.float32 and np.allclose(value, other, rtol=1e-5)
    seen = []
    hardgrad.jax.expectation(
        LOGITS, lambda z, example: seen.append(z) or z.sum(1) * 1.0, "rloo[samples=4]", seed=1, takes="options"
    )
    assert seen[0].shape == (20, 2) and seen[0].dtype == jnp.int32


@pytest.mark.parametrize("spec", ["rloo[samples=4]", "unordered_set[samples=3]", "exact"])
def test_subsets(spec):
    """Two of three options, in both columns."""
    slopes, value = jax.jit(jax.grad(loss, (0, 1), has_aux=True), static_argnames=("spec", "subset"))(
        LOGITS, WEIGHT, 3, spec=spec, subset=2
    )
    theirs, other = in_torch(spec, 3, subset=2)
    np.testing.assert_allclose(value, theirs, rtol=1e-10)
    for one, two in zip(slopes, other):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)
    seen = []
    hardgrad.jax.expectation(
        LOGITS, lambda z, example: seen.append(z) or z.sum((1, 2)) * 1.0, "rloo[samples=4]", seed=1, takes="options", subset=2
    )
    assert seen[0].shape == (20, 2, 2) and (seen[0][..., 0] < seen[0][..., 1]).all()
    with pytest.raises(hardgrad.UsageError, match="from 1 to the 3 that there are, got 4"):
        loss(LOGITS, WEIGHT, 1, spec, subset=4)


@pytest.mark.parametrize("spec", ["rloo[samples=4]", "unordered_set[samples=2]", "disarm_tree", "exact"])
def test_separate_columns(spec):
    """Each has its own loss, and the gradient of PyTorch's."""
    target = np.random.default_rng(2).standard_normal((5, 2, 3))
    weight = np.random.default_rng(3).standard_normal((5, 2))
    theirs = torch.tensor(LOGITS, requires_grad=True)
    value = hardgrad.torch.expectation(
        theirs, lambda z, example: (z * torch.tensor(target)[example]).sum(2) ** 2, spec, columns="separate", seed=3
    )
    (value * torch.tensor(weight)).sum().backward()

    def ours(logits):
        f = lambda z, example: (z * jnp.asarray(target)[example]).sum(2) ** 2
        found = hardgrad.jax.expectation(logits, f, spec, columns="separate", seed=3)
        return (found * weight).sum(), found

    slope, found = jax.jit(jax.grad(ours, has_aux=True))(LOGITS)
    np.testing.assert_allclose(found, value.detach(), rtol=1e-10)
    np.testing.assert_allclose(slope, theirs.grad, rtol=1e-9, atol=1e-12)
    draw = lambda logits, f, **named: hardgrad.jax.expectation(logits, f, spec, seed=3, **named)
    assert draw(LOGITS[0], lambda z: z[..., 0], columns="separate").shape == (2,)
    assert draw(LOGITS[0], lambda z, example: 1.0 * z, columns="separate", bits=True).shape == (2, 3)
    with pytest.raises(hardgrad.UsageError, match='one for each row and column: pass columns="separate"'):
        draw(LOGITS, lambda z, example: z[..., 0])
    with pytest.raises(hardgrad.UsageError, match="f returns losses .*: one for each row and column; got"):
        draw(LOGITS, lambda z, example: z[:, 0, 0], columns="separate")


def test_training_inside_one_loop():
    """A bit that should be off, by 200 steps of a compiled loop with a new seed at each."""

    def step(i, logits):
        return logits - 0.5 * jax.grad(
            lambda x: hardgrad.jax.expectation(x, lambda z: z[:, 0, 1] ** 2, "rloo[samples=4]", seed=i)
        )(logits)

    trained = jax.jit(lambda x: jax.lax.fori_loop(0, 200, step, x))(jnp.zeros(2))
    assert jax.nn.softmax(trained)[1] < 0.05


@pytest.mark.parametrize(
    "spec, said",
    [
        ("rebar", "rebar replaces choices by weights: of such estimators hardgrad.jax has those with a closed formula"),
        ("nvil", "nvil learns: hardgrad.jax has estimators that run it once"),
        ("self_critic", "self_critic runs the network more than once"),
        ("rlo", "unknown estimator"),
    ],
)
def test_refusals(spec, said):
    with pytest.raises(hardgrad.UsageError, match=said):
        loss(LOGITS, WEIGHT, 1, spec)


def test_refused_logits_and_losses():
    with pytest.raises(hardgrad.UsageError, match="logits are int32"):
        hardgrad.jax.expectation(jnp.zeros((2, 3), jnp.int32), None, seed=1)
    with pytest.raises(hardgrad.UsageError, match=r"losses of shape \[\], expected \[4\]"):
        hardgrad.jax.expectation(LOGITS[0], lambda z: z.sum(), seed=1)


def test_seeds_may_be_keys():
    f = lambda z: z[:, 0, 0]
    draw = lambda seed: hardgrad.jax.expectation(LOGITS[0], f, seed=seed)
    for key in jax.random.key(3), jax.random.PRNGKey(3):
        assert draw(key) == draw(jax.random.bits(key, dtype=jnp.uint32)) == jax.jit(draw)(key)
    for seed, said in ((-1, "got -1"), (1 << 32, "got 4294967296"), (0.5, "got float"), (np.zeros(3, int), "shape .3.")):
        with pytest.raises(hardgrad.UsageError, match=said):
            draw(seed)


def test_errors_outside_of_jit_are_the_packages():
    missing = jnp.array([[-jnp.inf, 0.0, 1.0]])
    f = lambda z: z[:, 0, 0]
    with pytest.raises(hardgrad.UsageError, match="under JAX no option of stratified may be missing"):
        hardgrad.jax.expectation(missing, f, "stratified", seed=1)
    with pytest.raises(hardgrad.UsageError, match="entry .* is -inf"):
        jax.grad(lambda x: hardgrad.jax.expectation(x, f, "stratified", seed=1))(missing)
    for spec in ("stratified", "rloo[samples=4]"):
        with pytest.raises(hardgrad.NotFinite, match="the loss of row 0 is nan"):
            hardgrad.jax.expectation(LOGITS[0], lambda z: z[:, 0, 0] * jnp.nan, spec, seed=1)


def test_errors_inside_jit_are_the_packages_where_they_are_asked_for(caplog):
    """Of callbacks. Else XLA's, which ends in the package's sentence; JAX's log has that sentence in one line."""
    f = lambda z: z[:, 0, 0]
    steps = (
        (lambda x: f, jnp.array([[-jnp.inf, 0.0, 1.0]]), hardgrad.UsageError, "entry [0, 0, 0] is -inf"),
        (lambda x: f, jnp.array([[jnp.nan, 0.0, 1.0]]), hardgrad.UsageError, "entry [0, 0, 0] is nan"),
        (lambda x: lambda z: f(z) * jnp.inf, jnp.zeros((2, 3)), hardgrad.NotFinite, "the loss of row 0 is"),
        (lambda x: lambda z: f(z) + x.sum() * jnp.nan, jnp.zeros((2, 3)), hardgrad.NotFinite, "the loss of row 0 is nan"),
    )
    checked = 0
    for loss_of, logits, kind, said in steps:
        step = jax.jit(jax.value_and_grad(lambda x: hardgrad.jax.expectation(x, loss_of(x), "stratified", seed=1)))
        caplog.clear()
        with pytest.raises(jax.errors.JaxRuntimeError) as theirs:
            jax.block_until_ready(step(logits))
        last = str(theirs.value).splitlines()[-1]
        assert last.startswith(kind.__name__) and said in last
        lines = [record for record in caplog.records if record.name == "jax._src.callback"]
        assert len(lines) == 1 and lines[0].getMessage().startswith("hardgrad: ") and said in lines[0].getMessage()
        assert lines[0].exc_info is None and "\n" not in lines[0].getMessage()
        with pytest.raises(kind) as ours, hardgrad.jax.own_errors():
            jax.block_until_ready(step(logits))
        assert said in str(ours.value) and ours.value.__cause__ is None and ours.value.__suppress_context__
        ahead = step.lower(logits).compile()  # its error is a ValueError of JAX
        with pytest.raises(kind), hardgrad.jax.own_errors():
            jax.block_until_ready(ahead(logits))
        decorated = hardgrad.jax.own_errors()(lambda: jax.block_until_ready(step(logits)))
        for _ in range(2):
            with pytest.raises(kind):
                decorated()
        checked += 1
    assert checked == 4


def test_own_errors_leaves_others_alone():
    def fails(x):
        raise KeyError("of another package")

    step = jax.jit(lambda x: jax.pure_callback(fails, jax.ShapeDtypeStruct((), x.dtype), x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="of another package"), hardgrad.jax.own_errors():
        jax.block_until_ready(step(1.0))
    with pytest.raises(ZeroDivisionError), hardgrad.jax.own_errors():
        1 / 0


@pytest.mark.parametrize("shape, losses", [((0, 2), []), ((2, 0), [2.0, 3.0])])
@pytest.mark.parametrize("bits", [False, True])
def test_a_batch_without_examples_or_columns(shape, losses, bits):
    f = lambda z, example: z.sum(tuple(range(1, z.ndim))) + 2 + example
    value = lambda x: hardgrad.jax.expectation(x, f, seed=1, bits=bits)
    logits = jnp.zeros(shape if bits else (*shape, 3))
    assert value(logits).tolist() == jax.jit(value)(logits).tolist() == losses
    assert jax.grad(lambda x: value(x).sum())(logits).shape == logits.shape
