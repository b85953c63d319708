"""hardgrad.jax.compare: equal to `hardgrad.torch.compare` on the same network, and without PyTorch; without JAX it is skipped."""

import os
import re
import subprocess
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
from hardgrad.replicates import Plan, rare_draws  # noqa: E402
from hardgrad.gradients import Drawing  # noqa: E402
from hardgrad.jax.compare import Tree  # noqa: E402

RANDOM = np.random.default_rng(3)
X, ENCODER, DECODER, BIAS = (RANDOM.standard_normal(shape) for shape in ((4, 3), (3, 3), (3, 3), 3))
TREE = {
    "params": {
        "decoder": {"bias": jnp.asarray(BIAS), "weight": jnp.asarray(DECODER)},
        "encoder": {"weight": jnp.asarray(ENCODER)},
    }
}
SPECS = ["reinforce", "rloo[samples=2]", "disarm", "stratified[samples=3]"]


def loss(tree, estimator, seed):
    """Three bits of four examples, and a decoder."""
    of = tree["params"]

    def f(bits, example):
        return ((jnp.tanh(bits @ of["decoder"]["weight"] + of["decoder"]["bias"]) - jnp.asarray(X)[example]) ** 2).sum(1)

    return hardgrad.jax.expectation(X @ of["encoder"]["weight"], f, estimator, bits=True, seed=seed).mean()


class InTorch:
    def __init__(self):
        self.bias, self.decoder, self.encoder = (torch.tensor(x, requires_grad=True) for x in (BIAS, DECODER, ENCODER))

    def parameters(self):
        return {"decoder": [self.bias, self.decoder], "encoder": self.encoder}

    def __call__(self, estimator):
        x = torch.from_numpy(X)

        def f(bits, example):
            return (torch.tanh(bits @ self.decoder + self.bias) - x[example]).square().sum(1)

        seed = torch.initial_seed() & 0xFFFFFFFF  # the 32 bits that JAX gets
        return hardgrad.torch.expectation(x @ self.encoder, f, estimator, bits=True, seed=seed).mean()


