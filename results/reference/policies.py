#!/usr/bin/python3
"""The page on policy gradients, from the sweep experiments/configs/policies.toml:

    hardgrad run experiments/configs/policies.toml && hardgrad merge results/policies-run --out results/policies.h5
    hardgrad run experiments/configs/policies_training.toml && hardgrad merge results/policies_training-run --out results/policies_training.h5
    PYTHONPATH=. results/reference/policies.py results/policies.h5 results/policies_training.h5 >results/reference/policies.md
"""
import argparse
import re
import textwrap

import numpy as np

from analysis import load

HEAD = """# Policy gradients, judged exactly

Which gradient do the losses follow by which sequence models are fine-tuned?
[`policies.toml`](../../experiments/configs/policies.toml) measures
[`policy_gradient`](../../estimators/policy_gradient.cpp) on the 31 sequences of at most four of two words (`sequences`;
45 logits, `writer[policy=table]`), by visiting every group of samples. No number is sampled. The policy's logits are
standard normal, and so are the rewards. The samples are drawn by a policy whose logits differ by *drift* times standard
normal numbers. Medians over {policies} random policies, with two samples a group unless stated.

**Relative bias**: |mean - g| / |g| with the exact gradient g of the target. **Cosine** (in brackets): of the mean and g; at 1
only the length is wrong, which a learning rate repairs. **Variance**: of one gradient, times its rows, relative to
leave-one-out with the ratio of the whole sequence at drift 0.

```sh
build/release/hardgrad run experiments/configs/policies.toml
build/release/hardgrad merge results/policies-run --out results/policies.h5
build/release/hardgrad run experiments/configs/policies_training.toml
build/release/hardgrad merge results/policies_training-run --out results/policies_training.h5
PYTHONPATH=. results/reference/policies.py results/policies.h5 results/policies_training.h5 >results/reference/policies.md
```
"""
DIVERGENCES = """## The divergence from a reference policy

The target is the divergence KL(policy || reference) alone (a `beta` of 1,000,000). The reference's logits differ from the
policy's by half a standard normal number. *reward*: beta D is subtracted from the reward. *loss*: D is a term of the loss.
*weighted*: the term is multiplied by the token's ratio. Variances are relative to `k1` in the reward at drift 0.
Unbiased are `k1` and the exact divergence in the reward, the latter with a twelfth of the variance on policy. `k1` in the
loss has no signal on policy; `k3` in the reward hardly points along the gradient. In the loss, every form misses the
effect of a word on later states. `k1` and `k3`, weighted, have the mean of the exact divergence in the loss.
"""
RATIOS = """**Not re-made:** the tables are the output of [`policies.py`](policies.py); their result files are not kept here.

## The ratio and its bound

Leave-one-out, all choices of a sequence summed. Only the ratio of the whole sequence is unbiased; its variance grows with
the drift. Truncated at 2 it keeps nearly all of the direction up to a drift of 0.5. Clipping (.8 to 1.2) is worse than no
correction at drifts of 0.25 and 0.5: most of the gradient is cut.
"""
AGGREGATIONS = """## Advantage and aggregation

The ratio of the whole sequence, without a bound. A mean that includes the sample, and a division by the largest length,
only scale the gradient (cosine 1). Division by the sample's own length or by the group's deviation also turns it.
"""
PRESETS = """## Published methods

With the settings that `hardgrad describe policy_gradient` lists, without a divergence.
"""
TEXT = {"ratio": RATIOS, "aggregation": AGGREGATIONS, "divergence": DIVERGENCES, "preset": PRESETS}
# A table of medians over 20 policies from outside this tree, whose rewards and baselines are not known: bias and cosine.
ELSEWHERE = [("leave-one-out, divided by the length", "samples=2,aggregation=sequences", 0, ".58 (.93)"),
             ("`k1` in the reward", "samples=2,divergence=k1,beta=1000000", 0, "0 (1)"),
             ("`k3` in the loss", "samples=2,divergence=k3,where=loss,beta=1000000", 0, ".27 (.98)"),
             ("`k3` in the reward", "samples=2,divergence=k3,beta=1000000", 0, ".97 (.26)"),
             ("ratio of the token, drift 0.5", "samples=2,ratio=token", 0.5, ".39 (.95)"),
             ("the same, clipped at .2", "samples=2,ratio=token,bound=clip", 0.5, ".70 (.82)"),
             ("the same, truncated (CISPO)", "samples=2,ratio=token,bound=truncate,low=0", 0.5, ".38 (.95)"),
             ("ratio of the sequence truncated at 2, drift 0.5", "samples=2,bound=truncate,low=0,high=2", 0.5, ".05 (1.00)"),
             ("the same, masked at 2", "samples=2,bound=mask,low=0,high=2", 0.5, ".20 (.98)")]


def number(x):
    """Two decimals below 10, else two digits; a dash if unknown."""
    if np.isnan(x):
        return "-"
    return f"{x:.2f}".replace("0.", ".", 1) if x < 9.995 else f"{float(f'{x:.2g}'):,.0f}"


def elsewhere(found):
    lines = ["## Against an outside table", "",
             "A script outside this tree measured these choices on the same 31 sequences, with 20 policies of its own. The order and the",
             "directions are confirmed. Sizes off policy depend on rewards and baselines, which are not known for it. A group mean that",
             "includes the sample has a bias of exactly 1 / K and a cosine of 1, in both.", "",
             "| | there | here |", "|---|---|---|"]
    for name, settings, drift, there in ELSEWHERE:
        bias, cosine, _ = found[f"policy_gradient[{settings}]", drift]
        lines.append(f"| {name} | {there} | {number(bias)} ({number(cosine)}) |")
    return "\n".join(lines)


