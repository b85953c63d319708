#!/usr/bin/python3
"""Variance x rows of unbiased estimators on two networks, as a figure. `python3 -m analysis remake` calls it.

    results/reference/initial_figure.py initial.h5.gz --figure every_estimator.png
"""
import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.site.studies import opened  # noqa: E402
from analysis.style import COLOURS, MARKERS  # noqa: E402

NETWORKS = {"qa": "bAbI", "translation": "Tatoeba"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--figure", required=True)
    options = parser.parse_args()
    data = opened(options.result).result.data
    kept = (data.own_target.values[:, 0] == "expected_loss") & (data.known_unbiased.values[:, 0] == "yes")
    value = np.where(kept, data.work_normalised_variance.values[:, 0], np.nan)
    of = {network: {str(e): v for e, t, v in zip(data.estimator.values, data.task.values, value) if str(t).startswith(network) and v > 0}
          for network in NETWORKS}
    names = sorted(of["qa"], key=of["qa"].get, reverse=True)
    figure, axis = plt.subplots(figsize=(6, 0.9 + 0.21 * len(names)), constrained_layout=True)
    for k, (network, title) in enumerate(NETWORKS.items()):
        least = min(of[network].values())
        shown = [of[network].get(name, np.nan) / least for name in names]
        axis.plot(shown, range(len(names)), linestyle="", marker=MARKERS[k], color=COLOURS[k], markersize=6, label=title)
    axis.set(xscale="log", xlabel="variance × rows, over the least", yticks=range(len(names)), yticklabels=names)
    axis.tick_params(axis="y", labelsize=9)
    axis.grid(axis="both", linewidth=0.3)
    axis.legend(frameon=False)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    figure.savefig(options.figure, dpi=130)


if __name__ == "__main__":
    main()
