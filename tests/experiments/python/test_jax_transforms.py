"""hardgrad.jax by formula under jit, vmap, grad and its second derivatives, and where logits or losses are not finite."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
torch = pytest.importorskip("torch")

import jax.numpy as jnp  # noqa: E402

jax.config.update("jax_enable_x64", True)

import hardgrad  # noqa: E402
import hardgrad.jax  # noqa: E402
import hardgrad.torch  # noqa: E402
from hardgrad.formulas import formula_of_spec  # noqa: E402

FORMULAS = [spec for spec in hardgrad.estimators() if formula_of_spec(spec)]
LOGITS = np.random.default_rng(0).normal(size=(4, 3))  # of bits
TABLE = np.random.default_rng(1).normal(size=3)


def value(logits, seed, spec="reinforce", table=TABLE, **named):
    f = lambda z, example: (1 + z @ table) ** 2 + 0.25 * example  # noqa: E731
    return hardgrad.jax.expectation(logits, f, spec, bits=True, seed=seed, **named)


def total(*given, **named):
    return (value(*given, **named) * jnp.array([0.5, -1.0, 2.0, 0.1])).sum()


def primitives(jaxpr):
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for parameter in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield from primitives(inner)


def called(spec):
    of = jax.make_jaxpr(jax.jit(jax.vmap(jax.grad(lambda *given: total(*given, spec=spec)), (None, 0))))
    return {name for name in primitives(of(LOGITS, jnp.arange(2, dtype=jnp.uint32)).jaxpr) if "callback" in name}


def test_fourteen_estimators_call_nothing_back():
    assert len(FORMULAS) == 14
    assert [spec for spec in FORMULAS if called(spec)] == []
    assert called("stratified[samples=3]") == {"pure_callback"}


@pytest.mark.parametrize("spec", ["rloo[samples=3]", "reinmax"])
def test_vmap_is_the_loop(spec):
    """Over seeds, keys, logits and tables of losses; elements with one seed share their noise."""
    keys, random = jax.random.split(jax.random.key(1), 3), np.random.default_rng(2)
    logits, tables, seeds = random.normal(size=(3, 4, 3)), random.normal(size=(3, 3)), np.array([0, 7, 2**32 - 1], np.uint32)
    step = lambda *given: jax.value_and_grad(lambda x, s, t: total(x, s, spec, t), (0, 2))(*given)  # noqa: E731
    for given, axes in (
        ((LOGITS, seeds, TABLE), (None, 0, None)),
        ((LOGITS, keys, TABLE), (None, 0, None)),
        ((logits, seeds, tables), (0, 0, 0)),
        ((logits, np.uint32(5), TABLE), (0, None, None)),
    ):
        mapped = jax.jit(jax.vmap(step, axes))(*given)
        single = jax.jit(step)
        for place in range(3):
            one = single(*(x if axis is None else x[place] for x, axis in zip(given, axes)))
            for ours, alone in zip(jax.tree.leaves(mapped), jax.tree.leaves(one)):
                np.testing.assert_allclose(ours[place], alone, rtol=1e-12, atol=1e-12)
    drawn = jax.vmap(lambda key: value(LOGITS, key, spec))(jax.random.split(jax.random.key(1), 50))
    assert len(np.unique(np.asarray(drawn)[:, 0])) > 4


def exact(spec, logits):
    """The mean gradient of one example of bits, by enumeration: of score functions the derivative of the expected loss, of hard
    relaxations p(z) J(z) f'(z) with the derivatives J that their papers give."""
    bits = np.stack(np.meshgrid(*[[0.0, 1.0]] * len(logits), indexing="ij"), -1).reshape(-1, len(logits))
    p_1 = 1 / (1 + np.exp(-logits))
    p = np.where(bits == 1, p_1, 1 - p_1).prod(1)
    x = 1 + bits @ TABLE
    if spec in ("reinforce", "rloo", "policy_gradient", "disarm", "arm"):
        return (p * x**2) @ (bits - p_1)
    slope, w = 2 * x[:, None] * TABLE, p_1
    if spec == "path_only":
        return np.zeros_like(logits)
    if spec == "soft":
        return 2 * (1 + p_1 @ TABLE) * TABLE * p_1 * (1 - p_1)
    if spec == "reinmax":
        middle = (w + bits) / 2
        return p @ (slope * (2 * middle * (1 - middle) - w * (1 - w) / 2))
    return p @ (slope * w * (1 - w))


