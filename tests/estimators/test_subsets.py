"""Subsets of k of n options, and the moments of estimators on them, against enumeration in NumPy: 200 random problems of each law (by
default the first 50 of them; all in the long test, by SUBSET_PROBLEMS).

Nothing here shares code with Hardgrad: densities are products of weights over their sum, or sums over all orders of draws without
replacement; marginals and entropies are sums over all subsets, and an estimator's mean and variance sums over all samples (or pairs
of samples).
"""

import collections
import itertools
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ESTIMATORS = [
    "reinforce",
    "rloo[samples=2]",
    "self_critic",
    "soft_baseline",
    "simple",
    "sparse_mixer[order=1]",
    "sparse_mixer",
    "sparse_mixer[order=3]",
    "unordered_set[samples=2]",
    "unordered_set[samples=2,baseline=false]",
    "sum_and_sample[samples=2]",
    "sum_and_sample[samples=2,set=sampled]",
    "exact",
    "exact_marginal",
    "kmax_marginal[k=2]",
    "group_normalised[samples=2]",
    "group_normalised[samples=2,scale=none]",
    "optimal_baseline[samples=2]",
    "james_stein[samples=2]",
    "best_of[samples=2,best=1]",
    "policy_gradient[samples=2]",
    "maxrl[samples=2]",
    "moving_baseline",
    "entropy_regularised",
]
COUNT = int(os.environ.get("SUBSET_PROBLEMS", 200))


def in_order(x: np.ndarray, picked: np.ndarray) -> tuple[float, np.ndarray]:
    """p of this subset as the first draws without replacement, by a sum over its orders, and d log p / dx."""
    w, score = np.exp(x - x.max()), np.zeros(len(x))
    orders = np.array(list(itertools.permutations(np.flatnonzero(picked))))
    left = w[~picked].sum() + np.cumsum(w[orders][:, ::-1], 1)[:, ::-1]  # before each draw
    p = np.prod(w[orders] / left, 1)
    np.add.at(score, orders, p[:, None] * (1 - w[orders] * np.cumsum(1 / left, 1)))
    score[~picked] -= w[~picked] * (p @ (1 / left).sum(1))
    return p.sum(), score / p.sum()


class Problem:
    """One random problem: n to 8 options, k to n, logits to +-30 and |b - t|^2 or a sum over pairs as the loss."""

    def __init__(self, seed: int, law: str) -> None:
        rng = np.random.default_rng(seed)
        self.law = law
        self.n = int(rng.integers(1, 9))
        self.k = int(rng.integers(1, self.n + 1))
        self.x = rng.uniform(-1, 1, self.n) * rng.choice([1, 5, 30])
        self.t = rng.normal(size=self.n)
        self.b = np.array([[i in s for i in range(self.n)] for s in itertools.combinations(range(self.n), self.k)], float)

    def spec(self) -> str:
        return (
            f"subsets[options={self.n},picks={self.k},law={self.law},t_spread=0,logit={';'.join(map(repr, map(float, self.x)))},"
            f"t={';'.join(map(repr, map(float, self.t)))}]"
        )

    def log_p_and_scores(self) -> tuple[np.ndarray, np.ndarray]:
        if self.k == self.n:
            return np.zeros(1), np.zeros((1, self.n))
        if self.law == "plackett_luce":
            p, score = zip(*(in_order(self.x, b == 1) for b in self.b))
            return np.log(p), np.array(score)
        energy = self.b @ self.x
        log_p = energy - energy.max() - np.log(np.exp(energy - energy.max()).sum())
        return log_p, self.b - np.exp(log_p) @ self.b

    def expected(self) -> dict[str, np.ndarray]:
        b = self.b
        log_p, score = self.log_p_and_scores()
        p = np.exp(log_p)
        pi = p @ b
        f = ((b - self.t) ** 2).sum(1)
        certain = np.ones(1)
        likely = p * np.exp(f.min() - f)
        draws = {"reinforce": (p, f[:, None] * score), "exact": (certain, (p * f @ score)[None])}
        draws["moving_baseline"] = draws["reinforce"]  # before its first step
        entropy = -p @ log_p  # a part of the learning signal, and differentiated itself
        draws["entropy_regularised"] = (p, (f - 0.01 * entropy)[:, None] * score + 0.01 * (p * log_p @ score))
        draws["exact_marginal"] = (certain, -(likely @ score)[None] / likely.sum())
        kept = np.argsort(-p)[:2]
        draws["kmax_marginal[k=2]"] = (certain, -(likely[kept] @ score[kept])[None] / likely[kept].sum())
        draws["self_critic"] = (p, (f - f[np.argmax(self.b @ self.x)])[:, None] * score)
        draws["soft_baseline"] = (p, (f - ((pi - self.t) ** 2).sum())[:, None] * score)
        along = lambda s: (b * 2 * (s * b - self.t)).sum(1)[:, None]  # b . f'(s b)
        draws["sparse_mixer[order=1]"] = (p, along(1) * score)
        draws["sparse_mixer"] = (p, along(1 / 2) * score)
        draws["sparse_mixer[order=3]"] = (p, (along(1) + 3 * along(1 / 3)) / 4 * score)
        first, second = (i.ravel() for i in np.meshgrid(*[range(len(p))] * 2))
        half = (f[first] - f[second])[:, None] / 2
        both, apart = p[first] * p[second], score[first] - score[second]
        for name in (
            "rloo[samples=2]",
            "optimal_baseline[samples=2]",
            "james_stein[samples=2]",
            "best_of[samples=2,best=1]",
            "policy_gradient[samples=2]",
        ):
            draws[name] = (both, half * apart)
        draws["group_normalised[samples=2,scale=none]"] = (both, half / 2 * apart)
        draws["group_normalised[samples=2]"] = (both, half / 2 / (np.sqrt(2) * np.abs(half) + 1e-4) * apart)
        draws["maxrl[samples=2]"] = (both, np.tanh(half) / 2 * apart)
        draws["simple"] = (p, 2 * (b - self.t) @ (b.T @ (p[:, None] * score)))
        if len(p) > 1:
            rest = np.array([np.delete(p, i).sum() for i in range(len(p))])  # 1 - p, which would cancel
            i, j = np.triu_indices(len(p), 1)
            odds = 1 / rest[i] + 1 / rest[j]  # p(S) = p_i p_j odds of the set of both, in any order
            of_set, weighed = p[i] * p[j] * odds, f[:, None] * score / rest[:, None]
            draws["unordered_set[samples=2]"] = (of_set, ((f[i] - f[j]) / odds)[:, None] * (score[i] - score[j]))
            draws["unordered_set[samples=2,baseline=false]"] = (of_set, (weighed[i] + weighed[j]) / odds[:, None])
            top = int(np.argmax(p))
            others = np.delete(np.arange(len(p)), top)
            draws["sum_and_sample[samples=2]"] = (
                p[others] / rest[top],
                p[top] * f[top] * score[top] + rest[top] * f[others][:, None] * score[others],
            )
            i, j = np.nonzero(~np.eye(len(p), dtype=bool))
            draws["sum_and_sample[samples=2,set=sampled]"] = (
                p[i] * p[j] / rest[i],
                (p[i] * f[i])[:, None] * score[i] + (rest[i] * f[j])[:, None] * score[j],
            )
        found = {"log_p": log_p, "marginals": pi, "entropy": np.array([-p @ log_p]), "loss": f, "truth": p * f @ score}
        for name, (weight, g) in draws.items():
            mean = weight @ g
            found[name + ".mean"], found[name + ".variance"] = mean, weight @ (g - mean) ** 2
        return found


