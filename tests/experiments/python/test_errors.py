"""Errors are one-line messages, exceptions of a user's function are passed through, and no reference is kept."""

import gc
import os
import resource
import signal
import threading
import weakref

import numpy as np
import pytest

import hardgrad
from hardgrad import _core
from problem import LOGITS

TABLE = np.arange(9.0).reshape(3, 3)


def zeros(options):
    return np.zeros(len(options))


@pytest.mark.parametrize(
    "logits, f, spec, said",
    [
        (LOGITS, TABLE, "rlo", r'unknown estimator "rlo" \(did you mean "rloo"\?\)'),
        (LOGITS, TABLE, "rloo[samples=1]", "rloo: samples must be at least 2, got 1"),
        (LOGITS, TABLE, "disarm", "disarm: needs bits.*3 options"),
        (LOGITS, TABLE, "vimco", "vimco: the model has no learned posterior"),
        (LOGITS, TABLE, "pathwise", "pathwise: "),
        (LOGITS, TABLE[:2], "rloo", r"a table of 2 columns with 3 options has shape \[3, 3\], got \[2, 3\]"),
        (LOGITS, "a table", "rloo", "neither a function nor a table of real numbers but str"),
        (LOGITS, np.where(TABLE == 4, np.nan, TABLE), "rloo", "the table has an entry that is not a finite number"),
        ([[0, np.nan, 1]], np.zeros(3), "rloo", r"logits: entry \[0, 1\] is nan"),
        ([0, -np.inf, 1], np.zeros(3), "rloo", r"logits: entry \[1\] is -inf"),
        ([[[0, 1], [0, np.inf]]], np.zeros((2, 2)), "rloo", r"logits: entry \[0, 1, 1\] is inf"),
        ([-np.inf, -np.inf], np.zeros(2), "rloo", r"all options of entry \[0\] are -inf"),
        (np.zeros((2, 0)), zeros, "rloo", r"logits have shape \[2, 0\]"),
        (np.zeros((1, 1, 1, 2)), zeros, "rloo", r"logits have shape \[1, 1, 1, 2\]"),
        (["a", "b"], zeros, "rloo", "is not a type of real numbers"),
        (LOGITS, lambda options: np.zeros((len(options), 1)), "rloo", r"losses of shape \[\d+, 1\], expected \[\d+\]"),
        (LOGITS, lambda options: 1.0, "rloo", r"losses of shape \[\], expected"),
        (LOGITS, lambda options: None, "rloo", "losses"),
        (LOGITS, lambda options: ["a"] * len(options), "rloo", "are list, not an array of real numbers"),
        (LOGITS, lambda options: np.full(len(options), 1j), "rloo", "are ndarray, not an array of real numbers"),
        (LOGITS, TABLE * 1j, "rloo", "neither a function nor a table of real numbers but ndarray"),
        (np.zeros((5, 2, 1)), zeros, "rloo", r"logits of shape \[5, 2, 1\] have one option.*stack zeros and l"),
    ],
)
@pytest.mark.parametrize("call", [hardgrad.gradient, hardgrad.moments])
def test_refusals(call, logits, f, spec, said):
    with pytest.raises(hardgrad.UsageError, match=said) as refusal:
        call(logits, f, spec)
    assert isinstance(refusal.value, ValueError) and isinstance(refusal.value, hardgrad.Error)
    assert "\n" not in str(refusal.value)


