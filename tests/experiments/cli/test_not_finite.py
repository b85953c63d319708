"""A non-finite number is never a result. The cell fails with a reason, the exit status is 1, and no file is half-written."""

import json
import re

import h5py
import pytest

from program import as_json, run

OVERFLOWS = ("--task", "bits", "--model", "bits[function=norm,power=100,t=-1e9,logit=0.3]")  # the loss is infinite


@pytest.mark.parametrize(
    "how",
    [
        ("--exact",),
        ("--replicates", 8),
        ("--replicates", 8, "--precision", "double"),
        ("--replicates", 8, "--at-logits"),
        ("--replicates", 8, "--estimand", "none"),
    ],
)
def test_measure_fails(how):
    for estimator in ("reinforce", "rloo", "straight_through"):
        done = run("measure", *OVERFLOWS, *how, "--estimator", estimator, status=1)
        (line,) = [line for line in done.stdout.splitlines() if "FAILED" in line]
        assert estimator in line and "not a finite number" in line, line
        (result,) = as_json("measure", *OVERFLOWS, *how, "--estimator", estimator, status=1)["results"]
        assert result["status"] == "failed" and "not a finite number" in result["reason"] and result["variance"] is None


def test_a_ratio_that_overflows_says_what_would_do(tmp_path):
    task, model = "answers[symbols=2,size=2]", "writer[policy=table,drift=1,scale=400]"
    failed, other = as_json(
        "measure",
        "--task",
        task,
        "--model",
        model,
        "--seed",
        1,
        "--estimator",
        "policy_gradient",
        "--estimator",
        "rloo",
        status=1,
    )["results"]
    assert failed["status"] == "failed" and other["status"] == "ok"
    expected = re.compile(
        r"the network gives a sample e\^\d+ times the probability that its behaviour policy gave it, which overflows: "
        r"take a nearer behaviour policy \(a smaller drift, a later checkpoint\)"
    )
    assert expected.fullmatch(failed["reason"])
    (tmp_path / "s.toml").write_text(
        f'[grid]\ntask = "{task}"\nmodel = "{model}"\nestimator = "policy_gradient"\nseed = [1, 2, 3, 4]\n'
        '[train]\nsteps = 0\n[measure]\nat = ["start"]\n'
    )
    run("run", "s.toml", "--out", "cells", status=1, cwd=tmp_path)
    assert expected.search(run("status", "cells", status=1, cwd=tmp_path).stdout)


def test_one_that_fails_does_not_take_the_others_along(tmp_path):
    model = "bits[options=3,t=0.3,logit=0;1;2]"
    got = as_json(
        "measure",
        "--task",
        "bits",
        "--model",
        model,
        "--exact",
        "--estimator",
        "rloo",
        "--estimator",
        "straight_through",
        "--out",
        tmp_path / "m.h5",
    )
    assert [r["status"] for r in got["results"]] == ["ok", "ok"]
    run("measure", *OVERFLOWS, "--exact", "--estimator", "rloo", "--out", tmp_path / "f.h5", status=1)
    with h5py.File(tmp_path / "f.h5") as file:
        meanings = file["status"].attrs["flag_meanings"]
        meanings = (meanings.decode() if isinstance(meanings, bytes) else meanings).split()
        assert [meanings[s] for s in file["status"][()]] == ["failed"]


def test_gradient_writes_nothing(tmp_path):
    out = tmp_path / "g.h5"
    for extra in ((), ("--precision", "double")):
        done = run("gradient", *OVERFLOWS, "--estimator", "rloo[samples=4]", "--out", out, *extra, status=1)
        assert "not a finite number" in done.stderr and not out.exists()


