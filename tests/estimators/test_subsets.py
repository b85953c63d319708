"""Subsets of k of n options, and the moments of estimators on them, against enumeration in NumPy: 200 random problems.

Nothing here shares code with Hardgrad: densities are products of weights over their sum, marginals and entropies sums over all
subsets, and an estimator's mean and variance sums over all samples (or pairs of samples).
"""
import itertools
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ESTIMATORS = ["reinforce", "rloo[samples=2]", "self_critic", "soft_baseline", "simple", "sparse_mixer[order=1]", "sparse_mixer",
              "sparse_mixer[order=3]", "unordered_set[samples=2]", "sum_and_sample[samples=2]"]


class Problem:
    """One random problem: n to 8 options, k to n, logits to +-30 and |b - t|^2 or a sum over pairs as the loss."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.n = int(rng.integers(1, 9))
        self.k = int(rng.integers(1, self.n + 1))
        self.x = rng.uniform(-1, 1, self.n) * rng.choice([1, 5, 30])
        self.t = rng.normal(size=self.n)
        self.b = np.array([[i in s for i in range(self.n)] for s in itertools.combinations(range(self.n), self.k)], float)

    def spec(self) -> str:
        return (f"subsets[options={self.n},picks={self.k},t_spread=0,logit={';'.join(map(repr, map(float, self.x)))},"
                f"t={';'.join(map(repr, map(float, self.t)))}]")

    def expected(self) -> dict[str, np.ndarray]:
        b, energy = self.b, self.b @ self.x
        log_p = energy - energy.max() - np.log(np.exp(energy - energy.max()).sum())
        p = np.exp(log_p)
        pi = p @ b
        f = ((b - self.t) ** 2).sum(1)
        score = b - pi
        covariance = score.T @ (p[:, None] * score)
        draws = {"reinforce": (p, f[:, None] * score)}
        draws["self_critic"] = (p, (f - f[np.argmax(p)])[:, None] * score)
        draws["soft_baseline"] = (p, (f - ((pi - self.t) ** 2).sum())[:, None] * score)
        along = lambda s: (b * 2 * (s * b - self.t)).sum(1)[:, None]  # b . f'(s b)
        draws["sparse_mixer[order=1]"] = (p, along(1) * score)
        draws["sparse_mixer"] = (p, along(1 / 2) * score)
        draws["sparse_mixer[order=3]"] = (p, (along(1) + 3 * along(1 / 3)) / 4 * score)
        first, second = (i.ravel() for i in np.meshgrid(*[range(len(p))] * 2))
        half = (f[first] - f[second])[:, None] / 2
        draws["rloo[samples=2]"] = (p[first] * p[second], half * (score[first] - score[second]))
        draws["simple"] = (p, 2 * (b - self.t) @ covariance)
        if len(p) > 1:
            rest = np.array([np.delete(p, i).sum() for i in range(len(p))])  # 1 - p, which would cancel
            i, j = np.triu_indices(len(p), 1)
            odds = 1 / rest[i] + 1 / rest[j]  # p(S) = p_i p_j odds of the set of both, in any order
            draws["unordered_set[samples=2]"] = (p[i] * p[j] * odds, ((f[i] - f[j]) / odds)[:, None] * (score[i] - score[j]))
            top = int(np.argmax(p))
            others = np.delete(np.arange(len(p)), top)
            draws["sum_and_sample[samples=2]"] = (p[others] / rest[top], p[top] * f[top] * score[top]
                                                  + rest[top] * f[others][:, None] * score[others])
        found = {"log_p": log_p, "marginals": pi, "entropy": np.array([-p @ log_p]), "loss": f, "truth": p * f @ score}
        for name, (weight, g) in draws.items():
            mean = weight @ g
            found[name + ".mean"], found[name + ".variance"] = mean, weight @ (g - mean) ** 2
        return found


@pytest.fixture(scope="module")
def answered() -> list[tuple[Problem, dict[str, np.ndarray]]]:
    problems = [Problem(seed) for seed in range(200)]
    program = Path(os.environ["HARDGRAD_BUILD"]) / "tests" / "estimators" / "subset_numbers"
    ran = subprocess.run([program, *ESTIMATORS], input="\n".join(p.spec() for p in problems), capture_output=True, text=True,
                         check=True)
    blocks = ran.stdout.strip().split("\n\n")
    assert len(blocks) == len(problems)
    lists = [dict((line.split()[0], np.array(line.split()[1:], float)) for line in block.splitlines()) for block in blocks]
    return list(zip(problems, lists))


def error(seen: np.ndarray, expected: np.ndarray) -> float:
    assert seen.shape == expected.shape
    return float(np.max(np.abs(seen - expected) / np.maximum(1, np.abs(expected))))


def test_density_marginals_entropy_and_moments_equal_sums_over_all_subsets(answered) -> None:
    worst: dict[str, float] = {}
    for problem, seen in answered:
        expected = problem.expected()
        assert set(seen) == set(expected)
        for name in expected:
            worst[name] = max(worst.get(name, 0), error(seen[name], expected[name]))
    assert max(worst.values()) < 1e-10, worst


def test_the_biased_one_is_biased_and_wrong_formulas_are_noticed(answered) -> None:
    biased = without_replacement = independent = 0
    for problem, seen in answered:
        if not 1 < problem.k < problem.n or np.ptp(problem.x) > 20:
            continue
        biased += error(seen["simple.mean"], seen["truth"]) > 1e-3
        w = np.exp(problem.x - problem.x.max())  # the k largest perturbed logits: draws without replacement
        p = np.array([sum(np.prod([w[i] / (w.sum() - w[list(order[:j])].sum()) for j, i in enumerate(order)])
                          for order in itertools.permutations(np.flatnonzero(s))) for s in problem.b])
        without_replacement += error(seen["marginals"], p @ problem.b) > 1e-3
        independent += error(seen["marginals"], problem.k * w / w.sum()) > 1e-3
    assert min(biased, without_replacement, independent) > 40
