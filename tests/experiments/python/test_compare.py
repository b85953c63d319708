"""hardgrad.torch.compare: figures against brute force, exact moments and known biases; bad input."""

import re
import resource
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hardgrad  # noqa: E402
import hardgrad.torch  # noqa: E402
from hardgrad.replicates import REPLICATE, seed_of  # noqa: E402
from hardgrad.torch import Site, compare, episode, expectation  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parents[2] / "support"))
from gradient_moments import gradient_moments  # noqa: E402

torch.set_num_threads(1)


class Bits:
    """Four examples with three bits from a layer, and a loss with parameters of its own."""

    def __init__(self, dtype=torch.float64, scale=1.0):
        generator = torch.Generator().manual_seed(5)
        self.x = torch.randn(4, 2, generator=generator, dtype=dtype)
        self.w = (scale * torch.randn(2, 6, generator=generator, dtype=dtype)).requires_grad_()
        self.v = torch.randn(3, generator=generator, dtype=dtype).requires_grad_()

    def parameters(self):
        return [self.w, self.v]

    def __call__(self, estimator):
        def f(z, example):
            return ((z[:, :, 1] * self.v).sum(1) - 1.5 + self.x[example, 0]) ** 2

        return expectation((self.x @ self.w).reshape(4, 3, 2), f, estimator).mean()


class Looks:
    """Two choices; the second depends on the first."""

    def __init__(self, scale=1.0):
        generator = torch.Generator().manual_seed(6)
        self.first, self.second, self.items = (
            (scale * torch.randn(*shape, generator=generator)).requires_grad_() for shape in ((4,), (4, 4), (4,))
        )

    def parameters(self):
        return {"choices": [self.first, self.second], "items": self.items}

    def __call__(self, estimator):
        with episode(3, {"look": Site(options=4, times=2)}, estimator) as e:
            one = e.choose("look", self.first.expand(3, 4))
            two = e.choose("look", self.second[one.options[:, 0]])
            e.cost((self.items[one.options[:, 0]][two.parent] + self.items[two.options[:, 0]] - two.example) ** 2)
        return e.expected_loss.mean()


class Experts:
    """A gate of three experts; one is missing for half of the examples, and only the chosen one runs."""

    def __init__(self):
        generator = torch.Generator().manual_seed(8)
        self.x, self.gate, self.experts = (
            torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((6, 3), (3, 3), (3, 3))
        )
        self.gate.requires_grad_(), self.experts.requires_grad_()

    def parameters(self):
        return {"gate": self.gate, "experts": self.experts}

    def __call__(self, estimator):
        def f(expert, example):
            return ((self.experts[expert[:, 0]] * self.x[example]).sum(1) - 1) ** 2

        logits = (self.x @ self.gate).masked_fill((torch.arange(6)[:, None] < 3) & (torch.arange(3) == 1), -np.inf)
        return expectation(logits[:, None], f, estimator, takes="options").mean()


def brute_force(loss, parameters, seeds):
    """[replicates, P] gradients."""
    found = []
    for seed in seeds:
        torch.manual_seed(seed)
        gradients = torch.autograd.grad(loss(), parameters, allow_unused=True)
        found.append(
            torch.cat(
                [(torch.zeros_like(p) if g is None else g).reshape(-1).double() for g, p in zip(gradients, parameters)]
            ).numpy()
        )
    return np.stack(found)


