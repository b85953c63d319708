"""How many times faster than its best peer a row of the benchmark can be.

    /usr/bin/python3 tests/peers/bounds.py [--hardgrad build/release/hardgrad] [--rows REGEX] [--all]

Reads the rows that miss their goal (--all: every row) from the table in README.md: milliseconds, times faster than the best peer, goal.
Computes the gradient of each, counts the products that it needs (`arithmetic.py`), and prints a line per row: GFLOP; their milliseconds
at the best sgemm rate; those at the rates of their shapes in NumPy's BLAS, with the functions at the rate of the fastest kernel; the
times of Hardgrad and of the best peer; the goal, 1.3 or 85% of the second bound; and the bounds: the peer's time over each of the two. No
program is that many times faster than this peer: by the first, with no BLAS whose best rate this is; by the second, with this BLAS.

Rates of shapes are relative to the best rate in the same run, and processor time, so that other load matters little."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
README, CAUSES = HERE / "README.md", HERE / "causes.md"
GOAL, REACHABLE = 1.3, 0.85  # times faster than the best peer, or this share of the second bound, if that is less
RATE = 107e9  # FLOP/s: the best sgemm of the table's measurement
FUNCTIONS = 4.5e9  # a second: exp and tanh of core/kernels/functions.hpp on 4,096 floats, on the same machine


@dataclass
class Measured:
    """A line of the table."""

    name: str
    estimator: str
    ms: float
    best: float
    goal: float
    missed: bool

    def peer_ms(self):
        return self.ms * self.best


def cells(heading: str, page: Path = README):
    """The lines of the first table after `heading`, as lists of cells."""
    lines = iter(page.read_text().split(f"\n{heading}\n", 1)[1].splitlines())
    for line in lines:
        if line.startswith("|---"):
            break
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def plain_name(estimator: str) -> str:
    """`rloo`, K 2 -> rloo"""
    return re.match(r"`(\w+)`", estimator)[1]


def measured() -> list[Measured]:
    found = []
    for name, estimator, ms, *_, best, goal in cells("## Peers of today"):
        found.append(
            Measured(
                name,
                plain_name(estimator),
                float(ms),
                float(re.match(r"[\d.]+", best)[0]),
                float(goal.split()[0]),
                "missed" in goal,
            )
        )
    return found


def row_of(line: Measured, rows):
    return next(row for row in rows if (row.name, row.estimator) == (line.name, line.estimator))


def fastest(a, b) -> float:
    """Processor seconds of the product of a stack a [n, r, k] with b [k, m] or [n, k, m]; the least of several."""
    out, least, spent = a @ b, float("inf"), 0.0
    while spent < 0.01:
        start = time.thread_time()
        np.matmul(a, b, out=out)
        least = min(least, time.thread_time() - start)
        spent += least
    return least


def in_blocks(rows: float, inner: int, columns: int, seconds_of) -> float:
    """Of products over `rows`, whole or in blocks that stay in the caches: `seconds_of(n, r)` is the time of n of r rows."""
    spent = []
    for r in {max(1, round(min(rows, most))) for most in (48, 96, 192, 384, 768, 2048)}:
        n = max(1, min(64, 2**17 // (r * (inner + columns))))
        spent.append(seconds_of(n, r) * rows / (n * r))
    return min(spent)


def seconds(product) -> float:
    """Of the product's passes. The gradient at the right side can be formed for all calls at once. Data have no other gradient. Products
    with a vector have the best rate here, since BLAS is not needed for them."""
    if 1 in (product.inner, product.columns):
        return product.flops() / RATE
    array = lambda *shape: np.ones(shape, np.float32)
    inner, columns = product.inner, product.columns
    weight, rows = array(columns, inner), product.rows / product.calls
    turned = lambda a: a.swapaxes(1, 2)
    least = lambda a, b: min(fastest(a, b), fastest(turned(b), turned(a)))  # a product or its transpose
    forward = lambda n, r: least(array(n, r, inner), weight.T[None])
    left = lambda n, r: least(array(n, r, columns), weight[None])
    right = lambda n, r: least(turned(array(n, r, columns)), array(n, r, inner))
    spent = product.calls * in_blocks(rows, inner, columns, forward)
    if product.passes > 1:
        spent += in_blocks(product.rows, inner, columns, right)
    if product.passes > 2:
        spent += product.calls * in_blocks(rows, inner, columns, left)
    return spent


def least_seconds(products, functions: int) -> float:
    """The second bound: of the products at the rates of their shapes, and of the functions."""
    return sum(map(seconds, products)) + functions / FUNCTIONS


def goal_of(bound: float | None) -> float:
    """How many times faster than the best peer a row is to be; `bound`: than which nothing can be faster, by `least_seconds`."""
    return GOAL if bound is None else min(GOAL, REACHABLE * bound)


def short(number: float) -> str:
    return f"{number:.3g}" if number < 999.5 else f"{number:.0f}"


def main():
    from arithmetic import needed
    from benchmark import sgemm_rate
    from gradient_file import load
    from ours import Hardgrad
    from peers import environment
    from rows import rows

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hardgrad", default=os.environ.get("HARDGRAD_BINARY", "build/release/hardgrad"))
    parser.add_argument("--rows", default="", help="only rows whose name and estimator match")
    parser.add_argument("--all", action="store_true", help="also rows that reach their goal")
    options = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # BLAS reads it when it starts
        os.execve(sys.executable, [sys.executable, __file__, *sys.argv[1:]], environment())
    print(
        "row | estimator | GFLOP | products, ms | of their shapes, with functions, ms | Hardgrad, ms | best peer, ms | goal | most"
    )
    with tempfile.TemporaryDirectory() as name:
        path, known = str(Path(name) / "gradient.h5"), list(rows(Path(name), False))
        for line in measured():
            if not (line.missed or options.all) or not re.search(options.rows, f"{line.name} {line.estimator}"):
                continue
            row = row_of(line, known)
            Hardgrad(options.hardgrad, row, environment()).run("--out", path)
            products, functions = needed(load(path), row.model.split("[")[0], row.estimator, row.samples)
            if not products or row.replicates:
                continue
            flops, rate = sum(one.flops() for one in products), max(sgemm_rate() for _ in range(3))
            least = [flops / RATE, (least_seconds(products, 0) * rate / RATE) + functions / FUNCTIONS]
            most = [line.peer_ms() / (1e3 * one) for one in least]
            print(
                f"{line.name} | {line.estimator} | {flops * 1e-9:.3g} | {1e3 * least[0]:.3g} | {1e3 * least[1]:.3g} | {line.ms:g} | "
                f"{short(line.peer_ms())} | {short(goal_of(most[1]))} | {short(most[0])} / {short(most[1])}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
