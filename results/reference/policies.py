#!/usr/bin/python3
"""The page on policy gradients, from the sweep experiments/configs/policies.toml:

    hardgrad run experiments/configs/policies.toml && hardgrad merge results/policies-run --out results/policies.h5
    PYTHONPATH=. results/reference/policies.py results/policies.h5 >results/reference/policies.md
"""
import argparse
import re

import numpy as np

from analysis import load

HEAD = """# Policy gradients, judged exactly

Which gradient do the losses follow by which sequence models are fine-tuned? [`policies.toml`](../../experiments/configs/policies.toml)
measures [`policy_gradient`](../../estimators/policy_gradient.cpp) on the 31 sequences of at most four of two words
(`sequences`; 45 logits, `writer[policy=table]`), by visiting every group of samples. No number is sampled. The policy's
logits are standard normal, and so are the rewards. The samples are drawn by a policy whose logits differ by *drift* times
standard normal numbers. Medians over {policies} random policies, with {samples} samples a group unless stated.

**Relative bias**: |mean - g| / |g| with the exact gradient g of the target. **Cosine** (in brackets): of the mean and g; at 1
only the length is wrong, which a learning rate repairs. **Variance**: of one gradient, times its rows, relative to
leave-one-out with the ratio of the whole sequence at drift 0.

```sh
build/release/hardgrad run experiments/configs/policies.toml
build/release/hardgrad merge results/policies-run --out results/policies.h5
PYTHONPATH=. results/reference/policies.py results/policies.h5 >results/reference/policies.md
```
"""
DIVERGENCES = """## The divergence from a reference policy

The target is the divergence KL(policy || reference) alone (a `beta` of 1,000,000). The reference's logits differ from the
policy's by half a standard normal number. *reward*: beta D is subtracted from the reward. *loss*: D is a term of the loss.
*weighted*: the term is multiplied by the token's ratio. Variances are relative to `k1` in the reward at drift 0.
"""
TEXT = {"ratio": "## The ratio and its bound\n\nLeave-one-out, all choices of a sequence summed.\n",
        "aggregation": "## Advantage and aggregation\n\nThe ratio of the whole sequence, without a bound.\n",
        "divergence": DIVERGENCES,
        "preset": "## Published methods\n\nWith the settings that `hardgrad describe policy_gradient` lists, without a divergence.\n"}


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
             "directions are confirmed. Sizes off policy depend on rewards and baselines, which are not known for it: without a baseline,",
             "fewer words are clipped. A group mean that includes the sample has a bias of exactly 1 / K and a cosine of 1, in both.", "",
             "| | there | here |", "|---|---|---|"]
    for name, settings, drift, there in ELSEWHERE:
        bias, cosine, _ = found[f"policy_gradient[{settings}]", drift]
        lines.append(f"| {name} | {there} | {number(bias)} ({number(cosine)}) |")
    return "\n".join(lines)


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
    return f"`{','.join(f'{k}={v}' for k, v in shown.items())}`" if shown else "`ratio=sequence`"


def medians(data):
    """{(spec, drift): {quantity: median over the policies}}"""
    values = {}
    for i in range(data.sizes["run"]):
        at = data.isel(run=i)
        drift = float(re.search(r"drift=([\d.]+)", str(at.model.values) + "drift=0").group(1))
        row = [float(np.ravel(at[q].values)[-1]) for q in ("relative_bias", "mean_cosine", "work_normalised_variance")]
        if abs(row[0] - 1) < 1e-9:
            row[1] = np.nan  # the mean is rounding only, and has no direction
        values.setdefault((str(at.estimator.values), drift), []).append(row)
    return {key: np.median(np.array(rows), axis=0) for key, rows in values.items()}, max(len(rows) for rows in values.values())


def table(specs, found, drifts, one):
    shown = [d for d in drifts if d in (drifts[0], drifts[-1], 0.5)]
    lines = ["| | " + " | ".join(f"drift {d:g}" for d in drifts) + " | " + " | ".join(f"variance, {d:g}" for d in shown) + " |",
             "|---" * (1 + len(drifts) + len(shown)) + "|"]
    for spec in specs:
        bias = [f"{number(found[spec, d][0])} ({number(found[spec, d][1])})" for d in drifts]
        variance = [number(found[spec, d][2] / one) for d in shown]
        lines.append(f"| {name_of(settings_of(spec))} | " + " | ".join(bias + variance) + " |")
    return "\n".join(lines)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("result", help="merged result of policies.toml")
    found, policies = medians(load(options.parse_args().result))
    specs = list(dict.fromkeys(spec for spec, _ in found))
    drifts = sorted({d for _, d in found})
    print(HEAD.format(policies=policies, samples="two"))
    plain = next(s for s in specs if settings_of(s) == {"samples": "2"})
    for section, text in TEXT.items():
        rows = [s for s in specs if section_of(settings_of(s)) == section]
        one = found[rows[0] if section == "divergence" else plain, drifts[0]][2]
        print(text + "\n" + table(rows, found, drifts, one) + "\n")
    print(elsewhere(found))


if __name__ == "__main__":
    main()
