"""Networks in PyTorch or JAX, in a separate process: `worker.py torch|jax|pyro|numpyro`. It first reports its version. Each line on its input is
a request in JSON; the answer is a line in JSON, too.

{"load": {...}} prepares a row in one form and answers with the relative difference (norms) between its gradient and the file's, the
seconds of compilation, the memory of the first gradient, and its needed products and functions. A form that fails answers {"failed": reason}.
{"time": n, "form": ...} answers with the processor seconds of n gradients. {"drop": form} frees the row. In rows with noise, the
difference is between the mean and the exact gradient in the file, in units of five standard errors, times the tolerance. With a second
file, this is the network that is compared: a small one, or one batch of a row of training. Rows of training also compare the parameters after a step."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import sys
import time
from dataclasses import asdict

import numpy as np

TOLERANCE = 1e-3  # of a gradient in float


def memory(field):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field + ":"))


def processor_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def flat(gradient, names):
    return np.concatenate([np.ravel(gradient[k]) for k in sorted(names)]).astype(np.float64)


def difference(file, row):
    theirs = flat(file.gradient, file.gradient)
    return float(np.linalg.norm(flat(row.result(), file.gradient) - theirs) / np.linalg.norm(theirs))


def difference_of_means(file, row, draws):
    exact, all_ = flat(file.gradient, file.gradient), []
    for _ in range(draws):
        row.gradient()
        all_.append(flat(row.result(), file.gradient))
    all_ = np.array(all_)
    error = np.maximum(all_.std(0, ddof=1) / draws**0.5, 1e-6 * np.abs(exact).max())  # some have no noise
    return TOLERANCE * float(np.max(np.abs(all_.mean(0) - exact) / (5 * error)))


def difference_of_step(file, gradient, row):
    """Between the parameters after the first step of the row's optimiser and those of Adam along `gradient`, relative to the step.
    Entries that are rounding of others are left out: they have the rate's length, and any sign."""
    from problem import adam_step

    names = sorted(file.gradient)
    before = flat({k: v.detach() for k, v in file.parameters.items()}, names)
    g = flat(gradient, names)
    theirs, ours = flat(row.stepped(), names) - before, adam_step(before, g) - before
    known = np.abs(g) > 1e-3 * np.sqrt(np.mean(g * g))
    assert known.mean() > 0.1
    return float(np.linalg.norm((theirs - ours)[known]) / np.linalg.norm(ours[known]))


def make(library, asked, path):
    """-> the gradient file and the row in the form asked for."""
    from gradient_file import load  # imports PyTorch, which may be missing
    from problem import problem

    file = load(path)
    p, data, network, module = problem(file, asked["model"], asked["samples"], asked["noise"])
    return file, library.Row(asked["form"], p, data, network, module, asked)


def answer(library, asked):
    from arithmetic import needed

    paths = asked["paths"]
    file, row = make(library, asked, paths[0])
    products, functions = [], 0
    if not asked["training"]:  # its file has all of the data
        products, functions = needed(file, asked["model"], asked["estimator"], asked["samples"])
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # reset the peak memory
    before, started = memory("VmRSS"), processor_seconds()
    row.gradient()  # compiles
    first, most = processor_seconds() - started, memory("VmHWM") - before
    checked = row
    if len(paths) > 1:
        file, checked = make(library, asked | {"training": 0}, paths[1])
        checked.gradient()
    if asked["estimator"] == "straight_through":  # biased: no reference
        differs = 0.0
    elif asked["noise"]:
        differs = difference_of_means(file, checked, 2000 if len(paths) > 1 else 4000)
    else:
        differs = difference(file, checked)
    if asked["training"]:
        differs = max(differs, difference_of_step(file, checked.result() if asked["noise"] else file.gradient, checked))
    started = processor_seconds()
    row.gradient()
    once = processor_seconds() - started
    compiled = asked["compiles"]
    return row, {
        "difference": differs,
        "compile_seconds": max(0.0, first - once) if compiled else None,
        "bytes": most if asked["form"] == "plain" else None,
        "products": [asdict(product) for product in products],
        "functions": functions,
    }


def reason(error):
    """The first line of an error, in at most eight words."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(f"{type(error).__name__}: {lines[0]}".split()[:8])


def main(name):
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a compiler's output is not an answer

    def say(what):
        print(json.dumps(what), file=out, flush=True)

    try:
        importlib.import_module("torch")  # JAX's rows need it, too: it reads the gradient file
        library, rows = importlib.import_module(f"{name}_rows"), {}
    except ImportError:
        say({"missing": name})
        return
    say(library.about())
    for line in sys.stdin:
        request = json.loads(line)
        if "load" in request:
            asked = request["load"]
            try:
                rows[asked["form"]], first = answer(library, asked)
                say(first)
            except Exception as error:  # noqa: BLE001  (compilers fail in many ways)
                say({"failed": reason(error)})
        elif "drop" in request:
            say(rows.pop(request["drop"], None) is not None)
        else:
            row, seconds = rows[request["form"]], []
            for _ in range(request["time"]):
                start = time.process_time()
                row.gradient()
                seconds.append(time.process_time() - start)
            say(seconds)


if __name__ == "__main__":
    main(sys.argv[1])
