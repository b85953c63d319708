"""Estimates by tensor operations against core's at the same seed: options bit for bit, numbers to rounding; and what declares them."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hardgrad  # noqa: E402
import hardgrad.torch  # noqa: E402
from hardgrad import _core  # noqa: E402
from hardgrad.torch import by_formula, expectation, noise  # noqa: E402
from hardgrad.torch.philox import count, uniforms  # noqa: E402

#: With settings other than the defaults, which the problems take as well.
MORE = [
    "reinforce[samples=3,baseline=0.7]",
    "rloo[samples=2]",
    "policy_gradient[advantage=group_mean,samples=3]",
    "policy_gradient[advantage=none,bound=clip]",
    "group_normalised[scale=none,samples=5]",
    "optimal_baseline[samples=2]",
    "straight_through[samples=3,temperature=0.7]",
    "straight_through[samples=2,forward_temperature=1.6]",
    "gumbel_softmax[samples=2,temperature=1.3]",
    "st_gumbel[samples=3]",
    "reinmax[samples=2,temperature=1.4]",
    "gapped_st[samples=2,temperature=0.6,gap=0.4]",
    "simple[samples=2]",
    "disarm[samples=6]",
    "arm[samples=4]",
]


def declared():
    """The specs that have a formula: all registered estimators, and those above."""
    specs = [spec for spec in [*hardgrad.estimators(), *MORE] if by_formula.formula_of(spec)]
    assert set(MORE) <= set(specs), set(MORE) - set(specs)
    return specs


def by_core(monkeypatch):
    monkeypatch.setattr(by_formula, "applicable", lambda *given: None)


def by_tensors(monkeypatch):
    """The noise, too, by the tensor operations of other devices."""

    def drawn(formula, law, logits, rank, ids, seed, form):
        example = count(logits, len(logits)) if ids is None else torch.from_numpy(ids.astype(np.int64))
        return noise.there(formula, law, logits.detach(), example, seed, form)

    monkeypatch.setattr(by_formula, "drawn", drawn)


class Problem:
    """A random one: shape, dtype, missing options, ids, the cotangent, a loss with parameters."""

    def __init__(self, seed, spec):
        random = np.random.default_rng(seed)
        formula = by_formula.formula_of(spec)
        self.spec, self.seed = spec, int(random.integers(1 << 63))
        self.dtype = [torch.float32, torch.float64][random.integers(2)]
        self.bits = bool(random.integers(2))
        S = 2 if formula.pairs or self.bits else int(random.choice([2, 3, 5, 20]))
        shape = (int(random.integers(1, 6)), int(random.choice([1, 2, 17, 40])), S)[int(random.integers(3)) :]
        logits = 2 * random.normal(size=shape)
        if random.integers(2):
            holes = random.random(shape) < 0.3
            holes[..., int(random.integers(S))] = False
            logits[holes & (not self.bits)] = -np.inf
        if self.bits:
            logits = logits[..., 1]
        if self.bits and random.integers(2) and logits.ndim:
            logits[random.random(logits.shape) < 0.2] = -np.inf
        self.logits = torch.tensor(logits, dtype=self.dtype)
        self.takes = "options" if not formula.relaxes and random.integers(2) else "weights"
        self.batched = len(shape) == 3
        self.ids = random.integers(0, 1 << 32, shape[0]) if self.batched and random.integers(2) else None
        self.cotangent = torch.tensor(random.normal(size=shape[0] if self.batched else ()), dtype=self.dtype)
        columns = shape[-2] if len(shape) > 1 else 1
        width = (columns,) if self.takes == "options" or self.bits else (columns, S)
        self.weight = torch.tensor(random.normal(size=width), dtype=self.dtype)

    def drawn(self):
        """The rows, the value, the gradients at the logits and at the parameters of the loss."""
        logits, weight = self.logits.clone().requires_grad_(), self.weight.clone().requires_grad_()
        seen = []

        def f(z, *example):
            seen.extend([z.detach(), *example])
            x = (z.to(self.dtype) * weight).flatten(1).sum(1)
            return torch.sin(x) + 0.3 * x**2 + sum(0.1 * e for e in example)

        value = expectation(logits, f, self.spec, takes=self.takes, bits=self.bits, ids=self.ids, seed=self.seed)
        return seen, value, torch.autograd.grad((self.cotangent * value).sum(), (logits, weight))


def assert_same(one, other, hard=True):
    (rows, value, gradients), (their_rows, their_value, theirs) = one, other
    close = {torch.float32: dict(rtol=3e-4, atol=3e-5), torch.float64: dict(rtol=1e-9, atol=1e-10)}[value.dtype]
    for mine, core in zip(rows, their_rows):
        if hard or not mine.is_floating_point():
            assert torch.equal(mine, core)
        else:
            torch.testing.assert_close(mine, core, **close)
    torch.testing.assert_close(value, their_value, **close)
    for mine, core in zip(gradients, theirs):
        size = float(core.abs().max().clamp(min=1))
        torch.testing.assert_close(mine / size, core / size, **close)


@pytest.mark.parametrize("path", ["core draws", "tensors draw"])
def test_random_problems_have_cores_estimates(monkeypatch, path):
    specs, compared, names = declared(), 0, set()
    for seed in range(240):
        problem = Problem(seed, specs[seed % len(specs)])
        with monkeypatch.context() as patched:
            (by_tensors if path == "tensors draw" else lambda patched: None)(patched)
            assert by_formula.applicable(problem.spec, problem.logits, problem.takes, problem.bits), problem.spec
            mine = problem.drawn()
        with monkeypatch.context() as patched:
            by_core(patched)
            theirs = problem.drawn()
        formula = by_formula.formula_of(problem.spec)
        try:
            assert_same(mine, theirs, formula.is_hard)
        except AssertionError as error:
            raise AssertionError(f"problem {seed}, {problem.spec}, {tuple(problem.logits.shape)}") from error
        names.add(problem.spec.split("[")[0])
        compared += 1
    assert compared == 240 and len(names) >= 14, names


def test_uniform_numbers_bit_for_bit():
    ids, seeds = np.array([0, 1, 77, 2**32 - 1]), [0, 1, 2**63 + 5, 2**64 - 1]
    compared = 0
    for seed in seeds:
        for index in (0, 1, 19):
            core = torch.from_numpy(_core.uniforms(seed, ids, 5, 37, index))
            of = torch.from_numpy(ids.astype(np.int64)).reshape(-1, 1, 1)
            key = _core.noise_key(seed)
            for given in (key, torch.tensor(key).to(torch.int64) if key < 1 << 63 else torch.tensor(key - (1 << 64))):
                mine = uniforms(given, of, count(of, 5).reshape(1, -1, 1), torch.tensor(index), count(of, 37).reshape(1, 1, -1))
                assert torch.equal(mine, core)
                compared += mine.numel()
    assert compared == 2 * 4 * 3 * 4 * 5 * 37


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_draw_the_same_noise_bit_for_bit(dtype):
    """Of batches that are divided, and of the same examples in other batches."""
    random, compared = np.random.default_rng(5), 0
    draw = _core.noise_float if dtype == np.float32 else _core.noise_double
    for E, D, S in ((700, 50, 2), (601, 1, 2), (333, 17, 5), (20000, 1, 3)):
        ids = random.integers(0, 1 << 32, E).astype(np.uint32)
        for bits in (True, False) if S == 2 else (False,):
            logits = (3 * random.normal(size=(E, D) if bits else (E, D, S))).astype(dtype)
            for law in ("samples", "gumbels", *("pairs", "numbered_pairs") * (S == 2)):
                for form in ("options", "one_hot", "bits")[: 2 + bits]:
                    for temperature in (1.0, 0.6) if law == "samples" else (1.0,):
                        K = 2 if "pairs" in law else 3

                        def drawn(threads, part=slice(None)):
                            found = draw(logits[part], 3, ids[part], 77, law, K, temperature, form, threads)
                            return [x for x in found if x is not None]

                        one = drawn(1)
                        for threads in (2, 3, 7):
                            assert all(np.array_equal(a, b) for a, b in zip(one, drawn(threads), strict=True)), (law, form, S)
                        some = slice(64 * (E // 128), None)
                        for a, b in zip(one, drawn(2, some)):
                            rows = len(a) // E
                            assert np.array_equal(a[rows * some.start :], b)
                        compared += 1
    assert compared >= 30
    with pytest.raises(hardgrad.UsageError, match=r"entry \[19000, 0, 1\] is nan"):
        logits[19000, 0, 1] = np.nan
        drawn(2)


#: Formulas that are not the estimators' own: with the changed part, by spec.
MUTANTS = [
    ("rloo", dict(others=1 / 3)),
    ("rloo", dict(own=1.01)),
    ("reinforce[samples=3,baseline=0.7]", dict(offset=0.7)),
    ("reinforce[samples=3,baseline=0.7]", dict(offset=0.0)),
    ("path_only", dict(own=1.0)),
    ("group_normalised[scale=none,samples=5]", dict(own=1.0, others=-0.25)),
    ("disarm[samples=6]", dict(kind="linear", own=1.0)),
    ("straight_through[samples=3,temperature=0.7]", dict(temperature=1.0)),
    ("straight_through[samples=2,forward_temperature=1.6]", dict(forward_temperature=1.0)),
    ("gumbel_softmax", dict(temperature=0.55)),
    ("gumbel_softmax", dict(kind="st_gumbel")),
    ("st_gumbel[samples=3]", dict(temperature=1.0)),
    ("reinmax", dict(kind="straight_through")),
    ("reinmax[samples=2,temperature=1.4]", dict(temperature=1.0)),
    ("gapped_st", dict(gap=0.9)),
    ("gapped_st", dict(kind="straight_through")),
    ("simple", dict(temperature=1.1)),
    ("soft", dict(kind="straight_through")),
    ("gumbel_top_k", dict(temperature=1.0)),
]


@pytest.mark.parametrize("spec, change", MUTANTS)
def test_a_formula_of_another_estimator_is_found(monkeypatch, spec, change):
    """By the comparison above, with a few problems."""
    own, found = by_formula.formula_of(spec), 0
    for seed in range(12):
        problem = Problem(seed, spec)
        with monkeypatch.context() as patched:
            patched.setattr(by_formula, "formula_for", lambda *given: replace(own, **change))
            mine = problem.drawn()
        with monkeypatch.context() as patched:
            by_core(patched)
            theirs = problem.drawn()
        try:
            assert_same(mine, theirs, own.is_hard)
        except AssertionError:
            found += 1
    assert found >= 3


def test_what_has_no_formula():
    """Other draws, learning, examples that share a baseline, losses that do not enter linearly, other targets."""
    for spec in (
        "stratified[samples=4]",
        "nvil",
        "moving_baseline",
        "james_stein",
        "group_normalised",
        "optimal_baseline",
        "best_of",
        "maxrl",
        "self_critic",
        "disarm_tree",
        "soft[linear_start=3]",
        "gumbel_top_k[hard=true]",
        "rloo[target=elbo]",
        "straight_through[target=elbo]",
        "policy_gradient[advantage=group_std]",
        "disarm[samples=3]",
        "rloo[samples=1001]",  # not asked
        "group_normalised[epsilon=1e6,samples=100]",  # nearly linear
        "policy_gradient[advantage=group_std,epsilon=1e6,samples=500]",
        "reinforce[baseline=1e12]",
        "rlo",
        "rloo[samples=1]",
    ):
        assert by_formula.formula_of(spec) is None, spec

    def rloo(of):
        return np.zeros_like(of.one_hot)

    assert by_formula.formula_of(hardgrad.written(rloo, samples=4)) is None
    assert by_formula.formula_of(hardgrad.Estimator("rloo")).kind == "linear"
    assert by_formula.formula_of(hardgrad.torch.Estimator("rloo")).kind == "linear"


@pytest.mark.parametrize("spec", ["reinforce", "disarm", "rloo[samples=3]"])
def test_f_may_use_the_memory_of_its_losses_again(spec):
    logits = torch.randn(4, 3, 2, dtype=torch.float64, requires_grad=True)
    rows = 4 * {"reinforce": 1, "disarm": 2, "rloo[samples=3]": 3}[spec]
    memory, found = torch.empty(rows, dtype=torch.float64).numpy(), []
    for again in (False, True):

        def f(z, example):
            memory[:] = z[..., 1].sum(1).square().numpy()
            return torch.from_numpy(memory)

        value = expectation(logits, f, spec, seed=3)
        if again:
            memory[:] = 0.0
        (slope,) = torch.autograd.grad(value.sum(), logits)
        found.append(slope)
    assert torch.equal(*found) and found[0].abs().max() > 0


@pytest.mark.parametrize("spec", ["reinforce", "reinforce[samples=3]", "rloo[samples=2]"])
@pytest.mark.parametrize("S", [1, 2, 3])
def test_likely_options_keep_the_digits_of_their_scores(spec, S):
    """Of one in 4e-8, in single precision: as in double, where the same options are drawn."""
    slopes = []
    for dtype in (torch.float32, torch.float64):
        logits = torch.tensor([17.0] if S == 1 else [17.0, 0.0, 0.3][:S], dtype=dtype).expand(50, 1, *([S] if S > 1 else []))
        logits = logits.clone().requires_grad_()
        f = lambda z, example: 1 + example.to(z.dtype) + z.flatten(1)[:, 0]  # noqa: E731
        value = expectation(logits, f, spec, bits=S == 1, seed=1)
        slopes.append(torch.autograd.grad(value @ torch.arange(1, 51, dtype=dtype), logits)[0])
    if spec == "rloo[samples=2]":  # equal losses of equal options
        assert (slopes[0] == 0).all() and (slopes[1] == 0).all()
    else:
        assert (slopes[1].abs() > 1e-9).all()
    torch.testing.assert_close(slopes[0].double(), slopes[1], rtol=1e-5, atol=0)


@pytest.mark.parametrize("transformed", [False, True])
@pytest.mark.parametrize("spec", [spec for spec in declared() if by_formula.formula_of(spec).relaxes])
def test_relaxations_of_likely_options_have_the_slopes_of_double_precision(spec, transformed):
    """Of bits, two and three options whose probability rounds to 1."""
    if transformed and not hasattr(torch.library, "register_vmap"):
        pytest.skip("PyTorch 2.5 transforms expectations")
    far, compared = torch.tensor([-35.0, -25.0, -18.0, -3.0, 0.5, 3.0, 17.0, 25.0, 35.0]), 0
    for S in (1, 2, 3):
        logits = far[:, None] if S == 1 else torch.stack([far, *[0.3 * k + 0 * far for k in range(1, S)]], -1)[:, None]
        a = torch.tensor([0.7, -1.3, 0.4])[:S]

        def value(x, S=S, a=a):
            f = lambda z, example: torch.sin((z if S == 1 else z.flatten(1)) @ a.to(z.dtype) + 0.2)  # noqa: E731
            return expectation(x, f, spec, bits=S == 1, seed=4).sum()

        slopes = []
        for dtype in (torch.float32, torch.float64):
            x = logits.to(dtype)
            if transformed:
                slopes.append(torch.func.grad(value)(x))
            else:
                slopes.append(torch.autograd.grad(value(x.requires_grad_()), x)[0])
        assert (slopes[1].abs() > 1e-38).any(-1).any(-1).all()
        torch.testing.assert_close(slopes[0].double(), slopes[1], rtol=3e-4, atol=1e-37)
        compared += logits.numel()
    assert compared == 9 * (1 + 2 + 3)


def test_a_baseline_is_subtracted_before_products_round():
    logits, level = torch.zeros(20000, 1, 2, requires_grad=True), 1e5
    f = lambda z, example: level + z[:, 0, 1] / 2  # noqa: E731
    (slope,) = torch.autograd.grad(expectation(logits, f, "reinforce[samples=3,baseline=1e5]", seed=1).mean(), logits)
    wide = logits.detach().double().requires_grad_()
    (right,) = torch.autograd.grad(expectation(wide, f, "reinforce[samples=3,baseline=1e5]", seed=1).mean(), wide)
    assert slope[:, 0, 1].sum().item() == pytest.approx(right[:, 0, 1].sum().item(), rel=1e-4)


graph = pytest.mark.skipif(
    "tags" not in inspect.signature(getattr(torch.library, "custom_op", lambda: 0)).parameters, reason="an old PyTorch"
)


@graph
def test_compiled_calls_draw_noise_of_their_own():
    """PyTorch merges equal operators of a graph, even if they are random."""
    torch._dynamo.reset()
    logits = torch.zeros(50, 4, 2, requires_grad=True)
    f = lambda z, example: z[..., 1].sum(1)  # noqa: E731
    both = torch.compile(
        lambda x: (expectation(x, f, "reinforce"), expectation(x, f, "reinforce")), backend="aot_eager", fullgraph=True
    )
    one, two = both(logits)
    assert not torch.equal(one, two)
    assert not torch.equal(one, both(logits)[0])


@graph
def test_compiled_f_may_change_its_rows_and_has_first_derivatives_only():
    weight = torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64)

    def value(x):
        return expectation(x, lambda z, example: (z.mul_(weight).flatten(1).sum(1) - 0.3) ** 2, "reinforce", seed=3).sum()

    logits, found = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True), []
    for of in (value, torch.compile(value, backend="aot_eager", fullgraph=True)):
        torch._dynamo.reset()
        (slope,) = torch.autograd.grad(of(logits), logits)
        found.append(slope)
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-14)
    torch._dynamo.reset()
    whole = torch.compile(value, backend="eager", fullgraph=True)
    (slope,) = torch.autograd.grad(whole(logits), logits, create_graph=True)
    with pytest.raises(hardgrad.UsageError, match="first derivatives only"):
        slope.square().sum().backward()


@graph
@pytest.mark.parametrize("spec", ["reinforce", "straight_through"])
def test_compiled_gradients_of_parameters_are_not_differentiated_at_the_logits(spec):
    """They depend on the logits by the draw. As written, straight_through's do by its weights: it is differentiated through them."""
    torch._dynamo.reset()
    logits, weight = (
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(3, dtype=torch.float64, requires_grad=True),
    )

    def value(x, w):
        return expectation(x, lambda z, example: torch.sin(z @ w), spec, bits=True, seed=3).sum()

    both, compared = (logits, weight), 0
    for of in (value, torch.compile(value, backend="eager", fullgraph=True)):
        for first in both:
            (slope,) = torch.autograd.grad(of(*both), first, create_graph=True)
            for second in both:
                if of is value and first is weight and spec == "straight_through":
                    continue
                with pytest.raises(hardgrad.UsageError, match="first derivatives only"):
                    torch.autograd.grad(slope.square().sum(), second, retain_graph=True)
                compared += 1
    assert compared == (6 if spec == "straight_through" else 8)


