"""Hard attention in PyTorch: a network looks at one of several cells, and predicts the class shown there.

    /usr/bin/python3 experiments/python/examples/hard_attention.py 'rloo[samples=4]'
"""
import sys

import torch
import torch.nn.functional as F
from torch import nn

import hardgrad.torch

CELLS, CLASSES, WIDTH = 8, 4, 6


def examples(n):
    """Cells [n, CELLS, WIDTH], one of them marked; the first numbers of the marked cell encode the class [n]."""
    cells, label = torch.randn(n, CELLS, WIDTH), torch.randint(CLASSES, (n,))
    marked = torch.randint(CELLS, (n,))
    cells[:, :, -1] = 0
    cells[torch.arange(n), marked] = F.one_hot(label, WIDTH).float() * 2
    cells[torch.arange(n), marked, -1] = 3
    return cells, label


def train(estimator, steps=300, batch=64):
    """Accuracy of the most probable look, after training."""
    torch.manual_seed(1)
    score = nn.Sequential(nn.Linear(WIDTH, 16), nn.Tanh(), nn.Linear(16, 1))
    classify = nn.Linear(WIDTH, CLASSES)
    adam = torch.optim.Adam([*score.parameters(), *classify.parameters()], 0.01)
    for _ in range(steps):
        cells, label = examples(batch)

        def loss_of(cell, example):  # options [rows, 1]: a hard look reads only one cell
            return F.cross_entropy(classify(cells[example, cell[:, 0]]), label[example], reduction="none")

        loss = hardgrad.torch.expectation(score(cells).transpose(1, 2), loss_of, estimator, takes="options").mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    cells, label = examples(1000)
    with torch.no_grad():
        look = score(cells)[..., 0].argmax(1)
        return (classify(cells[torch.arange(1000), look]).argmax(1) == label).float().mean().item()


if __name__ == "__main__":
    for name in sys.argv[1:] or ["reinforce", "rloo[samples=4]", "sum_and_sample", "exact"]:
        print(f"{name:20} accuracy {train(name):.2f}")
