"""Many methods at once: pairwise differences with simultaneous intervals, which stay valid for
pairs chosen after seeing the data; ranks; the letters that methods share which do not differ; and
the Pareto front."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from .noise import freedom, least_p, rounding_deviation


class Pairwise(NamedTuple):
    """Arrays [methods, methods]: the first (row) minus the second (column). NaN if a pair shares no
    seed; p-values are also NaN if it shares only one, and intervals if it shares too few
    (`noise.fewest_pairs`)."""

    difference: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_value: np.ndarray  # of "no difference", for this pair alone
    # times the number of tests, at most 1, at least `noise.least_p`; below 1 - level if and only if
    # the interval excludes 0
    p_corrected: np.ndarray


def pairs_tested(scores: np.ndarray) -> int:
    """The number of pairs of methods that share two or more seeds; scores [methods, seeds], NaN for
    a missing run."""
    there = np.isfinite(scores).astype(int)
    return int(np.triu(there @ there.T > 1, 1).sum())


def pairwise_differences(
    scores: np.ndarray,
    tests: int | None = None,
    level: float = 0.95,
    unsettled: np.ndarray | None = None,
) -> Pairwise:
    """Mean differences of scores [methods, seeds] over common seeds, with simultaneous Student's t
    intervals (Dunn 1961, Multiple comparisons among means) and the bounds of `noise`, as
    `paired_difference`. All intervals hold with probability `level`. So the difference to a best
    method chosen by the same numbers is covered, too. A pair differs if and only if its interval
    excludes 0.

    `tests`: the number of differences to correct for (default: the pairs that share two seeds; 1
    for uncorrected intervals). `unsettled` [methods]: each seed was scored at a setting chosen by
    the other seeds, and these choices differ. Such scores are dependent, so the standard error of
    their differences is that of the corrected resampled t test (Nadeau & Bengio 2003, Inference for
    the generalization error; one seed is held out, n - 1 choose)."""
    x = np.asarray(scores, dtype=float)
    methods = len(x)
    mean, deviation, count = (np.full((methods, methods), np.nan) for _ in range(3))
    for i, row in enumerate(x):
        pairs = row - x
        finite = np.isfinite(pairs)
        count[i] = finite.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean[i] = np.where(finite, pairs, 0).sum(axis=1) / count[i]
            deviation[i] = np.sqrt(
                np.where(finite, (pairs - mean[i][:, None]) ** 2, 0).sum(axis=1) / (count[i] - 1)
            )
    tests = max(1, pairs_tested(x) if tests is None else tests)
    several = count > 1
    degrees = np.where(several, freedom(count), np.nan)
    deviation = np.maximum(deviation, rounding_deviation(x))
    np.fill_diagonal(deviation, 0.0)
    error = deviation * np.sqrt(
        error_factor(
            np.where(several, count, np.nan),
            False if unsettled is None else unsettled[:, None] | unsettled[None, :],
        )
    )
    values, places = np.unique(degrees, return_inverse=True)
    half = stats.t.isf((1 - level) / 2 / tests, values)[places].reshape(degrees.shape) * error
    least = least_p(np.where(several, count, np.nan))
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(
            error > 0, 2 * stats.t.sf(np.abs(mean) / error, degrees), np.where(mean == 0, 1.0, 0.0)
        )
        half = np.where(least < 1 - level, half, np.nan)
    p = np.where(several, p, np.nan)
    return Pairwise(
        mean, mean - half, mean + half, np.fmax(p, least), np.fmax(np.minimum(p * tests, 1), least)
    )


def error_factor(count: np.ndarray | float, unsettled: np.ndarray | bool) -> np.ndarray:
    """The squared standard error of a mean over `count` seeds, in units of the variance of one
    seed: 1/n, or 1/n + 1/(n - 1) if each seed was scored at a setting chosen by the other n - 1 and
    these choices differ (Nadeau & Bengio 2003)."""
    n = np.asarray(count, dtype=float)
    with np.errstate(divide="ignore"):
        return 1 / n + np.where(unsettled, 1 / (n - 1), 0)


class Ranked(NamedTuple):
    """Arrays over methods. A method without scores has rank NaN and no letters."""

    order: np.ndarray  # positions of the methods, the best mean first, those without scores last
    rank: np.ndarray  # 1 + the number of methods of the same block with a better mean
    letters: list[
        str
    ]  # methods that do not differ beyond noise share a letter; empty if there is no test

    def in_blocks(self, blocks: Sequence[object]) -> list[int]:
        """Positions of the methods by block, the block of the best method first, and by mean within
        a block."""
        first = {
            block: place
            for place, block in reversed([(place, blocks[i]) for place, i in enumerate(self.order)])
        }
        return sorted(map(int, self.order), key=lambda i: first[blocks[i]])


def ranked(
    scores: np.ndarray,
    blocks: Sequence[object] = (),
    found: Pairwise | None = None,
    equivalence_margin: float = 0.0,
) -> Ranked:
    """Ranks of scores [methods, seeds], lower is better, by their means, and letters for the pairs
    that differ beyond noise.

    Beyond noise: the simultaneous interval of the difference (`found`, by default of these scores)
    excludes 0 and all differences up to `equivalence_margin`. Letters join methods of all blocks.
    `blocks` [methods]: ranks count the methods of the same block only. With a single seed there are
    no letters."""
    known = np.isfinite(scores).any(axis=1)
    with np.errstate(invalid="ignore"):
        total = np.where(np.isfinite(scores), scores, 0).sum(axis=1)
        means = np.where(known, total / np.maximum(np.isfinite(scores).sum(axis=1), 1), np.inf)
    order = np.argsort(means, kind="stable")
    own = np.unique([str(block) for block in blocks] or [""] * len(scores), return_inverse=True)[1]
    rank = np.full(len(scores), np.nan)
    for block in set(own.tolist()):
        here = known & (own == block)
        rank[here] = stats.rankdata(means[here], "min")
    found = pairwise_differences(scores) if found is None else found
    marks = [""] * len(scores)
    places = [i for i in order if known[i]]
    if np.isfinite(found.low).any():
        with np.errstate(invalid="ignore"):
            differs = (found.low > equivalence_margin) | (found.high < -equivalence_margin)
        for i, mark in zip(places, letters((differs | differs.T)[np.ix_(places, places)])):
            marks[i] = mark
    return Ranked(order, rank, marks)


def letters(differs: np.ndarray) -> list[str]:
    """A text of letters for each method: a greedy clique cover of the pairs that do not differ
    (Gramm, Guo, Hueffner & Niedermeier 2008, Algorithms for compact letter displays: comparison and
    evaluation).

    differs [methods, methods], symmetric: whether a pair differs beyond noise. Two methods share a
    letter if and only if they do not differ. The first letters go to the first methods, so sort the
    methods by their means before."""
    alike = ~np.asarray(differs, bool)
    np.fill_diagonal(alike, True)
    left = (
        alike.copy()
    )  # pairs without a common letter; a method without any pair is a pair with itself
    columns: list[list[int]] = []
    for i in range(len(alike)):
        while left[i, i:].any():
            others = np.flatnonzero(left[i, i:]) + i
            column = {i, int(others[others > i][0]) if (others > i).any() else i}
            for k in range(len(alike)):
                if alike[k, list(column)].all():
                    column.add(k)
            members = sorted(column)
            left[np.ix_(members, members)] = False
            columns.append(members)
    columns.sort()
    return [
        "".join(_letter(k) for k, column in enumerate(columns) if i in column)
        for i in range(len(alike))
    ]


def _letter(k: int) -> str:
    """a, b, ..., z, A, ..., Z, then with a number: a1, b1, ..."""
    places = string.ascii_lowercase + string.ascii_uppercase
    return places[k % len(places)] + (str(k // len(places)) if k >= len(places) else "")


def pareto_front(known: np.ndarray, ends: Sequence[np.ndarray]) -> np.ndarray:
    """Mask [methods] of the Pareto front (Pareto 1906; Deb 2001, Multi-objective optimization);
    lower is better in all criteria. A method is off the front if another is established to be no
    worse in every criterion and better in one.

    `ends` of each criterion: [methods, methods], the upper end of the interval of method i minus
    method j, or the difference itself if it has no interval. Method i is established to be no worse
    if this is not above zero. Methods that are not `known` [methods] are excluded: they are not on
    the front and dominate no method."""
    with np.errstate(invalid="ignore"):
        no_worse = np.all([end <= 0 for end in ends], axis=0)
        better = np.any([end < 0 for end in ends], axis=0)
    beats = no_worse & better & known[:, None] & ~np.eye(len(known), dtype=bool)
    return known & ~beats.any(axis=0)
