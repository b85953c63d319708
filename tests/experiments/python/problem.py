"""Problems for both the program and the package: a loss for each outcome of two columns of three options, or of a bit."""

import gc
import json
import os
import subprocess

import h5py
import numpy as np

BINARY = os.environ["HARDGRAD_BINARY"]
LOGITS = np.array([[0.3, -0.7, 0.2], [-1.1, 0.4, 0.9]])
MODEL = f"bits[bits=2,options=3,function=table,logit={';'.join(map(str, LOGITS.ravel()))}]"
BIT = np.array([0.0, 0.7])
BIT_MODEL = f"bits[function=table,logit={BIT[1]}]"  # its parameter is the second logit


def program(*arguments):
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_gradient(file, task, model, estimator, seed, batch=8):
    """By the program, in double precision."""
    what = ("--task", task, "--model", model, "--estimator", estimator, "--batch", str(batch), "--seed", str(seed))
    program("gradient", *what, "--precision", "double", "--out", str(file))


def found_cycles(call):
    """The least number of objects that a call leaves to the collection of garbage; others' objects may end once."""
    call()
    gc.collect()
    gc.disable()
    try:
        return min((call(), gc.collect())[1] for _ in range(5))
    finally:
        gc.enable()


def dumped(folder, estimator, seed, model=MODEL):
    """The output of `hardgrad gradient`: the gradient at the logits, the chosen options [R, D], the losses [R]."""
    file = folder / "gradient.h5"
    write_gradient(file, "bits", model, estimator, seed, batch=1)
    with h5py.File(file) as dump:
        return {
            "gradient": dump["gradient/bits.logits"][()],
            **{name: dump[name][0] for name in ("choices", "loss") if name in dump},
        }


def table(folder, model=MODEL):
    """[3, 3] or [2] the program's losses."""
    found = dumped(folder, "exact", 0, model)
    losses = np.full((3, 3) if model == MODEL else 2, np.nan)
    losses[tuple(found["choices"].T) if model == MODEL else found["choices"]] = found["loss"]
    assert np.isfinite(losses).all()
    return losses


def measured(estimators, model=MODEL):
    """`hardgrad measure --exact` of several, as JSON."""
    named = [word for name in estimators for word in ("--estimator", name)]
    return json.loads(program("measure", "--task", "bits", "--model", model, "--exact", "--batch", "1", "--json", *named))[
        "results"
    ]


def probabilities(logits):
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)
