"""`measure` where probabilities underflow to 0: every estimator gives finite numbers or one line, and a fault is one row."""

import json
import math
import os
import re
import subprocess

import pytest

BINARY = os.environ.get("HARDGRAD_BINARY", "build/release/hardgrad")
LAWS = ["800;0;0", "700;-700;699", "0;0;-1e4", "95;0;0", "0;-1e30;-1e30"]
HOW = {
    "exact": ["--exact"],
    "float": ["--replicates", "16"],
    "double": ["--replicates", "16", "--precision", "double"],
    "at logits": ["--replicates", "16", "--at-logits"],
}
ROUNDED = 1e-12  # squared bias


def run(*arguments):
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


def listed():
    status, out, _ = run("list", "estimators", "--json")
    assert status == 0
    return json.loads(out)


def specs():
    """Every estimator with its own number of samples and two others, where it has the setting and admits them."""
    for entry in listed():
        yield entry["name"], entry["unbiased"]
        for p in entry["parameters"]:
            if p["name"] == "samples":
                least = int(re.match(r"\[(\d+)", p["range"])[1])
                yield from (
                    (f"{entry['name']}[samples={n}]", entry["unbiased"]) for n in (2, 3) if n != p["default"] and n >= least
                )


ALL = list(specs())


def finite(result):
    """Numbers are finite or null; an infinite variance is named."""
    numbers = [result[k] for k in ("variance", "squared_bias", "rows")] + [
        x for v in (result["mean_gradient"] or {}).values() for x in v
    ]
    return all(x is None or math.isfinite(x) for x in numbers)


@pytest.mark.parametrize("how", HOW)
def test_every_estimator_on_laws_whose_probabilities_are_0(how):
    """All estimators in one process, so that one that fails would take the others along; those that no network of three options can have are
    skipped."""
    measured, refused = 0, set()
    for bits, law in [(1, law) for law in LAWS] + [(2, ";".join([LAWS[0], LAWS[2]]))]:
        model = f"bits[bits={bits},options=3,logit={law}" + (",function=table]" if bits > 1 else "]")
        names = [word for spec, _ in ALL for word in ("--estimator", spec)]
        status, out, error = run(
            "measure", "--task", "bits", "--model", model, *HOW[how], "--most-replicates", "16", "--json", *names
        )
        assert status == 0, (law, status, error)
        results = json.loads(out)["results"]
        assert [r["estimator"] for r in results] == [spec for spec, _ in ALL]
        for r, (spec, unbiased) in zip(results, ALL):
            assert r["status"] in ("ok", "skipped"), (law, spec, r["reason"])
            if r["status"] == "skipped":
                assert r["reason"].count("\n") == 0 and r["reason"]
                refused.add(spec)
                continue
            measured += 1
            assert finite(r), (law, spec, r)
            if how == "exact" and r["squared_bias"] is not None and unbiased is True and r["target"] == "expected_loss":
                assert r["squared_bias"] < ROUNDED, (law, spec, r["squared_bias"])
    assert len({spec.split("[")[0] for spec, _ in ALL}) >= 67
    assert measured > (400 if how == "exact" else 500), (measured, sorted(refused))


@pytest.mark.parametrize(
    "estimator", ["gumbel_softmax", "st_gumbel", "gumbel_rao", "straight_through", "gapped_st", "reinmax_rao", "rebar", "relax"]
)
def test_the_least_temperature_is_finite_and_a_lower_one_is_refused(estimator):
    for bits in ("bits[options=3,logit=0;1;2]", "bits[t=0.3]"):
        arguments = [
            "measure",
            "--task",
            "bits",
            "--model",
            bits,
            "--replicates",
            "64",
            "--most-replicates",
            "64",
            "--json",
            "--estimator",
        ]
        status, out, error = run(*arguments, f"{estimator}[temperature=1e-6]")
        assert status == 0 and finite(json.loads(out)["results"][0]), error
        status, _, error = run(*arguments, f"{estimator}[temperature=1e-38]")
        assert status == 2 and "temperature must be at least 1e-06" in error and error.count("\n") == 1


@pytest.mark.parametrize("local", ["monotonic", "predictive"])
def test_positions_outside_a_window_are_not_enumerated(local):
    """The rows are those of the outcomes that samples can have, whose mean confirms the gradient."""
    model = "translator[embedding=3,hidden=3,feed=sampled,{}]"
    task = "translation[words=6,max_length=6]"
    rows = {}
    for settings in (f"local={local},window=1", "local=none"):
        status, out, error = run(
            "measure",
            "--task",
            task,
            "--model",
            model.format(settings),
            "--batch",
            "3",
            "--exact",
            "--json",
            "--estimator",
            "exact",
            "--estimator",
            "reinforce",
            "--outcome-cap",
            "1e7",
            "--leaf-cap",
            "1e7",
        )
        assert status == 0, error
        exact, sampled = json.loads(out)["results"]
        assert exact["status"] == sampled["status"] == "ok", (exact["reason"], sampled["reason"])
        assert exact["squared_bias"] < 1e-20 and sampled["squared_bias"] < 1e-20
        assert exact["rows"] <= 2 * sampled["outcomes"], settings  # the rows of a tree with so many leaves, or fewer
        rows[settings] = exact["rows"]
    windowed, everywhere = rows.values()
    assert windowed < everywhere / 4, rows
