"""Large batches are drawn in parts, by several threads: the numbers are those of the parts drawn alone, bit for bit, for any number
of threads, and the function is called once for the rows of all parts, by the caller's thread."""

import os
import pickle
import threading

import numpy as np
import pytest

import hardgrad

torch = pytest.importorskip("torch")

import hardgrad.torch  # noqa: E402
from hardgrad.torch import expectation  # noqa: E402

E, PARTS = 3100, (1034, 1033, 1033)  # of 24,800 logits, at least 8,192 each
BEGIN = (0, 1034, 2067)
RANDOM = np.random.default_rng(7)
CATEGORIES = RANDOM.normal(size=(E, 2, 4))
RAGGED = np.where((np.arange(E) % 3 == 0)[:, None, None] & (np.arange(4) == 3), -np.inf, CATEGORIES)
BITS = RANDOM.normal(size=(E, 4))
SLOPES = RANDOM.normal(size=8)
COTANGENT = RANDOM.normal(size=E)
#: Drawn as a whole: the examples of a batch are coupled; a baseline or control variate is learned from all of them.
COUPLED = {"james_stein"}
LEARNING = {"double_cv", "entropy_regularised", "moving_baseline", "nvil", "rebar", "relax", "rodeo"}


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def drawn(spec, logits, first=0, threads=1, **named):
    """Value, gradients and calls of an estimate of the examples from `first` on. The loss is of products and sums in a fixed order,
    as the bits of PyTorch's functions and reductions may depend on the place of a row."""
    torch.set_num_threads(threads)
    theta = torch.tensor(logits, requires_grad=True)
    weight = torch.ones(E, dtype=torch.double, requires_grad=True)
    calls = []

    def f(z, example):
        calls.append((len(z), threading.get_ident()))
        z = z.flatten(1)
        x = sum(z[:, i] * SLOPES[i] for i in range(z.shape[1])) * weight[first + example]
        return x * x * x - x + 0.1 * torch.tensor(COTANGENT)[first + example]

    ids = np.arange(first, first + len(logits))
    state = torch.ones(len(logits), 1, dtype=torch.double)  # so that core draws, also for estimators with a formula
    value = expectation(theta, f, spec, ids=ids, seed=3, state=state, **named)
    (value * torch.tensor(COTANGENT[first : first + len(logits)])).sum().backward()
    return value.detach().numpy(), theta.grad.numpy(), weight.grad.numpy(), calls


def of_parts(spec, logits, **named):
    """The same of each part alone."""
    each = [drawn(spec, logits[begin : begin + part], begin, **named) for begin, part in zip(BEGIN, PARTS)]
    value, slope, weight = ([one[i] for one in each] for i in range(3))
    rows = [sum(one[3][call][0] for one in each) for call in range(len(each[0][3]))]
    return np.concatenate(value), np.concatenate(slope), sum(weight), rows


def compared(spec, logits, **named):
    """Whether the examples are drawn in parts: the batch has the bits of the parts, for every number of threads."""
    alone = of_parts(spec, logits, **named)
    each = [drawn(spec, logits, threads=threads, **named) for threads in (1, 2, 4)]
    for value, slope, weight, calls in each:
        assert [rows for rows, _ in calls] == alone[3], spec  # one call for all rows
        assert {thread for _, thread in calls} == {threading.get_ident()}, spec
        for found, first in zip((value, slope, weight), each[0]):
            assert np.array_equal(found, first), spec
    same = all(np.array_equal(found, expected) for found, expected in zip(each[0], alone[:2]))  # a weight's gradient is a sum
    close = all(np.allclose(found, expected, rtol=1e-11, atol=1e-13) for found, expected in zip(each[0], alone[:3]))
    return same, close


def supported(spec, **of):
    try:
        drawn(spec, of.pop("logits")[:2], **of)
    except hardgrad.UsageError:
        return False
    return True