@pytest.mark.parametrize(
    "network, specs",
    [
        (Bits(scale=0.5), ["rloo[samples=2]", "straight_through", "reinforce"]),
        (Looks(scale=0.5), ["reinforce", "rloo[samples=3]"]),
        (Experts(), ["reinforce", "rloo[samples=3]"]),
    ],
    ids=["bits", "looks", "experts"],
)
def test_figures_are_those_of_all_gradients(network, specs):
    """With the same seeds, as no option is rare; intervals and p against the second implementation in `analysis`."""
    tensors = network.parameters()
    if isinstance(tensors, dict):
        tensors = [x for group in tensors.values() for x in (group if isinstance(group, list) else [group])]
    comparison = compare(network, network.parameters(), specs, replicates=64, seed=3, coordinates=True)
    assert comparison.reference == "exact, without noise" and len(comparison) == len(specs)
    (exact,) = brute_force(lambda: network("exact"), tensors, [0])
    for spec in specs:
        of = comparison[spec]
        estimates = brute_force(lambda: network(spec), tensors, [seed_of(3, REPLICATE, m) for m in range(64)])
        theirs = gradient_moments(estimates, exact)
        assert of.variance == pytest.approx(estimates.var(0, ddof=1).sum(), rel=1e-6)
        assert of.squared_bias == pytest.approx(theirs.squared_bias.mean, rel=1e-5, abs=1e-7)
        np.testing.assert_allclose(of.intervals["squared_bias"], theirs.squared_bias[1:3], rtol=1e-3, atol=1e-6)
        assert of.bias_p_value_plain == pytest.approx(theirs.p_value, abs=1e-4)
        np.testing.assert_allclose(of.mean, estimates.mean(0), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(of.variances, estimates.var(0, ddof=1), rtol=1e-5, atol=1e-9)
        cosines = estimates @ exact / np.linalg.norm(estimates, axis=1) / np.linalg.norm(exact)
        assert of.cosine == pytest.approx(cosines.mean(), rel=1e-6)
        samples = {"rloo[samples=2]": 2, "rloo[samples=3]": 3}.get(spec, 1)
        assert of.rows == samples * {Bits: 4, Looks: 2 * 3, Experts: 6}[type(network)], spec
        assert of.work_normalised_variance == pytest.approx(of.variance * of.rows)
    data = comparison.to_xarray()
    numbers = [str(name) for name in data if "measurement_step" in data[name].dims and not name.endswith("_interval")]
    assert len(numbers) >= 25 and {"rank", "not_finite", "time_normalised_variance"} <= set(numbers)
    assert [name for name in numbers if not data[name].attrs.get("long_name")] == []  # all are in core's table
    assert data["time_normalised_variance"].attrs["better"] == "lower"
    if comparison[specs[0]].groups:
        groups = comparison[specs[0]].groups
        assert {"variance_by_group", "squared_bias_by_group"} <= set(numbers)
        assert sum(group.numbers["variance"] for group in groups.values()) == pytest.approx(comparison[specs[0]].variance)
        assert list(groups) == list(network.parameters())


def test_against_exact_moments():
    """Of 12 intervals of level 0.95 at most two may miss."""
    logits = torch.tensor([[0.3, -0.7, 0.2], [-1.1, 0.4, 0.9]], dtype=torch.float64, requires_grad=True)
    table = np.random.default_rng(1).normal(size=(3, 3))
    losses = torch.from_numpy(table)

    def step(estimator):
        return expectation(logits, lambda z: torch.einsum("ri,rj,ij->r", z[:, 0], z[:, 1], losses), estimator)

    specs = ["reinforce", "rloo[samples=4]", "sum_and_sample", "straight_through", "stratified[samples=4]", "double_cv"]
    comparison = compare(step, [logits], specs, replicates=400)
    missed = 0
    for spec in specs:
        exact = hardgrad.moments(logits.detach().numpy(), table, spec)
        low, high = comparison[spec].intervals["variance"]
        missed += not low <= exact.variance.sum() <= high
        low, high = comparison[spec].intervals["squared_bias"]
        missed += not low - 1e-12 <= (exact.bias**2).sum() <= high
        assert comparison[spec].rows == pytest.approx(float(exact.rows))
        assert comparison.biased(spec) == (np.abs(exact.bias).max() > 1e-9), spec
    assert missed <= 2


def test_a_wrong_loss_is_found_with_its_bias():
    network = Bits()

    def wrong():  # a tenth too long
        return network("rloo[samples=4]") * 1.1

    comparison = compare(network, network.parameters(), {"right": "rloo[samples=4]", "wrong": wrong}, replicates=600)
    low, high = comparison["wrong"].intervals["relative_bias"]
    assert low <= 0.1 <= high and 0.05 < low and comparison["wrong"].bias_p_value_plain < 1e-6
    assert (
        comparison.biased("wrong")
        and not comparison.biased("right")
        and comparison.best == "right"
        and comparison["right"].intervals["relative_bias"][0] < 0.02
    )
    text = str(comparison)
    assert "biased" in text and "< .0001" in text and "wrong" in text


def test_code_of_ones_own_beside_ours():
    """REINFORCE written by hand; its rows are unknown, so seconds rank."""
    network = Bits()

    def by_hand():
        logits = (network.x @ network.w).reshape(4, 3, 2)
        law = torch.distributions.Categorical(logits=logits)
        option = law.sample()
        f = ((option.double() * network.v).sum(1) - 1.5 + network.x[:, 0]) ** 2
        return (f + f.detach() * law.log_prob(option).sum(1)).mean()

    comparison = compare(network, network.parameters(), {"mine": by_hand, "ours": "reinforce"}, replicates=300)
    assert not comparison.biased("mine") and np.isnan(comparison["mine"].rows) and comparison.by == "seconds"
    assert comparison["mine"].variance == pytest.approx(comparison["ours"].variance, rel=0.4)
    alone = compare(None, network.parameters(), {"mine": by_hand, "same": by_hand}, reference="mine", replicates=50)
    assert alone.reference == "50 x mine" and not alone.biased("same")


def test_a_seed_decides_and_nothing_is_left_behind():
    network = Bits()
    torch.manual_seed(7)
    state, before = torch.get_rng_state(), [p.detach().clone() for p in network.parameters()]
    estimator = hardgrad.Estimator("moving_baseline")
    expectation(network.w[0].reshape(3, 2), lambda z: 10 + z[:, 0, 1], estimator)
    torch.set_rng_state(state)
    names = ["rloo[samples=2]", "nvil", estimator]

    def numbers(seed):
        comparison = compare(
            network, network.parameters(), {str(i): name for i, name in enumerate(names)}, replicates=20, warmup=5, seed=seed
        )
        return [(one.variance, one.squared_bias, one.cosine) for one in comparison]

    first = numbers(0)
    assert numbers(0) == first and all(a[0] != b[0] for a, b in zip(first, numbers(1)))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None and torch.equal(p, old) for p, old in zip(network.parameters(), before))