@pytest.mark.parametrize(
    "spec",
    ["reinforce", "rloo", "policy_gradient", "disarm", "arm", "path_only", "soft", "straight_through", "simple", "reinmax"],
)
def test_means_are_those_of_an_enumeration(spec):
    """Of 20,000 draws at once, within 5 standard errors; the chance of one entry beyond is 6e-7."""
    draws = jax.jit(jax.vmap(jax.grad(lambda x, seed: value(x, seed, spec).sum()), (None, 0)))
    found = np.asarray(draws(LOGITS, jnp.arange(20_000, dtype=jnp.uint32)))
    right = np.stack([exact(spec, row) for row in LOGITS])
    errors = found.std(0) / np.sqrt(len(found)) + 1e-12
    np.testing.assert_array_less(abs(found.mean(0) - right), 5 * errors)
    assert found.std(0).max() > 0 or spec in ("path_only", "soft")


@pytest.mark.parametrize("spec", ["rloo", "disarm", "straight_through", "soft"])
def test_second_derivatives_are_refused(spec):
    """Never zero in silence: in the logits, in the loss's parameters, and mixed; by reverse and by forward mode."""
    seed = np.uint32(3)
    in_logits = lambda x: total(x, seed, spec)  # noqa: E731
    in_table = lambda x, t: total(x, seed, spec, t)  # noqa: E731
    mixed = jax.grad(lambda x: (jax.grad(in_table, 1)(x, TABLE) ** 2).sum())
    refused = 0
    for outer in (
        lambda: jax.grad(lambda x: (jax.grad(in_logits)(x) ** 2).sum())(LOGITS),
        lambda: jax.jit(jax.grad(lambda x: (jax.grad(in_logits)(x) ** 2).sum()))(LOGITS),
        lambda: jax.grad(lambda t: (jax.grad(in_table)(LOGITS, t) ** 2).sum())(TABLE),
        lambda: jax.jacrev(jax.grad(in_logits))(LOGITS),
        *([] if formula_of_spec(spec).relaxes else [lambda: mixed(LOGITS)]),
    ):
        with pytest.raises(hardgrad.UsageError, match="first derivatives only"):
            outer()
        refused += 1
    for outer in (lambda: jax.hessian(in_logits)(LOGITS), lambda: jax.jvp(jax.grad(in_logits), (LOGITS,), (LOGITS,))):
        with pytest.raises((hardgrad.UsageError, TypeError), match="first derivatives only|forward-mode"):
            outer()
        refused += 1
    assert refused == 7 - formula_of_spec(spec).relaxes
    if formula_of_spec(spec).relaxes:  # the relaxation's first derivative of the loss's gradient at its parameters

        def by_hand(x, t):
            w, seen = jax.nn.sigmoid(x), []
            hardgrad.jax.expectation(LOGITS, lambda z, e: seen.append(z) or z[:, 0], spec, bits=True, seed=seed)
            z = w if spec == "soft" else seen[0] + w - jax.lax.stop_gradient(w)
            return (((1 + z @ t) ** 2) * jnp.array([0.5, -1.0, 2.0, 0.1])).sum()

        right = jax.grad(lambda x: (jax.grad(by_hand, 1)(x, TABLE) ** 2).sum())(LOGITS)
        np.testing.assert_allclose(mixed(LOGITS), right, rtol=1e-10)
    # A gradient that is a constant of the outer derivative is none.
    constant = jax.grad(lambda x: (jax.lax.stop_gradient(jax.grad(in_logits)(x)) * x).sum())(LOGITS)
    np.testing.assert_allclose(constant, jax.grad(in_logits)(LOGITS))


def test_missing_options():
    """Are never drawn and get no gradient, wherever they are; in jit as outside."""
    logits = np.array([[[0.3, -np.inf, 1.0], [-np.inf, 0.2, -np.inf]]] * 50)
    weight, seen = np.random.default_rng(3).normal(size=(2, 3)), 0
    for spec in ("rloo", "gumbel_softmax", "gapped_st"):

        def both(x):
            def f(z, example):
                return (z * weight).sum((1, 2)) ** 2 + 1e9 * z[:, 0, 1] + 1e9 * z[:, 1, 0]

            found = hardgrad.jax.expectation(x, f, spec, seed=2)
            return found.sum(), found

        for of in (jax.grad(both, has_aux=True), jax.jit(jax.grad(both, has_aux=True))):
            slope, found = of(logits)
            assert np.isfinite(slope).all() and (abs(np.asarray(found)) < 1e3).all()
            assert (np.asarray(slope)[np.isinf(logits)] == 0).all() and (np.asarray(slope)[:, 0, 0] != 0).any()
            seen += 1
    assert seen == 6


