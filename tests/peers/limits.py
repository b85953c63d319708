"""The least time of a gradient and the time that it takes, for eight networks.

    build/peers/bin/python tests/peers/limits.py [--hardgrad build/release/hardgrad] [--rows REGEX] [--seconds 3]

Prints a line per network: the GFLOP of its products (`arithmetic.py`; where that has no count, those of the plain code by PyTorch 2,
marked with *), exponentials and the like, random numbers, and megabytes (parameters, inputs and gradient, once each); the milliseconds of all
four at the rates below; those of Hardgrad; and by `perf` the shares of its time in products, functions, draws, memory (copies, gathers,
clearing, allocation, the kernel) and the rest, by the names of the C++ functions."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import arithmetic
import torch
import torch_ops
from bounds import FUNCTIONS, RATE
from gradient_file import load
from ours import Hardgrad
from peers import environment
from problem import problem
from rows import rows

DRAWS, BYTES = 1 / 2.8e-9, 20e9  # a second: random numbers, and bytes from memory on one core
NETWORKS = (
    ("translator mid", "rloo"),
    ("memory reader", "rloo"),
    ("glimpse reader", "rloo"),
    ("belief, 200 bits", "rloo"),
    ("captioner", "rloo"),
    ("tape machine", "rloo"),
    ("pixel attention", "rloo"),
    ("writer", "rloo"),
)
GROUPS = {  # the first that matches a symbol
    "draws": r"Randomness|philox|::draw|option_at|noise",
    "products": r"gemm|multiply|[pP]lanes|column_sums|grouped_|dot\b|convol|linear_backward",
    "functions": r"softmax|exp|tanh|sigmoid|log1p|cell_|gru|classify|cross_entropy|bernoulli|additive|unary",
    "memory": r"mem(set|move|cpy)|malloc|free|gather|bag<|scatter|stack_rows|slice|concat|pick|for_width|\[k\]|Arena",
}


def products(row, file):
    """GFLOP, functions, and a mark if the products are those of the plain code."""
    model = row.model.split("[")[0]
    counted, functions = arithmetic.needed(file, model, row.estimator, row.samples)
    if counted:
        return sum(product.flops() for product in counted), functions, ""
    from torch.utils.flop_counter import FlopCounterMode

    p, data, network, _ = problem(file, model, row.samples, row.noise)
    p = {k: torch.tensor(v).requires_grad_() for k, v in p.items()}
    data = {k: v if isinstance(v, (int, float)) else torch.tensor(v) for k, v in data.items()}
    with FlopCounterMode(display=False) as counter:
        network(torch_ops, p, data, row.samples, row.estimator).backward()
    return counter.get_total_flops(), 0, "*"


def megabytes(file):
    """Of parameters and gradient, and of the batch, in floats."""
    size = 2 * sum(v.numel() for v in file.parameters.values())
    return 4e-6 * (size + sum(v.size for v in file.batch.values() if v.dtype.kind in "if"))


def samples(command, variables, path):
    """Samples of perf in each group."""
    subprocess.run(["perf", "record", "-q", "-F", "2000", "-o", path, *command], env=variables, capture_output=True, check=True)
    report = subprocess.run(
        ["perf", "report", "-i", path, "--no-children", "--stdio", "-g", "none", "-F", "sample,sym", "-w", "8,400"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict.fromkeys([*GROUPS, "rest"], 0)
    for count, symbol in re.findall(r"^\s*(\d+)\s+(\[.*)$", report.stdout, re.M):
        found[next((name for name, names in GROUPS.items() if re.search(names, symbol)), "rest")] += int(count)
    return found


def shares(ours, count, path):
    """Of the time of gradients in each group, in percent, without the start of the process."""
    most, few = (samples([*ours.command, "--repeat", str(n)], ours.environment, path) for n in (count + 3, 3))
    spent = {name: max(0, most[name] - few[name]) for name in most}
    return {name: 100 * n / sum(spent.values()) for name, n in spent.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hardgrad", default=os.environ.get("HARDGRAD_BINARY", "build/release/hardgrad"))
    parser.add_argument("--rows", default="", help="only networks whose name matches")
    parser.add_argument("--seconds", type=float, default=3, help="of gradients under perf")
    options = parser.parse_args()
    variables = environment()
    print(
        "network | GFLOP | functions, M | draws, k | MB | limit, ms | now, ms | share of the limit | "
        + ", ".join([*GROUPS, "rest"])
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known = {(row.name, row.estimator): row for row in rows(folder, False)}
        for key in NETWORKS:
            if not re.search(options.rows, key[0]):
                continue
            row, path = known[key], str(folder / "gradient.h5")
            ours = Hardgrad(options.hardgrad, row, variables)
            ours.run("--out", path)
            file = load(path)
            flops, functions, mark = products(row, file)
            draws, size = int((file.choices >= 0).sum()), megabytes(file)
            limit = 1e3 * (flops / RATE + functions / FUNCTIONS + draws / DRAWS + 1e6 * size / BYTES)
            times = ours.time(9)["cpu_seconds"][2:]
            now = 1e3 * sorted(times)[len(times) // 2]
            count = max(3, int(1e3 * options.seconds / now))
            found = shares(ours, count, str(folder / "perf.data"))
            print(
                f"{key[0]} | {1e-9 * flops:.3g}{mark} | {1e-6 * functions:.3g} | {1e-3 * draws:.3g} | {size:.2g} | {limit:.3g} | {now:.3g} | "
                f"{limit / now:.0%} | " + ", ".join(f"{share:.0f}" for share in found.values()),
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
