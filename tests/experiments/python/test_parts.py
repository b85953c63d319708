"""Large batches are drawn in parts, by several threads: the numbers are those of the parts drawn alone, bit for bit, for any number of
threads, and the function is called once for the rows of all parts, by the caller's thread."""

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
COUPLED = {"james_stein"}


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def drawn(spec, logits, first=0, threads=1, **named):
    """Value, gradients and calls of an estimate of the examples from `first` on. The loss is of products and sums in a fixed order, as
    the bits of PyTorch's functions and reductions may depend on the place of a row."""
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
    same = [np.array_equal(found, expected) for found, expected in zip(each[0], alone[:3])]
    close = all(np.allclose(found, expected, rtol=1e-11, atol=1e-13) for found, expected in zip(each[0], alone[:3]))
    assert all(same) or spec in COUPLED or (close and hardgrad.Estimator(spec)) , spec
    return all(same), close


def supported(spec, **of):
    try:
        drawn(spec, of.pop("logits")[:2], **of)
    except hardgrad.UsageError:
        return False
    return True


@pytest.mark.filterwarnings("ignore:.*learns, but given by name")
@pytest.mark.parametrize(
    "logits, named, fewest", [(RAGGED, {}, 45), (BITS, {"bits": True}, 50), (CATEGORIES, {"subset": 2}, 12)], ids=["options", "bits", "subsets"]
)
def test_every_estimator(logits, named, fewest):
    found, whole = [], []
    for spec in hardgrad.estimators():
        if not supported(spec, logits=logits, **named):
            continue
        same, close = compared(spec, logits, **named)
        assert close != (spec in COUPLED), spec
        (found if same else whole).append(spec)
    print(len(found), whole)
    assert len(found) >= fewest, found
