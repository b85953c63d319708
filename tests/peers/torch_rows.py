"""One row of the benchmark in PyTorch: `plain`, `tuned` or `compiled` (by torch.compile: the expert's code, or the plain one)."""

from __future__ import annotations

import time

import torch

import expert
import torch_ops
import tuned
from problem import pool_of

torch.set_num_threads(1)
torch.manual_seed(1)


def sgemm_rate():
    a, rates = torch.ones(1024, 1024), []
    for _ in range(4):
        start = time.process_time()
        a @ a
        rates.append(2 * 1024**3 / (time.process_time() - start))
    return max(rates)


def about():
    return {
        "library": "torch",
        "version": torch.__version__.split("+")[0],
        "sgemm": sgemm_rate(),
        "mkl": torch.backends.mkl.is_available(),
        "kernels": torch.__config__.show().split("CPU capability usage: ")[1].split()[0],
    }


class Row:
    def __init__(self, form, p, data, network, module, asked):
        name, self.differentiated = network.__name__, True
        if form != "plain" and name in expert.NETWORKS:
            network, data = expert.NETWORKS[name], expert.PREPARE[name](p, data)
        elif form != "plain" and name in expert.GRADIENTS:
            network, self.differentiated = expert.GRADIENTS[name], False
        elif form == "tuned":
            network = lambda _, *arguments: getattr(tuned, name)(*arguments)
        self.p = {k: torch.tensor(v).requires_grad_() for k, v in p.items()}
        self.data = {k: v if isinstance(v, (int, float)) else torch.tensor(v) for k, v in data.items()}
        K, estimator = asked["samples"], asked["estimator"]
        self.loss = lambda p, data: network(torch_ops, p, data, K, estimator)
        if form == "compiled":
            torch._dynamo.reset()
            self.loss = torch.compile(self.loss, dynamic=False)
        self.optimizer = torch.optim.Adam(self.p.values())
        self.batch = asked["training"]
        if self.batch:  # whole training steps: a batch of the data, drawn choices, the gradient, Adam
            self.pool, self.data = pool_of(self.data, asked["model"])
            self.examples = len(next(iter(self.pool.values())))

    def gradient(self):
        for parameter in self.p.values():
            parameter.grad = None
        data = self.data
        if self.batch:
            chosen = torch.randint(self.examples, (self.batch,))
            data = data | {k: v[chosen] for k, v in self.pool.items()}
        if not self.differentiated:
            return self.assign(data)
        self.loss(self.p, data).backward()
        if self.batch:
            self.optimizer.step()

    @torch.no_grad()
    def assign(self, data):
        for name, gradient in self.loss(self.p, data).items():
            self.p[name].grad = gradient

    def stepped(self):
        """The parameters after one step of the optimiser along the last gradient."""
        self.optimizer.step()
        return {k: v.detach().numpy().copy() for k, v in self.p.items()}

    def result(self):
        return {k: (torch.zeros_like(v) if v.grad is None else v.grad).numpy().copy() for k, v in self.p.items()}
