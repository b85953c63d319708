"""A planted study: how often equal estimators get different verdicts. Six estimators with one expected score, and scores as training gives them: discrete,
bounded, skewed, of unequal noise, or in one of two states. `python3 tests/analysis/planted_scores.py` prints the table of all kinds and numbers of
seeds (a minute)."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from analysis.statistics import pairwise_differences  # noqa: E402

ESTIMATORS = 6
SEEDS = (2, 3, 4, 5, 6, 8, 12, 20)
_SCALES = np.array([1, 1, 1, 2, 2, 4.0])[:, None]  # of the noise of the estimators


def _lognormal(random, shape, scales):
    return scales * (random.lognormal(0, 1, shape) - np.exp(0.5))


#: Draws scores [estimators, seeds] of one study, by kind. Every row has the same mean.
KINDS = {
    "normal, unequal": lambda random, shape: _SCALES * random.normal(size=shape),
    "solved or not, p = .5": lambda random, shape: 1.0 * (random.random(shape) < 0.5),
    "solved or not, p = .9": lambda random, shape: 1.0 * (random.random(shape) < 0.9),
    "share of 20, p = .8": lambda random, shape: random.binomial(20, 0.8, shape) / 20,
    "one of two states": lambda random, shape: 0.46 * (random.random(shape) < 0.5) + 1e-3 * random.normal(size=shape),
    "one of two states, p = .8": lambda random, shape: 0.46 * (random.random(shape) < 0.8) + 1e-3 * random.normal(size=shape),
    "bounded, near 1": lambda random, shape: random.beta(8, 0.8, shape),
    "lognormal": lambda random, shape: _lognormal(random, shape, 1.0),
    "lognormal, unequal 1 to 4": lambda random, shape: _lognormal(random, shape, _SCALES),
    "lognormal, unequal 1 to 6": lambda random, shape: _lognormal(random, shape, np.arange(1.0, 7)[:, None]),
    "exponential, unequal 1 to 32": lambda random, shape: 2.0 ** np.arange(6)[:, None] * (random.exponential(1, shape) - 1),
}


def wrong(kind: str, seeds: int, studies: int, seed: int = 0) -> int:
    """The studies in which some pair of the equal estimators has an interval without 0."""
    random = np.random.default_rng([seed, seeds, list(KINDS).index(kind)])
    count = 0
    for _ in range(studies):
        differences = pairwise_differences(KINDS[kind](random, (ESTIMATORS, seeds)))
        count += bool((differences.low > 0).any())
    return count


if __name__ == "__main__":
    STUDIES = 2000
    print("% of studies with a wrong verdict".ljust(34) + "".join(f"{n:7d}" for n in SEEDS) + "  seeds")
    for name in KINDS:
        print(name.ljust(34) + "".join(f"{100 * wrong(name, n, STUDIES) / STUDIES:7.2f}" for n in SEEDS), flush=True)
