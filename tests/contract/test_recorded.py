"""The recorded variances of estimators (`promise::variance`), enumerated independently from their equations.

The network (experiments/verification/small_models.hpp) makes two choices between two options. Its loss is
f(z) = 0.4 + s m(z), m(z) = sum_d a_d[z_d] + (sum_d b_d[z_d])^3. Its parameters are logits phi [2, 2] and s = 1.
"""

import itertools
import re

import numpy as np
import pytest

from mutants import ROOT

COLUMNS = OPTIONS = range(2)
a = np.array([[0.9 * np.sin(1.7 * i + 2.3 * d + 0.4) for i in OPTIONS] for d in COLUMNS])
b = np.array([[0.8 * np.cos(1.1 * i + 0.7 * d) for i in OPTIONS] for d in COLUMNS])
phi = np.array([[0.9 * np.sin(2.1 * (2 * d + i) + 0.5) for i in OPTIONS] for d in COLUMNS])
p = np.exp(phi) / np.exp(phi).sum(1, keepdims=True)
OUTCOMES = list(itertools.product(OPTIONS, repeat=2))


def probability(z):
    return np.prod([p[d, z[d]] for d in COLUMNS])


def moving(w):
    """m at weights [2, 2], which may be the one-hot weights of an outcome."""
    return (a * w).sum() + (b * w).sum() ** 3


def one_hot(z):
    return np.eye(2)[list(z)]


def m(z):
    return moving(one_hot(z))


def f(z):
    return 0.4 + m(z)


def score(z):
    return one_hot(z) - p


def rloo(samples=3):
    for zs in itertools.product(OUTCOMES, repeat=samples):
        losses = np.array([f(z) for z in zs])
        baselines = (losses.sum() - losses) / (samples - 1)
        yield (
            np.prod([probability(z) for z in zs]),
            sum((x - y) * score(z) for x, y, z in zip(losses, baselines, zs)) / samples,
            np.mean([m(z) for z in zs]),
        )


def disarm():
    """1/2 (f(b) - f(b~)) (-1)^{b~} 1[b != b~] sigma(|phi|), b = 1[u < q], b~ = 1[1 - u < q]"""
    pairs = []
    for q in p[:, 1]:
        ends = sorted({0, q, 1 - q, 1})
        pairs.append(
            [(high - low, int((low + high) / 2 < q), int(1 - (low + high) / 2 < q)) for low, high in zip(ends, ends[1:])]
        )
    for drawn in itertools.product(*pairs):
        first, second = (tuple(bits[i] for bits in drawn) for i in (1, 2))
        g = np.zeros((2, 2))
        for d in COLUMNS:
            g[d, 1] = 0.5 * (f(first) - f(second)) * (first[d] - second[d]) * p[d].max()
            g[d, 0] = -g[d, 1]
        yield np.prod([bits[0] for bits in drawn]), g, (m(first) + m(second)) / 2


def sum_and_sample():
    """The most probable outcome, and one sample from the others."""
    top, *others = sorted(OUTCOMES, key=probability, reverse=True)
    sure = probability(top)
    for z in others:
        yield (
            probability(z) / (1 - sure),
            sure * f(top) * score(top) + (1 - sure) * f(z) * score(z),
            sure * m(top) + (1 - sure) * m(z),
        )


def muprop():
    slope = a + 3 * (b * p).sum() ** 2 * b
    correction = p * (slope - (slope * p).sum(1, keepdims=True))
    for z in OUTCOMES:
        line = 0.4 + moving(p) + (slope * score(z)).sum()
        yield probability(z), (f(z) - line) * score(z) + correction, m(z)


def local_expectation():
    for z in OUTCOMES:
        g, path = np.zeros((2, 2)), 0
        for d, i in itertools.product(COLUMNS, OPTIONS):
            other = tuple(i if e == d else z[e] for e in COLUMNS)
            g[d] += p[d, i] * f(other) * score(other)[d]
            path += p[d, i] * m(other) / 2
        yield probability(z), g, path


LAWS = {
    ("rloo", "samples=3"): rloo,
    ("disarm", ""): disarm,
    ("sum_and_sample", "samples=2"): sum_and_sample,
    ("muprop", "level=1,slope=1,learned=false"): muprop,
    ("local_expectation", ""): local_expectation,
}


@pytest.mark.parametrize("name,settings", LAWS)
def test_recorded(name, settings):
    text = (ROOT / "estimators" / f"{name}.cpp").read_text()
    recorded = {m[2] or "": float(m[1]) for m in re.finditer(r'promise::variance\(([^,)]*)(?:, "([^"]*)")?\)', text)}
    drawn = [(w, np.append(g.ravel(), path)) for w, g, path in LAWS[name, settings]()]
    assert abs(sum(w for w, _ in drawn) - 1) < 1e-12
    mean = sum(w * g for w, g in drawn)
    exact = sum(probability(z) * np.append((f(z) * score(z)).ravel(), m(z)) for z in OUTCOMES)
    assert np.abs(mean - exact).max() < 1e-12
    assert sum(w * ((g - mean) ** 2).sum() for w, g in drawn) == pytest.approx(recorded[settings], rel=1e-8)