@pytest.mark.parametrize("spec", ["rloo", "arm", "path_only", "straight_through", "gumbel_softmax", "soft"])
def test_logits_that_are_none(spec):
    """Outside of jit the error is core's; inside, the value and the gradient of this example are NaN, of others they are right."""
    for wrong in (np.nan, np.inf):
        logits = LOGITS.copy()
        logits[1, 2] = wrong
        for of in (lambda x: value(x, 1, spec), jax.grad(lambda x: value(x, 1, spec).sum())):
            with pytest.raises(hardgrad.UsageError, match=r"entry \[1, 2.*\] is (nan|inf)"):
                of(logits)
        both = jax.jit(jax.value_and_grad(lambda x: (value(x, 1, spec).sum(), value(x, 1, spec)), has_aux=True))
        ((_, found), slope), ((_, right), theirs) = both(logits), both(LOGITS)
        assert np.isnan(found[1]) and np.isnan(slope[1]).all()
        others = [0, 2, 3]
        np.testing.assert_allclose(found[np.array(others)], right[np.array(others)])
        np.testing.assert_allclose(slope[np.array(others)], theirs[np.array(others)])
    with pytest.raises(hardgrad.UsageError):
        hardgrad.jax.expectation(np.full((1, 2, 3), -np.inf), lambda z, example: z[:, 0, 0], "soft", seed=1)
    found = jax.jit(lambda x: hardgrad.jax.expectation(x, lambda z, e: z[:, 0, 0], "rloo", seed=1))(np.full((1, 2, 3), -np.inf))
    assert np.isnan(found).all()


def test_losses_that_are_not_finite():
    f = lambda z, example: jnp.where(example == 1, jnp.nan, z[:, 0])  # noqa: E731
    of = lambda x: hardgrad.jax.expectation(x, f, "rloo", bits=True, seed=1)  # noqa: E731
    with pytest.raises(hardgrad.NotFinite, match="the loss of row 4 is nan"):
        of(LOGITS)
    with pytest.raises(hardgrad.NotFinite, match="the loss of row 4 is nan"):
        jax.grad(lambda x: of(x).sum())(LOGITS)
    assert np.isnan(jax.jit(of)(LOGITS)).tolist() == [False, True, False, False]
    slope = jax.jit(jax.grad(lambda x: of(x).sum()))(LOGITS)
    assert np.isnan(slope).all(1).tolist() == [False, True, False, False]


@pytest.mark.parametrize("spec", ["rloo[samples=2]", "gumbel_softmax[samples=2]", "reinmax", "disarm"])
def test_separate_columns(spec):
    """As in PyTorch: each column has its loss."""
    S = 2 if spec == "disarm" else 3
    logits, weight = np.random.default_rng(4).normal(size=(3, 2, S)), np.random.default_rng(5).normal(size=(3, 2, S))
    outer = np.random.default_rng(6).normal(size=(3, 2))
    theirs = torch.tensor(logits, requires_grad=True)
    found = hardgrad.torch.expectation(
        theirs, lambda z, e: (z * torch.tensor(weight)[e]).sum(2) ** 2, spec, columns="separate", seed=3
    )
    (found * torch.tensor(outer)).sum().backward()

    def ours(x):
        mine = hardgrad.jax.expectation(
            x, lambda z, e: (z * jnp.asarray(weight)[e]).sum(2) ** 2, spec, columns="separate", seed=3
        )
        return (mine * outer).sum(), mine

    slope, mine = jax.jit(jax.grad(ours, has_aux=True))(logits)
    np.testing.assert_allclose(mine, found.detach(), rtol=1e-12)
    np.testing.assert_allclose(slope, theirs.grad, rtol=1e-11, atol=1e-13)


def test_other_estimators_take_short_dtypes_too():
    logits = jnp.asarray(LOGITS, jnp.bfloat16)
    seen = []

    def f(z, example):
        seen.append(z.dtype)
        return z.astype(jnp.float32) @ TABLE.astype(np.float32)

    found, slope = jax.value_and_grad(
        lambda x: hardgrad.jax.expectation(x, f, "stratified[samples=3]", bits=True, seed=1).sum()
    )(logits)
    assert seen[0] == slope.dtype == jnp.bfloat16 and found.dtype == jnp.float32 and np.isfinite(np.asarray(slope, float)).all()