@pytest.fixture(scope="module")
def answered() -> list[tuple[Problem, dict[str, np.ndarray]]]:
    problems = [Problem(seed, law) for law in ("conditional_poisson", "plackett_luce") for seed in range(COUNT)]
    program = Path(os.environ["HARDGRAD_BUILD"]) / "tests" / "estimators" / "subset_numbers"
    ran = subprocess.run(
        [program, *ESTIMATORS], input="\n".join(p.spec() for p in problems), capture_output=True, text=True, check=True
    )
    blocks = ran.stdout.strip().split("\n\n")
    assert len(blocks) == len(problems)
    lists = [dict((line.split()[0], np.array(line.split()[1:], float)) for line in block.splitlines()) for block in blocks]
    return list(zip(problems, lists))


def error(seen: np.ndarray, expected: np.ndarray) -> float:
    assert seen.shape == expected.shape
    return float(np.max(np.abs(seen - expected) / np.maximum(1, np.abs(expected))))


def test_density_marginals_entropy_and_moments_equal_sums_over_all_subsets(answered) -> None:
    worst: dict[str, float] = {}
    visited: collections.Counter[tuple[str, str]] = collections.Counter()
    for problem, seen in answered:
        expected = problem.expected()
        assert set(seen) == set(expected)
        for name in expected:
            worst[name] = max(worst.get(name, 0), error(seen[name], expected[name]))
            visited[problem.law, name] += problem.k < problem.n
    assert max(worst.values()) < 1e-10, worst
    checked = {name for _, name in visited}
    assert checked == {"log_p", "marginals", "entropy", "loss", "truth"} | {
        f"{e}.{m}" for e in ESTIMATORS for m in ("mean", "variance")
    }
    assert len(visited) == 2 * len(checked) and min(visited.values()) > 0.6 * COUNT, visited


def test_the_biased_one_is_biased_and_wrong_formulas_are_noticed(answered) -> None:
    biased = confused = independent = 0
    for seed, (problem, seen) in zip([*range(COUNT)] * 2, answered):
        if not 1 < problem.k < problem.n or np.ptp(problem.x) > 20:
            continue
        biased += error(seen["simple.mean"], seen["truth"]) > 1e-3
        w = np.exp(problem.x - problem.x.max())
        other = Problem(seed, "plackett_luce" if problem.law == "conditional_poisson" else "conditional_poisson")
        confused += error(seen["marginals"], np.exp(other.log_p_and_scores()[0]) @ problem.b) > 1e-3
        independent += error(seen["marginals"], problem.k * w / w.sum()) > 1e-3
    assert min(biased, confused, independent) > 0.4 * COUNT
