#!/usr/bin/python3
"""The page on policy gradients, from the results of five sweeps in a folder; the page has the commands that make them."""
import argparse
import re
import textwrap
from pathlib import Path

import numpy as np
from scipy import stats

from analysis import load

HEAD = """# Policy gradients, judged exactly

Off policy, only the ratio of the whole sequence is unbiased; at a drift of 0.5 clipping turns the gradient more than
no correction does. On policy, published methods scale the gradient, and those that divide by a deviation turn it. In
training `maxrl` leads.

**Not re-made:** the tables are the output of [`policies.py`](policies.py); their result files are not kept here.

[`policies.toml`](../../experiments/configs/policies.toml) measures
[`policy_gradient`](../../estimators/policy_gradient.cpp) on the 31 sequences of at most four of two words
(`sequences`; 45 logits, `writer[policy=table]`), by visiting every group of samples. No number is sampled. The
policy's logits are standard normal, and so are the rewards. The samples are drawn by a policy whose logits differ by
*drift* times standard normal numbers. Medians over {policies} random policies, with two samples a group unless
stated. `--all` prints every setting and drift.

**Relative bias**: |mean - g| / |g| with the exact gradient g of the target. **Cosine** (in brackets): of the mean and
g; at 1 only the length is wrong, which a learning rate repairs. **Variance**: of one gradient, times its rows,
relative to leave-one-out with the ratio of the whole sequence at drift 0.

```sh
for sweep in policies policies_cards policies_training policies_tuned policies_countdown; do
  build/release/hardgrad run experiments/configs/$sweep.toml
  build/release/hardgrad merge results/$sweep-run --out results/$sweep.h5
done
PYTHONPATH=. results/reference/policies.py results >results/reference/policies.md
PYTHONPATH=. results/reference/policies_figure.py results --figure results/reference/policies.png
```
"""
DIVERGENCES = """## The divergence from a reference policy

The target is the divergence KL(policy || reference) alone (a `beta` of 1,000,000). The reference's logits differ from
the policy's by half a standard normal number. *reward*: beta D is subtracted from the reward. *loss*: D is a term of
the loss. Variances are relative to `k1` in the reward at drift 0. Unbiased are `k1` and the exact divergence in the
reward, the latter with a twelfth of the variance on policy. `k1` in the loss has no signal on policy; `k3` in the
reward hardly points along the gradient.
"""
RATIOS = """## The ratio and its bound

Leave-one-out, all choices of a sequence summed. Only the ratio of the whole sequence is unbiased; its variance grows
with the drift. Truncated at 2 it keeps nearly all of the direction. Clipping (.8 to 1.2) is worse than no correction:
most of the gradient is cut.
"""
AGGREGATIONS = """## Advantage and aggregation

The ratio of the whole sequence, without a bound. A mean that includes the sample only scales the gradient, by (K-1)/K
(cosine 1), and so does a division by the largest length. Division by the sample's own length or by the group's or
batch's deviation also turns it. The greedy sequence is an unbiased baseline; so is an untrained critic, if returns
are whole (`lambda` = 1).
"""
PRESETS = """## Published methods

With the settings that `hardgrad describe policy_gradient` lists, without a divergence, with three samples. The critic
of `ppo` is untrained. `grpo`, `gspo`, `dapo`, `cispo` and `reinforce_pp` divide by a deviation. `dr_grpo` follows
(K-1)/K / T times g on policy, with at most T words; `tis` and `mis` follow (K-1)/K g; `opo` and `gpg` come near it;
`rloo` and `remax` follow g.
"""
TEXT = {"ratio": RATIOS, "aggregation": AGGREGATIONS, "divergence": DIVERGENCES, "preset": PRESETS}
DRIFTS = [0, 0.5]  # unless --all
SHOWN = {f"`{row}`" for row in (
    "ratio=sequence", "ratio=none", "ratio=token", "ratio=prefix", "ratio=geometric", "ratio=token,bound=clip",
    "ratio=sequence,bound=truncate,low=0,high=2",
    "aggregation=sequences", "aggregation=tokens", "aggregation=longest", "advantage=group_mean", "advantage=group_std", "advantage=greedy",
    "advantage=batch_std", "advantage=critic")} | {f"`{kind}` in the {where}" for kind in ("k1", "k3", "exact") for where in ("reward", "loss")}


def on_page(spec):
    """Whether the page shows a row: one of SHOWN, or a published method with three samples."""
    settings = settings_of(spec)
    return settings["samples"] == "3" if section_of(settings) == "preset" else name_of(settings) in SHOWN


def number(x):
    """Two decimals below 10, else two digits; a dash if unknown."""
    if np.isnan(x):
        return "-"
    return f"{x:.2f}".replace("0.", ".", 1) if x < 9.995 else f"{float(f'{x:.2g}'):,.0f}"


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
        return f"`{settings['preset']}`" + (", samples=2" if settings.get("samples") == "2" else "")
    if section_of(settings) == "ratio":
        shown = {"ratio": "sequence"} | shown
    return f"`{','.join(f'{k}={v}' for k, v in shown.items())}`"


