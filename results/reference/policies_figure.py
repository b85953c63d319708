#!/usr/bin/python3
"""The figure of the page on policy gradients, from two of the results that policies.py reads.

    PYTHONPATH=. results/reference/policies_figure.py results --figure results/reference/policies.png
"""
import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from analysis import load
from analysis.style import COLOURS, MARKERS
from policies import medians, name_of, settings_of

RATIOS = ["", "ratio=none", "ratio=token", "ratio=prefix", "ratio=token,bound=clip", "ratio=token,bound=truncate,low=0",
          "bound=truncate,low=0,high=2", "bound=mask,low=0,high=2"]
TRAINED = ["", "preset=maxrl", "preset=cispo", "preset=reinforce_pp", "preset=ppo", "preset=grpo"]


def look(at):
    return {"color": COLOURS[at], "marker": MARKERS[at], "markersize": 4}


def cosines(axis, found):
    drifts = sorted({drift for _, drift in found})
    for at, settings in enumerate(RATIOS):
        spec = f"policy_gradient[{','.join(['samples=2', *filter(None, [settings])])}]"
        axis.plot(drifts, [found[spec, d][1] for d in drifts], label=name_of(settings_of(spec)).strip("`"), **look(at))
    axis.set(title="31 sequences, exact", xlabel="drift of the policy that draws", ylabel="cosine of mean and gradient", ylim=(0, 1.03))
    axis.legend(fontsize="small", frameon=False, loc="lower left")


def curves(axis, data, updates):
    """Medians over the seeds; the band is their range."""
    of_run = [settings_of(str(spec)) for spec in data.estimator.values]
    for at, settings in enumerate(TRAINED):
        wanted = settings_of(f"policy_gradient[{','.join(['samples=8', *filter(None, [settings])])}]")
        runs = [i for i, (found, reuse) in enumerate(zip(of_run, data["train.reuse"].values)) if found == wanted and int(reuse) == updates]
        values = 100 * data.metric_exact_match.values[runs]
        steps = data.evaluation_step.values
        axis.plot(steps, np.median(values, 0), label=wanted.get("preset", "leave-one-out"), **look(at))
        axis.fill_between(steps, values.min(0), values.max(0), color=COLOURS[at], alpha=0.12, linewidth=0)
    axis.set(title="sums: " + {1: "one update a batch", 4: "four updates a batch"}[updates], xlabel="updates")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, help="with policies.h5 and policies_tuned.h5")
    options.add_argument("--figure", required=True)
    options = options.parse_args()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4), constrained_layout=True)
    cosines(left, medians(load(str(options.folder / "policies.h5")))[0])
    tuned = load(str(options.folder / "policies_tuned.h5"))
    curves(middle, tuned, 1)
    curves(right, tuned, 4)
    right.sharey(middle)
    middle.set_ylabel("right answers, %")
    right.legend(fontsize="small", frameon=False, loc="upper left")
    figure.savefig(options.figure, dpi=90, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
