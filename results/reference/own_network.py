#!/usr/bin/python3
"""25 estimators on a network of PyTorch, before and after training, as a page: `hardgrad.torch.Monitor`.

    PYTHONPATH=build/release/python results/reference/own_network.py >results/reference/own_network.md

Four minutes on one core. --all prints the whole comparisons instead.
"""
import sys
import textwrap

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

SHOWN = ["straight_through", "reinmax", "group_normalised[samples=4]", "disarm", "carms[samples=4]", "rebar", "unordered_set[samples=4]",
         "rloo[samples=4]", "nvil", "reinforce"]

HEAD = """# Estimators on a network of one's own

The ranking of unbiased estimators changes in training, and the bias of relaxations grows. `rebar` moves from rank 14
to 3 with 50 bits. `straight_through`, first and without a significant bias before training, has a bias of .13 to .18
of the gradient after it.

**Not re-made:** 0.1 core-hours; the tables are the output of [`own_network.py`](own_network.py); its
results are not kept.

The script measures 25 estimators on an autoencoder in PyTorch with [`Monitor`](../../experiments/python/README.md),
before training and after 600 steps by `rloo[samples=4]`: once with 50 bits and 100,000 parameters, and once with 8
bits (`--all` prints both, all estimators, with variance, cosine and time). *Rank*: 1 + the number of estimators, of
all 25, that are better beyond noise (all pairs together); *biased*: a bias was found (p < .05, corrected). Bias is
relative to the gradient, with its 95% interval ("<": not significant). `double_cv`, `nvil`, `rebar` and `relax`
learned for 200 steps before.

- With 8 bits `disarm` is first before training; after it `disarm`, `unordered_set`, `carms` and `rloo[samples=8]` do
  not differ beyond noise.
- A baseline that does not see the other samples falls behind: `nvil` equals `rloo[samples=4]` before training and has
  15 times its variance x rows after it (50 bits).
- A learned control alone (`relax[relaxed_model=false]`) stays at the level of `reinforce`.
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


def table(results):
    """Rank, variance x rows and bias of SHOWN at every step, in the order of the last one."""
    lines = ["| estimator | " + " | ".join(f"rank, step {step} | variance x rows | relative bias" for step in results) + " |",
             "|---" * (1 + 3 * len(results)) + "|"]
    for one in results[STEPS].ordered():
        if one.estimator in SHOWN:
            cells = [cell for found in results.values() for cell in cells_of(found, found[one.estimator])]
            lines.append(f"| `{one.estimator}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cells_of(found, one):
    low, high = one.intervals["relative_bias"]
    bias = f"< {high:.3g}" if low == 0 else f"{one.relative_bias:.3g} [{low:.3g}, {high:.3g}]"
    return ["biased" if found.biased(one.estimator) else f"{found.rank[one.estimator]:.0f}", f"{one.work_normalised_variance:.3g}", bias]


def reference_of(found):
    one = found.measured[0]
    error = f" (standard error {one.estimand_standard_error:.2g})" if one.estimand_standard_error > 0 else ""
    return f"{found.reference}, length {one.estimand_norm:.3g}{error}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(HEAD)
    for size, bits, hidden, replicates in ((21, 50, 100, 256), (6, 8, 16, 1024))[:2 if "--all" in sys.argv else 1]:
        count, results = followed(size, bits, hidden, replicates)
        print(f"## {bits} bits, {count:,} parameters\n")
        if "--all" in sys.argv:
            print("\n\n".join(f"Step {step}\n\n```\n{found}\n```" for step, found in results.items()) + "\n", flush=True)
            continue
        references = "; ".join(f"step {step}: {reference_of(found)}" for step, found in results.items())
        print(textwrap.fill(f"{replicates} estimates each. Reference: {references}.", 118, break_on_hyphens=False) + "\n")
        print(table(results) + "\n", flush=True)