def test_equal_losses_give_exactly_nothing():
    logits = torch.randn(5, 3, 4, requires_grad=True)
    for spec in ("rloo[samples=7]", "policy_gradient[advantage=group_mean]"):
        value = expectation(logits, lambda z, example: 1e7 + 0 * z[:, 0, 0] + example, spec, seed=1)
        assert (torch.autograd.grad(value.sum(), logits)[0] == 0).all()


def test_errors_are_cores(monkeypatch):
    """The same words as without a formula."""
    z = torch.zeros(2, 3)
    calls = [
        lambda: expectation(torch.tensor([[0.0, np.nan]]), lambda z: z[:, 0, 0], "rloo"),
        lambda: expectation(torch.tensor([[0.0, np.nan]]), lambda z: z[:, 0, 0], "soft"),
        lambda: expectation(torch.tensor([0.0, np.inf]), lambda z: z[:, 0], "disarm", bits=True),
        lambda: expectation(z - np.inf, lambda z: z[:, 0, 0], "straight_through"),
        lambda: expectation(z, lambda z: z[:, 0, 0] + np.inf, "rloo"),
        lambda: expectation(z, lambda z: z[:, 0, 0] * np.nan, "reinmax"),
        lambda: expectation(z, lambda z: z[:, 0, 0].detach(), "reinmax"),
        lambda: expectation(z, lambda z: z[:, 0], "rloo"),
        lambda: expectation(z, lambda z: z[:, 0, 0], "rloo[cap=2]"),
        lambda: expectation(z, lambda z: z[:, 0, 0], "rloo[samples=1]"),
        lambda: expectation(z, lambda z: z[:, 0, 0], "disarm"),
        lambda: expectation(z, lambda z: z[:, 0], "st_gumbel", takes="options"),
        lambda: expectation(z, lambda z: z[:, 0, 0], "rloo", seed=-1),
        lambda: expectation(z[None], lambda z, example: z[:, 0, 0], "rloo", ids=[-1]),
        lambda: expectation(z.requires_grad_(), lambda z: (z[:, 0, 0] - z[:, 0, 1]).sqrt(), "soft", seed=1).backward(),
    ]
    for call in calls:
        with pytest.raises(hardgrad.Error) as mine:
            call()
        with monkeypatch.context() as patched:
            by_core(patched)
            with pytest.raises(hardgrad.Error) as core:
                call()
        assert (type(mine.value), str(mine.value)) == (type(core.value), str(core.value).replace("-nan", "nan"))
    assert len(calls) == 15


