"""An LSTM with hard attention: it looks at three of nine cells, one after another, and reports the sum of the two that are lit.

    /usr/bin/python3 experiments/python/examples/attention_lstm.py 'rloo[samples=4]'
"""
import sys

import torch
from torch import nn

import hardgrad.torch
from hardgrad.torch import Site

CELLS, LOOKS, WIDTH = 9, 3, 32
SITES = {"cell": Site(options=CELLS, times=LOOKS, state=WIDTH)}


def pictures(n):
    """Brightness [n, cells], which all can see; values [n, cells], seen only where the network looks; the sum over the two lit cells [n]."""
    lit = torch.zeros(n, CELLS).scatter_(1, torch.rand(n, CELLS).argsort(1)[:, :2], 1.0)
    values = torch.randn(n, CELLS)
    return lit, values, (lit * values).sum(1)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(CELLS + 1, WIDTH)  # sees where it looked, and the value there
        self.where, self.sum = nn.Linear(WIDTH + CELLS, CELLS), nn.Linear(WIDTH, 1)

    def loss(self, lit, values, answer, estimator):
        with hardgrad.torch.episode(len(lit), SITES, estimator) as e:
            h = c = torch.zeros(len(lit), WIDTH)
            example = torch.arange(len(lit))
            for _ in range(LOOKS):
                look = e.choose("cell", self.where(torch.cat([h, lit[example]], 1)), state=h)
                example, there = look.example, look.weights[:, 0]  # one-hot, or weights where the estimator relaxes
                value = (there * values[example]).sum(1, keepdim=True)
                h, c = self.cell(torch.cat([there, value], 1), (h[look.parent], c[look.parent]))
            e.cost((self.sum(h)[:, 0] - answer[example]) ** 2)
        return e.expected_loss.mean()


def train(estimator, steps=600, batch=64):
    """The mean squared error before and after training. Without looking it is 2."""
    torch.manual_seed(1)
    reader = Reader()
    estimator = hardgrad.torch.Estimator(estimator)
    adam = torch.optim.Adam(reader.parameters(), 0.005)

    def error():
        with torch.no_grad():
            return reader.loss(*pictures(2000), "rloo[samples=2]").item()

    before = error()
    for _ in range(steps):
        adam.zero_grad()
        reader.loss(*pictures(batch), estimator).backward()
        adam.step()
    return before, error()


if __name__ == "__main__":
    for name in sys.argv[1:] or ["reinforce", "rloo[samples=4]", "nvil[samples=4]", "straight_through"]:
        print("{:20} {:.2f} -> {:.2f}".format(name, *train(name)))