def test_a_cell_fails_with_the_reason(tmp_path):
    (tmp_path / "s.toml").write_text(
        f'[grid]\ntask = "bits"\nmodel = "{OVERFLOWS[3]}"\nestimator = "reinforce"\n[train]\nsteps = 3\n[measure]\nat = []\n'
    )
    got = json.loads(run("run", "s.toml", "--out", "cells", "--json", status=1, cwd=tmp_path).stdout)
    assert got["failed"] == 1
    assert "finite" in run("status", "cells", status=1, cwd=tmp_path).stdout


@pytest.mark.parametrize(
    "samples, model, infinite",
    [
        (2, "bits[bits=2,t=0.3,logit=0.4]", True),
        (3, "bits[bits=2,t=0.3,logit=0.4]", True),
        (4, "bits[bits=2,t=0.3,logit=0.4]", False),
        (4, "bits[options=5,t=0.3,logit=0;1;2;0;1]", False),
        (3, "bits[options=3,t=0.3,logit=0;1;2]", False),
    ],
)
def test_a_variance_known_to_be_infinite(samples, model, infinite):
    spec = ("--task", "bits", "--model", model, "--estimator", f"wor_importance[samples={samples}]")
    for how in (("--exact",), ("--replicates", 64, "--most-replicates", 64)):
        (result,) = as_json("measure", *spec, *how)["results"]
        assert result["variance_is_infinite"] == infinite and (result["variance"] is None) == infinite
        shown = run("measure", *spec, *how).stdout.splitlines()
        titles, row = next(
            (t.split(), r.replace(" ?", "").split()) for t, r in zip(shown, shown[1:]) if t.startswith("ESTIMATOR")
        )
        assert (row[titles.index("VARIANCE")] == "infinite") == infinite, shown
        if infinite:
            assert "the variance is infinite: its importance weights" in result["unsupported"]
        (plain,) = as_json("measure", *spec[:-1], f"wor_importance[samples={samples},baseline=false]", *how)["results"]
        assert not plain["variance_is_infinite"] and plain["variance"] is not None


@pytest.mark.parametrize(
    "estimator, power, infinite",
    [
        ("gumbel_softmax", 0.4, True),
        ("gumbel_softmax", 0.6, False),
        ("rebar", 0.5, True),
        ("rebar[eta=0]", 0.4, False),
        ("relax", 0.3, True),
        ("relax[relaxed_model=false]", 0.3, False),
        ("st_gumbel", 0.4, False),
        ("rloo", 0.4, False),
    ],
)
def test_a_divergent_integral_is_called_so(estimator, power, infinite):
    spec = ("--task", "bits", "--model", f"bits[function=norm,power={power},t=0.3,logit=0.4]", "--estimator", estimator)
    sampled = ("--replicates", 64, "--most-replicates", 64)
    for how in (sampled,) if "rebar" in estimator else (("--exact", "--outcome-cap", 5000), sampled):  # two Normals: many nodes
        (result,) = as_json("measure", *spec, *how)["results"]
        assert result["status"] == "ok" and result["variance_is_infinite"] == infinite, result
        assert ("has no integral" in result["unsupported"]) == infinite


def test_underflowing_probabilities_are_no_numbers_that_are_none():
    (result,) = as_json(
        "measure", "--task", "bits", "--model", "bits[bits=2,t=0.3,logit=400]", "--exact", "--estimator", "wor_importance"
    )["results"]
    assert result["status"] == "ok" and result["variance"] is not None


def test_ratios_of_rounding_errors_are_not_printed():
    """At a logit of 700 the gradient is 1e-304; at t = 1/2 it is only rounding."""
    for model in ("bits[t=0.3,logit=700]", "bits[t=0.5,logit=0.3]"):
        for result in as_json("measure", "--task", "bits", "--model", model, "--exact")["results"]:
            if result["status"] != "ok":
                continue
            assert result["cosine"] is None or abs(result["cosine"]) <= 1
            assert result["snr"] is None or 0 <= result["snr"] < 1e25, (model, result["estimator"], result["snr"])
            assert result["variance"] is None or result["variance"] >= 0
