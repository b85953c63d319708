"""Compares `hardgrad gradient` with the reference implementations in PyTorch, in several configurations and both precisions. HARDGRAD_BINARY is the path of
the program."""

import json
import os
import subprocess

import numpy as np
import pytest

from gradient_file import compare, load
from references import REFERENCES, cases, codebook, listed, router

CASES, SOFT = [*cases(), *listed("SUBSETS"), *listed("HARD")], list(cases(soft=True))
TOYS = {"bits", "gaussians", "not_gate", "subsets"}  # tested by closed forms instead


def test_every_network_has_a_reference():
    listed = subprocess.run(
        [os.environ["HARDGRAD_BINARY"], "list", "models", "--json"], capture_output=True, text=True, check=True
    )
    assert {model["name"] for model in json.loads(listed.stdout)} == set(REFERENCES) | TOYS


def features(tmp_path):
    """A caption task with given features: five images of six cells, in an .npy file."""
    numbers = np.random.default_rng(3).normal(size=(5, 2, 3, 4)).astype(np.float32)
    np.save(tmp_path / "features.npy", numbers)
    captions = ("a dog runs", "two cats sleep on a mat", "a dog sleeps", "cats", "a mat for two dogs")
    (tmp_path / "captions.txt").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(captions)))
    return f"caption[path={tmp_path}/captions.txt,features={tmp_path}/features.npy,heldout=0,test=0]"


def dump(tmp_path, model, task, settings, precision, estimator="reinforce[samples=2]"):
    out = tmp_path / "gradient.h5"
    task = task.replace("{features}", features(tmp_path))
    command = [
        os.environ["HARDGRAD_BINARY"],
        "gradient",
        "--task",
        task,
        "--model",
        f"{model}[{settings}]",
        "--estimator",
        estimator,
        "--seed",
        "5",
        "--precision",
        precision,
        "--out",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return load(str(out))


@pytest.mark.parametrize("precision, tolerance", [("double", 1e-10), ("float", 1e-5)])
@pytest.mark.parametrize("model, task, settings", CASES)
def test_equals_its_reference(tmp_path, model, task, settings, precision, tolerance):
    comparison = compare(dump(tmp_path, model, task, settings, precision), REFERENCES[model])
    assert comparison.loss < tolerance and comparison.log_prob < tolerance and comparison.surrogate < tolerance, comparison
    assert comparison.gradient < tolerance and comparison.entry < tolerance, comparison


@pytest.mark.parametrize("model, task, settings", listed("BOUNDS"))
def test_the_lower_bound_equals_its_reference(tmp_path, model, task, settings):
    file = dump(tmp_path, model, task, settings, "double", estimator="reinforce[samples=2,target=elbo,kl=sampled]")
    assert any(name.startswith("posterior.") for name in file.gradient)
    comparison = compare(file, REFERENCES[model])
    assert comparison.loss < 1e-10 and comparison.surrogate < 1e-10, comparison  # (the file has the prior's log probabilities)
    assert comparison.gradient < 1e-10 and comparison.entry < 1e-10, comparison
    assert compare(file, REFERENCES[model], score_term=False).gradient > 1e-3


@pytest.mark.parametrize("model, task, settings", SOFT)
def test_its_soft_form_equals_its_reference(tmp_path, model, task, settings):
    file = dump(tmp_path, model, task, settings, "double", estimator="soft")
    assert file.choices is None
    comparison = compare(file, REFERENCES[model])
    assert comparison.loss < 1e-10 and comparison.gradient < 1e-10 and comparison.entry < 1e-10, comparison
    columns = file.logits.shape[2:-1]  # of simultaneous choices
    first = np.zeros((1000, *columns), int)  # it differs from the network that always chooses the first option
    hard = compare(file, lambda f, example, _: REFERENCES[model](f, example, first))
    assert hard.loss > 1e-3, hard


@pytest.mark.parametrize("settings", [settings for model, _, settings in SOFT if model == "memory_reader"])
def test_a_linear_start_equals_its_reference(tmp_path, settings):
    file = dump(tmp_path, "memory_reader", "qa", settings, "double", estimator="soft[linear_start=1]")
    comparison = compare(file, lambda f, example, _: REFERENCES["memory_reader"](f, example, "linear"))
    assert comparison.loss < 1e-10 and comparison.gradient < 1e-10 and comparison.entry < 1e-10, comparison
    assert compare(file, REFERENCES["memory_reader"]).gradient > 1e-3  # the linear start differs from the network with softmax


@pytest.mark.parametrize("model, task, settings", listed("FIXED"))
def test_a_network_without_a_choice_equals_its_reference(tmp_path, model, task, settings):
    file = dump(tmp_path, model, task, settings, "double", estimator="soft")
    assert not any(name.startswith("attention.") for name in file.gradient)
    comparison = compare(file, REFERENCES[model])
    assert comparison.loss < 1e-10 and comparison.gradient < 1e-10 and comparison.entry < 1e-10, comparison


@pytest.mark.parametrize("settings", ["hidden=4", "hidden=3,picks=2,experts=5"])
def test_dense_mixer_equals_its_reference_and_is_not_the_usual_gradient(tmp_path, settings):
    """The usual one is that of `path_only[hard_threshold=true]`; the other one reaches the gate alone."""
    found = {}
    for estimator, dense in (("dense_mixer", True), ("path_only[hard_threshold=true]", False)):
        file = dump(tmp_path, "router", "features[features=4]", settings, "double", estimator=estimator)
        found[dense] = file.gradient
        theirs = compare(file, lambda f, example, _: ([router.densely_mixed(f, example, dense)], []))
        assert theirs.loss < 1e-10 and theirs.gradient < 1e-10 and theirs.entry < 1e-10, (estimator, theirs)
    apart = {name: abs(found[True][name] - found[False][name]).max() for name in found[True]}
    assert {name for name, by in apart.items() if by > 1e-6} == {"gate.weight", "gate.bias"}, apart


@pytest.mark.parametrize("gradient", ["copied", "rotated", "directed"])
@pytest.mark.parametrize("settings", [settings for model, _, settings in CASES if model == "codebook"])
def test_the_gradient_of_the_nearest_code_equals_its_reference(tmp_path, settings, gradient):
    file = dump(tmp_path, "codebook", "images[size=8]", settings, "double", estimator=f"nearest_code[gradient={gradient}]")
    theirs = lambda of: compare(file, lambda f, example, _: ([codebook.quantised(f, example, of)], []))
    found = theirs(gradient)
    assert found.loss < 1e-10 and found.gradient < 1e-10 and found.entry < 1e-10, found
    if "width=1" not in settings:  # in one dimension, a rotation is a sign
        assert all(theirs(other).gradient > 1e-3 for other in {"copied", "rotated", "directed"} - {gradient})


@pytest.mark.parametrize("model, task, settings", {case[0]: case for case in CASES}.values())
def test_a_wrong_gradient_is_noticed(tmp_path, model, task, settings):
    comparison = compare(dump(tmp_path, model, task, settings, "double"), REFERENCES[model], score_term=False)
    assert comparison.loss < 1e-9 and comparison.gradient > 1e-3, comparison


def test_heads_in_the_wrong_order_are_noticed(tmp_path):
    file = dump(tmp_path, "translator", "translation", "embedding=6,hidden=6,heads=3,score=scaled_dot,feed=sampled", "double")
    swapped = compare(file, lambda f, example, options: REFERENCES["translator"](f, example, options[:, ::-1]))
    assert swapped.log_prob > 1e-6 and swapped.loss > 1e-6 and swapped.gradient > 1e-3, swapped
