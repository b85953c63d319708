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
for sweep in policies policies_cards policies_training policies_tuned policies_countdown; do
  build/release/hardgrad run experiments/configs/$sweep.toml
  build/release/hardgrad merge results/$sweep-run --out results/$sweep.h5
done
PYTHONPATH=. results/reference/policies.py results >results/reference/policies.md
PYTHONPATH=. results/reference/policies_figure.py results --figure results/reference/policies.png
```

**Not re-made:** the tables are the output of [`policies.py`](policies.py); their result files are not kept here.
"""
DIVERGENCES = """## The divergence from a reference policy

The target is the divergence KL(policy || reference) alone (a `beta` of 1,000,000). The reference's logits differ from the
policy's by half a standard normal number. *reward*: beta D is subtracted from the reward. *loss*: D is a term of the loss.
*weighted*: the term is multiplied by the token's ratio. Variances are relative to `k1` in the reward at drift 0.
Unbiased are `k1` and the exact divergence in the reward, the latter with a twelfth of the variance on policy. `k1` in the
loss has no signal on policy; `k3` in the reward hardly points along the gradient. In the loss, every form misses the
effect of a word on later states. `k1` and `k3`, weighted, have the mean of the exact divergence in the loss.
"""
RATIOS = """## The ratio and its bound

Leave-one-out, all choices of a sequence summed. Only the ratio of the whole sequence is unbiased; its variance grows with
the drift. Truncated at 2 it keeps nearly all of the direction up to a drift of 0.5. Clipping (.8 to 1.2) is worse than no
correction at drifts of 0.25 and 0.5: most of the gradient is cut.
"""
AGGREGATIONS = """## Advantage and aggregation

The ratio of the whole sequence, without a bound. A mean that includes the sample, and a division by the largest length,
only scale the gradient (cosine 1). Division by the sample's own length or by the group's or batch's deviation also turns it.
The greedy sequence is an unbiased baseline; so is an untrained critic, if returns are whole (`lambda` = 1).
"""
PRESETS = """## Published methods

With the settings that `hardgrad describe policy_gradient` lists, without a divergence. The critic of `ppo` is untrained.
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
    shown = [d for d in drifts if d in (drifts[0], drifts[-1], 0.5)]
    lines = ["| | " + " | ".join(f"drift {d:g}" for d in drifts) + " | " + " | ".join(f"variance, {d:g}" for d in shown) + " |",
             "|---" * (1 + len(drifts) + len(shown)) + "|"]
    for spec in specs:
        bias = [f"{number(found[spec, d][0])} ({number(found[spec, d][1])})" for d in drifts]
        variance = [number(found[spec, d][2] / one) for d in shown]
        lines.append(f"| {name_of(settings_of(spec))} | " + " | ".join(bias + variance) + " |")
    return "\n".join(lines)


FOLLOWS = {
    "grpo": "not along g: every group of samples is divided by its deviation, every sequence by its length",
    "dr_grpo": "(1 - 1/K) / T times g, with at most T words",
    "dapo": "not along g: groups are divided by their deviation and by their mean length",
    "gspo": "as `grpo`",
    "cispo": "as `dapo`",
    "tis": "(1 - 1/K) g",
    "mis": "(1 - 1/K) g",
    "rloo": "g",
    "opo": "near (1 - 1/K) g: the baseline weighs the samples by their lengths",
    "gpg": "near (1 - 1/K) g, divided by the mean length",
    "remax": "g",
    "reinforce_pp": "not along g: the batch is divided by its deviation and its mean length",
    "ppo": "near g, divided by the mean length; with `lambda` < 1 also off by the critic's errors",
    "maxrl": "1 - (1 - p)^(K - 1) times the gradient of - log p, for a probability of success p",
    "best_of": "the gradient of - (1 - (1 - p)^2), the success of the better of two",
}
CARDS = """## Cards: the field that each method follows

On policy, the mean of each method's gradient, in terms of g, the gradient of its target: the expected loss, but for `maxrl`
the likelihood of success, and for `best_of` (another estimator, `best=2`) the success of the better of two samples. As
measured: relative bias and cosine with three samples of the 15 sequences of at most three of two words, with normal rewards,
in the last two rows with rewards of 0 and 1 at even odds.
"""
AGAINST = """## Group size, length, rate of success

[`policies_cards.toml`](../../experiments/configs/policies_cards.toml): on policy, sequences of at most three words and three
samples a group, unless the column says otherwise. K: samples a group. *Words*: at most; with one word all sequences have one
choice. *Success*: the rate of rewards of 1, else 0, among the sequences; with .1, policies without any are left out where
the gradient is 0. More samples reduce the bias of every method that compares them, longer sequences increase that of methods
that divide by a length, and the rate of success matters least, but for `maxrl`, which needs many samples where success is
rare. Relative bias and cosine:
"""
NOISE = """Variance times rows, relative to leave-one-out with as many samples in the same column; for `maxrl` and `best_of`, whose
targets have other gradients, only to compare columns. Small values belong to short gradients first: see the bias.
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
    specs = list(dict.fromkeys(spec for spec, _ in found))
    base = "3 words"
    columns = ["K = 2", base, "K = 5", "1 words", "2 words", "success 0.1", "success 0.5", "success 0.9"]
    heads = ["K = 2", "3", "5", "1 word", "2", "success .1", ".5", ".9"]
    name = lambda spec: re.sub(r"policy_gradient\[preset=(\w+)\]", r"\1", spec).replace("policy_gradient", "leave-one-out")
    of = lambda spec: "best_of" if spec.startswith("best_of") else name(spec)
    quoted = lambda spec: name(spec) if spec == "policy_gradient" else f"`{of(spec)}`"
    unknown = [np.nan] * 3
    both = lambda row: f"{number(row[0])} ({number(row[1])})" if np.isfinite(row[0]) else "-"
    mean = ["| | its mean, on policy | measured |", "|---|---|---|"]
    for spec in specs[1:]:
        row = found.get((spec, base)) or found[spec, "success 0.5"]
        mean.append(f"| {quoted(spec)} | {FOLLOWS[of(spec)]} | {both(row)} |")
    head = ["| | " + " | ".join(heads) + " |", "|---" * (1 + len(heads)) + "|"]
    bias, noise = list(head), list(head)
    for spec in specs:
        bias.append(f"| {quoted(spec)} | " + " | ".join(both(found.get((spec, c), unknown)) for c in columns) + " |")
        if spec != "policy_gradient":
            ratio = [found.get((spec, c), unknown)[2] / found["policy_gradient", c][2] for c in columns]
            noise.append(f"| {quoted(spec)} | " + " | ".join(number(x) for x in ratio) + " |")
    return "\n\n".join([CARDS.strip() + "\n\n" + "\n".join(mean), AGAINST.strip() + "\n\n" + "\n".join(bias),
                        NOISE.strip() + "\n\n" + "\n".join(noise)])


TRAINING = """## In training

[`policies_training.toml`](../../experiments/configs/policies_training.toml): a GRU learns to sort four symbols (of four
kinds) from a reward of 1 or 0, with 8 samples of each of 16 prompts a step, 500 steps of Adam 5e-3, not tuned. Right
answers of the last evaluation on the test prompts, in ascending order of five seeds. With drift 0.3 the samples come from
a policy whose parameters are displaced, always in the same direction, by 0.3 standard deviations of the initial ones.
On policy nearly all runs learn the task. Off policy the four methods that clip do not, as their cosines suggest; methods
whose bounded ratio is a constant factor learn most of it, or all.
"""


TUNED = """## Trained at their best learning rates

[`policies_tuned.toml`](../../experiments/configs/policies_tuned.toml): a GRU learns to add two digits of base 10 (100
prompts) from a reward of 1 or 0, in 1,000 updates with 8 samples of each of 16 prompts: new samples for every update, or
samples for four updates (`train.reuse = 4`: a quarter of the samples). The learning rate is the best of five (.001 to .1) on
prompts held out, with five seeds beside the reported five. Right answers on the test prompts, in ascending order of five
seeds, sorted by their median with one update. None chose the least or the largest rate. On policy `cispo` is `dapo` up to
rounding, and `tis`, `mis` and leave-one-out differ by a factor alone: the differences of their rows are noise. `maxrl`, which divides by the rate of success,
leads with both; four of its five runs are above all others' with one update. `reinforce_pp` is next with four updates, and
the only one that clearly gains from them. The others overlap.

![cosine against drift, and right answers against updates](policies.png)

The figure ([`policies_figure.py`](policies_figure.py)): left, the ratios and bounds of the first table; middle and right, medians
of five seeds in these trainings, with their range.
"""


COUNTDOWN = """## Countdown

[`policies_countdown.toml`](../../experiments/configs/policies_countdown.toml): a GRU learns to write an expression of two
given numbers from 1 to 4 (with +, - or *) that has a given value, from a reward of 1 or 0: 3,000 updates, each with 8 new samples
of each of 16 prompts, Adam .003, not tuned; about a minute on two cores for all ten seeds of four methods. Solved: of 500
test prompts, by the most probable words; the mean of ten seeds with its 95% interval (t), and the runs in ascending order. `maxrl` leads here, too (p < .02 against
each of the others, Welch's t test, not corrected); the others do not differ beyond noise.
"""


def countdown(data):
    lines = ["| | solved | runs |", "|---|---|---|"]
    for spec, values in last_values(data, "metric_solved", lambda run: 0).items():
        values, settings = values[0], {k: v for k, v in settings_of(spec).items() if k != "samples"}
        mean, half = np.mean(values), stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
        name = name_of(settings) if "preset" in settings else "leave-one-out"
        lines.append(f"| {name} | {100 * mean:.0f}% [{100 * (mean - half):.0f}, {100 * (mean + half):.0f}] | {percents(values)} |")
    return "\n".join(lines)


def last_values(data, metric, column):
    """The last value of a metric of every run: {spec: {column: values}}, ascending."""
    last = {}
    for run in range(data.sizes["run"]):
        at = data.isel(run=run)
        last.setdefault(str(at.estimator.values), {}).setdefault(column(at), []).append(float(at[metric].values[-1]))
    return {spec: {c: sorted(values) for c, values in of.items()} for spec, of in last.items()}


def percents(values):
    return ", ".join(f"{100 * x:.0f}%" for x in values)


def trained(last, heads):
    lines = ["| | " + " | ".join(heads.values()) + " |", "|---" * (1 + len(heads)) + "|"]
    for spec, values in last.items():
        settings = {k: v for k, v in settings_of(spec).items() if k != "samples"}
        lines.append(f"| {name_of(settings)} | " + " | ".join(percents(values[c]) for c in heads) + " |")
    return "\n".join(lines)


def training(data):
    return trained(last_values(data, "metric_exact_match", drift_of), {0: "drift 0", 0.3: "drift 0.3"})


def tuned(data):
    once = {}  # {spec: {updates a batch: (right answers, learning rate)}}
    for run in range(data.sizes["run"]):
        at = data.isel(run=run)
        values, _ = once.setdefault(str(at.estimator.values), {}).setdefault(int(at["train.reuse"]), ([], float(at["train.learning_rate"])))
        values.append(float(at.metric_exact_match.values[-1]))
    lines = ["| | one update | learning rate | four updates | learning rate |", "|---|---|---|---|---|"]
    for spec, found in sorted(once.items(), key=lambda item: (-np.median(item[1][1][0]), -np.mean(item[1][1][0]))):
        settings = {k: v for k, v in settings_of(spec).items() if k != "samples"}
        name = name_of(settings) if "preset" in settings else "leave-one-out"
        lines.append(f"| {name} | " + " | ".join(f"{percents(sorted(found[n][0]))} | {found[n][1]:g}" for n in (1, 4)) + " |")
    return "\n".join(lines)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="with policies.h5 and policies_{cards,training,tuned,countdown}.h5")
    folder = options.parse_args().folder
    found, policies = medians(load(str(folder / "policies.h5")))
    specs = list(dict.fromkeys(spec for spec, _ in found))
    drifts = sorted({d for _, d in found})
    plain = next(s for s in specs if settings_of(s) == {"samples": "2"})
    parts = [HEAD.format(policies=policies)]
    for section, text in TEXT.items():
        rows = [s for s in specs if section_of(settings_of(s)) == section]
        one = found[rows[0] if section == "divergence" else plain, drifts[0]][2]
        parts.append(text + "\n" + table(rows, found, drifts, one))
    parts += [cards(load(str(folder / "policies_cards.h5"))),
              TRAINING + "\n" + training(load(str(folder / "policies_training.h5"))),
              TUNED + "\n" + tuned(load(str(folder / "policies_tuned.h5"))),
              COUNTDOWN + "\n" + countdown(load(str(folder / "policies_countdown.h5"))), elsewhere(found)]
    print("\n\n".join(wrapped(part) for part in parts))


if __name__ == "__main__":
    main()
