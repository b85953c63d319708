#!/usr/bin/python3
"""Bias, variance and cosine of estimators on subsets of 5 of 10 options: the checkpoints of experiments/configs/toy_subsets.toml.

    hardgrad run experiments/configs/toy_subsets.toml && hardgrad merge results/toy_subsets-run --out results/toy_subsets.h5
    results/reference/subsets.py results/toy_subsets.h5 results/toy_subsets-run --figure results/reference/subsets.png

Prints the tables of results/reference/subsets.md; with --all every estimator, and the cosines. Takes about a minute on one core.
"""
import argparse
import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.style import COLOURS, MARKERS  # noqa: E402
from program import columns, run  # noqa: E402

EXACT = ["reinforce", "self_critic", "soft_baseline", "rloo[samples=2]",
         "group_normalised[samples=2]", "unordered_set[samples=2]", "sparse_mixer[order=1]", "sparse_mixer", "simple"]
SAMPLED = ["rloo[samples=4]", "optimal_baseline[samples=4]", "unordered_set[samples=4]", "gumbel_top_k[temperature=0.1]",
           "gumbel_top_k[temperature=0.5]", "gumbel_top_k[temperature=2]", "gumbel_top_k[hard=true]", "implicit_mle",
           "implicit_mle[central=true]", "implicit_mle[adaptive=true]", "implicit_mle[adaptive=true,central=true]"]
SHOWN = ["reinforce", "rloo[samples=2]", "unordered_set[samples=2]", "simple", "rloo[samples=4]", "unordered_set[samples=4]",
         "gumbel_top_k[temperature=2]"]
REPLICATES = "65536"
STAGES = ["flat", "peaked", "trained"]


def stage(model, steps):
    return "peaked" if "logit_spread" in model else "trained" if int(steps) else "flat"


def measured(options):
    """{function: {stage: (|g|, {estimator: measurement})}}; sampled measurements have `intervals`."""
    found = {}
    for model, steps, file in columns(options.result, "model", "train.steps", "checkpoint"):
        def measure(estimators, *arguments):
            specs = [x for name in estimators for x in ("--estimator", name)]
            return run(options.binary, "measure", "--checkpoint", str(Path(options.folder) / "cells" / file), "--batch", "1",
                       *arguments, *specs)
        exact = measure(EXACT, "--exact")
        sampled = measure(SAMPLED, "--replicates", REPLICATES, "--most-replicates", REPLICATES)
        of = found.setdefault("pairs" if "pairs" in model else "square", {})
        of[stage(model, steps)] = exact["estimand_norm"], {m["estimator"]: m for m in exact["results"] + sampled["results"]}
    return found


def number(x):
    return "-" if x is None or not math.isfinite(x) else "0" if abs(x) < 1e-12 else f"{x:.2g}"


def bias(m):
    """The relative bias; of draws, its upper bound if it is not significant."""
    low, high = m.get("intervals", {}).get("relative_bias", (1, 1))
    return number(m["relative_bias"]) if low > 0 else f"< {number(high)}"


def table(of, every):
    shown = {"relative bias": lambda m, norm: bias(m), "variance x rows / \\|g\\|^2": lambda m, norm: number(m["variance"] * m["rows"] / norm ** 2)}
    shown |= {"cosine": lambda m, norm: number(m["cosine"])} if every else {}
    lines = ["| estimator | rows | " + " | ".join(f"{what}, {' | '.join(STAGES)}" for what in shown) + " |", "|---" * (2 + 3 * len(shown)) + "|"]
    for name in EXACT + SAMPLED if every else SHOWN:
        cells = [of_one(of[s][1][name], of[s][0]) for of_one in shown.values() for s in STAGES]
        lines.append(f"| `{name}` | {of[STAGES[0]][1][name]['rows']:g} | " + " | ".join(cells) + " |")
    return lines


def draw(found, file):
    figure, axes = plt.subplots(1, len(found), figsize=(10, 4), sharey=True, constrained_layout=True)
    for axis, (function, of) in zip(axes, found.items()):
        for at, name in enumerate(EXACT + SAMPLED):
            values = [m["variance"] * m["rows"] + m["relative_bias"] ** 2 * of[s][0] ** 2 for s in STAGES for m in [of[s][1][name]]]
            axis.plot(STAGES, [v / of[s][0] ** 2 for s, v in zip(STAGES, values)], label=name, color=COLOURS[at % len(COLOURS)],
                      marker=MARKERS[at % len(MARKERS)], linestyle="-" if name in EXACT else "--")
        axis.set(title={"square": "$|b - t|^2$", "pairs": "sum over pairs"}[function], yscale="log", xlabel="logits")
    axes[0].set_ylabel("(squared bias + variance x rows) / $|g|^2$")
    axes[-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small", frameon=False)
    figure.savefig(file, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("folder")
    parser.add_argument("--binary", default="build/release/hardgrad")
    parser.add_argument("--figure")
    parser.add_argument("--all", action="store_true", help="every estimator, with cosines")
    options = parser.parse_args()
    measurement = measured(options)
    for function, of in measurement.items():
        print(f"`{function}`; |g| is " + ", ".join(f"{number(of[s][0])} {s}" for s in STAGES) + ":\n")
        print("\n".join(table(of, options.all)) + "\n")
    if options.figure:
        draw(measurement, options.figure)


if __name__ == "__main__":
    main()