def test_moments_are_those_of_pytorch(tmp_path):
    network = InTorch()
    ours = hardgrad.jax.compare(loss, TREE, SPECS, replicates=64, seed=5, coordinates=True)
    theirs = hardgrad.torch.compare(network, network.parameters(), SPECS, replicates=64, seed=5, coordinates=True)
    assert ours.reference == theirs.reference == "exact, without noise" and ours.parameters == theirs.parameters == 21
    assert not ours.notes and ours.rank == theirs.rank and ours.best == theirs.best and ours.ties == theirs.ties
    for one, other in zip(ours, theirs):
        assert (
            one.estimator == other.estimator
            and one.notes == other.notes
            and list(one.groups) == list(other.groups) == ["decoder", "encoder"]
        )
        for name, value in other.numbers.items():
            if "seconds" not in name and "time" not in name:
                assert one.numbers[name] == pytest.approx(value, rel=1e-6, abs=1e-9, nan_ok=True), (one.estimator, name)
        for group, moments in other.groups.items():
            assert one.groups[group].numbers["variance"] == pytest.approx(moments.numbers["variance"], rel=1e-6)
        for name, bounds in other.intervals.items():
            if name != "seconds":
                np.testing.assert_allclose(one.intervals[name], bounds, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(one.variances, other.variances, rtol=1e-6, atol=1e-12)
    figures = [re.sub(r"[\d.]+ s\b", "", str(found)).split("\n\n", 1)[1] for found in (ours, theirs)]  # without the column ms
    assert figures[0] == figures[1] and "decoder: relative bias" in figures[0]
    data = ours.to_xarray()
    assert (
        set(data) == set(theirs.to_xarray())
        and set(data.task.values) == {"jax"}
        and data.parameter_group.values.tolist() == ["decoder", "encoder"]
    )
    ours.save(tmp_path / "jax.h5")
    from hardgrad.analysis import load

    with pytest.warns(match="no seal"):
        np.testing.assert_array_equal(load(tmp_path / "jax.h5").variance.values, data.variance.values)


def test_a_wrong_loss_is_found_and_gradients_stand_beside_losses():
    def mine(tree, seed):  # a gradient, which is right
        return jax.grad(loss)(tree, "rloo[samples=4]", seed)

    def wrong(tree, seed):  # a tenth too long
        return 1.1 * loss(tree, "rloo[samples=4]", seed)

    def by_hand(tree, seed):
        """REINFORCE with PRNG keys of JAX."""
        of = tree["params"]
        logits = X @ of["encoder"]["weight"]
        bits = jax.lax.stop_gradient(jax.random.bernoulli(jax.random.key(seed), jax.nn.sigmoid(logits)).astype(float))
        errors = ((jnp.tanh(bits @ of["decoder"]["weight"] + of["decoder"]["bias"]) - X) ** 2).sum(1)
        log_p = (bits * logits - jnp.logaddexp(0, logits)).sum(1)
        return (errors + jax.lax.stop_gradient(errors) * log_p).mean()

    comparison = hardgrad.jax.compare(
        loss, TREE, {"right": "rloo[samples=4]", "mine": mine, "wrong": wrong, "by hand": by_hand}, replicates=600, seed=1
    )
    low, high = comparison["wrong"].intervals["relative_bias"]
    assert (
        low <= 0.1 <= high
        and 0.05 < low
        and comparison.biased("wrong")
        and not any(map(comparison.biased, ("right", "mine", "by hand")))
    )
    assert (
        comparison["mine"].variance == pytest.approx(comparison["right"].variance, rel=1e-9) and comparison["right"].rows == 16
    )
    assert np.isnan(comparison["by hand"].rows) and comparison.by == "seconds"


def test_rows_are_counted_inside_loops_and_compiled_functions():
    compiled = jax.jit(loss, static_argnames="estimator")
    compiled(TREE, "rloo[samples=2]", 1)  # traced before, so that only its callbacks run

    def several(tree, estimator, seed):
        return (
            sum(compiled(tree, estimator, seed + k) for k in range(2))
            + jax.lax.map(lambda k: loss(tree, estimator, k), seed + jnp.arange(3)).sum()
        )

    comparison = hardgrad.jax.compare(several, TREE, ["rloo[samples=2]"], replicates=3, reference=None)
    assert comparison["rloo[samples=2]"].rows == 5 * 8
    assert "does not use it, but rloo[samples=2]" in str(
        hardgrad.jax.compare(
            lambda tree, estimator, seed: loss(tree, "rloo[samples=2]", seed),
            TREE,
            ["reinforce", "rloo"],
            replicates=3,
            reference=None,
        )
    )


PEAKED = {
    "logits": jnp.log(jnp.asarray([[0.990, 0.006, 0.003, 0.001], [0.004, 0.002, 0.992, 0.002]])),
    "table": jnp.asarray([[0.2, 1.5, -1.0, 3.0], [-0.8, 0.9, 0.3, 2.0]]),
}


def peaked(tree, estimator, seed):
    return hardgrad.jax.expectation(tree["logits"], lambda z: (1 + (z * tree["table"]).sum((1, 2))) ** 2, estimator, seed=seed)


def test_rare_choices_are_sought():
    """As in PyTorch, also by calls of a function that was compiled before. Calls with one seed share their noise, which stays so."""
    logits, table = (torch.tensor(np.array(PEAKED[name]), requires_grad=True) for name in ("logits", "table"))

    def in_torch(estimator):
        seed = torch.initial_seed() & 0xFFFFFFFF
        return hardgrad.torch.expectation(logits, lambda z: (1 + (z * table).sum((1, 2))) ** 2, estimator, seed=seed)

    specs = ["reinforce", "rloo[samples=2]"]
    ours, theirs = (
        hardgrad.jax.compare(peaked, PEAKED, specs, replicates=100),
        hardgrad.torch.compare(in_torch, {"logits": [logits], "table": [table]}, specs, replicates=100),
    )
    for spec in specs:
        for name in ("variance", "squared_bias", "rows", "effective_sample_size"):
            assert ours[spec].numbers[name] == pytest.approx(theirs[spec].numbers[name], rel=1e-6, abs=1e-9), (spec, name)
    compiled = jax.jit(peaked, static_argnames="estimator")
    alone = compiled(PEAKED, "reinforce", 4)

    def twice(tree, seed):
        return (compiled(tree, "reinforce", seed) + compiled(tree, "reinforce", seed ^ 1)) / 2

    def shared(tree, seed):
        return (compiled(tree, "reinforce", seed) + compiled(jax.tree.map(lambda x: 1.1 * x, tree), "reinforce", seed)) / 2

    drawn = {}
    for step in (twice, shared):
        tree = Tree(PEAKED)
        drawn[step] = rare_draws(Drawing(tree, step, np.empty(tree.size)), Plan(0, 100))
    assert drawn == {twice: (1, 4), shared: (0, 0)}
    halves = [
        hardgrad.jax.compare(None, PEAKED, {"twice": twice}, reference=None, seed=seed)["twice"].variance for seed in range(6)
    ]
    whole = [
        hardgrad.jax.compare(peaked, PEAKED, ["reinforce"], reference=None, seed=seed)["reinforce"].variance
        for seed in range(6)
    ]
    assert np.mean(halves) == pytest.approx(np.mean(whole) / 2, rel=0.25)
    assert compiled(PEAKED, "reinforce", 4) == alone


def test_bad_steps_are_named_and_the_others_kept():
    counter = iter(range(10**9))

    def sometimes(tree, seed):
        return loss(tree, "rloo", seed) * jnp.where(seed % 5 == 0, jnp.nan, 1.0)

    def inside(tree, seed):
        f = lambda z: jnp.where(seed % 5 == 0, jnp.nan, z[:, 0, 0])  # noqa: E731
        return hardgrad.jax.expectation(tree["params"]["encoder"]["weight"][:1], f, seed=seed)

    def host(tree, seed):
        noise = jax.pure_callback(lambda: np.float64(next(counter)), jax.ShapeDtypeStruct((), float))
        return loss(tree, "rloo", seed) * (1 + noise)

    comparison = hardgrad.jax.compare(
        loss,
        TREE,
        {
            "fine": "rloo",
            "sometimes": sometimes,
            "inside": inside,
            "random": host,
            "raises": lambda tree, seed: 1 / 0,
            "vector": lambda tree, seed: jnp.ones(3),
            "pair": lambda tree, seed: (jnp.ones(()), jnp.ones(())),
            "elsewhere": lambda tree, seed: jnp.ones(()),
            "unknown": "nothing",
            "relaxed": "rebar",
            "learns": "nvil",
        },
        replicates=60,
    )
    said = {
        "random": "same seed its gradients differ.*Take noise from the seed",
        "raises": "ZeroDivisionError",
        "vector": r"shape \[3\], expected a scalar loss, or",
        "pair": "type tuple",
        "elsewhere": "no gradient reaches any",
        "unknown": "unknown estimator",
        "relaxed": "replaces choices by weights",
        "learns": "nvil learns",
    }
    for name, words in said.items():
        assert comparison[name].status in ("failed", "skipped") and re.search(words, comparison[name].reason), (
            name,
            comparison[name].reason,
        )
    assert comparison["fine"].replicates == 60
    for name in ("sometimes", "inside"):
        assert 2 <= comparison[name].not_finite <= 30 and comparison[name].replicates == 60 - comparison[name].not_finite


@pytest.mark.parametrize(
    "parameters, estimators, named, said",
    [
        ({}, ["rloo"], {}, "no array of real numbers"),
        ({"n": 3}, ["rloo"], {}, "no array of real numbers"),
        ({"w": "text"}, ["rloo"], {}, r"parameters\['w'\] is of type str"),
        ({"w": jnp.zeros(2, complex)}, ["rloo"], {}, "complex128"),
        (TREE, [], {}, "estimators are empty"),
        (TREE, [3], {}, "type int: give it a name"),
        (TREE, ["rloo"], {"replicates": 1}, "replicates are 2 to"),
        (TREE, ["nothing"], {"replicates": 5}, "nothing: .*unknown estimator"),
    ],
)
def test_refusals(parameters, estimators, named, said):
    with pytest.raises(hardgrad.UsageError, match=said):
        hardgrad.jax.compare(loss, parameters, estimators, **named)


def test_groups_and_what_is_left_out():
    def step(tree, estimator, seed):
        return (
            hardgrad.jax.expectation(tree[0], lambda z: (z[:, 0] * tree[1]["w"]).sum(1), estimator, seed=seed)
            * tree[1]["count"]
        )

    comparison = hardgrad.jax.compare(
        step, [jnp.zeros(3), {"count": 2, "w": jnp.arange(3.0), "unused": jnp.zeros(2)}], ["rloo"], replicates=10
    )
    assert comparison["rloo"].groups == {} and "1 of 4 parameters require no gradient" in comparison.notes[0]
    assert "no gradient reaches 1 of 3 parameters (parameter [1]['unused'], [2])" in comparison["rloo"].notes[0]


def test_without_pytorch(tmp_path):
    program = """
import sys
sys.modules["torch"] = None
import jax.numpy as jnp, hardgrad.jax
step = lambda w, estimator, seed: hardgrad.jax.expectation(w, lambda z: z[:, 0, 1] ** 2, estimator, seed=seed)
print(hardgrad.jax.compare(step, jnp.zeros(2), ["rloo", "reinforce"], replicates=10))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0 and "10 estimates each of 2 parameters" in done.stdout, done.stderr