def wrapped(page):
    """Prose in lines of at most 118 columns."""
    return "\n\n".join(block if block.startswith(("|", "#", "```")) else textwrap.fill(block, 118, break_long_words=False, break_on_hyphens=False)
                       for block in page.strip().split("\n\n"))


def settings_of(spec):
    return dict(pair.split("=") for pair in spec.removeprefix("policy_gradient").strip("[]").split(",") if pair)


def section_of(settings):
    """The table that a spec belongs to."""
    if "preset" in settings:
        return "preset"
    if "divergence" in settings:
        return "divergence"
    return "aggregation" if {"aggregation", "advantage"} & set(settings) else "ratio"


def name_of(settings):
    """The spec without the settings that all rows of its table share."""
    shown = {k: v for k, v in settings.items() if k != "beta" and (k, v) != ("samples", "2")}
    if "divergence" in settings:
        return f"`{settings['divergence']}` in the {settings.get('where', 'reward')}".replace("in the weighted", "weighted, in the loss")
    if "preset" in settings:
        return f"`{settings['preset']}`" + "".join(f", {k}={v}" for k, v in shown.items() if k != "preset")
    if section_of(settings) == "ratio":
        shown = {"ratio": "sequence"} | shown
    return f"`{','.join(f'{k}={v}' for k, v in shown.items())}`"


def medians(data):
    """{(spec, drift): {quantity: median over the policies}}"""
    values = {}
    for i in range(data.sizes["run"]):
        at = data.isel(run=i)
        drift = float(re.search(r"drift=([\d.]+)", str(at.model.values) + "drift=0").group(1))
        row = [float(np.ravel(at[q].values)[-1]) for q in ("relative_bias", "mean_cosine", "work_normalised_variance")]
        if abs(row[0] - 1) < 1e-5:
            row[1] = np.nan  # almost no mean: its direction is that of the rewards
        values.setdefault((str(at.estimator.values), drift), []).append(row)
    return {key: [float(np.nanmedian(x)) if np.isfinite(x).sum() > len(x) / 2 else np.nan for x in np.array(rows).T] for key, rows in values.items()}, max(len(rows) for rows in values.values())


def table(specs, found, drifts, one):
    shown = [d for d in drifts if d in (drifts[0], drifts[-1], 0.5)]
    lines = ["| | " + " | ".join(f"drift {d:g}" for d in drifts) + " | " + " | ".join(f"variance, {d:g}" for d in shown) + " |",
             "|---" * (1 + len(drifts) + len(shown)) + "|"]
    for spec in specs:
        bias = [f"{number(found[spec, d][0])} ({number(found[spec, d][1])})" for d in drifts]
        variance = [number(found[spec, d][2] / one) for d in shown]
        lines.append(f"| {name_of(settings_of(spec))} | " + " | ".join(bias + variance) + " |")
    return "\n".join(lines)


TRAINING = """## In training

[`policies_training.toml`](../../experiments/configs/policies_training.toml): a GRU learns to sort four symbols (of four
kinds) from a reward of 1 or 0, with 8 samples of each of 16 prompts a step, 500 steps of Adam 5e-3, not tuned. Right
answers of the last evaluation on the test prompts, in ascending order of five seeds. With drift 0.3 the samples come from
a policy whose parameters are displaced, always in the same direction, by 0.3 standard deviations of the initial ones.
On policy nearly all runs learn the task. Off policy the four methods that clip do not, as their cosines suggest; methods
whose bounded ratio is a constant factor learn most of it, or all.
"""


def training(data):
    """The last exact match of every run, by method and drift."""
    last = {}
    for run in range(data.sizes["run"]):
        at = data.isel(run=run)
        drift = re.search(r"drift=([\d.]+)", str(at.model.values) + "drift=0").group(1)
        last.setdefault(str(at.estimator.values), {}).setdefault(drift, []).append(float(at.metric_exact_match.values[-1]))
    drifts = sorted({drift for values in last.values() for drift in values}, key=float)
    lines = ["| | " + " | ".join(f"drift {drift}" for drift in drifts) + " |", "|---" * (1 + len(drifts)) + "|"]
    for spec, values in last.items():
        settings = {k: v for k, v in settings_of(spec).items() if k != "samples"}
        lines.append(f"| {name_of(settings)} | " + " | ".join(", ".join(f"{100 * x:.0f}%" for x in sorted(values[d])) for d in drifts) + " |")
    return "\n".join(lines)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("result", help="merged result of policies.toml")
    options.add_argument("training", help="merged result of policies_training.toml")
    options = options.parse_args()
    found, policies = medians(load(options.result))
    specs = list(dict.fromkeys(spec for spec, _ in found))
    drifts = sorted({d for _, d in found})
    plain = next(s for s in specs if settings_of(s) == {"samples": "2"})
    parts = [HEAD.format(policies=policies)]
    for section, text in TEXT.items():
        rows = [s for s in specs if section_of(settings_of(s)) == section]
        one = found[rows[0] if section == "divergence" else plain, drifts[0]][2]
        parts.append(text + "\n" + table(rows, found, drifts, one))
    parts += [TRAINING + "\n" + training(load(options.training)), elsewhere(found)]
    print("\n\n".join(wrapped(part) for part in parts))


if __name__ == "__main__":
    main()
