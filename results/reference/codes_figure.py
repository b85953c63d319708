#!/usr/bin/python3
"""The figure of the page on codes: loss and use of the codes by the gradient that trained them.

    results/reference/codes_figure.py results/reference/data/codebook.h5.gz --figure results/reference/codes.png
"""
import argparse
import io
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.site.studies import opened  # noqa: E402
from analysis.style import COLOURS, MARKERS  # noqa: E402

LOSSES = {"heldout_greedy_loss": "nearest codes", "heldout_expected_loss": "drawn codes"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("--figure", required=True)
    options = parser.parse_args()
    data = opened(Path(options.result)).result.data
    of_run = np.asarray(data.estimator.values, str)
    names = list(dict.fromkeys(of_run))[::-1]

    def points(axis, quantity, at, offset, label=None):
        """One mark for each seed, and their mean."""
        for y, name in enumerate(names):
            x = data[quantity].values[of_run == name, -1]
            axis.plot(x, np.full(len(x), y + offset), linestyle="", marker=MARKERS[at], markersize=4, color=COLOURS[at], alpha=0.6,
                      label=label if y == 0 else None)
            axis.plot([x.mean()] * 2, [y + offset - 0.18, y + offset + 0.18], color=COLOURS[at])

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), sharey=True, constrained_layout=True)
    for at, (quantity, label) in enumerate(LOSSES.items()):
        points(left, quantity, at, 0.2 - 0.4 * at, label)
    points(right, "metric_options_used", 2, 0)
    left.set(title="loss", xlabel="nats an image", yticks=range(len(names)), yticklabels=names)
    right.set(title="use of the codes", xlabel="exponential of the entropy, at most 16", xlim=(1, 16))
    left.legend(fontsize="small", frameon=False)
    for axis in (left, right):
        axis.grid(axis="y", linewidth=0.3)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=80)
    Image.open(drawn).convert("RGB").quantize(32).save(options.figure, optimize=True)


if __name__ == "__main__":
    main()
