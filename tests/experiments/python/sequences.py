"""The program's writer of 31 sequences as a user's own network: words of a table of logits, until an end. And the losses of
tests/experiments/measurement/test_policies.py, which know nothing of policy_gradient."""

import importlib.util
import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import torch

from hardgrad.torch import Site, episode

_FILE = Path(__file__).resolve().parents[1] / "measurement" / "test_policies.py"
_SPEC = importlib.util.spec_from_file_location("published_losses", _FILE)
published = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(published)

WORDS, LONGEST, END = published.WORDS, published.LONGEST, published.END
PREFIXES, SEQUENCES = published.PREFIXES, published.SEQUENCES


class Scene:
    """The program's gradient of an estimator at a seed, with everything that it depends on: the tables [15, 3] of the policy, the
    behaviour policy and the reference policy, and the rewards [31]."""

    def __init__(self, folder, estimator, seed, drift=0.0, task="sequences", model=published.MODEL):
        file = str(folder / "gradient.h5")
        done = subprocess.run(
            [os.environ["HARDGRAD_BINARY"], "gradient", "--task", task, "--model", model.format(drift), "--seed", str(seed)]
            + ["--estimator", estimator, "--precision", "double", "--batch", "1", "--out", file],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        with h5py.File(file) as f:
            named = lambda name: np.asarray(f[name], float) if name in f else 0.0
            self.gradient = named("gradient/table.logits")
            self.policy = named("parameters/table.logits")
            self.behaviour = self.policy + drift * named("constants/behaviour.table.logits")
            self.reference = named("constants/initial.table.logits") + 0.5 * named("constants/away.table.logits")
            self.rewards = np.asarray(f["batch/rewards"], float)[0]


def written(scene, estimator, *, behaviour=None, reference=None, seed=0, examples=1, prior=None):
    """An episode that writes, at the tables of a scene. The expected loss [E], the table as a leaf, and the sequences of its
    samples, as numbers [R] in SEQUENCES."""
    table = torch.tensor(scene.policy, requires_grad=True) if prior is None else prior
    others = {"behaviour": behaviour, "reference": reference}
    tables = {name: torch.as_tensor(x) for name, x in others.items() if x is not None}
    rewards = torch.as_tensor(scene.rewards)
    found = []

    def network(e):
        prefix = torch.zeros(examples, dtype=torch.long)  # the place of the words so far in PREFIXES; -1: ended
        sequence = torch.zeros(examples, dtype=torch.long)
        done = torch.zeros(examples, dtype=torch.bool)
        for t in range(LONGEST):
            ended = torch.full((len(done), WORDS + 1), -torch.inf, dtype=torch.float64)
            ended[:, 0] = 0  # nothing is chosen
            of = lambda x: torch.where(done[:, None], ended, x[prefix.clamp(min=0)])
            chosen = e.choose("word", of(table), **{name: of(x) for name, x in tables.items()})
            word = chosen.options[:, 0]
            done, prefix, sequence = (x[chosen.parent] for x in (done, prefix, sequence))
            goes_on = ~done & (word != END)
            longer = [PREFIXES[p] + (int(w),) if on else None for p, w, on in zip(prefix.tolist(), word, goes_on)]
            sequence = torch.tensor(
                [s if words is None else SEQUENCES.index(words) for s, words in zip(sequence.tolist(), longer)]
            )
            prefix = torch.tensor([PREFIXES.index(w) if w is not None and len(w) < LONGEST else -1 for w in longer])
            e.cost(-rewards[sequence] * (~done & (prefix < 0)))  # where the sequence ends
            done = prefix < 0
        found.append(sequence)

    asked = episode(
        examples,
        {"word": Site(options=WORDS + 1, times=LONGEST)},
        estimator,
        behaviour=behaviour is not None,
        reference=reference is not None,
        dtype=torch.float64,
        seed=seed,
    )
    return asked.run(network), table, found