def drift_of(run):
    return float(re.search(r"drift=([\d.]+)", str(run.model.values) + "drift=0").group(1))


def medians(data, place=drift_of):
    """{(spec, place): [medians over the policies]}; the place of a run is its drift, or what `place` makes of it."""
    values = {}
    for i in range(data.sizes["run"]):
        at = data.isel(run=i)
        drift = place(at)
        row = [float(np.ravel(at[q].values)[-1]) for q in ("relative_bias", "mean_cosine", "work_normalised_variance")]
        if abs(row[0] - 1) < 1e-5:
            row[1] = np.nan  # almost no mean: its direction is that of the rewards
        values.setdefault((str(at.estimator.values), drift), []).append(row)
    return {key: [float(np.nanmedian(x)) if np.isfinite(x).sum() > len(x) / 2 else np.nan for x in np.array(rows).T] for key, rows in values.items()}, max(len(rows) for rows in values.values())


def table(specs, found, drifts, one):
    shown = drifts[-1:] if drifts == DRIFTS else drifts
    lines = ["| | " + " | ".join(f"drift {d:g}" for d in drifts) + " | " + " | ".join(f"variance, {d:g}" for d in shown) + " |",
             "|---" * (1 + len(drifts) + len(shown)) + "|"]
    for spec in specs:
        bias = [f"{number(found[spec, d][0])} ({number(found[spec, d][1])})" for d in drifts]
        variance = [number(found[spec, d][2] / one) for d in shown]
        lines.append(f"| {name_of(settings_of(spec))} | " + " | ".join(bias + variance) + " |")
    return "\n".join(lines)


AGAINST = """## Group size and length

More samples reduce the bias of every method that compares them; longer sequences increase that of methods that divide
by a length. On policy, with at most three words
([`policies_cards.toml`](../../experiments/configs/policies_cards.toml)), the bias of `grpo` is .77, .69 and .58 with
2, 3 and 5 samples and .49 with one word; that of `tis`, `mis` and nearly `opo` is 1/K. The rate of success of rewards
of 0 and 1 matters least, but for `maxrl`, which needs many samples where success is rare: the mean of its gradient is
1-(1-p)^(K-1) times that of its target, the likelihood of success p.
"""
def card_of(run):
    """The column of a run."""
    if success := re.search(r"success=([\d.]+)", str(run.task.values)):
        return f"success {success.group(1)}"
    words = re.search(r"longest=(\d)", str(run.task.values)).group(1)
    samples = re.search(r"samples=(\d)", str(run.estimator.values)).group(1)
    return f"K = {samples}" if samples != "3" else f"{words} words"


def cards(data):
    found, _ = medians(data, card_of)
    found = {(re.sub(r",?samples=\d", "", spec).replace("[]", ""), column): row for (spec, column), row in found.items()}
    columns = {"K = 2": "K = 2", "3 words": "3", "K = 5": "5", "1 words": "1 word", "2 words": "2 words"}
    columns |= {f"success {rate}": f"success {rate}" for rate in (0.1, 0.5, 0.9)}
    name = lambda spec: "best_of" if spec.startswith("best_of") else re.sub(r"policy_gradient\[preset=(\w+)\]", r"\1", spec)
    both = lambda row: f"{number(row[0])} ({number(row[1])})" if np.isfinite(row[0]) else "-"
    lines = ["| | " + " | ".join(columns.values()) + " |", "|---" * (1 + len(columns)) + "|"]
    for spec in dict.fromkeys(spec for spec, column in found if column in columns and spec != "policy_gradient"):
        lines.append(f"| `{name(spec)}` | " + " | ".join(both(found.get((spec, c), [np.nan] * 3)) for c in columns) + " |")
    return "\n".join(lines)


TRAINING = """## In training

On policy nearly all runs learn. Off policy the four methods that clip do not, as their cosines suggest; methods whose
bounded ratio is a constant factor learn most of the task, or all.
[`policies_training.toml`](../../experiments/configs/policies_training.toml): a GRU learns to sort four symbols (of
four kinds) from a reward of 1 or 0, with 8 samples of each of 16 prompts a step, 500 steps of Adam 5e-3, not tuned.
With drift 0.3 the samples come from a policy whose parameters are displaced, always in the same direction, by 0.3
standard deviations of the initial ones. Right answers of the last evaluation on the test prompts: least, median and
most of five seeds.
"""


