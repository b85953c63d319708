#!/usr/bin/python3
"""25 estimators on a network of PyTorch, before and after training, as a page and a figure: `hardgrad.torch.Monitor`.

    PYTHONPATH=build/release/python results/reference/own_network.py --measure    # four minutes of one core: data/own_network.json
    results/reference/own_network.py >results/reference/own_network.md            # the page, from that file
    results/reference/own_network.py --figure results/reference/own_network.png
"""
import argparse
import json
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

FILE = Path(__file__).parent / "data/own_network.json"

ESTIMATORS = [
    "reinforce", "reinforce[samples=4]", "moving_baseline", "nvil", "self_critic", "soft_baseline", "rloo[samples=2]", "rloo[samples=4]",
    "rloo[samples=8]", "optimal_baseline[samples=4]", "group_normalised[samples=4]", "arm", "disarm", "bitflip", "carms[samples=4]",
    "stratified[samples=4]", "unordered_set[samples=4]", "muprop", "rebar", "relax[relaxed_model=false]", "straight_through", "gumbel_softmax",
    "st_gumbel", "reinmax", "double_cv"]
STEPS = 600

SHOWN = ["straight_through", "reinmax", "group_normalised[samples=4]", "disarm", "carms[samples=4]", "rebar", "unordered_set[samples=4]",
         "rloo[samples=4]", "nvil", "reinforce"]

RELAXED = ["straight_through", "gumbel_softmax", "st_gumbel", "reinmax"]

HEAD = """# Estimators on a network of one's own

{finding}

![variance of ten estimators before and after training, of two networks](own_network.png)

[`own_network.py`](own_network.py) measures 25 estimators on an autoencoder in PyTorch with
[`Monitor`](../../experiments/python/README.md), before training and after 600 steps by `rloo[samples=4]`, and prints
this page from [its file](data/own_network.json) (`--figure` draws the picture). The tables show ten. *Rank*: 1 + the
number of estimators, of all 25, that are better beyond noise (all pairs together); *biased*: a bias was found
(p < .05, corrected). Bias is relative to the gradient, with its 95% interval ("<": not significant). `double_cv`,
`nvil`, `rebar` and `relax` learned for 200 steps before.

{points}
"""


def finding(large, small):
    """What changes in training: the ranking, the bias of relaxations, with the numbers of the records."""
    rank = [f"{of['rebar']['rank']:.0f}" for of in by_step(large)]
    bias = by_step(large)[-1]["straight_through"]["bias"]
    but = [f"{listed(names)} with {record['bits']} bits" for record in (large, small) if (names := not_grown(record))]
    return filled(
        f"The ranking of unbiased estimators changes in training, and the bias of relaxations grows{', but for ' * bool(but)}"
        f"{' and '.join(but)}. `rebar` moves from rank {rank[0]} to {rank[1]} with {large['bits']} bits; `straight_through`, first and without a "
        f"significant bias before training, has a bias of {bias:.2f} of the gradient after it.")


def points(large, small):
    """What else the records show, as a list."""
    before, after = (firsts(of) for of in by_step(small))
    work = {name: by_step(large)[-1][name]["work"] for name in ("nvil", "rloo[samples=4]")}
    least = by_step(large)[-1]["group_normalised[samples=4]"]
    return "\n".join(filled(one, "- ") for one in (
        f"With {small['bits']} bits {listed(before)} is first before training; after it {listed(after)} do not differ beyond noise.",
        "A baseline that does not see the other samples falls behind: `nvil` equals `rloo[samples=4]` before training and has "
        f"{work['nvil'] / work['rloo[samples=4]']:.0f} times its variance x rows after it ({large['bits']} bits).",
        f"`group_normalised[samples=4]` has the least variance and a bias of {least['bias']:.2f} after training with {large['bits']} bits."))


def by_step(record):
    """At every step, the estimators by name."""
    return [{each["name"]: each for each in found["estimators"]} for found in record["steps"].values()]


def firsts(of):
    """Those of rank 1: no other is better beyond noise."""
    return [name for name, one in of.items() if one["rank"] == 1]


def not_grown(record):
    """The relaxations whose bias is not significant after training, or not larger than before."""
    before, after = by_step(record)
    return [name for name in RELAXED if after[name]["interval"][0] <= 0 or after[name]["bias"] <= before[name]["bias"]]


def listed(names):
    """ "`a`, `b` and `c`"."""
    words = [f"`{name}`" for name in names]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def filled(text, start=""):
    """Lines of 118 columns."""
    return textwrap.fill(text, 118, initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False, break_long_words=False)


