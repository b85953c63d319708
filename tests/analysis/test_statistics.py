"""Every statistic on numbers with a known answer: by hand, in closed form, or by construction."""

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import (
    Mean,
    holm,
    interquartile_mean,
    interquartile_mean_interval,
    letters,
    mean_interval,
    paired_difference,
    pairs_tested,
    pairwise_differences,
    pareto_front,
    probability_of_improvement,
    propagated_difference,
    propagated_mean,
    ranked,
    scaled,
    stratified_bootstrap,
    welch_difference,
)
from analysis.statistics.noise import freedom
from gradient_moments import gradient_moments


def coverage_is(hits: np.ndarray, level: float) -> bool:
    return abs(np.mean(hits) - level) < 4 * np.sqrt(level * (1 - level) / len(hits))


def test_gradient_moments_by_hand():
    squared_bias, variance, _ = gradient_moments([[0.0, 2], [2, 2], [4, 2]], [1, 0])
    assert variance.mean == 4  # variance of 0, 2, 4; that of the second parameter is 0
    assert squared_bias.mean == pytest.approx(1 + 4 - 4 / 3)
    with pytest.raises(ValueError, match="three estimates"):
        gradient_moments([[1.0], [2.0]], [0])


def test_the_squared_bias_of_one_parameter_is_students_t_test():
    x = np.random.default_rng(2).normal(size=(12, 1))
    for offset in (0, 0.3, 5):
        t = stats.ttest_1samp(x[:, 0] + offset, 0)
        moments = gradient_moments(x + offset, np.zeros(1))
        assert moments.p_value == pytest.approx(t.pvalue, rel=1e-6)
        assert (moments.squared_bias.low > 0) == (t.pvalue < 0.05)
    ends = stats.t.interval(0.95, 11, loc=x.mean() + 5, scale=stats.sem(x[:, 0]))  # far from zero the interval is symmetric
    assert np.sqrt([moments.squared_bias.low, moments.squared_bias.high]) == pytest.approx(ends, rel=1e-3)


def test_intervals_hold_at_their_level_where_there_is_no_bias():
    random = np.random.default_rng(4)
    found = [
        gradient_moments(np.where(random.random((64, p)) < 0.6, 0.4, -0.6), np.zeros(p)) for p in (1, 2, 10) for _ in range(300)
    ]
    assert abs(np.mean([m.squared_bias.low == 0 for m in found]) - 0.95) < 0.025
    assert stats.kstest([m.p_value for m in found[300:]], "uniform").pvalue > 1e-3


def test_squared_bias_is_unbiased_and_its_interval_covers():
    random = np.random.default_rng(3)
    truth, offset = np.zeros(4), np.array([0.3, 0, 0, -0.4])  # squared bias 0.25, variance 4
    found = [gradient_moments(random.normal(size=(60, 4)) + offset, truth) for _ in range(400)]
    bias, variance = ([m[i] for m in found] for i in (0, 1))
    error = np.std([m.mean for m in bias]) / np.sqrt(400)
    assert abs(np.mean([m.mean for m in bias]) - 0.25) < 4 * error
    assert abs(np.mean([m.mean for m in bias]) + 4 / 60 - 0.25) > 4 * error  # the plug-in estimate would be detected
    assert abs(np.mean([m.low <= 0.25 <= m.high for m in bias]) - 0.95) < 0.04
    assert abs(np.mean([m.low < 4 < m.high for m in variance]) - 0.95) < 0.04
    none = [gradient_moments(random.normal(size=(20, 4)), truth).squared_bias.mean for _ in range(500)]
    assert 0.3 < np.mean(np.array(none) < 0) < 0.7  # without bias the estimate is negative about half of the time


def test_work_normalised_variance_scales_its_interval():
    assert scaled(Mean(2.0, 1, 4, 3), 5) == Mean(10.0, 5, 20, 3)


def test_propagated_mean_adds_errors_in_squares():
    mean = propagated_mean([1, 3, np.nan], [1 - 3, 3 - 4, 0], [1 + 6, 3 + 8, 0])
    assert mean == Mean(2.0, 2 - 5 / 2, 2 + 10 / 2, 2)
    assert propagated_mean([np.nan], [0], [0]).count == 0