def test_learners_given_by_name_learn_before_and_others_are_kept_as_they_are():
    logits = torch.tensor([[0.0, 0.5]], dtype=torch.float64, requires_grad=True)

    def step(estimator):
        return expectation(logits, lambda z: 10 + z[:, 0, 1], estimator)

    held = hardgrad.Estimator("moving_baseline")
    comparison = compare(
        step, [logits], {"fresh": held, "named": "moving_baseline", "none": "reinforce"}, replicates=100, warmup=150
    )
    assert (
        comparison["named"].variance < 0.05 * comparison["fresh"].variance
        and comparison["named"].warmup == 150
        and comparison["fresh"].warmup == 0
    )
    assert comparison["fresh"].variance == pytest.approx(comparison["none"].variance) and comparison.best == "named"
    assert "it learned for 150 steps" in str(comparison)
    again = compare(step, [logits], [held], replicates=100)
    assert again["moving_baseline"].variance == comparison["fresh"].variance


def test_an_estimator_that_learns_by_name_at_every_call_warns_once():
    logits = torch.zeros(1, 2, requires_grad=True)

    def call(spec):
        expectation(logits, lambda z: z[:, 0, 1], spec)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call("moving_baseline[decay=0.5]")
        for _ in range(3):
            call("rloo")
        with torch.no_grad():
            call("moving_baseline[decay=0.5]")
    with pytest.warns(RuntimeWarning, match=r'hardgrad.Estimator\("moving_baseline\[decay=0.5\]"\) once') as warned:
        call("moving_baseline[decay=0.5]")
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call("moving_baseline[decay=0.5]")
    with pytest.warns(RuntimeWarning, match="nvil learns") as warned:
        for _ in range(2):
            with episode(1, {"z": Site(options=2)}, "nvil[samples=3]") as e:
                e.cost(e.choose("z", logits).weights[:, 0, 0])
    assert warned[0].filename == __file__


