"""A variational autoencoder with discrete latents, in PyTorch: the estimator is a string.

    /usr/bin/python3 experiments/python/examples/vae.py 'rloo[samples=4]'
"""
import sys

import torch
import torch.nn.functional as F
from torch import nn

import hardgrad.torch

D, S = 6, 4  # latent columns, options of each


def bars(n, size=6):
    """Pictures [n, size^2] of rows and columns, each lit with probability 1/4."""
    rows, columns = torch.rand(n, size, 1) < 0.25, torch.rand(n, 1, size) < 0.25
    return (rows | columns).float().flatten(1)


def negative_elbo(x, encoder, decoder, estimator):
    logits = encoder(x).reshape(-1, D, S)

    def reconstruction(z, example):  # -log p(x | z) of each row
        return F.binary_cross_entropy_with_logits(decoder(z.flatten(1)), x[example], reduction="none").sum(1)

    log_q = logits.log_softmax(-1)
    divergence = (log_q.exp() * (log_q + torch.tensor(S).log())).sum((1, 2))
    return (hardgrad.torch.expectation(logits, reconstruction, estimator) + divergence).mean()


def train(estimator, steps=300, batch=64):
    """The negative ELBO [nats a picture] before and after training, from 16 samples of each of 2000 pictures."""
    torch.manual_seed(1)
    encoder = nn.Sequential(nn.Linear(36, 64), nn.Tanh(), nn.Linear(64, D * S))
    decoder = nn.Sequential(nn.Linear(D * S, 64), nn.Tanh(), nn.Linear(64, 36))
    estimator = hardgrad.Estimator(estimator)  # keeps its state, if it learns
    adam = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 0.01)
    with torch.no_grad():
        seen = bars(2000)
        before = negative_elbo(seen, encoder, decoder, "rloo[samples=16]").item()
        for _ in range(steps):
            with torch.enable_grad():
                loss = negative_elbo(bars(batch), encoder, decoder, estimator)
                adam.zero_grad()
                loss.backward()
            adam.step()
        return before, negative_elbo(seen, encoder, decoder, "rloo[samples=16]").item()


if __name__ == "__main__":
    for name in sys.argv[1:] or ["rloo[samples=4]", "straight_through", "gumbel_softmax", "rebar"]:
        print("{:20} {:.2f} -> {:.2f} nats".format(name, *train(name)))
