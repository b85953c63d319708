#!/usr/bin/python3
"""Tables of trained networks that pick subsets or codes: mean and standard deviation over the seeds of quantities at the last step,
or, with :first, at the first.

    hardgrad run experiments/configs/selector.toml && hardgrad merge results/selector-run --out results/selector.h5
    PYTHONPATH=. results/reference/subsets_trained.py results/selector.h5 metric_planted_hit metric_accuracy heldout_expected_loss
"""
import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis import load  # noqa: E402


def number(x):
    return f"{x:.2f}".removeprefix("0") if x < 9.995 else f"{x:.1f}"


def label(quantity):
    """Without the kind of quantity."""
    return quantity.removeprefix("metric_").removeprefix("heldout_").replace(":first", ", first")


def titles(models):
    """The specs without the settings that all share."""
    settings = [set(model.partition("[")[2].rstrip("]").split(",")) - {""} for model in models]
    own = [sorted(of - set.intersection(*settings)) for of in settings]
    return [model.partition("[")[0] + (f"[{','.join(of)}]" if of else "") for model, of in zip(models, own)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("quantity", nargs="+")
    options = parser.parse_args()
    data = load(options.result)
    labels = {name: np.asarray(data[name].values, str) for name in ("task", "model", "estimator")}
    networks = list(dict.fromkeys(zip(labels["task"], labels["model"])))
    at = {q: 0 if q.endswith(":first") else -1 for q in options.quantity}
    found = {q: data[q.removesuffix(":first")].values[:, at[q]] for q in options.quantity}
    names = titles([model for _, model in networks])
    print("| estimator | " + " | ".join(f"{label(q)}, `{name}`" for q in options.quantity for name in names) + " |")
    print("|---" * (1 + len(options.quantity) * len(networks)) + "|")
    for name in dict.fromkeys(labels["estimator"]):
        cells = []
        for q in options.quantity:
            for task, model in networks:
                x = found[q][(labels["task"] == task) & (labels["model"] == model) & (labels["estimator"] == name)]
                cells.append(f"{number(x.mean())} ± {number(x.std(ddof=1))}" if np.isfinite(x).all() and len(x) > 1 else "-")
        print(f"| `{name}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