def test_holm_by_hand():
    p = holm([0.01, 0.04, np.nan, 0.03, 0.005])
    assert np.allclose(p, [0.03, 0.06, np.nan, 0.06, 0.02], equal_nan=True)
    assert holm([0.9, 0.8]).tolist() == [1, 1] and holm([]).size == 0


def test_holm_keeps_the_familywise_error():
    p = np.random.default_rng(4).uniform(size=(4000, 20))
    alarms = np.array([holm(row).min() < 0.05 for row in p])
    assert np.mean(alarms) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 4000)
    assert np.mean(p.min(axis=1) < 0.05) > 0.5  # the error rate without the correction


def test_paired_difference_is_a_t_test_with_the_bounds_of_noise():
    random = np.random.default_rng(14)
    a, b = random.normal(size=9), random.normal(size=9) + 1
    d = paired_difference(np.append(a, np.nan), np.append(b, 7))
    pairs = a - b
    degrees = 8 / 2  # 1/8 + 1/8: of nine numbers, and the most that is taken as known
    t = pairs.mean() / (pairs.std(ddof=1) / 3)
    assert (
        d.count == 9
        and d.difference == pytest.approx(pairs.mean())
        and d.p_value == pytest.approx(2 * stats.t.sf(abs(t), degrees))
    )
    assert np.allclose([d.low, d.high], stats.t.interval(0.95, degrees, loc=pairs.mean(), scale=pairs.std(ddof=1) / 3))
    far = paired_difference(a + 1000, b)
    assert far.p_value == 2 / 2**9 > far.p_unbounded > 0
    same = paired_difference([1, 2], [1, 2])
    assert same.p_value == 1 and np.isnan(same.low)
    eight = paired_difference(np.arange(8) + 0.5, np.arange(8))  # all differences are equal; the scores are apart by 0.5
    assert eight.difference == 0.5 and eight.high - 0.5 == pytest.approx(
        stats.t.ppf(0.975, 7 / (1 + 7 / 8)) * 0.5 / np.sqrt(6 * 8)
    )
    one = paired_difference([1.0], [3.0])
    assert one.difference == -2 and one.count == 1 and np.isnan(one[1:5]).all()
    assert paired_difference([], []).count == 0


def test_pairwise_differences_are_paired_tests_with_simultaneous_intervals():
    scores = np.random.default_rng(12).normal(size=(4, 8))
    scores[1, 2] = np.nan
    alone, found = pairwise_differences(scores, tests=1), pairwise_differences(scores)
    for i in range(4):
        for j in range(4):
            one = paired_difference(scores[i], scores[j])
            if i != j:
                assert np.allclose([part[i, j] for part in alone[:4]], one[:4]), (i, j)
                half = (
                    stats.t.isf(0.025 / 6, freedom(one.count))
                    / stats.t.isf(0.025, freedom(one.count))
                    * (one.high - one.difference)
                )  # six pairs
                assert np.allclose([found.low[i, j], found.high[i, j]], [one.difference - half, one.difference + half])
                assert found.p_corrected[i, j] == pytest.approx(min(6 * one.p_value, 1))
    assert (
        pairs_tested(scores) == 6
        and pairs_tested(scores[:, :1]) == 0
        and np.isnan(pairwise_differences(scores[:, :1]).low).all()
    )
    exact = pairwise_differences(np.array([[1.5, 2.5], [1, 2]]))
    assert (
        np.isnan(exact.low[0, 1]) and exact.difference[0, 1] == 0.5 and exact.p_value[0, 1] >= 0.5 and exact.p_value[0, 0] == 1
    )
    # Of seven seeds six choose: 1/7 + 1/6 replaces 1/7, for every pair with such a method.
    widened = pairwise_differences(scores[2:, :7], unsettled=np.array([False, True]))
    plain = pairwise_differences(scores[2:, :7])
    assert (widened.high - widened.low)[0, 1] == pytest.approx(np.sqrt(1 + 7 / 6) * (plain.high - plain.low)[0, 1])


def test_pairs_see_what_independent_samples_do_not():
    random = np.random.default_rng(5)
    shared = 10 * random.normal(size=12)
    a, b = shared + 0.1 * random.normal(size=12) + 1, shared + 0.1 * random.normal(size=12)
    assert paired_difference(a, b).p_value == 2 / 2**12 and paired_difference(a, b).p_unbounded < 1e-4
    assert welch_difference(a, b).p_value > 0.1
    assert paired_difference(b, a).difference == pytest.approx(-paired_difference(a, b).difference)


