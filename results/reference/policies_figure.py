#!/usr/bin/python3
"""The figure of the page on policy gradients, from the file of policies_tuned and those of policies and policies_reuse beside it.

    results/reference/policies_figure.py results/reference/data/policies_tuned.h5.gz --figure results/reference/policies.png
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

RATIOS = {
    "ratio=sequence": "",
    "ratio=none": "ratio=none",
    "ratio=token": "ratio=token",
    "ratio=prefix": "ratio=prefix",
    "token, clipped": "ratio=token,bound=clip",
    "sequence, truncated at 2": "bound=truncate,low=0,high=2",
}
TRAINED = ["", "maxrl", "cispo", "reinforce_pp", "ppo", "grpo", "tpo"]
DRIFTS = {0.0: "policy=table,reference", 0.25: "drift=0.25,", 0.5: "drift=0.5,", 1.0: "drift=1,"}


def look(at):
    return {"color": COLOURS[at], "marker": MARKERS[at], "markersize": 4}


def cosines(axis, data):
    estimators, models = data.estimator.values, data.model.values
    for at, (label, settings) in enumerate(RATIOS.items()):
        spec = f"policy_gradient[{','.join(filter(None, ['samples=2', settings]))}]"
        of = {
            drift: [i for i, (e, m) in enumerate(zip(estimators, models)) if e == spec and part in m]
            for drift, part in DRIFTS.items()
        }
        axis.plot(list(of), [np.median(data.mean_cosine.values[runs, 0]) for runs in of.values()], label=label, **look(at))
    axis.set(
        title="31 sequences, exact",
        xlabel="drift of the policy that draws",
        ylabel="cosine of mean and gradient",
        ylim=(0, 1.03),
    )
    axis.legend(fontsize="small", frameon=False, loc="lower left")


def curves(axis, data, updates):
    """Medians over the seeds; the band is their range."""
    for at, name in enumerate(TRAINED):
        spec = f"policy_gradient[preset={name},samples=8]" if name else "policy_gradient[samples=8]"
        runs = [
            i
            for i, (e, n) in enumerate(zip(data.estimator.values, data["train.reuse"].values))
            if e == spec and int(n) == updates
        ]
        if not runs:
            continue
        values = 100 * data.metric_exact_match.values[runs]
        axis.plot(data.evaluation_step.values, np.median(values, 0), label=name or "leave-one-out", **look(at))
        axis.fill_between(data.evaluation_step.values, values.min(0), values.max(0), color=COLOURS[at], alpha=0.12, linewidth=0)
    axis.set(title="sums: " + {1: "one update a batch", 4: "four updates a batch"}[updates], xlabel="updates")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("result", type=Path, help="policies_tuned.h5.gz, beside policies.h5.gz and policies_reuse.h5.gz")
    options.add_argument("--figure", required=True)
    options = options.parse_args()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4), constrained_layout=True)
    cosines(left, opened(options.result.with_name("policies.h5.gz")).result.data)
    tuned = opened(options.result).result.data
    curves(middle, tuned, 1)
    curves(right, opened(options.result.with_name("policies_reuse.h5.gz")).result.data, 4)
    right.sharey(middle)
    middle.set_ylabel("right answers, %")
    middle.legend(fontsize="small", frameon=False, loc="upper left")
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=90)
    Image.open(drawn).convert("RGB").quantize(64).save(options.figure, optimize=True)


if __name__ == "__main__":
    main()
