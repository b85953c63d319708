"""Hardgrad against PyTorch and JAX: the same network, parameters, batch, choices and precision (float), one thread each.

    /usr/bin/python3 tests/peers/benchmark.py [--hardgrad build/release/hardgrad] [--python PATH]... [--venv FOLDER] [--forms REGEX]
        [--rows REGEX] [--compiled-rows REGEX] [--rounds N] [--cache FOLDER] [--quick] [--json FILE]

`--python` names the Pythons whose libraries are the peers; it may be repeated. The default is the one that runs this file. `--venv`
makes a virtual environment with the versions of `requirements.txt`, if it is not there, and adds its Python. The forms are `plain`
(`plain.py`, `networks`), `tuned` (`tuned.py`, `expert.py`; malloc keeps its memory), `compiled` (`expert.py`, else plain, by
torch.compile, PyTorch 2), `jit` (plain in JAX), `tuned jit` (`expert.py` in JAX), and where they are installed the `ELBO`s of Pyro and
NumPyro. `--forms torch.1` is Debian's PyTorch alone.

Each row first compares gradients. It then times Hardgrad and every form, alternating on one pinned core. Times are processor time
including system calls, medians over all rounds, so other load on the machine does not count. Compile time is reported, not counted. A form
that fails or does not compile in `--compile-limit` seconds is a cell with the reason.

`plain`: time of the first plain form over Hardgrad's. `best`: the same for the fastest form, and in brackets the smallest and the
largest of the rounds. `bound`: the same for a program that does nothing but the needed products and functions (`bounds.py`). `goal`: of
`best`, 1.3 or 85% of the bound. `peak`: the products that the gradient needs (`arithmetic.py`, where it counts them) relative to
the best rate of square sgemms timed in the same rounds.

In the rows of bits (`vectors.py`) peers draw different noise, so the mean of 4,000 gradients is compared with the exact gradient; in
those of the belief network (`belief.py`), the mean of 2,000 on a network of 4 bits. Rows of replicates time `hardgrad measure`: 64
gradients of one batch with their statistics (128 less 64, which excludes reading and building), of all parameters or at the logits,
against 64 gradients of the peer. Rows of training time whole steps: a batch of the data, drawn choices, the gradient, Adam (Hardgrad:
two runs of different length, subtracted); the gradient of one batch is compared, and the parameters after a step. The last row is a
sweep's wall time on one thread over that on two. Memory is that of the process, less its memory before the first gradient. Exit status: 0 all equal, 1 a gradient differs, 2 a program failed."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from arithmetic import Product
from bounds import goal_of, least_seconds
from ours import Hardgrad, sweep_seconds
from peers import HERE, Failed, environment, forms
from rows import rows

TOLERANCE = 1e-3  # of a gradient in float


def sgemm_rate():
    rates = []
    for size in (256, 512, 1024):
        a = np.ones((size, size), np.float32)
        out = np.empty_like(a)
        for _ in range(3):
            start = time.thread_time()
            np.matmul(a, a, out=out)
            rates.append(2 * size**3 / (time.thread_time() - start))
    return max(rates)


def blas_kernel():
    library = ctypes.CDLL("libopenblas.so.0")
    library.openblas_get_corename.restype = ctypes.c_char_p
    return library.openblas_get_corename().decode()


def title(row):
    return f"{row.name} {row.spec()}"


def prepare(row, ours, peers, program, folder, options):
    """Compares every form's gradient. -> the answers of the forms, and the reasons of those that fail."""
    paths = [str(folder / "gradient.h5")]
    exact = Hardgrad(
        program, replace(row, estimator="exact", samples=1, own="", model=row.small or row.model), ours.environment
    )
    whole = Hardgrad(program, replace(row, batch=row.training), ours.environment) if row.training else ours  # all of the data
    (exact if row.noise and not row.small else whole).run("--out", paths[0])
    if row.small or row.training:
        paths.append(str(folder / "compared.h5"))
        (exact if row.small else ours).run("--out", paths[1])
    said, failed = {}, {}
    for form in peers:
        if form.has(row) and not (form.form == "compiled" and not re.search(options.compiled_rows, title(row))):
            try:
                said[form] = form.load(row, paths, options.compile_limit)
            except Failed as error:
                said[form] = {"failed": str(error)}
            if "failed" in said[form]:
                failed[form] = said.pop(form)["failed"]
    for path in paths:
        os.unlink(path)
    return said, failed


