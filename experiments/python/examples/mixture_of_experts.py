"""A mixture of experts: a gate sends each example to one of four experts, and only that one runs.

    /usr/bin/python3 experiments/python/examples/mixture_of_experts.py 'rloo[samples=2]'
"""
import sys

import torch
from torch import nn

import hardgrad.torch

EXPERTS, INPUTS = 4, 3


def data(n):
    """x [n, inputs], and y [n]: a linear function of x, another one in each quadrant of its first two inputs."""
    x = torch.randn(n, INPUTS)
    slopes = 2 * torch.randn(EXPERTS, INPUTS, generator=torch.Generator().manual_seed(0))
    return x, (x * slopes[2 * (x[:, 0] > 0) + (x[:, 1] > 0).long()]).sum(1)


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(INPUTS, 16), nn.Tanh(), nn.Linear(16, EXPERTS))
        self.weight, self.bias = nn.Parameter(0.3 * torch.randn(EXPERTS, INPUTS)), nn.Parameter(torch.zeros(EXPERTS))

    def loss(self, x, y, estimator):
        def error(expert, example):  # [rows, 1] the expert of each row; the others do not run
            expert = expert[:, 0]
            return ((self.weight[expert] * x[example]).sum(1) + self.bias[expert] - y[example]) ** 2

        return hardgrad.torch.expectation(self.gate(x)[:, None], error, estimator, takes="options").mean()


def train(estimator, steps=800, batch=64):
    """The mean squared error before and after training. One linear function for all has 7.3."""
    torch.manual_seed(1)
    mixture = Mixture()
    estimator = hardgrad.torch.Estimator(estimator)
    adam = torch.optim.Adam(mixture.parameters(), 0.02)
    seen = data(2000)
    with torch.no_grad():
        before = mixture.loss(*seen, "exact").item()
    for _ in range(steps):
        adam.zero_grad()
        mixture.loss(*data(batch), estimator).backward()
        adam.step()
    with torch.no_grad():
        return before, mixture.loss(*seen, "exact").item()


if __name__ == "__main__":
    for name in sys.argv[1:] or ["reinforce", "rloo[samples=2]", "unordered_set", "exact"]:
        print("{:20} {:.2f} -> {:.2f}".format(name, *train(name)))
