#!/usr/bin/python3
"""25 estimators on a network of PyTorch, before and after training, as a page: `hardgrad.torch.Monitor`.

    PYTHONPATH=build/release/python results/reference/own_network.py >results/reference/own_network.md

Four minutes on one core.
"""
import torch
import torch.nn.functional as F
from torch import nn

import hardgrad
import hardgrad.torch

ESTIMATORS = [
    "reinforce", "reinforce[samples=4]", "moving_baseline", "nvil", "self_critic", "soft_baseline", "rloo[samples=2]", "rloo[samples=4]",
    "rloo[samples=8]", "optimal_baseline[samples=4]", "group_normalised[samples=4]", "arm", "disarm", "bitflip", "carms[samples=4]",
    "stratified[samples=4]", "unordered_set[samples=4]", "muprop", "rebar", "relax[relaxed_model=false]", "straight_through", "gumbel_softmax",
    "st_gumbel", "reinmax", "double_cv"]
STEPS = 600

HEAD = """# Estimators on a network of one's own

[`own_network.py`](own_network.py) measures 25 estimators on an autoencoder in PyTorch with
[`Monitor`](../../experiments/python/README.md), before training and after 600 steps by `rloo[samples=4]`: once with 50
bits and 100,000 parameters, where the reference is a long run, and once with 8 bits, where it is exact.

**Not re-made:** the tables are the output of [`own_network.py`](own_network.py); their result files are not kept here.

- Before training, `straight_through`, `reinmax` and `st_gumbel` have the least variance x rows with 50 bits, and a bias
  of at most .02 of the gradient. After training the bias of `straight_through` is .13 to .18 and that of `reinmax` .03
  to .08. With 8 bits it is .25 to .29 and .08 to .15.
- The ranking of unbiased estimators changes in training. `rebar` moves from rank 14 to 3 with 50 bits. With 8 bits
  `disarm` is first before training; after it `disarm`, `unordered_set`, `carms` and `rloo[samples=8]` do not differ
  beyond noise.
- A baseline that does not see the other samples falls behind: `moving_baseline` and `nvil` equal `rloo[samples=4]`
  before training and have 15 times its variance x rows after it (50 bits).
- `relax` in these tables is `relax[relaxed_model=false]`, its default then: a learned control alone. It stays at the
  level of `reinforce` after 200 steps of learning.
- `group_normalised[samples=4]` has the least variance and a bias of .56 to .61 after training with 50 bits.
"""


class Autoencoder(nn.Module):
    def __init__(self, pixels, bits, hidden):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.Tanh(), nn.Linear(hidden, bits))
        self.decoder = nn.Sequential(nn.Linear(bits, hidden), nn.Tanh(), nn.Linear(hidden, pixels))

    def loss(self, x, estimator):
        def errors(z, example):
            return F.binary_cross_entropy_with_logits(self.decoder(z), x[example], reduction="none").sum(1)
        return hardgrad.torch.expectation(self.encoder(x), errors, estimator, bits=True).mean()


def bars(count, size):
    """Pictures [count, size^2] of rows and columns, each lit with probability 1/5."""
    rows, columns = torch.rand(count, size, 1) < 0.2, torch.rand(count, 1, size) < 0.2
    return (rows | columns).float().flatten(1)


def followed(size, bits, hidden, replicates):
    """The number of parameters, and the comparisons by step."""
    torch.manual_seed(1)
    network, data = Autoencoder(size * size, bits, hidden), bars(16, size)
    count = sum(p.numel() for p in network.parameters())
    monitor = hardgrad.torch.Monitor(lambda estimator: network.loss(data, estimator), network.parameters(), ESTIMATORS, STEPS,
                                     replicates=replicates, by="rows")
    adam = torch.optim.Adam(network.parameters(), 0.002)
    for step in range(STEPS + 1):
        monitor(step)
        adam.zero_grad()
        network.loss(bars(16, size), "rloo[samples=4]").backward()
        adam.step()
    return count, monitor.results


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(HEAD)
    for size, bits, hidden, replicates in ((21, 50, 100, 256), (6, 8, 16, 1024)):
        count, results = followed(size, bits, hidden, replicates)
        for step, found in results.items():
            print(f"## {bits} bits, {count:,} parameters, step {step}\n\n```\n{found}\n```\n", flush=True)
