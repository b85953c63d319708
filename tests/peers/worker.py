"""One network in PyTorch, in a process of its own: `worker.py plain|tuned MODEL ESTIMATOR K GRADIENT.h5`.

Prints a JSON line with the relative difference (norms) of its gradient from the file's, and the memory it took; then,
for each number n read, a JSON line of the processor seconds of n gradients."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import torch

import plain
import tuned
from gradient_file import load
from problem import tensors


def memory(field):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field + ":"))


def main(form, model, estimator, K, path):
    torch.set_num_threads(1)
    file, K = load(path), int(K)
    p, data = tensors(file, model, K)
    network = getattr({"plain": plain, "tuned": tuned}[form], model)

    def gradient():
        for parameter in p.values():
            parameter.grad = None
        surrogate = network(p, data, K, estimator)
        surrogate.backward()

    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # forget the peak
    before = memory("VmRSS")
    gradient()
    flat = lambda arrays: np.concatenate([np.ravel(arrays[k]) for k in sorted(file.gradient)]).astype(np.float64)
    ours = flat({k: np.zeros(v.shape) if v.grad is None else v.grad.numpy() for k, v in p.items()})
    theirs = flat(file.gradient)
    gradient()
    print(json.dumps({"difference": np.linalg.norm(ours - theirs) / np.linalg.norm(theirs),
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