def test_memory_does_not_grow_with_the_replicates():
    """192 more gradients of 100,000 parameters would take 150 MB."""
    w = torch.zeros(100_000, requires_grad=True)
    steps = {"noise": lambda: (w * torch.randn(100_000)).sum()}
    compare(None, [w], steps, replicates=64, reference=None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    comparison = compare(None, [w], steps, replicates=256, reference=None)
    assert comparison["noise"].variance == pytest.approx(1e5, rel=0.02)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # kB


def test_a_budget_of_seconds_is_shared():
    """Each estimator gets its 8 estimates, however little time there is, and the counts are stated."""
    network = Bits()
    comparison = compare(network, network.parameters(), ["rloo[samples=2]", "reinforce"], seconds=1e-6)
    assert [one.replicates for one in comparison] == [8, 8]
    comparison = compare(network, network.parameters(), ["rloo[samples=2]", "reinforce"], seconds=0.5)
    assert all(8 <= one.replicates < 100_000 for one in comparison)
    comparison = compare(network, network.parameters(), ["rloo[samples=2]"], seconds=1e6, replicates=12)
    assert comparison["rloo[samples=2]"].replicates == 12


def test_references():
    network = Bits(torch.float32)
    rough = compare(network, network.parameters(), ["reinforce"], replicates=50, cap=10)
    assert rough.reference == "25 x rloo[samples=4]" and rough["reinforce"].estimand_standard_error > 0
    assert not rough.biased("reinforce") and "standard error" in str(rough)
    none = compare(network, network.parameters(), ["reinforce"], replicates=50, reference=None)
    assert none.reference == "" and np.isnan(none["reinforce"].squared_bias) and "relative bias" not in str(none)
    other = compare(network, network.parameters(), ["reinforce"], replicates=50, reference="arms[samples=4]")
    assert other.reference == "25 x arms[samples=4]"
    with pytest.raises(hardgrad.UsageError, match="reference nothing: .*unknown estimator"):
        compare(network, network.parameters(), ["reinforce"], reference="nothing")


@pytest.mark.parametrize("count, replicates, longest", [(1, 10, 8), (2, 10, 10), (4, 30, 60), (8, 10, 40), (10, 10, 40)])
def test_a_long_run_takes_a_third_of_the_gradients(count, replicates, longest):
    calls = []

    def step(estimator):
        calls.append(str(estimator))
        return network(estimator)

    network = Bits()
    specs = {f"e{i}": f"reinforce[samples={i + 1}]" for i in range(count)}
    comparison = compare(step, network.parameters(), specs, replicates=replicates, cap=10, warmup=0)
    assert comparison.reference == f"{longest} x rloo[samples=4]"
    beside = 2 + 1 + 16  # two of one seed, one to see noise, 16 that show rare draws
    assert longest <= calls.count("rloo[samples=4]") <= longest + beside
    assert longest <= max(8, count * replicates / 2)


def test_the_noise_of_a_short_reference_is_in_what_is_reported():
    """Of 100 comparisons with 24 estimates each against the mean of 24: the squared bias is right on average, its interval has
    the true one, and p is below 5% by chance alone. Without the reference's noise all three would be wrong."""
    network = Bits(scale=0.5)
    specs = ["reinforce", "straight_through"]
    exact = compare(network, network.parameters(), specs, replicates=2000)
    truth = exact["straight_through"].squared_bias
    every = [compare(network, network.parameters(), specs, replicates=24, seed=seed, cap=10) for seed in range(100)]
    assert {one.reference for one in every} == {"24 x rloo[samples=4]"}
    for spec, bias in zip(specs, (0.0, truth)):
        found = np.array([one[spec].squared_bias for one in every])
        assert abs(found.mean() - bias) < 4 * found.std(ddof=1) / 10
        ends = np.array([one[spec].intervals["squared_bias"] for one in every])
        covered = (ends[:, 0] <= bias + 1e-12) & (bias <= ends[:, 1])
        assert covered.sum() >= 87, covered.sum()  # at 95%: P(less than 87) = .0003
        cosines = np.array([one[spec].cosine for one in every])
        assert abs(np.nanmean(cosines) - exact[spec].cosine) < 0.02 + 4 * np.nanstd(cosines, ddof=1) / 10
    small = sum(one["reinforce"].bias_p_value_plain < 0.05 for one in every)
    assert small <= 13, small


def test_bad_steps_are_named_and_the_others_kept():
    network, counter = Bits(), iter(range(10**9))

    def changes():
        with torch.no_grad():
            network.w.add_(1.0)
        return network("rloo")

    def sometimes():
        return network("rloo") * (float("nan") if torch.rand(()) < 0.2 else 1.0)

    def backward():
        loss = network("rloo")
        loss.backward()
        return loss

    before = network.w.detach().clone()
    comparison = compare(
        network,
        network.parameters(),
        {
            "fine": "rloo",
            "changes": changes,
            "sometimes": sometimes,
            "never": lambda: network("rloo") * float("nan"),
            "random": lambda: network("rloo") * (1 + next(counter)),
            "raises": lambda: 1 / 0,
            "vector": lambda: network.w,
            "number": lambda: 1.0,
            "detached": lambda: network("rloo").detach(),
            "elsewhere": lambda: (torch.ones(1, requires_grad=True) * 2).sum(),
            "unknown": "nothing",
            "unfit": "arsm[samples=4,nothing=1]",
            "part": lambda: network.v.sum() + torch.randn(()) * network.v[0],
            "backward": backward,
        },
        replicates=100,
    )
    network.w.grad = network.v.grad = None
    assert torch.equal(network.w, before)
    said = {
        "changes": r"changes the parameters \(parameter 0, \[2, 6\]\).*former values",
        "never": "not finite",
        "random": "not deterministic: with the same seed",
        "raises": "ZeroDivisionError",
        "vector": r"shape \[2, 6\]",
        "number": "type float",
        "detached": "without a gradient",
        "elsewhere": "no gradient reaches any",
        "unknown": "unknown estimator",
        "unfit": "nothing",
        "backward": r"backward\(\) already",
    }
    for name, words in said.items():
        assert comparison[name].status in ("failed", "skipped") and re.search(words, comparison[name].reason), (
            name,
            comparison[name].reason,
        )
        with pytest.raises(AttributeError, match="has no variance"):
            comparison[name].variance
    assert comparison["fine"].status == "ok" and comparison["fine"].replicates == 100
    assert (
        5 <= comparison["sometimes"].not_finite <= 40
        and comparison["sometimes"].replicates == 100 - comparison["sometimes"].not_finite
    )
    assert "no gradient reaches 1 of 2 parameters (parameter 0, [2, 6])" in comparison["part"].notes[0]
    assert all(name in str(comparison) for name in said) and "failed" in str(comparison)


def test_a_step_that_ignores_its_estimator():
    network = Bits()
    comparison = compare(
        lambda estimator: network("rloo[samples=2]"), network.parameters(), ["reinforce", "rloo[samples=4]"], replicates=20
    )
    assert any("ignores the estimator" in note for note in comparison.notes)
    assert "does not use it, but rloo[samples=2]" in str(comparison)
    fine = compare(network, network.parameters(), ["reinforce", "rloo[samples=4]"], replicates=20)
    assert not fine.notes and "does not use" not in str(fine)


@pytest.mark.parametrize(
    "parameters, estimators, named, said",
    [
        ([], ["rloo"], {}, "no tensor that requires a gradient"),
        ([torch.zeros(2)], ["rloo"], {}, "no tensor that requires a gradient"),
        (["w"], ["rloo"], {}, "type str, expected tensors"),
        ("twice", ["rloo"], {}, "same tensor twice"),
        (None, [], {}, "estimators are empty"),
        (None, [3], {}, "type int: give it a name"),
        (None, ["rloo"], {"replicates": 1}, "replicates are 2 to"),
        (None, ["rloo"], {"warmup": -1}, "warmup and seed are at least 0"),
        (None, ["rloo"], {"seconds": 0}, "seconds are more than 0"),
        (None, ["rloo"], {"by": "luck"}, "by is"),
        (None, ["nothing"], {"replicates": 5}, "nothing: .*unknown estimator"),
    ],
)
def test_refusals(parameters, estimators, named, said):
    network = Bits()
    given = network.parameters() if parameters is None else [network.w, network.w] if parameters == "twice" else parameters
    with pytest.raises(hardgrad.UsageError, match=said):
        compare(network, given, estimators, **named)
    with pytest.raises(hardgrad.UsageError, match="step is None"):
        compare(None, network.parameters(), ["rloo"])


def test_without_memory_for_the_exact_reference_a_long_run_replaces_it():
    network = Bits()

    def step(estimator):
        if str(estimator).startswith("exact"):
            torch.empty(1 << 58, dtype=torch.uint8)
        return network(estimator)

    comparison = compare(step, network.parameters(), ["reinforce"], replicates=20)
    assert comparison.reference == "10 x rloo[samples=4]" and comparison["reinforce"].status == "ok"
    assert any(
        note.startswith("The exact reference failed: RuntimeError: ") and "memory" in note for note in comparison.notes
    ), comparison.notes


def test_files_and_datasets(tmp_path):
    from hardgrad.analysis import format_table, load, table
    from hardgrad.analysis.report import report

    network = Looks()
    comparison = compare(network, network.parameters(), ["reinforce", "rloo[samples=3]", "rebar"], replicates=40)
    assert comparison["rebar"].status == "skipped" and "choice.weights" in comparison["rebar"].reason
    comparison.save(tmp_path / "compared.h5")
    with pytest.warns(match="no seal"):
        data = load(tmp_path / "compared.h5")
    assert data.estimator.values.tolist() == ["reinforce", "rloo[samples=3]", "rebar"]
    np.testing.assert_allclose(
        data.variance.values[:2, 0], [comparison["reinforce"].variance, comparison["rloo[samples=3]"].variance]
    )
    assert data.variance_by_group.sel(parameter_group="items").shape == (3, 1)
    assert data.variance.attrs["better"] == "lower" and data.snr.attrs["better"] == "higher"  # as a sweep's
    assert (
        {str(name).removesuffix("_interval") for name in data if str(name).endswith("_interval")}
        == {name for name in data if "interval" in data[name].attrs}
        == {"variance", "squared_bias", "relative_bias", "snr", "cosine"}
    )
    assert data.attrs["precision"] == "float" and data.attrs["rounding"] == 64 * 2**-23
    assert "rloo[samples=3]" in format_table(table(data)) and "1 skipped" in report(data)


def test_a_monitor_measures_along_training(tmp_path):
    network = Bits()
    monitor = hardgrad.torch.Monitor(
        network, network.parameters(), ["reinforce", "moving_baseline"], every=2, replicates=30, warmup=20
    )
    with pytest.raises(hardgrad.UsageError, match="nothing has been measured"):
        monitor.to_xarray()
    adam = torch.optim.Adam(network.parameters(), 0.3)
    for step in range(5):
        assert (monitor(step) is None) == (step % 2 == 1)
        adam.zero_grad()
        network("rloo[samples=4]").backward()
        adam.step()
    assert list(monitor.results) == [0, 2, 4]
    data = monitor.to_xarray()
    assert data.variance.shape == (2, 3) and data.measurement_step.values.tolist() == [0, 2, 4]
    assert data.variance.values[0, 2] == monitor.results[4]["reinforce"].variance != monitor.results[0]["reinforce"].variance
    monitor.save(tmp_path / "along.h5")
    with pytest.raises(hardgrad.UsageError, match="every is at least 1"):
        hardgrad.torch.Monitor(network, network.parameters(), ["rloo"], every=0)
