"""Bootstrap intervals over the seeds of every task, after Agarwal et al. 2021, Deep reinforcement
learning at the edge of the statistical precipice. All are deterministic for a given `seed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from .means import Mean

Strata = Sequence[np.ndarray]


def _clean(strata: Strata) -> list[np.ndarray]:
    """Every stratum's numbers, without NaN; strata without numbers are omitted."""
    kept = [np.asarray(stratum, dtype=float).ravel() for stratum in strata]
    kept = [stratum[np.isfinite(stratum)] for stratum in kept]
    return [stratum for stratum in kept if stratum.size]


def _percentiles(values: np.ndarray, level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def stratified_bootstrap(
    strata: Strata,
    statistic: Callable[[list[np.ndarray]], np.ndarray],
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Mean:
    """A statistic of several tasks' runs with its percentile interval (Efron 1979). Runs are
    resampled within each task.

    `statistic` maps a list of arrays [..., runs of a task] to [...]. NaN runs are omitted. Bounds
    are NaN if a task has a single run, since resampling it would give zero width."""
    kept = _clean(strata)
    count = sum(stratum.size for stratum in kept)
    if not kept:
        return Mean(np.nan, np.nan, np.nan, 0)
    value = float(statistic(kept))
    if min(stratum.size for stratum in kept) < 2:
        return Mean(value, np.nan, np.nan, count)
    random = np.random.default_rng(seed)
    drawn = [
        stratum[random.integers(stratum.size, size=(resamples, stratum.size))] for stratum in kept
    ]
    return Mean(value, *_percentiles(np.asarray(statistic(drawn)), level), count)


def interquartile_mean(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Mean of the middle half, the 25% trimmed mean (Agarwal et al. 2021): as robust as the median,
    with less variance."""
    return stats.trim_mean(values, 0.25, axis=axis)


def interquartile_mean_interval(
    strata: Strata, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Mean:
    """Interquartile mean over all tasks' runs together, with its stratified bootstrap interval
    (Agarwal et al. 2021)."""
    return stratified_bootstrap(
        strata,
        lambda parts: interquartile_mean(np.concatenate(parts, axis=-1)),
        level,
        resamples,
        seed,
    )


def probability_of_improvement(
    first: Strata,
    second: Strata,
    lower_is_better: bool = True,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Mean:
    """Probability that a run of the first method beats one of the second on a task, averaged over
    tasks (Agarwal et al. 2021): the statistic of Mann & Whitney 1947, ties count one half. Interval
    by stratified bootstrap of both methods' runs.

    Both lists have the same tasks; tasks without a number for either method are omitted. ValueError
    if the lists differ in length."""
    if len(first) != len(second):
        raise ValueError("probability_of_improvement: both methods need the same tasks")
    cleaned = [(_clean([x]), _clean([y])) for x, y in zip(first, second)]
    pairs = [(x[0], y[0]) for x, y in cleaned if x and y]
    if not pairs:
        return Mean(np.nan, np.nan, np.nan, 0)
    sign = -1 if lower_is_better else 1
    wins = [(np.sign(sign * (x[:, None] - y[None, :])) + 1) / 2 for x, y in pairs]
    value = float(np.mean([won.mean() for won in wins]))
    count = sum(x.size for x, _ in pairs)
    if min(min(won.shape) for won in wins) < 2:
        return Mean(value, np.nan, np.nan, count)
    random = np.random.default_rng(seed)
    drawn = np.zeros(resamples)
    for won in wins:  # the counts of each run suffice: pairs need not be compared again
        shares = [random.multinomial(n, np.full(n, 1 / n), size=resamples) / n for n in won.shape]
        drawn += np.einsum("bi,ij,bj->b", shares[0], won, shares[1]) / len(wins)
    return Mean(value, *_percentiles(drawn, level), count)
