#!/usr/bin/python3
"""Variance x rows of estimators along training, median of the seeds, as a figure. `python3 -m analysis remake` calls it.

    results/reference/training_figure.py every_estimator.h5.gz --figure trained.png
"""
import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.site.studies import opened, stage  # noqa: E402
from analysis.style import line_styles  # noqa: E402

SHOWN = ["reinforce", "moving_baseline", "self_critic", "local_expectation", "rloo", "unordered_set", "wor_importance"]
NETWORKS = {"qa": "questions", "translation": "translation"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--figure", required=True)
    options = parser.parse_args()
    data = opened(options.result).result.data
    looks = line_styles(SHOWN)
    figure, axes = plt.subplots(1, len(NETWORKS), figsize=(6, 3.5), constrained_layout=True)
    for ax, (task, title) in zip(axes, NETWORKS.items()):
        there = np.array([str(one).startswith(task) for one in data.task.values])
        values = data.work_normalised_variance.values
        at = np.flatnonzero(np.isfinite(values[there]).any(axis=0))
        shares = data.measurement_step.values[at] / data.measurement_step.values[at[-1]]
        for name in SHOWN:
            of = np.nanmedian(values[there & (data.estimator.values == name)][:, at], axis=0)
            look = looks[name]
            ax.plot(range(len(at)), np.where(of > 0, of, np.nan), color=look.colour, marker=look.marker, linestyle=look.line, label=name)
        ax.set(yscale="log", title=title, xticks=range(len(at)), xticklabels=[stage(share) for share in shares])
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    axes[0].set_ylabel("variance × rows")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, fontsize=9, frameon=False)
    figure.savefig(options.figure, dpi=130, bbox_inches="tight")


if __name__ == "__main__":
    main()
