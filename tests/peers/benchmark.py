"""Hardgrad against PyTorch: the same network, parameters, batch, choices, precision (float) and BLAS, one thread each.

    /usr/bin/python3 tests/peers/benchmark.py [--hardgrad build/release/hardgrad] [--rows REGEX] [--rounds N] [--quick]

Each row first compares gradients. It then times Hardgrad, plain PyTorch (`plain.py`) and tuned PyTorch (`tuned.py`, malloc keeps its
memory), alternating on one pinned core. Times are the thread's processor time including system calls, medians over all rounds, so
other load on the machine does not count.

`ratio`: time of plain PyTorch over Hardgrad's. `best`: the same for the faster form; where matrices are small, tuning adds more Python
time than it saves. `peak`: useful arithmetic (the products, forward and backward, once per example if they do not depend on a choice)
relative to the best rate of square sgemms timed in the same rounds.

In the rows of bits (`vectors.py`) PyTorch draws different noise, so the mean of 4,000 gradients is compared with the exact gradient; in
those of the belief network (`belief.py`), the mean of 2,000 on a network of 4 bits. Rows of replicates time `hardgrad measure`: 64
gradients of one batch with their statistics (128 less 64, which excludes reading and building), of all parameters or at the logits,
against 64 gradients of PyTorch. The last row is a sweep's wall time on one thread over that on two. Memory is that of the process, less
its memory before the first gradient. Exit status: 0 all equal, 1 a gradient differs, 2 a program failed."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

try:
    import torch  # noqa: F401  (the workers import it; its absence is reported here)
except ImportError:
    print("benchmark: PyTorch is missing; on Debian: apt-get install python3-torch, and run this with /usr/bin/python3",
          file=sys.stderr)
    sys.exit(2)

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-3  # of a gradient in float
SIZES = {"small": (100, 32, 1, 10), "mid": (2000, 64, 8, 20), "large": (4000, 256, 8, 20)}  # V, H, K, L = T
QUICK = {"tiny": (24, 8, 2, 4)}


@dataclass
class Row:
    name: str
    task: str
    model: str
    estimator: str
    samples: int = 1
    batch: int = 32
    flops: float = 0  # useful arithmetic
    replicates: str = ""  # empty: one gradient; else many, of all "parameters" or at the "logits"

    noise: bool = False     # PyTorch draws different noise: means are compared
    small: str = ""         # the network of that comparison, if the row's has too many outcomes
    target: str = ""

    def spec(self):
        settings = [f"samples={self.samples}"] if self.samples > 1 or self.estimator in ("reinforce", "rloo") else []
        settings += [f"target={self.target}"] if self.target else []
        return f"{self.estimator}[{','.join(settings)}]" if settings else self.estimator


def write_texts(folder: Path, name: str, V: int, length: int, shortest: int = 0) -> str:
    """Parallel texts with a vocabulary of V words, including four special words. Sentences have one length, or lengths from `shortest`
    to it."""
    rng, words = random.Random(V), [f"w{i}" for i in range(V - 4)]
    lines = max(64, 2 * V // length)
    for side, most in (("source", length), ("target", length - 1)):  # the end mark counts as a word
        pool, sentences = [], []
        for _ in range(lines):
            n = rng.randint(shortest, most) if shortest else most
            while len(pool) < n:
                pool += rng.sample(words, len(words))
            sentences.append(" ".join(pool[:n]))
            del pool[:n]
        (folder / f"{name}.{side}").write_text("\n".join(sentences) + "\n")
    return (f"translation[data=text,path={folder / name}.source,target_path={folder / name}.target,vocabulary={V},"
            f"max_length={length},heldout=0,test=0]")


def translator_flops(V, H, K, L, B, estimator):
    T, R, hard = L, B * K, estimator in ("reinforce", "rloo")
    decoder = B + (T - 1) * R if hard else T * B  # rows of the decoder: samples differ after the first choice
    said = {"soft": T * B}.get(estimator, T * R if hard else T * B * L)
    products = (2 * (min(V, B * L) + B * L) * H * 4 * H + B * L * 2 * H * (2 * H + (4 * H if hard else 0)) + B * 2 * H * H
                + min(V, B * T) * H * 5 * H + decoder * H * 6 * H + said * H * V)
    return 6.0 * products


def rows(folder: Path, quick: bool):
    for name, (V, H, K, L) in (QUICK if quick else SIZES).items():
        task = write_texts(folder, name, V, L)
        for estimator in ("reinforce", "rloo", "exact", "exact_marginal", "soft"):
            hard, B = estimator in ("reinforce", "rloo"), 4 if quick else 32
            k = max(K, 2) if estimator == "rloo" else K
            model = f"translator[embedding={H},hidden={H},feed={'sampled' if hard else 'none'}]"
            flops = translator_flops(V, H, k, L, B, estimator)
            yield Row(f"translator {name}", task, model, estimator, k if hard else 1, B, flops)
            if estimator == "reinforce" and name != "large":
                for of in ("parameters", "logits"):
                    yield Row(f"{name}: 64, {of}", task, model, estimator, k, B, replicates=of)
    for estimator in ("reinforce", "rloo", "disarm", "arms", "straight_through", "rebar"):
        bits = 8 if quick else 200
        yield Row(f"{bits} bits", "bits", f"bits[bits={bits}]", estimator, 2, 1, noise=True)
    B, units, side = (4, 6, 8) if quick else (50, 200, 28)
    for estimator in ("rloo", "disarm", "rebar", "relax"):
        product, relaxed = 2.0 * B * side * side * units, 2 if estimator == "rebar" else 0  # of one image
        yield Row(f"belief, {units} bits", f"images[size={side},examples=200]", f"belief_network[units={units}]", estimator, 2, B,
                  product * (2 + 2 * 2 + 2 * 2 * relaxed), noise=True, small="belief_network[units=4]", target="elbo")
    B = 4 if quick else 32
    V, H, K, L = QUICK["tiny"] if quick else SIZES["mid"]
    task = write_texts(folder, "ragged", V, L, max(1, L // 6))
    for estimator in ("rloo", "exact", "exact_marginal", "soft"):
        feed = "sampled" if estimator == "rloo" else "none"
        yield Row("translator ragged", task, f"translator[embedding={H},hidden={H},feed={feed}]", estimator,
                  K if estimator == "rloo" else 1, B)
    for estimator in ("reinforce", "rloo", "exact", "exact_marginal", "soft"):
        k = {"reinforce": 1, "rloo": 4}.get(estimator, 1)
        yield Row("memory reader", "qa", f"memory_reader[embedding={8 if quick else 50},hops={2 if quick else 3}]",
                  estimator, k, B)
    for estimator in ("reinforce", "rloo", "soft"):
        k = {"reinforce": 1, "rloo": 4}.get(estimator, 1)
        yield Row("glimpse reader", "glimpse", "glimpse_reader[features=8,hidden=8,glimpses=2]" if quick else
                  "glimpse_reader", estimator, k, B)
    for estimator in ("exact", "exact_marginal"):
        yield Row("glimpse reader, 2", "glimpse", "glimpse_reader[features=8,hidden=8,grid=3,glimpses=2]" if quick else
                  "glimpse_reader[glimpses=2]", estimator, 1, B)


class Failed(Exception):
    pass


class Hardgrad:
    def __init__(self, program, row, environment):
        self.command = [program, "gradient", "--task", row.task, "--model", row.model, "--estimator", row.spec(),
                        "--batch", str(row.batch), "--seed", "3", "--json"]
        self.environment = environment

    def run(self, *more):
        done = subprocess.run(self.command + list(more), capture_output=True, text=True, env=self.environment)
        if done.returncode:
            raise Failed(f"{' '.join(self.command)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def time(self, n):
        return self.run("--repeat", str(n + 2))["timing"]  # the first ones warm up

    def replicates(self, of, once, M=64):
        """Processor seconds of M gradients of `hardgrad measure`. `once`: the seconds of a single gradient."""
        scale = max(1, min(8, int(0.5 / (M * once))))  # small ones are short compared with the start of the process
        command = [self.command[0], "measure", *self.command[2:], "--estimand", "none", "--jobs", "1"]
        command += ["--at-logits"] if of == "logits" else []
        used = []
        for count in ((1 + scale) * M, M):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([*command, "--replicates", str(count)], capture_output=True, text=True, env=self.environment)
            if done.returncode:
                raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return (used[0] - used[1]) / scale


class Peer:
    def __init__(self, form, row, paths, environment):
        environment = dict(environment)
        if form == "tuned":  # malloc keeps its memory, in large pages
            environment |= {"MALLOC_MMAP_THRESHOLD_": str(1 << 33), "MALLOC_TRIM_THRESHOLD_": str(1 << 33),
                            "MALLOC_TOP_PAD_": str(1 << 26), "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
        model = row.model.split("[")[0]
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), form, model, row.estimator, str(row.samples), *paths],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.first = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed("the PyTorch worker ended")
        return json.loads(line)

    def time(self, n):
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def sgemm_rate():
    rates = []
    for size in (256, 512, 1024):
        a = np.ones((size, size), np.float32)
        out = np.empty_like(a)
        for _ in range(3):
            start = time.thread_time()
            np.matmul(a, a, out=out)
            rates.append(2 * size ** 3 / (time.thread_time() - start))
    return max(rates)


SWEEP = """name = "cells"
[grid]
task = ["translation[examples=200,max_length=8]"]
model = ["translator[embedding={width},hidden={width},feed=sampled]"]
estimator = ["reinforce", "rloo[samples=2]"]
seed = [1, 2, 3, 4, 5, 6, 7, 8]
[train]
steps = 0
[measure]
at = ["start"]
batch = 32
replicates = {replicates}
estimand = "none"
"""


def sweep_seconds(program, environment, folder, cores, quick):
    """Wall seconds of a sweep of 16 cells on one thread and on two."""
    config, seconds = folder / "cells.toml", []
    config.write_text(SWEEP.format(width=4 if quick else 32, replicates=8 if quick else 256))
    for jobs in (1, 2):
        start = time.monotonic()
        done = subprocess.run([program, "run", str(config), "--out", str(folder / f"run{jobs}"), "--jobs", str(jobs), "--progress",
                               "none"], capture_output=True, text=True, env=environment,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
        seconds.append(time.monotonic() - start)
        if done.returncode:
            raise Failed(f"hardgrad run: {done.stderr.strip()}")
        shutil.rmtree(folder / f"run{jobs}")
    return seconds


def blas_kernel():
    library = ctypes.CDLL("libopenblas.so.0")
    library.openblas_get_corename.restype = ctypes.c_char_p
    return library.openblas_get_corename().decode()


def compare(row, program, environment, folder, rounds):
    paths = [str(folder / "gradient.h5")]
    ours = Hardgrad(program, row, environment)
    exact = Hardgrad(program, replace(row, estimator="exact", samples=1, model=row.small or row.model), environment)
    (exact if row.noise and not row.small else ours).run("--out", paths[0])
    if row.small:
        paths.append(str(folder / "small.h5"))
        exact.run("--out", paths[1])
    peers = {form: Peer(form, row, paths, environment) for form in (("vectors",) if row.noise else ("plain", "tuned"))}
    for path in paths:
        os.unlink(path)
    times = {form: [] for form in ("hardgrad", *peers)}
    rates = []
    try:
        once = ours.time(1)["cpu_seconds"][-1]
        n = {"hardgrad": max(1, min(200, int(0.2 / once)))}
        for form, peer in peers.items():
            n[form] = max(1, min(100, int(0.2 / peer.time(1)[0])))
        for _ in range(rounds):
            rates.append(sgemm_rate())
            timing = ours.time(n["hardgrad"])
            times["hardgrad"] += [ours.replicates(row.replicates, once)] if row.replicates else timing["cpu_seconds"][2:]
            for form, peer in peers.items():
                times[form] += [t * (64 if row.replicates else 1) for t in peer.time(n[form])]
    finally:
        for peer in peers.values():
            peer.close()
    median = {form: statistics.median(t) for form, t in times.items()}
    if row.noise:  # PyTorch has one form here
        peers = {"plain": peers["vectors"], "tuned": peers["vectors"]}
        median["plain"] = median["tuned"] = median.pop("vectors")
    kernel = {timing["blas_kernel"], blas_kernel()}
    return {"row": row.name, "estimator": row.spec(), "ms": {form: 1e3 * t for form, t in median.items()},
            "plain_ratio": median["plain"] / median["hardgrad"],
            "best_ratio": min(median["plain"], median["tuned"]) / median["hardgrad"],
            "peak": row.flops / median["hardgrad"] / max(rates) if row.flops else None,
            "bytes": {"hardgrad": timing["bytes"]} | {form: peer.first["bytes"] for form, peer in peers.items()},
            "difference": max(peer.first["difference"] for peer in peers.values()),
            "capability": peers["plain"].first["capability"], "kernel": "/".join(sorted(kernel)),
            "sgemm_gflops": max(rates) / 1e9}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hardgrad", default=os.environ.get("HARDGRAD_BINARY", "build/release/hardgrad"))
    parser.add_argument("--rows", default="", help="only rows whose name and estimator match")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: checks only that it runs")
    parser.add_argument("--json", help="also write the figures here")
    options = parser.parse_args()
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    with open("/proc/cpuinfo") as info:
        wide = "avx512bw" in info.read()
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if wide:  # PyTorch 1.13 uses AVX2 by default
        environment["ATEN_CPU_CAPABILITY"] = "avx512"
    if os.environ.get("OPENBLAS_CORETYPE") or os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # BLAS reads these variables when it starts
        os.execve(sys.executable, [sys.executable, __file__, *sys.argv[1:]], environment)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    results, wrong = [], False
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'row':20s} {'estimator':22s} {'ms: ours':>9s} {'plain':>8s} {'tuned':>8s} {'ratio':>6s} {'best':>6s} "
              f"{'peak':>5s} {'MB: ours':>9s} {'plain':>7s} {'tuned':>7s} {'difference':>10s}")
        for row in rows(Path(folder), options.quick):
            if not re.search(options.rows, f"{row.name} {row.spec()}"):
                continue
            try:
                r = compare(row, options.hardgrad, environment, Path(folder), 1 if options.quick else options.rounds)
            except (Failed, OSError) as error:
                print(f"{row.name} {row.spec()}: {error}", file=sys.stderr)
                return 2
            results.append(r)
            same = r["difference"] < TOLERANCE
            wrong |= not same
            peak = f"{r['peak']:5.0%}" if r["peak"] else "    -"
            ms, mb = r["ms"], {form: b / 1e6 for form, b in r["bytes"].items()}
            print(f"{r['row']:20s} {r['estimator']:22s} {ms['hardgrad']:9.3g} {ms['plain']:8.3g} {ms['tuned']:8.3g} "
                  f"{r['plain_ratio']:6.1f} {r['best_ratio']:6.1f} {peak} {mb['hardgrad']:9.1f} {mb['plain']:7.1f} "
                  f"{mb['tuned']:7.1f} {r['difference']:10.1e}{'' if same else '  DIFFERS'}", flush=True)
        if re.search(options.rows, "sweep") and len(cores) > 1:
            try:
                pairs = [sweep_seconds(options.hardgrad, environment, Path(folder), cores, options.quick)
                         for _ in range(1 if options.quick else options.rounds)]
            except (Failed, OSError) as error:
                print(f"sweep: {error}", file=sys.stderr)
                return 2
            one, two = (statistics.median(column) for column in zip(*pairs))
            print(f"sweep of 16 cells: {one:.2f} s on one thread, {two:.2f} s on two: {one / two:.2f} times faster")
            results.append({"row": "sweep", "seconds": {"1": one, "2": two}})
    if results and "kernel" in results[0]:
        print(f"BLAS kernel {results[0]['kernel']} on both sides, sgemm {max(r.get('sgemm_gflops', 0) for r in results):.0f} "
              f"GFLOP/s; PyTorch's own kernels: {results[0]['capability']}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