def test_welch_difference():
    random = np.random.default_rng(6)
    a, b = random.normal(1, 1, 9), random.normal(0, 5, 14)
    plain = stats.ttest_ind(a, b, equal_var=False).pvalue
    assert plain < welch_difference(a, b).p_value < plain + 0.1
    hits = [
        d.low < 1 < d.high for d in (welch_difference(random.normal(1, 1, 6), random.normal(0, 4, 10)) for _ in range(2000))
    ]
    assert 0.95 <= np.mean(hits) <= 0.99
    assert welch_difference([1, 1], [1, 1]).p_value == 1 and welch_difference([2, 2], [1, 1]).p_value >= 2 / 6
    assert welch_difference(a + 1e6, b).p_value == pytest.approx(2 / 817190)  # 23 numbers in groups of 9 and 14
    assert np.isnan(welch_difference([1], [2, 3]).p_value) and welch_difference([], [1]).count == 0


def test_propagated_difference():
    z = stats.norm.ppf(0.975)
    d = propagated_difference(Mean(5, 5 - 3 * z, 5 + 3 * z, 1), Mean(0, -4 * z, 4 * z, 1))  # errors 3 and 4
    assert d.p_value == pytest.approx(2 * stats.norm.sf(1)) and np.allclose([d.low, d.high], [5 - 5 * z, 5 + 5 * z])
    assert np.isnan(propagated_difference(Mean(1, np.nan, np.nan, 1), Mean(0, 0, 0, 1)).p_value)
    assert propagated_difference(Mean(1, 1, 1, 1), Mean(1, 1, 1, 1)).p_value == 1


def test_interquartile_mean_drops_a_quarter_on_each_side():
    assert interquartile_mean([-1000, 1, 2, 3, 4, 5, 6, 1000]) == 3.5
    found = interquartile_mean_interval([[0.0, 1, 2, 3], [4.0, 5, 6, 7, np.nan]])
    assert found.mean == 3.5 and found.low < 3.5 < found.high and found.count == 8


def test_stratified_bootstrap_resamples_within_a_task():
    tasks = [np.array([0.0, 0, 0]), np.array([100.0, 100])]  # no spread within tasks gives no width, whatever their distance
    mean = lambda parts: np.concatenate(parts, axis=-1).mean(axis=-1)
    assert stratified_bootstrap(tasks, mean)[:3] == (40, 40, 40)
    assert np.isnan(stratified_bootstrap([[1.0], [2.0, 3.0]], mean).low)
    assert stratified_bootstrap([[np.nan]], mean).count == 0


def test_stratified_bootstrap_covers():
    random = np.random.default_rng(7)
    mean = lambda parts: np.concatenate(parts, axis=-1).mean(axis=-1)
    found = [
        stratified_bootstrap([random.normal(0, 1, 30), random.normal(5, 3, 30)], mean, resamples=400, seed=i)
        for i in range(500)
    ]
    assert abs(np.mean([m.low < 2.5 < m.high for m in found]) - 0.95) < 0.04


def test_probability_of_improvement_by_hand():
    better = probability_of_improvement([[1, 2], [5, 5]], [[2, 3], [5, 5]])
    assert better.mean == (3.5 / 4 + 0.5) / 2 and better.low <= better.mean <= better.high and better.count == 4
    assert probability_of_improvement([[1, 2]], [[2, 3]], lower_is_better=False).mean == 0.125
    assert probability_of_improvement([[1, 2]], [[3, 4]])[:3] == (1, 1, 1)
    assert np.isnan(probability_of_improvement([[1]], [[3]]).low)
    assert (
        probability_of_improvement([[1, 2], [np.nan]], [[3, 4], [0, 1]]).mean == 1
    )  # no numbers to compare on the second task
    with pytest.raises(ValueError, match="same tasks"):
        probability_of_improvement([[1]], [])


def test_probability_of_improvement_is_mann_and_whitneys():
    random = np.random.default_rng(8)
    a, b = random.normal(0.5, 1, 40), random.normal(0, 1, 30)
    probability = probability_of_improvement([a], [b], lower_is_better=False)
    assert probability.mean == pytest.approx(stats.mannwhitneyu(a, b).statistic / 1200)
    assert probability.low < stats.norm.cdf(0.5 / np.sqrt(2)) < probability.high


