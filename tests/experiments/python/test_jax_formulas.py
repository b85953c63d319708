"""hardgrad.jax by formula, without callbacks: against core, PyTorch and enumeration at the same seed; JAX's transformations."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
torch = pytest.importorskip("torch")

import jax.numpy as jnp  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")

import hardgrad  # noqa: E402
import hardgrad.jax  # noqa: E402
import hardgrad.torch  # noqa: E402
from hardgrad.formulas import formula_of_spec  # noqa: E402
from hardgrad.torch import by_formula  # noqa: E402

#: The 14 with a formula, and settings other than the defaults. columns and options of their problems; 0: bits.
SPECS = {
    "arm": (3, 0),
    "disarm": (5, 2),
    "gapped_st": (2, 4),
    "gumbel_softmax": (3, 3),
    "gumbel_top_k": (17, 0),
    "path_only": (2, 3),
    "policy_gradient": (4, 2),
    "reinforce": (17, 0),
    "reinmax": (3, 5),
    "rloo": (2, 20),
    "simple": (4, 0),
    "soft": (3, 4),
    "st_gumbel": (2, 5),
    "straight_through": (1, 3),
    "reinforce[samples=3,baseline=0.7]": (2, 3),
    "rloo[samples=2]": (40, 0),
    "group_normalised[scale=none,samples=5]": (3, 3),
    "straight_through[samples=2,forward_temperature=1.6]": (3, 4),
    "gumbel_softmax[samples=2,temperature=1.3]": (2, 2),
    "st_gumbel[samples=3]": (5, 0),
    "reinmax[samples=2,temperature=1.4]": (3, 0),
    "gapped_st[samples=2,temperature=0.6,gap=0.4]": (2, 2),
    "disarm[samples=6]": (3, 0),
    "arm[samples=4]": (4, 2),
}


def weights_of(columns, options, dtype=np.float64):
    return np.random.default_rng(columns + 100 * options).normal(size=(columns, max(1, options))).astype(dtype)


def loss_of_rows(xp, z, weight, *example):
    """Of PyTorch's or JAX's."""
    x = (z.reshape(z.shape[0], -1) * weight.reshape(-1)).sum(1)
    return xp.sin(x) + 0.3 * x**2 + sum(0.125 * e for e in example)


class Problem:
    """Logits with missing options, a seed and a cotangent, of a spec."""

    def __init__(self, spec, number, dtype=np.float64, examples=3):
        columns, options = SPECS[spec]
        random = np.random.default_rng([number, columns, options])
        self.spec, self.bits, self.dtype = spec, options == 0, dtype
        shape = (examples, columns, options or 2)
        logits = 2 * random.normal(size=shape)
        if number % 2 and not formula_of_spec(spec).pairs:
            holes = random.random(shape) < 0.3
            holes[..., int(random.integers(shape[2]))] = False
            logits[holes] = -np.inf
        self.logits = logits.astype(dtype)
        if self.bits:
            self.logits = np.where(np.isinf(logits[..., 1]), -np.inf, 2 * random.normal(size=shape[:2])).astype(dtype)
        self.seed = int(random.integers(1 << 32))
        self.cotangent = random.normal(size=examples).astype(dtype)
        self.weight = weights_of(columns, options, dtype)

    def in_torch(self):
        """The rows, the value, the gradients at the logits and at the parameters of the loss."""
        logits, weight = (torch.tensor(x, requires_grad=True) for x in (self.logits, self.weight))
        seen = []

        def f(z, example):
            seen.append(z.detach().numpy())
            return loss_of_rows(torch, z, weight, example)

        value = hardgrad.torch.expectation(logits, f, self.spec, bits=self.bits, seed=self.seed)
        slopes = torch.autograd.grad((torch.tensor(self.cotangent) * value).sum(), (logits, weight), allow_unused=True)
        return seen[0], value.detach().numpy(), [x.numpy() for x in slopes]


def drawn(logits, weight, cotangent, seed, spec, bits):
    """The same of JAX."""

    def total(logits, weight):
        seen = []

        def f(z, example):
            seen.append(jax.lax.stop_gradient(z))
            return loss_of_rows(jnp, z, weight, example)

        value = hardgrad.jax.expectation(logits, f, spec, bits=bits, seed=seed)
        return (cotangent * value).sum(), (seen[0], value)

    slopes, (rows, value) = jax.grad(total, (0, 1), has_aux=True)(logits, weight)
    return rows, value, slopes


compiled = jax.jit(drawn, static_argnames=("spec", "bits"))


def in_jax(problem):
    return compiled(problem.logits, problem.weight, problem.cotangent, np.uint32(problem.seed), problem.spec, problem.bits)


def farthest(one, other):
    """The largest difference of value and gradients, relative to each other's size (at least 1)."""
    pairs = [(one[1], other[1]), *zip(one[2], other[2])]
    return max(float(np.max(np.abs(np.asarray(a) - b)) / max(1, np.abs(b).max())) for a, b in pairs)


def test_random_problems_have_the_estimates_of_core_and_of_pytorch(monkeypatch):
    compared, names, exact, apart = 0, set(), 0, 0.0
    for spec in SPECS:
        formula = formula_of_spec(spec)
        for number in range(10):
            problem = Problem(spec, number)
            ours = in_jax(problem)
            theirs = [problem.in_torch()]
            with monkeypatch.context() as patched:
                patched.setattr(by_formula, "applicable", lambda *given: None)
                theirs.append(problem.in_torch())
            for other in theirs:
                if formula.is_hard:
                    assert np.array_equal(ours[0], other[0]), (spec, number)
                    exact += 1
                else:
                    np.testing.assert_allclose(ours[0], other[0], rtol=1e-12, atol=1e-12)
                far = farthest(ours, other)
                assert far <= 1e-12, (spec, number, far)
                apart = max(apart, far)
            compared += 1
            names.add(spec.split("[")[0])
    print(apart)
    assert compared == 240 and len(names & set(hardgrad.estimators())) == 15 and exact > 360
