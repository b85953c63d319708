"""The counts of `arithmetic.py`. Those of the plain code equal a count of every product while it runs; those of the needed products equal
counts by hand."""

import os
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode

import arithmetic
import torch_ops
from gradient_file import load
from limits import NETWORKS
from ours import Hardgrad
from peers import environment
from problem import problem
from rows import rows


class Counter(TorchDispatchMode):
    """Counts the floating-point operations of products of matrices."""

    flops = 0

    def __torch_dispatch__(self, function, types, arguments=(), settings=None):
        name = function.__name__.split(".")[0]
        if name in ("mm", "bmm", "addmm", "baddbmm"):
            left, right = arguments[-2:]
            self.flops += 2 * left.numel() * right.shape[-1]
        return function(*arguments, **(settings or {}))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The small rows that have a count, with their gradient files."""
    folder, found = tmp_path_factory.mktemp("rows"), []
    for row in rows(folder, True):
        model = row.model.split("[")[0]
        if model in arithmetic.COUNTS and not row.replicates and not row.training:
            path = str(folder / f"{len(found)}.h5")
            Hardgrad(os.environ["HARDGRAD_BINARY"], row, environment()).run("--out", path)
            found.append((row, model, load(path)))
    return found


def run_plain(row, model, file):
    """The products that the plain code computes."""
    p, data, network, _ = problem(file, model, row.samples, row.noise)
    p = {k: torch.tensor(v).requires_grad_() for k, v in p.items()}
    data = {k: v if isinstance(v, (int, float)) else torch.tensor(v) for k, v in data.items()}
    with Counter() as counter:
        network(torch_ops, p, data, row.samples, row.estimator).backward()
    return counter.flops


def test_the_plain_code_does_as_many_products_as_counted(files):
    assert len(files) > 25
    for row, model, file in files:
        assert arithmetic.flops(file, model, row.estimator, row.samples, plain=True) == run_plain(row, model, file), (
            row.name,
            row.spec(),
        )


def test_no_more_is_needed_than_the_plain_code_does(files):
    for row, model, file in files:
        needed, plain = (arithmetic.flops(file, model, row.estimator, row.samples, plain=some) for some in (False, True))
        assert 0 < needed <= plain, (row.name, row.spec())
        assert arithmetic.needed(file, model, row.estimator, row.samples)[1] > 0


def one(files, name, estimator):
    return next(entry for entry in files if (entry[0].name, entry[0].estimator) == (name, estimator))


@pytest.mark.parametrize(
    "name, estimator, by_hand",
    [
        # 4 images of 64 pixels, 6 bits, 2 samples: the encoder and the decoder, forward and for their weights; in rebar two relaxed
        # evaluations, forward and for the bits
        ("belief, 6 bits", "rloo", 2 * 64 * 6 * 2 * (4 + 8)),
        ("belief, 6 bits", "rebar", 2 * 64 * 6 * 2 * (4 + 8 + 2 * 8)),
        # 16 examples of 8 numbers, 6 units, 4 steps: inputs; recurrent after the first step; halting before the last. Then answers
        ("ponderer", "rloo", 2 * 16 * (2 * 8 * 24 + 3 * 3 * (6 * 24 + 6))),
        # 4 images, patches of 64 pixels of 9 cells at 2 glimpses, 8 features and units, 10 digits. Of a cell: its contents. Of the first
        # state, which is learned, and the 36 after it: the recurrent layer and the locator
        (
            "glimpse reader, 2",
            "exact",
            2 * (36 * (2 * 64 * 8 + 3 * 8 * 8 + 3 * 8 * 8) + 3 * 37 * (8 * 8 + 8 * 9) + 3 * 4 * 81 * 8 * 10),
        ),
    ],
)
def test_counts_by_hand(files, name, estimator, by_hand):
    row, model, file = one(files, name, estimator)
    counted, _ = arithmetic.needed(file, model, estimator, row.samples)
    assert sum(product.flops() for product in counted if (name, product.name) != ("ponderer", "answer")) == by_hand


def test_samples_with_the_same_choices_are_counted_once(files):
    row, model, file = one(files, "translator tiny", "rloo")
    counted = arithmetic.flops(file, model, "rloo", row.samples)
    file = replace(file, choices=file.choices * 0)
    assert arithmetic.flops(file, model, "rloo", row.samples) < 0.8 * counted


def test_every_network_of_the_limits_has_a_row(tmp_path):
    assert set(NETWORKS) <= {(row.name, row.estimator) for row in rows(tmp_path, False)}
