#!/usr/bin/python3
"""Coverage of the 95% intervals of `hardgrad measure`: results/reference/coverage.md. Run by hand:

    /usr/bin/python3 tests/experiments/measurement/coverage.py build/release/hardgrad --out results/reference/coverage.md

The bits are independent and have separate losses, so that the moments of D bits are D times those of one, which are exact (--exact;
checked for two and ten). Mean cosines of a thousand bits come from a long run. Takes about half an hour.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scipy import stats

QUANTITIES = ("squared_bias", "relative_bias", "variance", "snr", "cosine")
TITLES = ("squared bias", "relative bias", "variance", "SNR", "cosine")
PARAMETERS, REPLICATES = (1, 2, 10, 1000), (32, 400, 5000)


def model(bits: int, more: str = "") -> str:
    return f"bits[bits={bits},t=0.3,logit=0.4{more}]"


# name, spec, whether it is unbiased
ESTIMATORS = (("unbiased", "reinforce[reward_to_go=true]", True), ("biased", "straight_through", False))


class Program:
    def __init__(self, path: str):
        self.path = path

    def measure(self, network: str, estimators: list[str], *options: object) -> list[dict]:
        chosen = [part for spec in estimators for part in ("--estimator", spec)]
        done = subprocess.run([self.path, "measure", "--task", "bits", "--model", network, *chosen, "--json", "--precision", "double", "--jobs", "1",
                               *map(str, options)], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["results"]


def truths(program: Program, bits: int, specs: list[str]) -> list[dict]:
    """The moments of `bits` bits, from those of one; checked by enumeration up to ten."""
    one = program.measure(model(1), specs, "--exact")
    found = []
    enumerated = program.measure(model(bits), specs, "--exact") if 1 < bits <= 10 else one
    sampled = program.measure(model(bits), specs, "--replicates", 100000, "--most-replicates", 0) if bits > 10 else enumerated
    for single, whole, long_run in zip(one, enumerated, sampled):
        moments = {"squared_bias": bits * single["squared_bias"], "variance": bits * single["variance"], "snr": single["snr"],
                   "relative_bias": single["relative_bias"], "cosine": long_run["cosine"]}
        if single["squared_bias"] < 1e-25:
            moments["squared_bias"] = moments["relative_bias"] = 0.0
        if 1 < bits <= 10:
            assert all(math.isclose(moments[name], whole[name], rel_tol=1e-9, abs_tol=1e-25) or name.endswith("bias") and whole[name] < 1e-12
                       for name in QUANTITIES), (moments, whole)
        found.append(moments)
    return found


def table(program: Program, seeds: int, jobs: int) -> list[str]:
    specs = [spec for _, spec, _ in ESTIMATORS]
    lines = [f"| estimator | parameters | replicates | {' | '.join(TITLES)} | Kolmogorov–Smirnov of p |", "|---" * (4 + len(TITLES)) + "|"]
    with ThreadPoolExecutor(jobs) as pool:
        for bits in PARAMETERS:
            true = truths(program, bits, specs)
            for replicates in REPLICATES:
                count = seeds if bits * replicates < 1e6 else max(seeds // 5, 20)

                def one(seed: int) -> list[dict]:
                    return program.measure(model(bits), specs, "--replicates", replicates, "--most-replicates", 0, "--seed", seed)

                runs = list(pool.map(one, range(1, count + 1)))
                for place, (name, spec, unbiased) in enumerate(ESTIMATORS):
                    share = []
                    for quantity in QUANTITIES:
                        ends = [run[place]["intervals"][quantity] for run in runs]
                        share.append(sum(low <= true[place][quantity] * (1 + 1e-12) and true[place][quantity] <= high * (1 + 1e-12)
                                         for low, high in ends) / count)
                    found = stats.kstest([run[place]["bias_p_value_plain"] for run in runs], "uniform")
                    uniform = f"{found.statistic:.3f} (p = {found.pvalue:.2g}, {count} seeds)" if unbiased else f"({count} seeds)"
                    lines.append(f"| `{spec}`, {name} | {bits:,} | {replicates:,} | {' | '.join(f'{100 * s:.1f}%' for s in share)} | {uniform} |")
                    print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = table(Program(options.program), options.seeds, options.jobs)
    if options.out:
        command = "/usr/bin/python3 tests/experiments/measurement/coverage.py build/release/hardgrad --out results/reference/coverage.md"
        options.out.write_text("\n".join([
            "# Coverage of the intervals", "",
            f"`{model(1)}` and as many independent bits as there are parameters: the share of measurements whose 95%",
            "interval holds the exact value (mean cosines of a thousand bits: the mean over 100,000 replicates). The standard error",
            "of a share is 1% with 500 seeds and 2% with 100. The last column is the distance between the plain p-values of the unbiased",
            "estimator and a uniform distribution. With one parameter and few replicates the p-values are discrete. Made by", "", "```", command, "```", "", *lines, ""]))


if __name__ == "__main__":
    main()