TUNED = """## Trained at their best learning rates

`maxrl`, which divides by the rate of success, leads with one update and with four; four of its five runs are above
all others' with one. `reinforce_pp` is next with four updates, and the only one that clearly gains from them.
[`policies_tuned.toml`](../../experiments/configs/policies_tuned.toml): a GRU learns to add two digits of base 10 (100
prompts) from a reward of 1 or 0, in 1,000 updates with 8 samples of each of 16 prompts: new samples for every update,
or samples for four updates (`train.reuse = 4`: a quarter of the samples). The learning rate is the best of five (.001
to .1) on prompts held out, with five seeds beside the reported five; none chose the least or the largest rate. Right
answers on the test prompts: least, median and most of five seeds. On policy `cispo` is `dapo` up to rounding, and
`tis`, `mis` and leave-one-out differ by a factor alone, so that differences of their rows are noise.

![cosine against drift, and right answers against updates](policies.png)

Left, ratios and bounds; middle and right, medians and ranges of five seeds in these trainings
([`policies_figure.py`](policies_figure.py)).
"""


COUNTDOWN = """## Countdown

`maxrl` leads here, too (p < .02 against each of the others, Welch's t test, not corrected); the others do not differ
beyond noise. [`policies_countdown.toml`](../../experiments/configs/policies_countdown.toml): a GRU learns to write an
expression of two given numbers from 1 to 4 (with +, - or *) that has a given value, from a reward of 1 or 0: 3,000
updates, each with 8 new samples of each of 16 prompts, Adam .003, not tuned. Solved: of 500 test prompts, by the most
probable words; the mean of ten seeds with its 95% interval (t).
"""


def countdown(data):
    lines = ["| | solved |", "|---|---|"]
    for spec, values in last_values(data, "metric_solved", lambda run: 0).items():
        values, settings = values[0], {k: v for k, v in settings_of(spec).items() if k != "samples"}
        mean, half = np.mean(values), stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
        name = name_of(settings) if "preset" in settings else "leave-one-out"
        lines.append(f"| {name} | {100 * mean:.0f}% [{100 * (mean - half):.0f}, {100 * (mean + half):.0f}] |")
    return "\n".join(lines)


def last_values(data, metric, column):
    """The last value of a metric of every run: {spec: {column: values}}, ascending."""
    last = {}
    for run in range(data.sizes["run"]):
        at = data.isel(run=run)
        last.setdefault(str(at.estimator.values), {}).setdefault(column(at), []).append(float(at[metric].values[-1]))
    return {spec: {c: sorted(values) for c, values in of.items()} for spec, of in last.items()}


def percents(values):
    """The least, the median and the most of ascending values."""
    return ", ".join(f"{100 * x:.0f}%" for x in (values[0], np.median(values), values[-1]))


def trained(last, heads):
    lines = ["| | " + " | ".join(heads.values()) + " |", "|---" * (1 + len(heads)) + "|"]
    for spec, values in last.items():
        settings = {k: v for k, v in settings_of(spec).items() if k != "samples"}
        lines.append(f"| {name_of(settings)} | " + " | ".join(percents(values[c]) for c in heads) + " |")
    return "\n".join(lines)


def training(data):
    return trained(last_values(data, "metric_exact_match", drift_of), {0: "drift 0", 0.3: "drift 0.3"})


def tuned(data):
    once = {}  # {spec: {updates a batch: right answers}}
    for run in range(data.sizes["run"]):
        at = data.isel(run=run)
        values = once.setdefault(str(at.estimator.values), {}).setdefault(int(at["train.reuse"]), [])
        values.append(float(at.metric_exact_match.values[-1]))
    lines = ["| | one update | four updates |", "|---|---|---|"]
    for spec, found in sorted(once.items(), key=lambda item: (-np.median(item[1][1]), -np.mean(item[1][1]))):
        settings = {k: v for k, v in settings_of(spec).items() if k != "samples"}
        name = name_of(settings) if "preset" in settings else "leave-one-out"
        lines.append(f"| {name} | " + " | ".join(percents(sorted(found[n])) for n in (1, 4)) + " |")
    return "\n".join(lines)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="with policies.h5 and policies_{cards,training,tuned,countdown}.h5")
    options.add_argument("--all", action="store_true", help="every setting and drift, not only those of the page")
    folder, every = options.parse_args().folder, options.parse_args().all
    found, policies = medians(load(str(folder / "policies.h5")))
    specs = list(dict.fromkeys(spec for spec, _ in found))
    drifts = sorted({d for _, d in found if every or d in DRIFTS})
    plain = next(s for s in specs if settings_of(s) == {"samples": "2"})
    parts = [HEAD.format(policies=policies)]
    for section, text in TEXT.items():
        rows = [s for s in specs if section_of(settings_of(s)) == section and (every or on_page(s))]
        one = found[rows[0] if section == "divergence" else plain, drifts[0]][2]
        parts.append(text + "\n" + table(rows, found, drifts, one))
    parts += [AGAINST + ("\n" + cards(load(str(folder / "policies_cards.h5"))) if every else ""),
              TRAINING + "\n" + training(load(str(folder / "policies_training.h5"))),
              TUNED + "\n" + tuned(load(str(folder / "policies_tuned.h5"))),
              COUNTDOWN + "\n" + countdown(load(str(folder / "policies_countdown.h5")))]
    print("\n\n".join(wrapped(part) for part in parts))


if __name__ == "__main__":
    main()
