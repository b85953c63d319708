"""One network in PyTorch, in a separate process: `worker.py plain|tuned|vectors MODEL ESTIMATOR K GRADIENT.h5 [SMALL.h5]`.

Prints a JSON line with the relative difference (norms) between its gradient and the file's, and its memory. Then, for each number n
on its input, it prints a JSON line with the processor seconds of n gradients. `vectors` draws different noise: there, the difference is
between its mean and the exact gradient in the file, in units of five standard errors, times the tolerance. With a file of a small
network, that network is used."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import torch

import belief
import plain
import tuned
import vectors
from gradient_file import load
from problem import tensors


def memory(field):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field + ":"))


TOLERANCE = 1e-3  # of a gradient in float


def network(form, model, estimator, K, file):
    """-> a function that computes one gradient, and a function that returns its difference from the file's."""
    p, data = tensors(file, model, K)
    network = getattr({"plain": plain, "tuned": tuned}[form], model)

    def gradient():
        for parameter in p.values():
            parameter.grad = None
        surrogate = network(p, data, K, estimator)
        surrogate.backward()

    def difference():
        flat = lambda arrays: np.concatenate([np.ravel(arrays[k]) for k in sorted(file.gradient)]).astype(np.float64)
        ours = flat({k: np.zeros(v.shape) if v.grad is None else v.grad.numpy() for k, v in p.items()})
        theirs = flat(file.gradient)
        return np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)

    return gradient, difference


def bits(estimator, K, file, draws=4000):
    phi = file.parameters["bits.logits"].detach().float().flatten().requires_grad_()
    t = torch.full_like(phi, 0.45).detach()
    gradient = lambda: vectors.gradient(estimator, phi, t, K)

    def difference():
        if estimator == "straight_through":  # biased: there is no reference
            return 0.0
        all_ = np.array([gradient().numpy().astype(np.float64) for _ in range(draws)])
        error = all_.std(0, ddof=1) / draws ** 0.5
        return TOLERANCE * float(np.max(np.abs(all_.mean(0) - np.ravel(file.gradient["bits.logits"])) / (5 * error)))

    return gradient, difference


def belief_network(estimator, K, file, small, draws=2000):
    timed, checked = belief.Belief(file, K), belief.Belief(small, K)

    def difference():
        flat = lambda of: np.concatenate([np.ravel(of[k]).astype(np.float64) for k in sorted(small.gradient)])
        exact = flat(small.gradient)
        all_ = np.array([flat({k: g.numpy() for k, g in checked.gradient(estimator).items()}) for _ in range(draws)])
        error = np.maximum(all_.std(0, ddof=1) / draws ** 0.5, 1e-6 * np.abs(exact).max())  # some have no noise
        return TOLERANCE * float(np.max(np.abs(all_.mean(0) - exact) / (5 * error)))

    return lambda: timed.gradient(estimator), difference


def main(form, model, estimator, K, path, small=None):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    file, K = load(path), int(K)
    if small:
        gradient, difference = belief_network(estimator, K, file, load(small))
    else:
        gradient, difference = bits(estimator, K, file) if form == "vectors" else network(form, model, estimator, K, file)
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # reset the peak memory
    before = memory("VmRSS")
    gradient()
    differs = difference()
    gradient()
    print(json.dumps({"difference": differs,
                      "bytes": memory("VmHWM") - before,
                      "capability": torch.__config__.show().split("CPU capability usage: ")[1].split()[0]}), flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            start = time.thread_time()
            gradient()
            seconds.append(time.thread_time() - start)
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
