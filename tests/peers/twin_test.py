"""`hardgrad gradient` against the PyTorch twins, in several configurations and both precisions.
HARDGRAD_BINARY names the program."""

import os
import subprocess

import numpy as np
import pytest

import twins
from gradient_file import compare, load

CASES = [
    ("translator", "translation", f"embedding=6,hidden=5,score={score},feed={feed}")
    for score in ("additive", "dot")
    for feed in ("none", "soft", "sampled")
] + [
    ("translator", "translation", f"embedding=6,hidden=6,heads={heads},score={score},feed={feed}")
    for heads in (1, 2, 3)
    for score, feed in (("additive", "none"), ("general", "sampled"), ("dot", "sampled"), ("scaled_dot", "soft"),
                        ("scaled_dot", "sampled"))
] + [
    ("memory_reader", "qa", "embedding=7,hops=1"),
    ("memory_reader", "qa", "embedding=7,hops=2,position_encoding=false"),
    ("memory_reader", "qa", "embedding=7,hops=3"),
    ("memory_reader", "qa", "embedding=7,hops=3,temporal=false"),
    ("glimpse_reader", "glimpse", "features=9,hidden=8,glimpses=3,grid=5,patch=6"),
    ("glimpse_reader", "glimpse", "features=9,hidden=8,glimpses=3,grid=4,patch=5,scales=3"),
    ("glimpse_reader", "glimpse", "features=9,hidden=8,glimpses=2,scales=2,core=lstm"),
    ("glimpse_reader", "glimpse", "features=9,hidden=8,glimpses=1"),
    ("attentive_reader", "cloze", "embedding=6,hidden=5"),
    ("attentive_reader", "cloze", "embedding=6,hidden=5,kind=impatient"),
    ("captioner", "caption", "embedding=6,hidden=5,channels=4,features=7"),
    ("captioner", "caption[grid=3,objects=1]", "embedding=6,hidden=5,channels=4,features=7,gate=true"),
    ("captioner", "caption", "embedding=6,hidden=5,channels=4,features=7,gate=true,doubly_stochastic=0.8"),
    ("captioner", "{features}", "embedding=6,hidden=5,gate=true"),
    ("belief_network", "images[size=8]", "units=20"),
    ("belief_network", "images[size=8]", "units=8,layers=3"),
    ("belief_network", "images[size=8]", "units=4,layers=2,options=5"),
    ("belief_network", "images[size=8]", "units=7,layers=2,hidden_layers=2,hidden=9"),
    ("belief_network", "images[size=8]", "units=7,layers=2,conditional=true"),
    ("belief_network", "images[size=8]", "units=3,options=4,hidden_layers=1,hidden=9,conditional=true"),
] + [
    ("turing_machine", f"algorithm[kind={kind},bits=3,min_length=2,max_length={longest},repeats=2]", settings)
    for kind, longest, settings in (
        ("copy", 4, "cells=5,width=4,hidden=6"), ("reverse", 3, "cells=4,width=3,hidden=5,reads=2,writes=2"),
        ("repeat_copy", 3, "cells=3,width=3,hidden=5,controller=feedforward"),
        ("associative_recall", 3, "cells=9,width=3,hidden=5,reads=2"), ("priority_sort", 4, "cells=6,width=3,hidden=5,writes=2"))
]
CASES += [
    ("ponderer", f"puzzle[kind={kind},size={size}]", f"hidden=6,{settings}")
    for kind, size, settings in (
        ("parity", 5, "steps=4,tau=0.03"), ("parity", 4, "steps=5,ask=step,beta=0.5,prior=0.4,tau=0.1"),
        ("addition", 3, "steps=3,beta=2"), ("sort", 4, "steps=6,law=act,tau=0.2"),
        ("addition", 2, "steps=7,law=act,ask=step,tau=0.3"))
]
SOFT = [case for case in CASES if case[0] in ("turing_machine", "ponderer")]  # whose soft form is a published network, too