@pytest.mark.filterwarnings("ignore:.*learns, but given by name")
@pytest.mark.parametrize(
    "logits, named, fewest",
    [(RAGGED, {}, 40), (BITS, {"bits": True}, 40), (CATEGORIES, {"subset": 2}, 5)],
    ids=["options", "bits", "subsets"],
)
def test_every_estimator(logits, named, fewest):
    in_parts, whole = [], []
    for spec in hardgrad.estimators():
        if not supported(spec, logits=logits, **named):
            continue
        same, close = compared(spec, logits, **named)
        assert close != (spec in COUPLED), spec
        (in_parts if same else whole).append(spec)
    assert set(whole) <= COUPLED | LEARNING, whole
    assert len(in_parts) >= fewest, in_parts


# What ends a call.


def failing(at, error):
    """A loss whose call number `at` raises."""
    calls = []

    def f(z, example):
        calls.append(len(z))
        if len(calls) == at:
            raise error
        return (z.flatten(1) * torch.tensor(SLOPES)).sum(1) ** 2

    return f


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt(), SystemExit()])
@pytest.mark.parametrize("at", [1, 2])
def test_an_exception_of_either_call_comes_out(at, error):
    theta = torch.tensor(CATEGORIES, requires_grad=True)
    torch.set_num_threads(2)
    with pytest.raises(type(error)) as raised:
        expectation(theta, failing(at, error), "self_critic", seed=1)
    assert raised.value is error
    expectation(theta, failing(0, None), "self_critic", seed=1).sum().backward()  # nothing is left locked
    assert theta.grad.isfinite().all()


def test_an_exception_of_a_derivative_comes_out():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return z.flatten(1).sum(1)

        @staticmethod
        def backward(ctx, cotangent):
            raise KeyError("mine")

    theta = torch.tensor(CATEGORIES, requires_grad=True)
    with pytest.raises(KeyError, match="mine"):  # muprop differentiates while it draws
        expectation(theta, lambda z, example: Fails.apply(z), "muprop", seed=1).sum().backward()


def test_a_loss_is_named_by_its_row_in_the_call():
    def f(options, example, bad):
        losses = -1.0 - options.sum(1)
        losses[9000] = bad
        return losses

    for bad, words in ((np.nan, "row 9000 is nan"), (0.5, "row 9000 is 0.5: the likelihood")):
        with pytest.raises((hardgrad.NotFinite, hardgrad.UsageError), match=words):
            hardgrad.gradient(
                CATEGORIES, lambda options, example: f(options, example, bad), "policy_gradient[preset=maxrl,samples=4]"
            )


def test_the_cap_is_that_of_the_batch():
    """Each part is below it. The function is not called."""
    with pytest.raises(hardgrad.NotExact, match="more than 5000 rows"):
        hardgrad.gradient(CATEGORIES, lambda options, example: 1 / 0, "best_of[samples=4,cap=5000]")
    assert np.isfinite(
        hardgrad.gradient(CATEGORIES, lambda options, example: -options.sum(1), "best_of[samples=4,cap=12400]").value
    ).all()


def test_a_loss_of_options_refuses_weights():
    with pytest.raises(hardgrad.UsageError, match="dense_mixer needs a loss of weights"):
        hardgrad.gradient(CATEGORIES, lambda options, example: options.sum(1), "dense_mixer")


# Two threads, and a fork.


def test_two_threads_get_what_one_gets():
    expected = {spec: drawn(spec, CATEGORIES)[:2] for spec in ("muprop", "unordered_set")}
    found, barrier = [], threading.Barrier(2)

    def work():
        barrier.wait()
        for spec in [*expected] * 3:
            found.append((spec, drawn(spec, CATEGORIES, threads=2)[:2]))

    both = [threading.Thread(target=work) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert len(found) == 12
    assert all(np.array_equal(a, b) for spec, of in found for a, b in zip(of, expected[spec], strict=True))


def test_a_forked_process_gets_what_its_parent_gets():
    def of_options(options, example):
        return options.sum(1) ** 2.0

    alone = hardgrad.gradient(CATEGORIES, of_options, "unordered_set", seed=2).value
    end, start = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(start, pickle.dumps(hardgrad.gradient(CATEGORIES, of_options, "unordered_set", seed=2).value.sum()))
        finally:
            os._exit(0)
    os.close(start)
    with os.fdopen(end, "rb") as file:
        found = pickle.loads(file.read())
    os.waitpid(child, 0)
    assert found == alone.sum()
