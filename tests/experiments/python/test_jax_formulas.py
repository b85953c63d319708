"""hardgrad.jax by formula, without callbacks: against core, PyTorch and enumeration at the same seed; JAX's transformations."""

import sys

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
from hardgrad import _core  # noqa: E402
from hardgrad.formulas import factors, formula_of_spec, jacobians, of_pairs  # noqa: E402
from hardgrad.jax import noise, philox, words  # noqa: E402
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
    assert compared == 240 and len(names & set(hardgrad.estimators())) == 15 and exact > 360


#: Wrong constants, counters and factors. where: the module and name that is replaced; and by which spec it is found.
MUTANTS = [
    ("philox", "_MULTIPLIERS", (0xD2511F53, 0xCD9E8D59), "reinforce"),
    ("philox", "_STEPS", (0x9E3779B9, 0xBB67AE86), "reinforce"),
    ("philox", "_OF_COLUMN", 0x9E3779B97F4A7C16, "reinforce"),
    ("words", "_P4", 0x85EBCA77C2B2AE65, "reinforce"),
    ("noise", "_logistic", lambda u: jnp.log(u.rest / u.u), "gumbel_softmax[samples=2,temperature=1.3]"),
    ("noise", "words", lambda key, example, *rest: philox.words(key, example + np.uint32(1), *rest), "reinforce"),
    ("noise", "words", lambda key, e, k, i, d, a: philox.words(key, e, k, i + np.uint32(1), d, a), "reinforce"),
    ("noise", "words", lambda key, e, k, *rest: philox.words(key, e, k + np.uint32(1), *rest), "rloo[samples=2]"),
    ("noise", "_passed", lambda u, total, below, above: u.rest * total <= below, "reinforce"),
    (
        "by_formula",
        "factors",
        lambda formula, losses: (losses - losses.mean(1, keepdims=True)) / 2,
        "rloo[samples=2]",
    ),  # (K-1)/K
    ("by_formula", "factors", lambda formula, losses: factors(formula, losses) / formula.samples, "rloo[samples=2]"),
    ("by_formula", "of_pairs", lambda *given: -of_pairs(*given), "disarm"),
    ("by_formula", "jacobians", lambda *given: [(2 * a, w) for a, w in jacobians(*given)], "simple"),
    ("operations.Arrays", "through_softmax", staticmethod(lambda slope, w: w * slope), "straight_through"),
    ("operations.Arrays", "through_sigmoid", staticmethod(lambda slope, w: slope * w), "simple"),
]


@pytest.mark.parametrize("where, name, wrong, spec", MUTANTS)
def test_a_mutant_is_found(monkeypatch, where, name, wrong, spec):
    """By the comparison above, with a few problems."""
    of = hardgrad.jax
    for part in where.split("."):
        of = getattr(of, part) if part[0].isupper() else sys.modules[f"hardgrad.jax.{part}"]
    monkeypatch.setattr(of, name, wrong)
    jax.clear_caches()
    mutant, found = jax.jit(lambda *given: drawn(*given, spec, problem.bits)), 0
    for number in range(3):
        problem = Problem(spec, number)
        ours = mutant(problem.logits, problem.weight, problem.cotangent, np.uint32(problem.seed))
        theirs = problem.in_torch()
        found += not np.allclose(ours[0], theirs[0], rtol=1e-12, atol=1e-12) or farthest(ours, theirs) > 1e-12
    jax.clear_caches()
    assert found >= 2


def test_uniform_numbers_and_keys_bit_for_bit():
    def of(seed, index):
        key = words.noise_key(seed)
        example, replica = (np.arange(n, dtype=np.uint32) for n in (4, 5))
        bits = philox.words(key, example.reshape(-1, 1, 1), replica.reshape(-1, 1), index, 37, 0)
        return key, philox.uniform(bits).u

    compared, made = 0, jax.jit(of)
    for seed in (0, 1, 77, 2**31, 2**32 - 1):
        for index in (0, 1, 19):
            key, ours = made(np.uint32(seed), np.uint32(index))
            assert (int(key.high) << 32) + int(key.low) == _core.noise_key(seed)
            assert np.array_equal(ours, _core.uniforms(seed, np.arange(4, dtype=np.uint32), 5, 37, index))
            compared += ours.size
    assert compared == 5 * 3 * 4 * 5 * 37