def test_more_refusals():
    with pytest.raises(hardgrad.UsageError, match='takes is "options" or "weights"'):
        hardgrad.moments(LOGITS, zeros, "rloo", takes="onehot")
    with pytest.raises(hardgrad.UsageError, match="3.48678e\\+09 outcomes an example"):
        hardgrad.moments(np.zeros((20, 3)), zeros, "rloo")
    with pytest.raises(hardgrad.NotExact, match="exact moments need about"):
        hardgrad.moments(LOGITS, TABLE, "rloo[samples=30]", cap=1e4)
    with pytest.raises(hardgrad.UsageError, match="derivatives of shape"):
        hardgrad.gradient(LOGITS, lambda w: (np.zeros(len(w)), np.zeros(len(w))), "gumbel_softmax", takes="weights")
    with pytest.raises(
        hardgrad.UsageError, match=r"gumbel_softmax differentiates the loss in the weights: return \(losses, deriv"
    ):
        hardgrad.gradient(LOGITS, lambda w: np.zeros(len(w)), "gumbel_softmax", takes="weights")
    for call in (hardgrad.moments, hardgrad.gradient):
        with pytest.raises(hardgrad.NotFinite, match="the loss of row 0.* is nan, not a finite number") as refusal:
            call(LOGITS, lambda w: (np.full(len(w), np.nan), w), "gumbel_softmax", takes="weights")
        assert isinstance(refusal.value, ArithmeticError)
    for seed in (-1, 1 << 64, 0.5, None):
        with pytest.raises(hardgrad.UsageError, match="a seed is a whole number from 0 to"):
            hardgrad.gradient(LOGITS, TABLE, "rloo", seed)
    with pytest.raises(hardgrad.UsageError, match="is ambiguous"):
        hardgrad.describe("bits")
    with pytest.raises(hardgrad.UsageError, match='there is nothing named "rlooo"'):
        hardgrad.describe("rlooo")


def test_rows_that_change_one_choice_each_have_a_cap():
    """Refused before they are made: they would take the square of the choices in memory."""
    seen = []
    draw = lambda spec, count: hardgrad.gradient(
        np.zeros((count, 2)), lambda options: seen.append(options) or options.sum(1), spec, seed=1
    )
    refused = 0
    for spec, rows in ("local_expectation", 30001), ("mvd", 30001), ("stochastic_ad", 60001):
        with pytest.raises(hardgrad.NotExact, match=f"needs {rows} rows of 30000 choices .* the cap of 1e\\+06 rows") as said:
            draw(spec, 30000)
        assert "raise the setting `cap`" in str(said.value) and "\n" not in str(said.value)
        base = (rows - 1) // 30000 * 200 + 1
        for cap in base - 1, 2 * base - 1:  # too few rows; 100 cap choices are too few
            with pytest.raises(hardgrad.NotExact, match=f"needs {base} rows of 200 choices .* cap of {cap} rows and {cap}00"):
                draw(f"{spec}[cap={cap}]", 200)
        assert not seen
        draw(f"{spec}[cap={2 * base}]", 200)
        assert seen.pop().shape == (base, 200)
        refused += 1
    assert refused == 3


class Ours(Exception):
    pass


@pytest.mark.parametrize("call", [hardgrad.gradient, hardgrad.moments])
@pytest.mark.parametrize("spec, takes", [("rloo", "options"), ("rebar", "weights"), ("straight_through", "weights")])
def test_what_a_function_raises_comes_out(call, spec, takes):
    asked = 0

    def f(choice):
        nonlocal asked
        asked += 1
        raise Ours("no loss today")

    with pytest.raises(Ours, match="no loss today"):
        call(LOGITS, f, spec, takes=takes)
    assert asked == 1
    assert np.isfinite(hardgrad.gradient(LOGITS, TABLE, spec).value).all()  # later calls work


def test_a_derivative_that_raises_comes_out():
    def pull(cotangent):
        raise Ours("no derivative")

    for spec in ("gumbel_softmax", "rebar"):  # differentiated at the end, and during the run
        with pytest.raises(Ours, match="no derivative"):
            _core.draw_double(
                hardgrad.Estimator(spec),
                LOGITS[None],
                2,
                0,
                None,
                None,
                None,
                lambda choice, example, differentiable: (np.zeros(len(example)), pull),
                True,
                0,
                False,
                True,
                False,
                None,
                None,
                None,
                1,
            )


