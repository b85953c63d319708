#!/usr/bin/python3
"""How often the intervals of `hardgrad measure` hold the truth on trained networks, as a page.

    results/reference/coverage.py --measure build/release/hardgrad --data DIR     # an hour and a half of one core: data/coverage.json
    results/reference/coverage.py >results/reference/coverage.md                  # the page, from that file (--all: every row)

Trains the twelve networks of experiments/configs/coverage.toml on the real files in DIR, and measures eight estimators on each with several
seeds of the noise and default settings, always by sampling. The truth is enumerated, or found by 30,000 replicates. Then networks off policy
and at a low temperature, with the truth of each seed. Finished measurements are kept in --measured: it may be stopped at any time, and goes
on with the rows that have the fewest seeds.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from program import columns, run

ESTIMATORS = ["reinforce", "rloo[samples=4]", "unordered_set", "sum_and_sample", "straight_through", "gumbel_softmax", "rebar", "stratified[samples=4]"]
OFF_POLICY = ["policy_gradient[ratio=sequence,samples=2]", "policy_gradient[preset=dapo,samples=2]", "policy_gradient[preset=gspo,samples=2]"]
QUANTITIES = ("variance", "squared_bias", "cosine")
SEEDS = 12
ROUNDING = 1e-6  # of float, with which the gradient is summed, over its length
FILE = Path(__file__).parent / "data/coverage.json"

HEAD = """# Coverage of the intervals

On trained networks, off policy and at low temperatures, unmarked intervals of `hardgrad measure` hold the truth about
as often as stated, and few are marked. The networks' choices are peaked: replicates that wait for rare choices by luck
would miss most of the variance.

