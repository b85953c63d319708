"""A reward is no likelihood: every network whose losses are rewards refuses the targets that need -log p of the answer."""

import json
import subprocess

from program import BINARY, as_json

LIKELIHOODS = {"marginal_likelihood", "importance_bound", "thermodynamic", "wake", "wake_sleep"}
TASKS = {
    "translator": "translation[words=2,max_length=3]",
    "captioner": "caption[grid=2,objects=1]",
    "writer": "answers[symbols=2,size=2]",
    "glimpse_reader": "glimpse[size=8]",
}
ALWAYS = {"writer"}  # the others have the loss of a given answer, too


def rewarded():
    """(model, settings) of every model with a setting `reward`, and each of its values that makes the losses rewards."""
    for entry in as_json("list", "models"):
        described = as_json("describe", f"model:{entry['name']}")
        parameters = {p["name"]: p for p in (described[0] if isinstance(described, list) else described)["parameters"]}
        if "reward" not in parameters:
            continue
        words = "words=sampled," if "words" in parameters else ""
        for value in parameters["reward"]["range"].split("|"):
            if value != "none":
                yield entry["name"], f"{words}reward={value}"


def test_targets_that_need_a_likelihood_refuse_rewards():
    estimators = [e["name"] for e in as_json("list", "estimators") if e["target"] in LIKELIHOODS]
    assert len(estimators) >= 8 and {"exact_marginal", "kmax_marginal"} <= set(estimators)
    found = list(rewarded())
    assert {model for model, _ in found} == set(TASKS) and len(found) == 19
    for model, settings in [*found, ("writer", "policy=table")]:
        spec = f"{model}[{settings}]"
        done = subprocess.run(
            [
                BINARY,
                "measure",
                "--task",
                TASKS[model],
                "--model",
                spec,
                "--replicates",
                "4",
                "--batch",
                "2",
                "--json",
                *[x for e in estimators for x in ("--estimator", e)],
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (spec, done.stderr)
        for result in json.loads(done.stdout)["results"]:
            assert result["status"] == "skipped", (spec, result["estimator"])
            if result["target"] == "marginal_likelihood":
                assert "exp(-loss) is no probability of the answer" in result["reason"], (spec, result["reason"])


def test_a_given_answer_has_a_likelihood():
    for model in set(TASKS) - ALWAYS:
        settings = "glimpses=1" if model == "glimpse_reader" else "hidden=4"
        (result,) = as_json(
            "measure",
            "--task",
            TASKS[model],
            "--model",
            f"{model}[{settings}]",
            "--replicates",
            "4",
            "--batch",
            "2",
            "--estimator",
            "exact_marginal",
        )["results"]
        assert result["status"] == "ok"
