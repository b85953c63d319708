"""Every parameter enters as the head of its model says: all pairs of settings of ten networks, on random parameters, against the reference
implementations. One row of settings covers many pairs; the program says which combinations it refuses."""
import itertools
import json
import os
import random
import subprocess

import numpy as np
import pytest

pytest.importorskip("torch", reason="the references are written in PyTorch (Debian: python3-torch)")

from gradient_file import compare, load
from references import REFERENCES

HARD, BOUND, SOFT = "reinforce[samples=2]", "reinforce[samples=2,target=elbo,kl=sampled]", "soft"
WRITTEN = "translation[words=3,max_length=4]"

# Of each network: tasks, estimators, and values of its numeric settings. Settings with named values, and flags, take all that the program lists.
GRIDS = {
    "translator": ([WRITTEN], [HARD, BOUND], {"embedding": [6], "hidden": [6], "window": [1, 2], "heads": [1, 2], "picks": [1, 2], "dropout": [0, 0.4]}),
    "captioner": (["caption[grid=3,objects=1]"], [HARD, BOUND],
                  {"embedding": [6], "hidden": [5], "channels": [4], "features": [7], "picks": [1, 2], "doubly_stochastic": [0, 0.8], "dropout": [0, 0.4]}),
    "writer": (["answers[kind=sort,symbols=2,size=3]"], [HARD],
               {"hidden": [4], "embedding": [3], "scale": [1, 0.7], "drift": [0, 0.5], "away": [0, 0.5]}),
    "memory_reader": (["qa"], [HARD, SOFT], {"embedding": [7], "hops": [1, 2, 3], "picks": [1, 2], "dropout": [0, 0.4]}),
    "attentive_reader": (["cloze"], [HARD], {"embedding": [6], "hidden": [5], "picks": [1, 2], "dropout": [0, 0.4]}),
    "ponderer": (["puzzle[kind=sort,size=3]", "puzzle[kind=logic,size=2,length=2]"], [HARD, SOFT],
                 {"hidden": [6], "steps": [3, 5], "epsilon": [0.01, 0.3], "prior": [0.2, 0.4], "beta": [0, 0.5], "tau": [0, 0.1]}),
    "tape_machine": (["algorithm[kind=reverse,bits=3,min_length=1,max_length=3]", "algorithm[kind=copy,bits=2,min_length=1,max_length=3]"], [HARD, SOFT],
                     {"cells": [4, 5], "width": [2, 3], "hidden": [5], "time": [1, 1.4]}),
    "glimpse_reader": (["glimpse", "glimpse[digits=3,size=8]"], [HARD],
                       {"grid": [3, 4], "patch": [4, 5], "scales": [1, 2], "glimpses": [2, 3], "features": [9], "hidden": [8], "scale": [0.2, 0.4],
                        "locator_units": [0, 7], "place_units": [0, 5]}),
    "selector": (["features[features=5]"], [HARD], {"picks": [1, 2], "share": [0, 0.5], "hidden": [6]}),
    "sentence_pair": (["pairs[kind=phrase,words=3]"], [HARD, SOFT], {"layers": [1, 2], "width": [4], "window": [1, 3]}),
}


def settings_of(model):
    """The values of each setting, from the program and the grid; none may be missing."""
    told = json.loads(subprocess.run([os.environ["HARDGRAD_BINARY"], "describe", f"model:{model}", "--json"], capture_output=True, text=True, check=True).stdout)
    tasks, estimators, numbers = GRIDS[model]
    values = {"task": tasks, "estimator": estimators}
    for parameter in (told[0] if isinstance(told, list) else told)["parameters"]:
        named = {"choice": lambda: parameter["range"].split("|"), "boolean": lambda: ["false", "true"]}.get(parameter["type"])
        values[parameter["name"]] = named() if named else numbers[parameter["name"]]
    assert set(numbers) <= set(values)
    return values


def dumped(model, row, out):
    """The gradient of a row of settings; None if the program refuses them in one line."""
    settings = ",".join(f"{name}={value}" for name, value in row.items() if name not in ("task", "estimator"))
    without_choice = model == "translator" and row["attention"] == "none" and row["words"] == "given"
    command = [os.environ["HARDGRAD_BINARY"], "gradient", "--task", row["task"], "--model", f"{model}[{settings}]", "--estimator",
               SOFT if without_choice and row["estimator"] == HARD else row["estimator"], "--seed", "5", "--batch", "4", "--precision", "double", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 2:
        assert done.stderr.count("\n") == 1, done.stderr
        return None
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return load(str(out))


def agrees(file, model, bound):
    found = compare(file, REFERENCES[model])
    same = found.gradient < 1e-10 or (found.entry == 0 and np.isnan(found.gradient))  # or both are zero
    return found.loss < 1e-10 and (bound or found.log_prob < 1e-10) and found.surrogate < 1e-10 and same and found.entry < 1e-10, found


@pytest.mark.parametrize("model", GRIDS)
def test_all_pairs_of_settings_equal_the_reference(tmp_path, model):
    values, drawn = settings_of(model), random.Random(2026)
    pairs = {((a, x), (b, y)) for a, b in itertools.combinations(values, 2) for x in values[a] for y in values[b]}
    left, refused, rows, wrong = set(pairs), set(), 0, []
    pairs_of = lambda row: set(itertools.combinations(row.items(), 2))
    for pair in sorted(pairs, key=lambda _: drawn.random()):
        if pair not in left:
            continue
        # The completion with most new pairs first; one that the program refuses is followed by another.
        tries = [{name: dict(pair).get(name, drawn.choice(of)) for name, of in values.items()} for _ in range(40)]
        for row in sorted(tries, key=lambda row: -len(pairs_of(row) & left))[:12]:
            file = dumped(model, row, tmp_path / "gradient.h5")
            if file is None:
                continue
            left -= pairs_of(row)
            rows += 1
            right, found = agrees(file, model, row["estimator"] == BOUND)
            if not right:
                wrong.append((row, found))
            break
        else:
            refused.add(pair)
            left.discard(pair)
    print(f"{model}: {rows} rows for {len(pairs)} pairs, {len(refused)} refused")
    assert not wrong, wrong[0]
    assert rows >= 4 and len(refused) < 0.35 * len(pairs), sorted(refused)