def test_old_versions_of_jax_multiply_in_halves(monkeypatch):
    x = jnp.asarray(np.random.default_rng(0).integers(0, 1 << 32, 1000), jnp.uint32)
    monkeypatch.setattr(words, "_mulhi", None)
    for m in (0xD2511F53, 0xFFFFFFFF, 1):
        found, right = words.product(x, m), np.asarray(x, np.uint64) * np.uint64(m)
        assert np.array_equal((np.asarray(found.high, np.uint64) << np.uint64(32)) + np.asarray(found.low, np.uint64), right)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_shorter_dtypes_without_double_precision(dtype):
    """The draws are core's of float32, the numbers are rounded."""
    compared, rows = 0, 0
    with jax.enable_x64(False):
        for spec in ("reinforce", "rloo", "straight_through", "gumbel_softmax"):
            formula = formula_of_spec(spec)
            for number in range(4):
                problem = Problem(spec, number, np.float32, 40)
                logits = jnp.asarray(problem.logits, dtype)
                problem.logits = np.asarray(logits, np.float32)  # the rounded ones
                z, value, slopes = compiled(
                    logits, problem.weight, problem.cotangent, np.uint32(problem.seed), spec, problem.bits
                )
                assert z.dtype == slopes[0].dtype == dtype and value.dtype == slopes[1].dtype == jnp.float32
                theirs = problem.in_torch()
                if formula.is_hard:
                    assert np.array_equal(np.asarray(z, np.float32), theirs[0]), (spec, number)
                    rows += len(z)
                eps = float(jnp.finfo(dtype).eps) * (1 if formula.is_hard else 4)
                for mine, other in ((value, theirs[1]), *zip(slopes, theirs[2])):
                    np.testing.assert_allclose(
                        np.asarray(mine, np.float64),
                        other,
                        rtol=4 * max(eps, 1e-6),
                        atol=20 * max(eps, 1e-6) * abs(other).max(),
                    )
                compared += 1
    assert compared == 16 and rows == 4 * 40 * (1 + 4 + 1)


def test_no_draw_of_float32_lands_elsewhere():
    """Of 180,000, without double precision."""
    compared = 0
    with jax.enable_x64(False):
        for spec, shape in (
            ("reinforce", (1000, 100)),
            ("disarm", (500, 50)),
            ("rloo", (125, 20, 9)),
            ("straight_through", (500, 40, 20)),
        ):
            formula, bits = formula_of_spec(spec), len(shape) == 2
            logits = (3 * np.random.default_rng(1).normal(size=shape)).astype(np.float32)
            form = "bits" if bits else "options"
            ours, _ = noise.drawn(formula, logits, np.uint32(5), form)
            theirs, _ = _core.noise_float(logits, 3, None, 5, formula.law, formula.samples, 1.0, form, 1)
            assert np.array_equal(ours, theirs)
            compared += theirs.size
    assert compared == 100_000 + 50_000 + 10_000 + 20_000


@pytest.mark.parametrize("spec", ["soft", "straight_through", "reinmax", "gumbel_softmax", "reinforce"])
def test_likely_options_have_the_slopes_of_double_precision(spec):
    """Of two and three options whose probability rounds to 1 in single precision."""
    compared = 0
    for S in (2, 3):
        logits = np.zeros((7, 1, S))
        logits[:, 0, 0], logits[:, 0, 1] = [-25.0, -18.0, -3.0, 0.5, 3.0, 17.0, 25.0], 0.3
        slopes = []
        for dtype in (np.float32, np.float64):
            with jax.enable_x64(dtype == np.float64):
                f = lambda z, example: jnp.sin(z.reshape(7, S) @ np.arange(1, S + 1).astype(dtype) + 0.2)  # noqa: E731, B023
                value = lambda x: hardgrad.jax.expectation(x, f, spec, seed=4).sum()  # noqa: E731, B023
                slopes.append(np.asarray(jax.grad(value)(jnp.asarray(logits, dtype)), np.float64))
        assert (np.abs(slopes[1]) > 1e-38).any((1, 2)).all()
        np.testing.assert_allclose(*slopes, rtol=3e-4, atol=1e-37)
        compared += logits.size
    assert compared == 7 * (2 + 3)