def test_nothing_is_kept():
    class Function:
        def __init__(self, fails):
            self.fails = fails

        def __call__(self, weights):
            if self.fails:
                raise Ours
            return (weights**2).sum(axis=(1, 2)), 2 * weights

    kept = []
    for spec in ("rloo", "rebar", "muprop", "gumbel_softmax"):
        for fails in (False, True):
            for call in (hardgrad.gradient, hardgrad.moments)[: 1 + (spec != "rebar")]:  # rebar's quadrature has many nodes
                f = Function(fails)
                try:
                    call(LOGITS[:1, :2], f, spec, takes="weights")
                except Ours:
                    pass
                kept.append(weakref.ref(f))
                del f
    gc.collect()
    assert len(kept) == 14 and all(ref() is None for ref in kept)


def test_many_calls_take_no_memory():
    """A leak of the arrays of a call would show: they take some kilobytes."""

    def f(options):
        return options.sum(axis=1).astype(float)

    def broken(options):
        raise Ours

    def calls(count):
        for seed in range(count):
            hardgrad.gradient(LOGITS, f, "rloo[samples=2]", seed)
            try:
                hardgrad.gradient(LOGITS, broken, "rloo[samples=2]", seed)
            except Ours:
                pass

    count = int(os.environ.get("HARDGRAD_CALLS", 2000))
    calls(count // 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(count)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < max(1 << 20, 2 * count * 50), f"{grown / (2 * count):.0f} bytes a call"


def test_threads_do_not_mix():
    expected = [hardgrad.gradient(LOGITS, TABLE, "rloo[samples=8]", seed).value for seed in range(8)]
    found = [None] * 8

    def work(seed):
        for _ in range(20):
            found[seed] = hardgrad.gradient(
                LOGITS, lambda options: TABLE[options[:, 0], options[:, 1]], "rloo[samples=8]", seed
            ).value

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(a, b) for a, b in zip(expected, found))


def test_a_forked_child_works():
    expected = hardgrad.moments(LOGITS, TABLE, "rloo[samples=3]").mean  # also used before the fork
    child = os.fork()
    if child == 0:
        same = np.array_equal(hardgrad.moments(LOGITS, TABLE, "rloo[samples=3]").mean, expected)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def outcome_in_a_child(call):
    """The words that call() returns in a process of its own; its exit status if that crashes."""
    end, start = os.pipe()
    if (child := os.fork()) == 0:
        try:
            words = call()
        except hardgrad.Bug as error:
            words = f"Bug: {error}"
        except hardgrad.Error:
            words = "refused"
        os.write(start, words.encode())
        os._exit(0)
    os.close(start)
    with os.fdopen(end) as file:
        words = file.read()
    status = os.waitpid(child, 0)[1]
    return words if status == 0 else f"status {status}"


def test_peaked_probabilities_end_no_process_and_give_no_nan():
    """Of options whose probabilities underflow, of every estimator."""
    bad, tried = [], 0
    for spec in hardgrad.estimators():
        for logits, losses in (
            ([800.0, 0, 0], [1.0, 4, 2]),
            ([0, 95.0], [1.0, 4]),
            ([700.0, -700, 699], [1.0, 4, 2]),
            ([[800.0, 0, 0], [0, -800.0, 0]], TABLE),
        ):

            def moments():
                of = hardgrad.moments(logits, losses, spec, cap=5e3)
                return "finite" if np.isfinite(of.mean).all() and np.isfinite(of.variance).all() else "not finite"

            def gradient():
                return "finite" if np.isfinite(hardgrad.gradient(logits, losses, spec, 1).value).all() else "not finite"

            for call in (moments, gradient):
                tried += 1
                if (words := outcome_in_a_child(call)) not in ("finite", "refused"):
                    bad.append(f"{spec} at {logits}, {call.__name__}: {words}")
    assert tried >= 8 * 60 and not bad, bad


def test_ctrl_c_ends_long_moments():
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        hardgrad.moments(np.zeros((3, 4)), lambda options: options.sum(axis=1) * 1.0, "rloo[samples=6]", cap=1e12)
    timer.join()


def test_the_same_estimator_within_its_own_loss():
    estimator = hardgrad.Estimator("nvil")

    def f(options):
        inner = hardgrad.gradient(LOGITS, TABLE, estimator, 1)
        return options.sum(axis=1) + np.abs(inner.value).sum()

    assert np.isfinite(hardgrad.gradient(LOGITS, f, estimator, 2).value).all()
