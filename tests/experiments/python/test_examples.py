"""The examples run, and give the results in their descriptions."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

import hardgrad

FOLDER = Path(__file__).resolve().parents[3] / "experiments/python/examples"
PARTS = ["vae", "hard_attention", "attention_lstm", "mixture_of_experts", "own_estimator", "which_estimator", "language_model"]


def example(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_examples_are_here():
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(PARTS)


@pytest.mark.parametrize("estimator", ["rloo[samples=4]", "straight_through", "rebar"])
def test_a_vae_trains_with_any_estimator(estimator):
    pytest.importorskip("torch").set_num_threads(1)
    before, after = example("vae").train(estimator, steps=200)
    assert before > 25 and after < 20, (before, after)  # without a latent: 24.7, with independent pixels


def test_a_vae_is_forty_lines():
    code = [line for line in (FOLDER / "vae.py").read_text().split('"""')[2].splitlines() if line.strip()]
    assert len(code) <= 45, len(code)


@pytest.mark.parametrize("estimator", ["rloo[samples=4]", "exact"])
def test_hard_attention_finds_its_cell(estimator):
    pytest.importorskip("torch").set_num_threads(1)
    assert example("hard_attention").train(estimator, steps=200) > 0.9


@pytest.mark.parametrize("estimator", ["rloo[samples=4]", "straight_through"])
def test_an_lstm_looks_where_it_should(estimator):
    pytest.importorskip("torch").set_num_threads(1)
    before, after = example("attention_lstm").train(estimator)
    assert before > 1.8 and after < 0.9, (before, after)  # 2 without looking


@pytest.mark.parametrize("estimator", ["rloo[samples=2]", "unordered_set"])
def test_a_mixture_of_experts_divides_the_work(estimator):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    mixture = example("mixture_of_experts")
    x, y = mixture.data(20000)
    one = (x @ torch.linalg.lstsq(x, y[:, None]).solution)[:, 0]
    before, after = mixture.train(estimator)
    assert before > 10 and after < 1.5 < 7 < (one - y).square().mean(), (before, after)


def test_own_straight_through_is_found_biased_with_its_number():
    own = example("own_estimator")
    mine, theirs, reinmax, rloo = own.judged()
    np.testing.assert_allclose(mine.mean, theirs.mean, atol=1e-14)  # equals the registered one
    # Explicitly: probabilities times (derivatives minus their mean), averaged over the nine outcomes.
    p = np.exp([[0.2, -0.4, 0.1], [1.0, 0.3, -0.5]])
    p /= p.sum(1, keepdims=True)
    mean = np.zeros((2, 3))
    for i in range(3):
        for j in range(3):
            slope = own.loss(np.eye(3)[[[i, j]]])[1][0]
            mean += p[0, i] * p[1, j] * p * (slope - (p * slope).sum(1, keepdims=True))
    np.testing.assert_allclose(mine.mean, mean, atol=1e-14)
    assert np.linalg.norm(mine.bias) / np.linalg.norm(mine.exact) > 0.05 and np.abs(rloo.bias).max() < 1e-14
    assert np.linalg.norm(reinmax.bias) < np.linalg.norm(mine.bias)


def test_estimators_are_compared_along_training():
    pytest.importorskip("torch").set_num_threads(1)
    results = example("which_estimator").followed(steps=41, every=40, replicates=60)
    assert list(results) == [0, 40]
    for found in results.values():
        assert found.reference == "exact, without noise" and all(one.status == "ok" for one in found)
        assert found.biased("F.gumbel_softmax") and not found.biased("rloo[samples=4]")
        assert found["rloo[samples=4]"].variance < found["by hand"].variance < found["reinforce"].variance
        assert set(found["nvil"].groups) == {"encoder", "decoder"}


def test_a_policy_gradient_by_hand_is_compared():
    pytest.importorskip("torch").set_num_threads(1)
    found = example("language_model").compared(100)
    assert found.reference == "exact, without noise"
    assert found.biased("GRPO by hand") and not found.biased("rloo")
    code = [line for line in (FOLDER / "language_model.py").read_text().split('"""', 2)[2].splitlines() if line.strip()]
    assert len(code) <= 40, len(code)