def followed(size, bits, hidden, replicates):
    """A record of the comparisons by step, of an autoencoder of size^2 pixels."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    import hardgrad.torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    pixels = size * size
    encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.Tanh(), nn.Linear(hidden, bits))
    decoder = nn.Sequential(nn.Linear(bits, hidden), nn.Tanh(), nn.Linear(hidden, pixels))

    def loss(x, estimator):
        def errors(z, example):
            return F.binary_cross_entropy_with_logits(decoder(z), x[example], reduction="none").sum(1)
        return hardgrad.torch.expectation(encoder(x), errors, estimator, bits=True).mean()

    def bars(count):
        """Pictures [count, size^2] of rows and columns, each lit with probability 1/5."""
        rows, columns = torch.rand(count, size, 1) < 0.2, torch.rand(count, 1, size) < 0.2
        return (rows | columns).float().flatten(1)

    data, parameters = bars(16), [*encoder.parameters(), *decoder.parameters()]
    monitor = hardgrad.torch.Monitor(lambda estimator: loss(data, estimator), parameters, ESTIMATORS, STEPS, replicates=replicates, by="rows")
    adam = torch.optim.Adam(parameters, 0.002)
    for step in range(STEPS + 1):
        monitor(step)
        adam.zero_grad()
        loss(bars(16), "rloo[samples=4]").backward()
        adam.step()
    return {"bits": bits, "parameters": sum(p.numel() for p in parameters), "replicates": replicates,
            "steps": {step: recorded(found) for step, found in monitor.results.items()}}


def recorded(found):
    """A comparison as numbers of six digits: its reference, and each estimator in its order."""
    def rounded(x):
        return float(f"{x:.6g}")

    one = found.measured[0]
    return {"reference": found.reference, "length": rounded(one.estimand_norm), "error": rounded(one.estimand_standard_error), "estimators": [
        {"name": each.estimator, "rank": None if found.biased(each.estimator) else found.rank[each.estimator],
         "work": rounded(each.work_normalised_variance), "bias": rounded(each.relative_bias),
         "interval": [rounded(end) for end in each.intervals["relative_bias"]]} for each in found.ordered()]}


def table(record):
    """Rank, variance x rows and bias of SHOWN at every step, in the order of the last one."""
    lines = ["| estimator | " + " | ".join(f"rank, step {step} | variance x rows | relative bias" for step in record["steps"]) + " |",
             "|---" * (1 + 3 * len(record["steps"])) + "|"]
    of = by_step(record)
    for name in of[-1]:
        if name in SHOWN:
            lines.append(f"| `{name}` | " + " | ".join(cell for found in of for cell in cells_of(found[name])) + " |")
    return "\n".join(lines)


def cells_of(one):
    low, high = one["interval"]
    bias = f"< {high:.3g}" if low == 0 else f"{one['bias']:.3g} [{low:.3g}, {high:.3g}]"
    return ["biased" if one["rank"] is None else f"{one['rank']:.0f}", f"{one['work']:.3g}", bias]


def reference_of(found):
    error = f" (standard error {found['error']:.2g})" if found["error"] > 0 else ""
    return f"{found['reference']}, length {found['length']:.3g}{error}"


def page(records):
    """The page, from the records of the file."""
    parts = [HEAD.format(finding=finding(*records), points=points(*records))]
    for one in records:
        references = "; ".join(f"step {step}: {reference_of(found)}" for step, found in one["steps"].items())
        said = f"{one['replicates']} estimates each. Reference: {references}."
        parts += [f"## {one['bits']} bits, {one['parameters']:,} parameters\n",
                  textwrap.fill(said, 118, break_on_hyphens=False) + "\n", table(one) + "\n"]
    return "\n".join(parts)


def figure(records):
    """Variance x rows of SHOWN before and after training, of each network."""
    import matplotlib.pyplot as plt

    from analysis.style import line_styles

    drawn, axes = plt.subplots(1, len(records), figsize=(3.1 * len(records), 3.9), constrained_layout=True, squeeze=False)
    looks = line_styles(SHOWN)
    for ax, one in zip(axes[0], records):
        of = by_step(one)
        for name in SHOWN:
            look, values = looks[name], [found[name]["work"] for found in of]
            ax.plot(range(len(of)), values, color=look.colour, marker=look.marker, linestyle=look.line, label=name.split("[")[0].replace("_", " "))
        ax.set(yscale="log", title=f"{one['bits']} bits", xticks=range(len(of)), xticklabels=[f"step {step}" for step in one["steps"]],
               xlim=(-0.2, len(of) - 0.8))
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    axes[0, 0].set_ylabel("variance × rows")
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=3, fontsize=8, frameon=False, bbox_to_anchor=(0.5, -0.2))
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="write the file")
    parser.add_argument("--figure", help="write the figure instead of the page")
    options = parser.parse_args()
    if options.measure:
        records = [followed(*sizes) for sizes in ((21, 50, 100, 256), (6, 8, 16, 1024))]
        FILE.write_text(json.dumps(records, indent=1) + "\n")
        return
    records = json.loads(FILE.read_text())
    if options.figure:
        figure(records).savefig(options.figure, dpi=150, bbox_inches="tight")
    else:
        print(page(records), end="")


if __name__ == "__main__":
    main()