[`coverage.py`](coverage.py) trains the twelve small networks of
[`coverage.toml`](../../experiments/configs/coverage.toml), measures each estimator with {seeds} seeds (four examples,
256 replicates, doubled up to 4,096, always by sampling: `--sampled`), and prints this page from
[its file](data/coverage.json). The truth is enumerated ("exact"), or comes from 30,000 replicates, whose error all
seeds of a row share. A share of {seeds} has a standard error of {error:.0f}% at 95%. *Marked*: measurements with a `?`,
left out of the shares. With `--all`, *mean* and *spread* are those of the unmarked variances, over the truth, and p is
the share of plain p-values below .05 of estimators without bias. Off policy, networks and truths differ from seed to
seed.
"""


def measured(binary, where, spec, *options):
    """The measurement; None if it was not made, for example because of its cost."""
    found = subprocess.run([binary, "measure", *where, "--estimator", spec, "--jobs", "1", "--json", *options], capture_output=True, text=True)
    results = json.loads(found.stdout)["results"] if found.stdout else []
    return results[0] if results and results[0]["status"] == "ok" else None


def truth_of(binary, where, spec):
    """Its numbers, and their source."""
    exact = measured(binary, where, spec, "--exact", "--outcome-cap", "1e5")
    found = exact or measured(binary, where, spec, "--sampled", "--replicates", "30000", "--most-replicates", "0")
    return found and {"source": "exact" if exact else "30,000", **{quantity: found[quantity] for quantity in QUANTITIES}}


def one_seed(binary, where, spec, unbiased, truth, seed):
    """The results of one measurement, against the truth or, if that is None, its own. `unbiased`: it has no bias, although a long run's is not
    0. Each quantity in `held`: whether its interval holds the truth; None: there is none."""
    at = [*where, "--seed", str(seed)]
    truth = truth or truth_of(binary, at, spec)
    measurement = measured(binary, at, spec, "--sampled")
    if not (measurement and truth):
        return None
    found = {"marked": bool(measurement["unsupported"]), "held": {}, "ratio": None, "small": None}
    if found["marked"]:
        return found
    if truth["variance"]:
        found["ratio"] = measurement["variance"] / truth["variance"]
    for quantity in QUANTITIES:
        ends, value = measurement["intervals"].get(quantity), 0.0 if unbiased and quantity == "squared_bias" else truth[quantity]
        if ends is None or value is None:
            continue
        low, high = ends[0], math.inf if ends[1] is None else ends[1]
        slack = 1e-6 * abs(value) + 1e-9 * (truth["variance"] or 0)
        if quantity != "cosine":
            slack += (ROUNDING * (measurement["estimand_norm"] or 0)) ** 2
        found["held"][quantity] = low - slack <= value <= high + slack
    if measurement["bias_p_value_plain"] is not None and (unbiased or truth["squared_bias"] <= 1e-9 * (truth["variance"] or 0)):
        found["small"] = measurement["bias_p_value_plain"] < 0.05
    return found


def row_of(name, spec, source, seeds):
    """The counts of one line, from its measurements."""
    unmarked = [one for one in seeds if not one["marked"]]
    held = {quantity: [one["held"][quantity] for one in unmarked if quantity in one["held"]] for quantity in QUANTITIES}
    ratios = [one["ratio"] for one in unmarked if one["ratio"] is not None]
    small = [one["small"] for one in unmarked if one["small"] is not None]
    return {"network": name, "estimator": spec, "truth": source, "runs": len(seeds), "marked": len(seeds) - len(unmarked),
            "held": {quantity: [sum(each), len(each)] for quantity, each in held.items()}, "small": sum(small), "tested": len(small),
            "mean": statistics.mean(ratios) if ratios else None, "spread": statistics.pstdev(ratios) if ratios else None}


def line(one, every):
    def share(count, of):
        return f"{100 * count / of:.0f}%" if of else "–"

    def number(x):
        return "–" if x is None else f"{x:.2f}"

    held = " | ".join(share(*one["held"][quantity]) for quantity in QUANTITIES)
    rest = f" {number(one['mean'])} | {number(one['spread'])} | {share(one['small'], one['tested'])} |" if every else ""
    return f"| {one['network']} | `{one['estimator']}` | {one['truth']} | {one['marked']} of {one['runs']} | {held} |{rest}"


def stands_out(one):
    """Whether an interval holds the truth in less than 80% of the runs, or a quarter of them are marked."""
    return 4 * one["marked"] >= one["runs"] or any(of and count < 0.8 * of for count, of in one["held"].values())


KINDS = ("Trained networks", "Off policy", "Cold")


def kind_of(network):
    """Of a row, or of its line in a page."""
    network = network.removeprefix("| ")
    return "Off policy" if network.startswith("off policy") else "Cold" if network.startswith("cold") else "Trained networks"


def totals(rows):
    """A sentence for each kind."""
    for kind in KINDS:
        of = [one for one in rows if kind_of(one["network"]) == kind]
        held = {quantity: [sum(one["held"][quantity][place] for one in of) for place in (0, 1)] for quantity in QUANTITIES}
        marked, runs = (sum(one[key] for one in of) for key in ("marked", "runs"))
        if runs:
            shares = ", ".join(f"{quantity.replace('_', ' ')} {100 * good / tried:.1f}%" for quantity, (good, tried) in held.items() if tried)
            yield f"- {kind}: {shares}; {100 * marked / runs:.0f}% of {runs:,} marked."


def jobs(options):
    """(name, where, spec, own truth) of all rows."""
    folder, result = Path(options.folder), Path(options.folder + ".h5")
    subprocess.run([options.binary, "run", "experiments/configs/coverage.toml", "--out", str(folder)], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([options.binary, "merge", str(folder), "--out", str(result), "--partial"], check=True, stdout=subprocess.DEVNULL)
    for length in (3, 4):
        where = ["--task", f"sequences[words=3,longest={length}]", "--model", "writer[policy=table,scale=4,drift=1]", "--batch", "2"]
        for spec in OFF_POLICY:
            yield f"off policy: {length} words at most", where, spec, True
    for bits in (1, 3):
        where = ["--task", "bits", "--model", f"bits[bits={bits},logit=4]", "--batch", "1", "--precision", "double"]
        for spec in ("gumbel_softmax[temperature=0.01]", "straight_through", "rebar[temperature=0.1]"):
            yield f"cold: {bits} bit{'s' * (bits > 1)}, logit 4", where, spec, False
    for task, model, file in columns(result, "task", "model", "checkpoint"):
        kind = task.split("[")[0] + (" (real)" if "path=" in task else "")
        for spec in ESTIMATORS:
            yield f"{kind}: `{model}`", ["--checkpoint", str(folder / "cells" / file), "--batch", "4"], spec, False


class Measurements:
    """Those made, in a file: truths by network and estimator, then the results by seed."""

    def __init__(self, path):
        self.path, self.truths, self.seeds = path, {}, {}
        for text in path.read_text().splitlines() if path.exists() else []:
            self._keep(json.loads(text))

    def _keep(self, one):
        row = one["network"], one["estimator"]
        if "truth" in one:
            self.truths[row] = one["truth"]
        else:
            self.seeds.setdefault(row, {})[one["seed"]] = one["shows"]

    def add(self, row, **what):
        one = {"network": row[0], "estimator": row[1], **what}
        self._keep(one)
        with self.path.open("a") as file:
            file.write(json.dumps(one) + "\n")


def measure_rows(options, made, rows):
    """A few seeds of every row, then more: until all are measured, or the time is out."""
    unbiased = {entry["name"] for entry in run(options.binary, "list", "estimators") if entry["unbiased"]} - {"policy_gradient"}
    end = time.monotonic() + 60 * options.minutes
    for until in range(4, options.seeds + 4, 4):
        for name, where, spec, own_truth in rows:
            row = name, spec
            for seed in range(1, min(until, options.seeds) + 1):
                if time.monotonic() > end:
                    return
                if not own_truth and row not in made.truths:
                    made.add(row, truth=truth_of(options.binary, where, spec))
                if seed in made.seeds.get(row, {}) or not (own_truth or made.truths[row]):
                    continue
                truth = None if own_truth else made.truths[row]
                made.add(row, seed=seed, shows=one_seed(options.binary, where, spec, spec.split("[")[0] in unbiased, truth, seed))


def measure(options):
    """The counts of all rows, in FILE."""
    if options.data:
        os.environ["HARDGRAD_DATA"] = options.data
    made, every = Measurements(Path(options.measured)), list(jobs(options))
    measure_rows(options, made, every)
    rows = []
    for name, _, spec, own_truth in every:
        truth, seeds = made.truths.get((name, spec)), [one for one in made.seeds.get((name, spec), {}).values() if one]
        if seeds:
            rows.append(row_of(name, spec, "exact" if own_truth else truth["source"], seeds))
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def page(rows, every):
    """Its lines."""
    seeds = max(one["runs"] for one in rows)
    yield HEAD.format(seeds=seeds, error=100 * math.sqrt(0.95 * 0.05 / seeds))
    yield "Unmarked intervals hold the truth in\n"
    yield from totals(rows)
    if not every:
        yield ("\nRows where an interval holds the truth in less than 80% of the runs, or where a quarter of the runs is marked, of "
               f"{len(rows)}\n(`--all` prints all):")
    yield ("\n| network | estimator | truth | marked | variance | squared bias | cosine |" + (" mean | spread | p < .05 |" if every else "")
           + "\n" + "|---" * (10 if every else 7) + "|")
    yield from (line(one, every) for one in rows if every or stands_out(one))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", metavar="PROGRAM", dest="binary", help="measure with it first")
    parser.add_argument("--folder", default="results/coverage-run", help="of the trained networks")
    parser.add_argument("--data", help="folder of the real files (HARDGRAD_DATA)")
    parser.add_argument("--measured", default="results/coverage.jsonl", help="finished measurements")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each row")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no measurement is begun")
    parser.add_argument("--all", action="store_true", help="print every row")
    options = parser.parse_args()
    if options.binary:
        measure(options)
    elif not FILE.exists():
        sys.exit(f"no {FILE.name}: run coverage.py --measure PROGRAM first")
    print(*page(json.loads(FILE.read_text()), options.all), sep="\n")


if __name__ == "__main__":
    main()
