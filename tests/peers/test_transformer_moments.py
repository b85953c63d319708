"""Exact means and variances of estimators on the transformer, with all choices of all heads and layers, against an enumeration of its
reference in PyTorch. HARDGRAD_BINARY is the path of the program."""

import itertools
import json
import os
import subprocess

import numpy as np
import pytest
import torch

from gradient_file import load
from references.transformer import transformer

HEADS = 2
CASES = [  # (settings, task, outcomes)
    ("picks=2", "recall[pairs=1,queries=1,length=3,vocabulary=4]", 3**4),
    ("picks=2,scorer=indexer,share=true,places=rotary", "induction[length=4,vocabulary=3]", 3 * 6 * 6),
    ("picks=2,within=equal,law=plackett_luce,share=true", "induction[length=4,vocabulary=3]", 3 * 6 * 6),
    ("share=true,places=sinusoidal", "induction[length=3,vocabulary=3]", 2 * 3 * 3),
    ("picks=2,scorer=indexer,imitation=0.6", "recall[pairs=1,queries=1,length=3,vocabulary=4]", 3**4),
    ("picks=3,layers=1,scorer=indexer", "induction[length=5,vocabulary=3]", 10**2),
]


def program(*arguments: str) -> str:
    return subprocess.run([os.environ["HARDGRAD_BINARY"], *arguments], capture_output=True, text=True, check=True).stdout


def outcomes(file, picks: int, layers: int, columns: int):
    """Every set of choices of the example: indicators by (layer, place, choice)."""
    label = [int(y) for y in file.batch["label"][0]]
    last = max(t for t, y in enumerate(label) if y >= 0)
    places = [
        (layer, t, d)
        for t in range(last + 1)
        for layer in range(1, layers + 1)
        if layer < layers or label[t] >= 0
        for d in range(columns)
    ]
    sets = [list(itertools.combinations(range(t + 1), min(picks, t + 1))) for _, t, _ in places]
    for chosen in itertools.product(*sets):
        yield {at: np.isin(np.arange(at[1] + 1), keys).astype(float) for at, keys in zip(places, chosen)}


@pytest.mark.parametrize("settings, task, count", CASES)
def test_exact_moments_equal_an_enumeration_in_pytorch(tmp_path, settings, task, count):
    given = dict(pair.split("=") for pair in settings.split(","))
    model = f"transformer[width=4,inner=3,heads={HEADS},index_width=2,{settings}]"
    common = ("--task", task, "--model", model, "--seed", "4", "--batch", "1", "--precision", "double")
    out = str(tmp_path / "gradient.h5")
    program("gradient", *common, "--estimator", "reinforce", "--out", out)
    file = load(out)
    names = list(file.gradient)

    p, f, score, slope = [], [], [], []
    columns = 1 if given.get("share") == "true" else HEADS
    for keys in outcomes(file, int(given.get("picks", 1)), int(given.get("layers", 2)), columns):
        losses, log_probs = transformer(file, 0, None, exactly=lambda *at: keys[at])
        total, log_p = sum(losses), sum(log_probs)

        def gradient(value):
            of = torch.autograd.grad(value, [file.parameters[n] for n in names], retain_graph=True, allow_unused=True)
            return np.concatenate(
                [np.zeros(file.gradient[n].size) if g is None else g.numpy().ravel() for n, g in zip(names, of)]
            )

        p.append(float(log_p.exp())), f.append(float(total))
        slope.append(gradient(total)), score.append(gradient(log_p))
    p, f, score, slope = (np.array(x) for x in (p, f, score, slope))
    assert len(p) == count and abs(p.sum() - 1) < 1e-12

    alone = f[:, None] * score + slope
    mean = p @ alone
    first, second = (i.ravel() for i in np.meshgrid(*[range(len(p))] * 2))
    together = (f[first] - f[second])[:, None] / 2 * (score[first] - score[second]) + (slope[first] + slope[second]) / 2
    draws = {
        "reinforce": (p, alone),
        "rloo[samples=2]": (p[first] * p[second], together),
        "exact": (np.ones(1), mean[None]),
    }
    estimators = [word for name in draws for word in ("--estimator", name)]
    rows = json.loads(program("measure", *common, *estimators, "--exact", "--json"))["results"]
    compared = 0
    for row in rows:
        weight, estimates = draws[row["estimator"]]
        theirs = weight @ estimates
        variance = weight @ (estimates**2).sum(1) - theirs @ theirs if len(weight) > 1 else 0.0
        ours = np.concatenate([np.ravel(row["mean_gradient"][n]) for n in names])
        assert np.abs(ours - theirs).max() < 1e-10 * np.abs(theirs).max(), row["estimator"]
        assert abs(row["variance"] - variance) < 1e-10 * max(variance, 1e-3), row["estimator"]
        compared += 1
    assert compared == len(draws)
    assert np.abs(p @ slope - mean).max() > 1e-4 * np.abs(mean).max()  # the choices matter
