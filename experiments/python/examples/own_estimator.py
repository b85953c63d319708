"""Checks an estimator written by the user: a common form of straight-through, with exact moments on a loss of one's own.

    /usr/bin/python3 experiments/python/examples/own_estimator.py
"""
import numpy as np

import hardgrad


def my_straight_through(of):
    """The derivative at the hard choice, through the softmax."""
    p = of.probabilities
    return p * (of.derivatives - (p * of.derivatives).sum(-1, keepdims=True))


def loss(w):
    """(x_1 x_2 - 0.3)^2 for two choices with the values 0, 1/2 or 1 [rows], and its derivative in the weights [rows, 2, 3]."""
    worth = np.array([0, 0.5, 1])
    x = w @ worth
    off = x[:, 0] * x[:, 1] - 0.3
    return off**2, (2 * off[:, None] * x[:, ::-1])[..., None] * worth


def judged():
    logits = np.array([[0.2, -0.4, 0.1], [1.0, 0.3, -0.5]])
    mine = hardgrad.written(my_straight_through, derivatives=True)
    return [hardgrad.moments(logits, loss, estimator, takes="weights") for estimator in (mine, "straight_through", "reinmax", "rloo")]


if __name__ == "__main__":
    for of in judged():
        share = np.linalg.norm(of.bias) / np.linalg.norm(of.exact)
        print(f"{of.estimator:20} bias {100 * share:5.1f}% of the gradient, variance {of.variance.sum():.4f}")