@pytest.mark.parametrize("spec", ["rloo[samples=3]", "reinforce", "disarm", "straight_through", "st_gumbel[samples=2]"])
def test_f_may_change_its_rows(spec):
    logits, weight = torch.randn(4, 5, requires_grad=True), torch.randn(5)

    def changing(z, example):
        return (z.mul_(weight).sum(1) - 0.3) ** 2

    one, two = [
        torch.autograd.grad(expectation(logits, f, spec, bits=True, seed=2).sum(), logits)[0]
        for f in (changing, lambda z, example: ((z * weight).sum(1) - 0.3) ** 2)
    ]
    torch.testing.assert_close(one, two)


@pytest.mark.parametrize("spec", ["reinforce", "disarm", "straight_through"])
def test_a_device_draws_once(monkeypatch, spec):
    """Also one-hot rows, which are made in place there."""
    by_tensors(monkeypatch)
    drawn, calls = by_formula.drawn, []
    monkeypatch.setattr(by_formula, "drawn", lambda *given: calls.append(given) or drawn(*given))
    logits = torch.randn(4, 5, 2, requires_grad=True)
    expectation(logits, lambda z, example: z[..., 1].sum(1) ** 2, spec).sum().backward()
    assert len(calls) == 1


@pytest.mark.parametrize("spec", ["rloo[samples=3]", "straight_through", "gumbel_softmax"])
def test_logits_that_change_before_the_backward_pass_are_noticed(spec):
    logits = torch.randn(4, 2, 3, requires_grad=True)
    value = expectation(logits, lambda z, example: z[:, 0, 0] ** 2 * z[:, 1, 1], spec, seed=2).sum()
    with torch.no_grad():
        logits += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()