def compare(row, peers, program, variables, folder, options):
    ours = Hardgrad(program, row, variables)
    said, failed = prepare(row, ours, peers, program, folder, options)
    if not said:
        raise Failed("; ".join(f"{form.name}: {why}" for form, why in failed.items()))
    times, rates = [], []  # of each round: form -> seconds
    once = ours.time(1)["cpu_seconds"][-1]
    n = max(1, min(200, int(options.seconds / once)))
    often = {form: 1 if options.quick else max(1, min(100, int(options.seconds / min(form.time(2))))) for form in said}
    for _ in range(options.rounds):
        rates.append(sgemm_rate())
        timing = ours.time(n)
        one = {"hardgrad": statistics.median(timing["cpu_seconds"][2:])}
        if row.replicates:
            one["hardgrad"] = ours.replicates(row.replicates, once)
        if row.training:
            one["hardgrad"] = ours.training(row, once, folder)
        for form, count in often.items():
            one[form.name] = statistics.median(form.time(count)) * (64 if row.replicates else 1)
        times.append(one)
    for form in said:
        form.drop()
    median = {name: statistics.median(one[name] for one in times) for name in times[0]}
    best = min((name for name in median if name != "hardgrad"), key=median.get)
    plain = next((form for form in said if form.form == "plain"), next(iter(said)))
    ratios = [min(t for name, t in one.items() if name != "hardgrad") / one["hardgrad"] for one in times]
    first = next(iter(said.values()))
    products, bound = [Product(**product) for product in first["products"]], None
    flops = sum(product.flops() for product in products)
    if products and not row.replicates:
        bound = median[best] / least_seconds(products, first["functions"])
    return {
        "row": row.name,
        "estimator": row.spec(),
        "ms": {form: 1e3 * t for form, t in median.items()},
        "plain_ratio": median[plain.name] / median["hardgrad"],
        "best": best,
        "bound": bound,
        "goal": goal_of(bound),
        "best_ratio": median[best] / median["hardgrad"],
        "best_range": [min(ratios), max(ratios)],
        "peak": flops / median["hardgrad"] / max(rates) if bound else None,
        "bytes": {"hardgrad": timing["bytes"]} | {form.name: one["bytes"] for form, one in said.items() if one["bytes"]},
        "compile_seconds": {
            form.name: one["compile_seconds"] for form, one in said.items() if one["compile_seconds"] is not None
        },
        "difference": max(one["difference"] for one in said.values()),
        "failed": {form.name: why for form, why in failed.items()},
        "kernel": "/".join(sorted({timing["blas_kernel"], blas_kernel()})),
        "sgemm_gflops": max(rates) / 1e9,
    }


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hardgrad", default=os.environ.get("HARDGRAD_BINARY", "build/release/hardgrad"))
    parser.add_argument("--python", action="append", default=[], help="a Python whose libraries are peers; may be repeated")
    parser.add_argument("--venv", help="make a virtual environment with today's peers here, if absent, and add its Python")
    parser.add_argument("--forms", default="", help="only forms whose name matches, as in the table")
    parser.add_argument("--rows", default="", help="only rows whose name and estimator match")
    parser.add_argument("--compiled-rows", default="", help="torch.compile only in rows that match: it takes minutes in some")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="processor seconds of each form in a round")
    parser.add_argument("--cache", default="", help="keep compiled code in this folder")
    parser.add_argument("--compile-limit", type=float, default=300, help="seconds of compilation of a form")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: checks only that it runs")
    parser.add_argument("--json", help="also write the figures here")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 0.001
    if options.venv:
        options.python.append(make_environment(Path(options.venv)))
    options.python = options.python or [sys.executable]
    return options


def make_environment(folder):
    """-> the Python of a virtual environment with the versions of `requirements.txt`."""
    python = folder / "bin" / "python"
    if not python.exists():
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "-r", str(HERE / "requirements.txt")],
        ):
            if subprocess.run(command).returncode:
                sys.exit(2)
    return str(python)


