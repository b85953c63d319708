#!/usr/bin/python3
"""Benefit and cost of attention against the length of sentences: the checkpoints of experiments/configs/attention_length.toml on new
sentences of one length each, as a table and a figure.

    hardgrad run experiments/configs/attention_length.toml && hardgrad merge results/attention_length-run --out results/attention_length.h5
    results/reference/attention_length.py results/attention_length.h5 results/attention_length-run --figure results/reference/attention_length.png

Takes some minutes on one core.
"""
import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.style import COLOURS, MARKERS  # noqa: E402
from program import columns, run  # noqa: E402

LENGTHS = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
NAMES = {"attention=none]": "fixed vector", "source=reversed": "fixed vector, source reversed", "source=twice": "fixed vector, source twice"}


def sentences(length, symbols="words", examples=4000):
    return f"translation[examples={examples},words=20,min_length={length},max_length={length},symbols={symbols}]"


def network(model, estimator):
    return next((name for part, name in NAMES.items() if part in model), estimator)


def checkpoints(options):
    """(model, estimator, file) of each run."""
    return [(model, estimator, str(Path(options.folder) / "cells" / file))
            for model, estimator, file in columns(options.result, "model", "estimator", "checkpoint")]


def evaluated(options):
    """{network: [length][seed] of BLEU and the share of correct sentences}, decoded greedily."""
    found = defaultdict(lambda: [[] for _ in LENGTHS])
    for model, estimator, file in checkpoints(options):
        for at, length in enumerate(LENGTHS):
            metrics = run(options.binary, "evaluate", "--checkpoint", file, "--task", sentences(length), "--split", "test", "--seed", "1000")["metrics"]
            found[network(model, estimator)][at].append((metrics["bleu"], metrics["exact_match_decoded"]))
    return {name: np.array(values) for name, values in found.items()}


def costs(options):
    """{words, letters}: [length, 3] attention values of one gradient of soft attention and of leave-one-out, and the output length with
    the end mark, per sentence."""
    model, _, attentive = next(c for c in checkpoints(options) if "attention=none" not in c[0])
    rows = {"words": [], "letters": []}
    for length in LENGTHS:
        with tempfile.TemporaryDirectory() as folder:
            run(options.binary, "evaluate", "--checkpoint", attentive, "--task", sentences(length), "--alignments", folder + "/of")
            targets = [line.split() for line in Path(folder, "of", "target.txt").read_text().splitlines()]
        written = {"words": [len(words) for words in targets], "letters": [len(" ".join(words)) for words in targets]}
        for symbols, of in rows.items():
            found = run(options.binary, "measure", "--task", sentences(length, symbols, 400), "--model", model, "--estimator", "soft", "--estimator",
                        "rloo[samples=8,reward_to_go=true]", "--batch", "64", "--replicates", "2", "--most-replicates", "2", "--estimand", "none")
            of.append([*(m["attention_values"] / 64 for m in found["results"]), np.mean(written[symbols]) + 1])
    return {symbols: np.array(of) for symbols, of in rows.items()}


def figure(networks, values):
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for k, (name, scores) in enumerate(networks.items()):
        colour = COLOURS[k]
        left.plot(LENGTHS, scores[:, :, 0].mean(1), color=colour, marker=MARKERS[k], label=name)
        for seed in range(scores.shape[1]):
            left.plot(LENGTHS, scores[:, seed, 0], color=colour, alpha=0.4, linewidth=0.8)
    left.set(xlabel="words of the source sentence", ylabel="BLEU", ylim=(0, 1.03), title="benefit of attention")
    left.legend(fontsize=8)
    for symbols, marker, line in (("letters", "o", "--"), ("words", "s", "-")):
        right.plot(LENGTHS, values[symbols][:, 0], line, color=COLOURS[0], marker=marker, label=f"{symbols}: attention values, and contexts read softly")
        right.plot(LENGTHS, values[symbols][:, 2], line, color=COLOURS[1], marker=marker, label=f"{symbols}: contexts read by a hard sample")
    right.set(xlabel="words of the source sentence", ylabel="a sentence", yscale="log", ylim=(3, 3e6), title="cost of attention")
    right.legend(fontsize=8, loc="upper left")
    return fig


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("folder", help="folder of the sweep, with its checkpoints")
    parser.add_argument("--binary", default="build/release/hardgrad")
    parser.add_argument("--figure", required=True)
    options = parser.parse_args()
    networks, values = evaluated(options), costs(options)
    figure(networks, values).savefig(options.figure, dpi=110)
    print("| network | " + " | ".join(str(n) for n in LENGTHS) + " |\n|" + "---|" * (len(LENGTHS) + 1))
    for quantity, title in ((0, "BLEU"), (1, "right")):
        for name, scores in networks.items():
            print(f"| {title}: {name} | " + " | ".join(f"{100 * x:.0f}%" if quantity else f"{x:.2f}" for x in scores[:, :, quantity].mean(1)) + " |")
    for symbols, of in values.items():
        for k, name in enumerate(("attention values: soft", "attention values: leave-one-out", f"target {symbols} and end mark")):
            print(f"| {symbols}, {name} | " + " | ".join(f"{x:.0f}" for x in of[:, k]) + " |")


if __name__ == "__main__":
    main()
