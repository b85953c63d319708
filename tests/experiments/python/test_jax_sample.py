"""hardgrad.jax.sample: the draws and derivatives of `hardgrad.torch.sample`."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
torch = pytest.importorskip("torch")

import jax.numpy as jnp  # noqa: E402

jax.config.update("jax_enable_x64", True)

import hardgrad  # noqa: E402
import hardgrad.jax  # noqa: E402
import hardgrad.torch  # noqa: E402

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    "spec, shape, named",
    [
        ("gumbel_softmax", (4, 2, 3), {}),
        ("gumbel_softmax[temperature=0.7]", (2, 3, 2, 4), {"hard": True}),
        ("reinmax", (3, 2), {}),
        ("straight_through", (5,), {}),
        ("st_gumbel", (4, 3), {"bits": True}),
        ("gumbel_softmax", (2, 4, 3), {"bits": True, "hard": True}),
        ("soft", (4, 2, 3), {}),
        ("path_only", (4, 2, 3), {}),
    ],
)
def test_equal_to_pytorch(spec, shape, named):
    logits, weight = RANDOM.normal(size=shape), RANDOM.normal(size=shape)
    if len(shape) == 3 and not named:
        logits[:, 0, 1] = -np.inf
    theirs = torch.tensor(logits, requires_grad=True)
    z = hardgrad.torch.sample(theirs, spec, seed=7, **named)
    if z.requires_grad:
        (z * torch.tensor(weight)).square().sum().backward()
    slope = np.zeros(shape) if theirs.grad is None else theirs.grad.numpy()

    def total(x, seed):
        mine = hardgrad.jax.sample(x, spec, seed=seed, **named)
        return ((mine * weight) ** 2).sum(), mine

    ours, mine = jax.jit(jax.grad(total, has_aux=True))(logits, np.uint32(7))
    np.testing.assert_allclose(mine, z.detach().numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours, slope, rtol=1e-11, atol=1e-13)


def test_axis_dtype_and_vmap():
    logits = jnp.asarray(RANDOM.normal(size=(3, 4, 2)), jnp.bfloat16)
    z = hardgrad.jax.sample(logits, "straight_through", seed=jax.random.key(1), axis=1)
    assert z.shape == logits.shape and z.dtype == jnp.bfloat16 and (np.asarray(z, float).sum(1) == 1).all()
    draw = lambda key: hardgrad.jax.sample(logits, "reinmax", seed=key)  # noqa: E731
    keys = jax.random.split(jax.random.key(2), 3)
    assert np.array_equal(jax.vmap(draw)(keys), jnp.stack([draw(key) for key in keys]))
    assert hardgrad.jax.sample(jnp.zeros((0, 2, 3)), seed=1).shape == (0, 2, 3)


@pytest.mark.parametrize(
    "spec, named, said",
    [
        ("rloo", {}, "rloo is no relaxation with a formula and one row"),
        ("gumbel_softmax[samples=2]", {}, "is no relaxation with a formula and one row"),
        ("nothing", {}, "unknown estimator"),
        ("reinmax", {"axis": 5}, "axis is 5"),
        ("reinmax", {"axis": 0, "bits": True}, "no axis of options"),
        ("reinmax", {"seed": -1}, "seed is a whole number"),
    ],
)
def test_refusals(spec, named, said):
    with pytest.raises(hardgrad.UsageError, match=said):
        hardgrad.jax.sample(jnp.zeros((2, 3)), spec, **{"seed": 1, **named})


def test_second_derivatives_are_refused():
    value = lambda x: (hardgrad.jax.sample(x, "gumbel_softmax", seed=1) ** 2).sum()  # noqa: E731
    with pytest.raises(hardgrad.UsageError, match="first derivatives only"):
        jax.grad(lambda x: (jax.grad(value)(x) ** 2).sum())(jnp.ones((2, 3)))