def cells(r, peers):
    """The row's cells in the table, in the order of `heading`."""
    ms, mb = r["ms"], {form: b / 1e6 for form, b in r["bytes"].items()}
    same = r["difference"] < TOLERANCE
    one = lambda name: f"{ms[name]:.3g}" if name in ms else "fails" if name in r["failed"] else "-"
    low, high = r["best_range"]
    return [
        r["row"],
        r["estimator"],
        f"{ms['hardgrad']:.3g}",
        *(one(form.name) for form in peers),
        f"{r['plain_ratio']:.1f}",
        f"{r['best_ratio']:.2f} [{low:.2f}, {high:.2f}]",
        f"{r['bound']:.2f}" if r["bound"] else "-",
        f"{r['goal']:.3g}{'' if r['best_ratio'] >= r['goal'] else ' missed'}",
        f"{r['peak']:.0%}" if r["peak"] else "-",
        f"{mb.pop('hardgrad'):.1f}",
        f"{next(iter(mb.values())):.0f}" if mb else "-",
        f"{r['difference']:.0e}{'' if same else ' DIFFERS'}",
    ]


def heading(peers):
    return [
        "row",
        "estimator",
        "ours, ms",
        *(form.name for form in peers),
        "plain",
        "best",
        "bound",
        "goal",
        "peak",
        "MB",
        "plain MB",
        "difference",
    ]


def run_sweep(options, variables, folder, cores):
    pairs = [sweep_seconds(options.hardgrad, variables, folder, cores, options.quick) for _ in range(options.rounds)]
    one, two = (statistics.median(column) for column in zip(*pairs))
    print(f"sweep of 16 cells: {one:.2f} s on one thread, {two:.2f} s on two: {one / two:.2f} times faster")
    return {"row": "sweep", "seconds": {"1": one, "2": two}}


def main():
    options, variables = arguments(), environment()
    if (
        os.environ.get("OPENBLAS_CORETYPE") or os.environ.get("OPENBLAS_NUM_THREADS") != "1"
    ):  # BLAS reads these variables when it starts
        os.execve(sys.executable, [sys.executable, __file__, *sys.argv[1:]], variables)
    variables = environment(options.cache)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    with tempfile.TemporaryDirectory() as name:
        return run(options, variables, cores, Path(name))


def run(options, variables, cores, folder):
    peers, notes = forms(options.python, variables, re.compile(options.forms), folder)
    if not peers:
        print(
            f"benchmark: no PyTorch in {', '.join(options.python)}; on Debian: apt-get install python3-torch, and run this with "
            "/usr/bin/python3; or --venv FOLDER makes an environment with PyTorch 2 and JAX",
            file=sys.stderr,
        )
        return 2
    results, wrong = [], False
    wanted = [row for row in rows(folder, options.quick) if re.search(options.rows, title(row))]
    started = {form.worker for form in peers}
    peers = [form for form in peers if any(form.has(row) for row in wanted)]
    try:
        print("\n".join(f"{note}  " for note in notes))
        print("| " + " | ".join(heading(peers)) + " |\n" + "|---" * len(heading(peers)) + "|", flush=True)
        for row in wanted:
            try:
                r = compare(row, peers, options.hardgrad, variables, folder, options)
            except (Failed, OSError) as error:
                print(f"{title(row)}: {error}", file=sys.stderr)
                return 2
            results.append(r)
            wrong |= not r["difference"] < TOLERANCE
            print("| " + " | ".join(cells(r, peers)) + " |", flush=True)
            if options.json:  # after each row: a long run may be ended
                Path(options.json).write_text(json.dumps(results, indent=1))
            for form, why in r["failed"].items():
                print(f"{r['row']} {r['estimator']}, {form}: {why}", file=sys.stderr)
        if re.search(options.rows, "sweep") and len(cores) > 1:
            try:
                results.append(run_sweep(options, variables, folder, cores))
            except (Failed, OSError) as error:
                print(f"sweep: {error}", file=sys.stderr)
                return 2
    finally:
        for worker in started:
            worker.close()
    tell(results, peers)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    return 1 if wrong else 0


def tell(results, peers):
    """Versions, kernels and compile times."""
    rates = [r["sgemm_gflops"] for r in results if "sgemm_gflops" in r]
    if rates:
        print(f"Hardgrad: BLAS kernel {next(r['kernel'] for r in results if 'kernel' in r)}, sgemm {max(rates):.0f} GFLOP/s")
    for about in {form.about["library"] + form.about["version"]: form.about for form in peers}.values():
        print(f"{about['library']} {about['version']}: {about['kernels']}, sgemm {about['sgemm'] / 1e9:.0f} GFLOP/s")
    for form in peers:
        spent = [r["compile_seconds"][form.name] for r in results if form.name in r.get("compile_seconds", {})]
        if spent:
            print(
                f"{form.name}: {min(spent):.1f} to {max(spent):.1f} s of compilation per row, median {statistics.median(spent):.1f}"
            )


if __name__ == "__main__":
    sys.exit(main())
