"""Which estimator on my network? A small autoencoder with eight bits, along its training: estimators of Hardgrad, beside PyTorch's own
Gumbel-softmax and a baseline written by hand.

    /usr/bin/python3 experiments/python/examples/which_estimator.py
"""
import torch
import torch.nn.functional as F
from torch import nn

import hardgrad.torch

BITS = 8


class Autoencoder(nn.Module):
    def __init__(self, pixels=16):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(pixels, BITS), nn.Sequential(nn.Linear(BITS, 24), nn.Tanh(), nn.Linear(24, pixels))

    def logits(self, x):  # [examples, bits, 2]
        on = self.encoder(x)
        return torch.stack([torch.zeros_like(on), on], -1)

    def errors(self, bits, x):  # of each row
        return F.binary_cross_entropy_with_logits(self.decoder(bits), x, reduction="none").sum(1)

    def loss(self, x, estimator):
        return hardgrad.torch.expectation(self.logits(x), lambda z, example: self.errors(z[..., 1], x[example]), estimator).mean()

    def loss_of_pytorch(self, x):
        """Straight-through Gumbel-softmax as PyTorch has it."""
        return self.errors(F.gumbel_softmax(self.logits(x), hard=True)[..., 1], x).mean()

    def loss_by_hand(self, x):
        """REINFORCE, whose baseline is the mean loss of the batch."""
        law = torch.distributions.Bernoulli(logits=self.encoder(x))
        bits = law.sample()
        errors = self.errors(bits, x)
        return (errors + (errors - errors.mean()).detach() * law.log_prob(bits).sum(1)).mean()


def followed(steps=300, every=150, replicates=100):
    """The comparisons at steps 0, every, ...; the network is trained by `rloo`."""
    torch.manual_seed(1)
    network, data = Autoencoder(), (torch.rand(16, 16) < 0.3).float()
    estimators = {name: name for name in ("reinforce", "rloo[samples=4]", "disarm", "rebar", "nvil", "straight_through")}
    estimators |= {"F.gumbel_softmax": lambda: network.loss_of_pytorch(data), "by hand": lambda: network.loss_by_hand(data)}
    monitor = hardgrad.torch.Monitor(lambda estimator: network.loss(data, estimator),
                                     {"encoder": network.encoder.parameters(), "decoder": network.decoder.parameters()},
                                     estimators, every, replicates=replicates, by="seconds")
    adam = torch.optim.Adam(network.parameters(), 0.01)
    for step in range(steps):
        monitor(step)
        adam.zero_grad()
        network.loss(data, "rloo[samples=4]").backward()
        adam.step()
    return monitor.results


if __name__ == "__main__":
    for step, found in followed().items():
        print(f"step {step}\n{found}\n")
