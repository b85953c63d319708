"""compare: estimators are drawn in turns, and the noise of their costs enters the ranking. The clocks here are made up."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hardgrad.compare  # noqa: E402
import hardgrad.replicates  # noqa: E402
from hardgrad.comparison import Score, better  # noqa: E402
from hardgrad.replicates import median_interval  # noqa: E402
from hardgrad.torch import compare  # noqa: E402
from hardgrad.torch.compare import Tensors  # noqa: E402
from test_compare import Bits  # noqa: E402

NAMES = ["reinforce", "rloo[samples=2]", "straight_through"]


def figures(one):
    return {name: value for name, value in one.numbers.items() if "seconds" not in name and "time" not in name}


def test_estimators_are_drawn_in_turns():
    network, calls = Bits(), []

    def step(estimator):
        calls.append(str(estimator))
        return network(estimator)

    compare(step, network.parameters(), NAMES, replicates=32)
    rounds = [calls[-n * 3 : len(calls) - (n - 1) * 3] for n in range(32, 0, -1)]
    assert all(sorted(turn) == sorted(NAMES) for turn in rounds)
    assert {turn[0] for turn in rounds} == set(NAMES)


def test_turns_change_no_figure(monkeypatch):
    network = Bits()
    together = compare(network, network.parameters(), NAMES, replicates=40)
    alone = {name: compare(network, network.parameters(), [name], replicates=40)[name] for name in NAMES}
    monkeypatch.setattr(hardgrad.compare, "turns_fit", lambda *_: False)
    after = compare(network, network.parameters(), NAMES, replicates=40)
    for name in NAMES:
        for other in (alone[name], after[name]):
            np.testing.assert_equal(figures(together[name]), figures(other))
        assert together[name].wide == after[name].wide and len(figures(together[name])) >= 12


def test_estimators_whose_sums_need_much_memory_are_drawn_one_after_another():
    class Sized:
        size = 10**6

    assert hardgrad.replicates.turns_fit(7, Sized) and not hardgrad.replicates.turns_fit(8, Sized)


def test_the_time_is_shared_equally(monkeypatch):
    """A draw takes a second of one, and an eighth of another; a third fails, and leaves its time to them."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock, network, counts = Clock(), Bits(), {}
    for module in (hardgrad.compare, hardgrad.replicates):
        monkeypatch.setattr(module, "time", clock)

    def entry(name, cost):
        def loss():
            counts[name] = counts.get(name, 0) + 1
            clock.now += cost
            if name == "fails" and counts[name] > 30:
                raise ValueError
            return network("reinforce")

        return loss

    own = {name: entry(name, cost) for name, cost in (("slow", 1.0), ("fast", 0.125), ("fails", 0.125))}
    found = compare(network, network.parameters(), own, seconds=400, reference=None)
    assert found["fails"].status == "failed"
    spent = counts["slow"], 0.125 * counts["fast"]
    assert abs(spent[0] - spent[1]) <= 2 and 398 <= sum(spent) + 0.125 * counts["fails"] <= 402
    assert found["fast"].replicates > 6 * found["slow"].replicates


def test_equal_code_is_equal_under_load_and_dearer_code_is_found(monkeypatch):
    """Costs in ms: a load that comes and goes multiplies them by up to 7."""
    network, load = Bits(), np.random.default_rng(3)
    costs = {"one": 2e-3, "same": 2e-3, "dear": 3e-3}
    now = []

    def stopwatch(self):
        return lambda: costs[now[-1]] * (1 + 6 * load.random() ** 3)

    monkeypatch.setattr(Tensors, "stopwatch", stopwatch)

    def entry(name):
        def loss():
            now.append(name)
            return network("rloo[samples=4]")

        return loss

    found = compare(
        network, network.parameters(), {name: entry(name) for name in costs}, replicates=2000, by="seconds", cap=1e6
    )
    assert found["one"].variance == found["same"].variance and found["one"].seconds != found["same"].seconds
    assert found.rank["one"] == found.rank["same"] == 1 and found.best in ("one", "same") and found.rank["dear"] == 3
    low, high = found["one"].intervals["seconds"]
    assert low < found["one"].seconds < high < 1.5 * low
    lines = str(found).splitlines()
    assert sum(f"{found[name].milliseconds[0]:.3g}, " in line for name in costs for line in lines) >= 3  # their intervals


def test_the_noise_of_costs_is_in_the_ranking():
    """The variance is known. A load multiplies the costs of a turn; the rest of their noise is each one's own."""
    random = np.random.default_rng(4)
    load = np.repeat(random.choice([1.0, 5.0], 8), 5)

    def at(cost, noise):
        return Score(1.0, 1.0, 1.0, cost, False, list(cost * load * np.exp(noise * random.normal(size=40))), 0.95)

    assert better(at(1.0, 0.001), at(1.01, 0.001)) and not better(at(1.01, 0.001), at(1.0, 0.001))
    assert better(at(1.0, 0.1), at(1.3, 0.1)) and not better(at(1.3, 0.1), at(1.0, 0.1))
    assert sum(better(at(1.0, 0.2), at(1.0, 0.2)) for _ in range(400)) <= 20  # 10 of one side expected; more than 20: p = .001
    few = Score(1.0, 1.0, 1.0, 5.0, False, [5.0] * 5, 0.95)
    assert not better(at(1.0, 0.0), few) and not better(few, at(100.0, 0.0))
    missing = Score(1.0, 1.0, 1.0, 5.0, False, [np.nan] * 40, 0.95)
    nothing = Score(1.0, 1.0, 1.0, 0.0, False, [0.0] * 40, 0.95)  # a clock that did not tick
    for other in (missing, nothing):
        assert not better(other, at(1.0, 0.0)) and not better(at(1.0, 0.0), other)


@pytest.mark.parametrize(
    "count, level, ends", [(5, 0.95, None), (6, 0.95, 0), (8, 0.95, 0), (9, 0.95, 1), (20, 0.95, 5), (20, 0.99, 3)]
)
def test_the_interval_of_a_median(count, level, ends):
    """By all outcomes: which values are below the median."""
    values = list(range(count))
    wanted = (0.0, np.inf) if ends is None else (ends, count - 1 - ends)
    assert median_interval(values[::-1], level) == wanted
    if ends is not None and count < 10:
        outcomes = [sum(flips) for flips in itertools.product((0, 1), repeat=count)]
        covered = lambda r: sum(r < below < count - r for below in outcomes) / len(outcomes)  # noqa: E731
        assert covered(ends) >= level > covered(ends + 1)
