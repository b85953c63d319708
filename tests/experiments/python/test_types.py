"""The package's types: it holds in mypy's strict mode (pyproject.toml), and a wrong call in a user's file is found."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hardgrad

TREE = Path(__file__).resolve().parents[3]
PACKAGE = Path(hardgrad.__file__).resolve().parent

USE = """import torch

import hardgrad
import hardgrad.jax
from hardgrad.torch import Estimator, Monitor, Run, Sequences, Site, compare, episode, expectation, policy_loss, sample, test

logits = torch.zeros(3)
moments = hardgrad.moments([0.0, 1.0], [1, 2], "rloo")
mean, count = moments.mean.sum(), hardgrad.gradient([0.0, 1.0], [1, 2], "rloo", seed=3).rows + 1
loss = expectation(logits, lambda z: z.sum(), "rloo[samples=4]", takes="options", seed=1).mean()


def network(run: Run) -> None:
    chosen = run.choose("item", logits)
    run.cost(chosen.options[:, 0], after=chosen)
    run.choose("item", logits, befor=chosen)  # wrong
    run.cost(chosen.weights[:, 0, 0])
    run.cost()  # wrong
    chosen.option  # wrong


with episode(8, {"item": Site(options=6, times=2)}, hardgrad.Estimator("nvil")) as e:
    network(e)
e.expected_loss.mean().backward()
episode(8, {"item": Site(options=6)}).run(network)
episode(8, {"item": Site(options=6)}).run(network, 1)  # wrong
episode(8, {"item": Site(option=6)})  # wrong
episode("8", {})  # wrong
expectation(logits, lambda z: z, estimater="rloo")  # wrong
expectation(logits, lambda z: z, 4)  # wrong
expectation(logits, lambda z: z, takes="weight")  # wrong
expectation(logits)  # wrong
expectation(logits, lambda z: z, Estimator("nvil"))
expectation(None, lambda z: z, probs=logits.exp(), columns="separate").mean()
expectation(logits, lambda z: z, columns="own")  # wrong
expectation(logits, lambda z: z, columns=True)  # wrong
expectation(None, lambda z: z, prob=logits)  # wrong
sample(logits, "reinmax", hard=True, dim=0, temperature=0.5, seed=1).sum()
sample(probs=logits, temperature=logits.mean(), subset=2)
sample(logits, 4)  # wrong
sample(logits, lambda z: z)  # wrong
sample(logits, tau=0.5)  # wrong
sample(logits, hard="yes")  # wrong
sample(logits, dim="options")  # wrong
sample(logits, "reinmax", True)  # wrong
compare(lambda estimator: loss, [logits], ["rloo"], replicate=3)  # wrong
compare(lambda estimator: loss, [logits], ["rloo"], by="row")  # wrong
compare(lambda estimator: loss, [logits], ["rloo"]).best.upper()
Monitor(lambda estimator: loss, [logits], ["rloo"], every="500")  # wrong
test(lambda logits, f: loss, unbiassed=False)  # wrong
judged = policy_loss(lambda logprobs: logprobs.sum(), Sequences.random(drift=0.5), group=3)
judged.verdict.upper(), judged.relative_bias + 1
policy_loss(lambda logprobs: logprobs.sum(), accumulation="max")  # wrong
hardgrad.jax.expectation(logits, lambda z: z, seed=1, generator=None)  # wrong
hardgrad.jax.expectation(logits, lambda z: z, seed=1, columns="separate")
hardgrad.jax.expectation(logits, lambda z: z, seed=1, columns="own")  # wrong
hardgrad.moments([0.0, 1.0], [1, 2], "rloo").meen  # wrong
hardgrad.gradient()  # wrong
hardgrad.run("sweep.toml", jobs="2")  # wrong
"""


def checked(cache: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", TREE / "pyproject.toml", "--cache-dir", cache, *files],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": "", "MYPYPATH": str(PACKAGE.parent)},
    )
    if "No module named mypy" in said.stderr:
        pytest.skip("mypy is not installed")
    return said


def test_types_hold_and_wrong_calls_are_found(tmp_path):
    """Without the types of PyTorch and JAX, whose tensors and arrays are of any type."""
    said = checked(tmp_path, PACKAGE)
    assert said.returncode == 0 and "Success" in said.stdout, said.stdout + said.stderr
    use = tmp_path / "use.py"
    use.write_text(USE)
    said = checked(tmp_path, use)
    wrong = {place for place, line in enumerate(USE.splitlines(), 1) if line.endswith("# wrong")}
    found = {int(place) for place in re.findall(r"use\.py:(\d+): error", said.stdout)}
    assert len(wrong) == 29 and found == wrong, said.stdout + said.stderr
