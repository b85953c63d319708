"""`measure --exact` of every estimator on 200 random problems against enumerations in arbitrary precision (laws.py)."""

import json
import os
import random
import subprocess

import mpmath as mp

import laws

BINARY = os.environ.get("HARDGRAD_BINARY", "build/release/hardgrad")
WHATEVER = []
DRAWN = random.Random(2026)


def problem(number):
    """Columns 1 to 4, options 2 to 5, logits up to +-3, +-8 or +-30, smooth and kinked losses; problems with few outcomes are more frequent."""
    D, S = DRAWN.choice([(1, 2), (1, 2), (1, 3), (1, 5), (2, 2), (2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2), (4, 3)])
    most = [3, 8, 30][number % 3]
    power = DRAWN.choice(["2", "1", "1.5", "3"])
    t = [f"{DRAWN.uniform(0.05, 0.95):.3f}" for _ in range(D)]
    phi = [[f"{DRAWN.uniform(-most, most):.3f}" for _ in range(S)] for _ in range(D)]
    if S == 2:
        phi = [["0", row[1]] for row in phi]
    function = "square" if power == "2" else f"norm,power={power}"
    averaged = DRAWN.random() < 0.5
    logits = ";".join(row[1] if S == 2 else ";".join(row) for row in phi)
    return laws.Problem(phi, t, power, averaged), (
        f"bits[bits={D},options={S},function={function},reduce={'mean' if averaged else 'sum'},t={';'.join(t)},logit={logits}]"
    )


def measured(model, estimators):
    names = [word for e in estimators for word in ("--estimator", e)]
    done = subprocess.run(
        [BINARY, "measure", "--task", "bits", "--model", model, "--exact", "--outcome-cap", "40000", "--json", *names],
        capture_output=True,
        text=True,
        timeout=3000,
    )
    if done.returncode == 2:  # no estimator supports it
        return {}
    assert done.returncode == 0, (model, done.stderr)
    return {r["estimator"]: r for r in json.loads(done.stdout)["results"] if r["status"] == "ok"}


def agrees(got, mean, variance, where):
    """Checks agreement to 1e-9, or to the reported error; True if to 1e-9."""
    found = [v for name in got["mean_gradient"] for v in got["mean_gradient"][name]]
    low, high = got["intervals"]["variance"]
    if high is None:
        WHATEVER.append(where)
        return False
    scale = max(mp.norm(mean), mp.mpf(1e-12))
    spread = mp.sqrt(scale**2 + (variance if variance is not None else mp.mpf(got["variance"])))
    reported = got["estimand_standard_error"] + float(
        mp.sqrt(got["intervals"]["squared_bias"][1]) - mp.sqrt(got["intervals"]["squared_bias"][0])
    )
    off = mp.norm([a - b for a, b in zip(found, mean)])
    rounding = 1e-15  # of a gradient that cancels to 0 (path_only)
    assert off <= 1e-9 * spread + reported + rounding, (*where, "mean", float(off), float(spread))
    if variance is not None:
        assert low - 1e-9 * spread**2 <= variance <= high + 1e-9 * spread**2, (
            *where,
            "variance",
            got["variance"],
            float(variance),
        )
    return reported <= 1e-9 * spread and high - low <= 2e-9 * spread**2


def test_every_estimator_on_random_problems():
    compared, good, of_variance, refused = {}, 0, 0, 0
    for number in range(200):
        q, model = problem(number)
        outcomes = q.S**q.D
        able = [e for e, (_, most) in laws.LAWS.items() if outcomes <= most and (q.S == 2 or e not in laws.BITS_ONLY)]
        able += ["arm"] if q.S == 2 and q.D <= 3 else []
        means = [e for e in laws.UNBIASED if outcomes <= 9 or e in ("mvd", "disarm_tree", "disarm_stick", "ars")]
        asked = DRAWN.sample(able, min(7, len(able))) + DRAWN.sample(means, min(3, len(means)))
        results = measured(model, asked)
        truth = q.truth()
        truth = [row[1] for row in truth] if q.S == 2 else [v for row in truth for v in row]
        for estimator in asked:
            if estimator not in results:
                refused += 1
                continue
            got = results[estimator]
            by_law = estimator in able
            mean, variance = laws.moments(q, estimator) if by_law else (truth, None)
            good += agrees(got, mean, variance, (model, estimator))
            of_variance += by_law
            compared[estimator] = compared.get(estimator, 0) + 1
    total = sum(compared.values())
    print(WHATEVER)
    print(total, good, of_variance, refused, compared)
    assert set(compared) == set(laws.LAWS) | set(laws.UNBIASED) | {"arm"}
    assert len({e.split("[")[0] for e in compared}) == 40
    assert total > 1500 and of_variance > 1000 and good > 0.97 * total and refused < 0.2 * total