def shares_a_letter(marks, i, j):
    return bool(set(marks[i]) & set(marks[j]))


def test_letters_join_what_does_not_differ_and_only_that():
    # Sorted by means: the first differs from the last two, the second from the last.
    differs = np.zeros((4, 4), bool)
    for i, j in ((0, 2), (0, 3), (1, 3)):
        differs[i, j] = differs[j, i] = True
    assert letters(differs) == ["a", "ab", "bc", "c"]
    assert (
        letters(np.zeros((3, 3), bool)) == ["a"] * 3
        and letters(~np.eye(3, dtype=bool)) == ["a", "b", "c"]
        and letters(np.zeros((0, 0), bool)) == []
    )
    random = np.random.default_rng(13)
    for _ in range(200):
        upper = np.triu(random.random((7, 7)) < random.random(), 1)
        marks = letters(upper | upper.T)
        assert all(shares_a_letter(marks, i, j) != upper[i, j] for i in range(7) for j in range(i + 1, 7)), (upper, marks)


def test_ranks_are_by_the_mean_and_letters_by_the_tests():
    random = np.random.default_rng(9)
    shared = 10 * random.normal(size=8)
    noise = lambda: 0.1 * random.normal(size=8)
    scores = np.array([shared + 1 + noise(), shared + noise(), shared + 0.01 + noise(), np.full(8, np.nan)])
    ranking = ranked(scores)
    by_mean = np.argsort(np.nanmean(scores[:3], axis=1))
    assert (
        ranking.order[0] in (1, 2)
        and ranking.order.tolist()[2:] == [0, 3]
        and ranking.rank[0] == 3
        and np.isnan(ranking.rank[3])
    )
    assert [ranking.rank[i] for i in by_mean] == [1, 2, 3], "the effects of the seeds cancel, and ranks follow the means"
    assert ranking.letters == ["b", "a", "a", ""]
    # A loss of 1.9 with much noise beside .75 and 9: in the order of the means, all joined.
    wild = ranked(np.array([[1.9 - 9, 1.9 + 9], [0.7, 0.8], [9, 9.1]]).repeat(4, axis=1) + 1e-3 * random.normal(size=(3, 8)))
    assert wild.rank.tolist() == [2, 1, 3] and shares_a_letter(wild.letters, 0, 1)
    blocks = ["x", "x", "y", "y"]
    own = ranked(scores, blocks)
    assert own.rank.tolist()[:3] == [2, 1, 1] and own.letters == ranking.letters
    assert own.in_blocks(blocks) == ([1, 0, 2, 3] if ranking.order[0] == 1 else [2, 3, 1, 0])
    one = ranked(np.array([[2.0], [1.0]]))
    assert one.rank.tolist() == [2, 1] and one.letters == ["", ""]
    assert (
        ranked(np.array([[1.0, 2], [1.0, 2]])).rank.tolist() == [1, 1] and np.isnan(ranked(np.full((2, 3), np.nan)).rank).all()
    )


def differences(rows, half=0.0):
    """Upper ends of every pair's interval, first minus second, +- half."""
    return rows[:, None] - rows[None, :] + half


def test_pareto_front_by_hand():
    costs = np.array([[1, 5], [2, 4], [2, 5], [5, 1], [2, 4], [np.nan, 0]], float)
    known = np.isfinite(costs).all(axis=1)
    exact = [differences(column) for column in costs.T]
    assert pareto_front(known, exact).tolist() == [True, True, False, True, True, False]
    # The third is worse than the second by 1 in one criterion and equal in the other: within noise of 1 it is not dominated ...
    noisy = [exact[0], differences(costs[:, 1], half=1.5)]
    assert pareto_front(known, noisy).tolist() == [True, True, True, True, True, False]
    # ... and beyond noise of 0.5 it is.
    assert not pareto_front(known, [exact[0], differences(costs[:, 1], half=0.5)])[2]
    assert pareto_front(np.zeros(0, bool), [np.zeros((0, 0))]).size == 0


def test_mean_interval_over_seeds_covers():
    noise = np.random.default_rng(11).normal(size=(3000, 3))
    assert coverage_is(np.array([m.low < 0 < m.high for m in map(mean_interval, noise)]), 0.95)