def features(tmp_path):
    """A caption task of given features: five pictures of six cells, in NumPy's own file."""
    numbers = np.random.default_rng(3).normal(size=(5, 2, 3, 4)).astype(np.float32)
    np.save(tmp_path / "features.npy", numbers)
    captions = ("a dog runs", "two cats sleep on a mat", "a dog sleeps", "cats", "a mat for two dogs")
    (tmp_path / "captions.txt").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(captions)))
    return f"caption[path={tmp_path}/captions.txt,features={tmp_path}/features.npy,heldout=0,test=0]"


def dump(tmp_path, model, task, settings, precision, samples=1, estimator=None):
    out = tmp_path / "gradient.h5"
    task = task.replace("{features}", features(tmp_path))
    command = [os.environ["HARDGRAD_BINARY"], "gradient", "--task", task, "--model", f"{model}[{settings}]",
               "--estimator", estimator or f"reinforce[samples={samples}]", "--seed", "5", "--precision", precision,
               "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return load(str(out))


@pytest.mark.parametrize("precision, tolerance", [("double", 1e-10), ("float", 1e-5)])
@pytest.mark.parametrize("model, task, settings", CASES)
def test_equals_its_twin(tmp_path, model, task, settings, precision, tolerance):
    samples = 2 if "sampled" in settings or "hops=3" in settings or "lstm" in settings or "impatient" in settings or "gate" in settings else 1
    found = compare(dump(tmp_path, model, task, settings, precision, samples), getattr(twins, model))
    assert found.loss < tolerance and found.log_prob < tolerance and found.surrogate < tolerance, found
    assert found.gradient < tolerance and found.entry < tolerance, found


@pytest.mark.parametrize("settings", [settings for model, _, settings in CASES if model == "belief_network"])
def test_the_lower_bound_of_a_belief_network_equals_its_twin(tmp_path, settings):
    file = dump(tmp_path, "belief_network", "images[size=8]", settings, "double", estimator="reinforce[samples=2,target=elbo,kl=sampled]")
    assert "posterior.layer1.1.weight" in file.gradient
    found = compare(file, twins.belief_network)
    assert found.loss < 1e-10 and found.surrogate < 1e-10, found  # (the file's log probabilities are the prior's)
    assert found.gradient < 1e-10 and found.entry < 1e-10, found
    assert compare(file, twins.belief_network, score_term=False).gradient > 1e-3


@pytest.mark.parametrize("model, task, settings", SOFT)
def test_its_soft_form_equals_its_twin(tmp_path, model, task, settings):
    file = dump(tmp_path, model, task, settings, "double", estimator="soft")
    assert file.choices is None
    found = compare(file, getattr(twins, model))
    assert found.loss < 1e-10 and found.gradient < 1e-10 and found.entry < 1e-10, found
    first = np.zeros((1000, 9) if model == "turing_machine" else 1000, int)  # and is not that of the first options
    hard = compare(file, lambda f, example, _: getattr(twins, model)(f, example, first))
    assert hard.loss > 1e-3, hard


@pytest.mark.parametrize("model, task, settings", [CASES[0], CASES[14], SOFT[0], ("memory_reader", "qa", "embedding=7,hops=1"),
                                                   ("glimpse_reader", "glimpse", "features=9,hidden=8,glimpses=1"),
                                                   ("attentive_reader", "cloze", "embedding=6,hidden=5,kind=impatient"),
                                                   ("captioner", "caption", "embedding=6,hidden=5,doubly_stochastic=0.8"),
                                                   ("belief_network", "images[size=8]", "units=8,layers=3")])
def test_a_wrong_gradient_is_noticed(tmp_path, model, task, settings):
    found = compare(dump(tmp_path, model, task, settings, "double"), getattr(twins, model), score_term=False)
    assert found.loss < 1e-9 and found.gradient > 1e-3, found


def test_heads_in_the_wrong_order_are_noticed(tmp_path):
    file = dump(tmp_path, "translator", "translation", "embedding=6,hidden=6,heads=3,score=scaled_dot,feed=sampled", "double")
    swapped = compare(file, lambda f, example, options: twins.translator(f, example, options[:, ::-1]))
    assert swapped.log_prob > 1e-6 and swapped.loss > 1e-6 and swapped.gradient > 1e-3, swapped
