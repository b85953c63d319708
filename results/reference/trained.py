#!/usr/bin/python3
"""Every estimator on the checkpoints of experiments/configs/trained.toml, as tables of the ranking during training.

    hardgrad run experiments/configs/trained.toml && hardgrad merge results/trained-run --out results/trained.h5
    results/reference/trained.py results/trained.h5 results/trained-run --measured results/trained.jsonl

About half an hour on one core. Checkpoints in --measured are not measured again.
"""
import argparse
import json
import math
from pathlib import Path

from program import columns, run

SETTINGS = ["--replicates", "256", "--most-replicates", "256", "--adapt", "200", "--jobs", "1"]
EXAMPLES = {"glimpse": 16, "belief": 32}  # more examples for nearly deterministic networks; else 4
POINTS = {300: "10%", 1500: "50%", 3000: "end"}

SHOWN = ["wor_importance", "unordered_set", "rloo", "local_expectation", "moving_baseline", "self_critic", "reinforce"]  # unless --all


def checkpoints(result):
    """(network, steps, file) in the order of the result."""
    return [(model, int(steps), file) for model, steps, file in columns(result, "model", "train.steps", "checkpoint")]


def measured(options, model, steps, file):
    """The measurements of every estimator at one checkpoint, on its own target, or on the bound if the network is trained on it."""
    elbo = model.startswith("belief")
    specs = []
    for entry in run(options.binary, "list", "estimators"):
        bound = elbo and any(p["name"] == "target" and "elbo" in p["range"] for p in entry["parameters"])
        specs += ["--estimator", entry["name"] + ("[target=elbo]" if bound else "")]
    examples = next((n for name, n in EXAMPLES.items() if model.startswith(name)), 4)
    found = run(options.binary, "measure", "--batch", str(examples), "--checkpoint", str(Path(options.folder) / "cells" / file), *SETTINGS, *specs)
    return {"model": model, "steps": steps, "measurements": found["results"]}


def ranks(values):
    """{name: rank} of {name: number}, the smallest first, without those that never sampled another choice."""
    return {name: 1 + i for i, name in enumerate(sorted((n for n in values if values[n] > 0), key=values.get))}


def number(x):
    return "" if x is None or not math.isfinite(x) else f"{x:.2g}" if x > 0 else "none drawn"


def kendall(a, b):
    """Kendall's tau of two rankings of the same names, and the number of names."""
    names = sorted(set(a) & set(b))
    pairs = [(a[x] - a[y]) * (b[x] - b[y]) for i, x in enumerate(names) for y in names[:i]]
    return sum((p > 0) - (p < 0) for p in pairs) / max(1, len(pairs)), len(names)


def table(model, points, unbiased, every):
    """Markdown of one network: {step: measurements}; of the estimators of SHOWN, or of every one."""
    shown = lambda name: every or name.split("[")[0] in SHOWN
    target = "elbo" if model.startswith("belief") else "expected_loss"
    of = {s: {m["estimator"]: m for m in ms if m["status"] == "ok" and m["target"] == target} for s, ms in points.items()}
    last = max(of)
    names = [n for n in of[last] if all(n in of[s] and of[s][n]["variance"] is not None for s in of)]
    sampled = [n for n in names if any(of[s][n]["variance"] > 1e-12 * of[s][n]["estimand_norm"] ** 2 for s in of)]
    right = [n for n in sampled if n.split("[")[0] in unbiased]
    by_rows = {s: ranks({n: of[s][n]["variance"] * of[s][n]["rows"] for n in right}) for s in of}
    by_time = {s: ranks({n: of[s][n]["variance"] * of[s][n]["seconds"] for n in right}) for s in of}
    heads = [POINTS[s] for s in of]
    lines = [f"## `{model}`", "",
             "|g|^2: " + ", ".join(f"{number(of[s][right[0]]['estimand_norm'] ** 2)} at {POINTS[s]}" for s in of)
             + f". Kendall's tau, {heads[0]} to end: "
             + "{:.2f} by rows, ".format(kendall(by_rows[min(of)], by_rows[last])[0])
             + "{:.2f} by time.".format(kendall(by_time[min(of)], by_time[last])[0]), "",
             f"| unbiased | variance x rows, {' | '.join(heads)} | rank |", "|---" * (len(heads) + 2) + "|"]
    for n in filter(shown, sorted(right, key=lambda n: by_rows[last].get(n, 0))):
        lines.append(f"| `{n}` | " + " | ".join(number(of[s][n]["variance"] * of[s][n]["rows"]) for s in of) + " | "
                     + ", ".join(str(by_rows[s].get(n, "-")) for s in of) + " |")
    if not every:
        return lines + [""]
    lines += ["", f"| biased | relative bias, {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for n in (n for n in sampled if n not in right):
        lines.append(f"| `{n}` | " + " | ".join(bias(of[s][n]) for s in of) + " |")
    return lines + [""]


def bias(m):
    """The relative bias, or its upper bound if it is not significant."""
    low, high = m["intervals"].get("relative_bias", (0, math.nan))
    return number(m["relative_bias"]) if low > 0 else f"< {number(high)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("folder")
    parser.add_argument("--binary", default="build/release/hardgrad")
    parser.add_argument("--measured", required=True, help="one JSON line for each checkpoint, appended")
    parser.add_argument("--all", action="store_true", help="every estimator, not only those of the page")
    options = parser.parse_args()
    kept = Path(options.measured)
    known = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    for model, steps, file in checkpoints(options.result):
        if not any((k["model"], k["steps"]) == (model, steps) for k in known):
            known.append(measured(options, model, steps, file))
            with kept.open("a") as to:
                to.write(json.dumps(known[-1]) + "\n")
    unbiased = {e["name"] for e in run(options.binary, "list", "estimators") if e["unbiased"]}
    for model in dict.fromkeys(k["model"] for k in known):
        points = {k["steps"]: k["measurements"] for k in known if k["model"] == model}
        print("\n".join(table(model, dict(sorted(points.items())), unbiased, options.all)))


if __name__ == "__main__":
    main()
