"""Reads a `hardgrad gradient` file (the inputs and results of one gradient), and compares it with a reference."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import h5py
import numpy as np
import torch


@dataclass
class GradientFile:
    parameters: dict[str, torch.Tensor]  # leaves in double that require gradients
    gradient: dict[str, np.ndarray]
    batch: dict[str, np.ndarray]
    choices: np.ndarray | None  # [T, R], -1 where there is no choice; [T, R, D] if a site has D columns
    weights: np.ndarray | None  # [T, R, S] relaxed choices, or subsets as 0 and 1
    value: np.ndarray | None  # [T, R, D] real-valued choices
    log_prob: np.ndarray | None  # the shape of the choices
    logits: np.ndarray | None  # [T, R, S] or [T, R, D, S]
    loss: np.ndarray | None  # [T', R]
    row_example: np.ndarray  # [R]
    settings: dict[str, str]  # the settings given in the model's spec
    dimensions: dict[str, int]  # the task's dimensions
    surrogate: float
    dropout: dict[str, np.ndarray]  # factors [B, C] of the values that dropout drops; empty without it

    def kept(self, name: str, example: int, x: torch.Tensor) -> torch.Tensor:
        """x [.., C] without the entries that dropout drops."""
        return x * torch.tensor(self.dropout[name][example], dtype=torch.float64) if self.dropout else x


def _settings(spec: str) -> dict[str, str]:
    inside = re.fullmatch(r"\w+(?:\[(.*)\])?", spec.strip())
    assert inside, f"not a spec: {spec}"
    return dict(pair.strip().split("=", 1) for pair in (inside[1] or "").split(",") if pair)


def load(path: str) -> GradientFile:
    with h5py.File(path) as f:

        def group(name):
            # Axes are datasets too; data are the datasets that are not dimension scales.
            return {k: d[()] for k, d in f[name].items() if d.attrs.get("CLASS") != b"DIMENSION_SCALE"}

        parameters = {
            k: torch.tensor(np.asarray(v, dtype=np.float64), requires_grad=True) for k, v in group("parameters").items()
        }

        def optional(name, kind):
            return f[name][()].astype(kind) if name in f else None

        model = f.attrs["model"]
        return GradientFile(
            parameters=parameters,
            gradient={k: np.asarray(v, dtype=np.float64) for k, v in group("gradient").items()},
            batch=group("batch"),
            choices=optional("choices", int),
            weights=optional("weights", np.float64),
            value=optional("value", np.float64),
            log_prob=optional("log_prob", np.float64),
            logits=optional("logits", np.float64),
            loss=optional("loss", np.float64),
            row_example=f["row_example"][()],
            settings=_settings(model.decode() if isinstance(model, bytes) else model),
            dimensions=json.loads(f.attrs["dimensions"]),
            surrogate=float(f.attrs["surrogate"]),
            dropout=group("dropout") if "dropout" in f else {},
        )


def relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference, relative to the largest entry."""
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    assert ours.shape == theirs.shape, f"shapes {ours.shape} and {theirs.shape}"
    scale = max(np.abs(theirs).max(initial=0), 1e-300)
    return float(np.abs(ours - theirs).max(initial=0) / scale)


@dataclass
class Comparison:
    loss: float
    log_prob: float
    surrogate: float
    gradient: float  # norm of the difference of all parameters, relative to the gradient's norm
    entry: float  # largest difference of an entry, relative to the largest entry


def compare(file: GradientFile, reference, score_term: bool = True) -> Comparison:
    """Runs `reference(file, row, options) -> (losses, log_probs)` on every row with the choices of the file; both are lists of scalars. Then
    compares the surrogate of REINFORCE without a baseline, the mean over rows of detach(f) sum_t log p_t + f, and its gradient, with
    the file. `score_term=False` is a deliberate bug. A file without choices is from the soft network: options are None, and there are
    no log probabilities. For real-valued choices, options are their values [T, D]; for subsets, 0 and 1 [T, S]."""
    total = 0.0
    rows = len(file.row_example)
    f_theirs, log_p_theirs = [], []
    for r in range(rows):
        options = None if file.choices is None else np.maximum(file.choices[:, r], 0)
        if file.value is not None:
            options = file.value[:, r]
        elif file.choices is None and file.log_prob is not None:
            options = file.weights[:, r]
        losses, log_probs = reference(file, int(file.row_example[r]), options)
        f, log_p = sum(losses), sum(log_probs, torch.zeros((), dtype=torch.float64))
        total = total + (f.detach() * log_p * float(score_term) + f) / rows
        f_theirs.append(f.item())
        log_p_theirs.append(log_p.item())
    for p in file.parameters.values():
        p.grad = None
    total.backward()
    theirs = {k: np.zeros(p.shape) if p.grad is None else p.grad.numpy() for k, p in file.parameters.items()}
    assert set(theirs) == set(file.gradient)
    flat = lambda arrays: np.concatenate([np.ravel(arrays[k]) for k in sorted(theirs)])
    ours, reference = flat(file.gradient), flat(theirs)
    log_prob = np.zeros(rows)
    if file.log_prob is not None:
        chosen = True if file.choices is None else file.choices >= 0
        log_prob = np.where(chosen, file.log_prob, 0).reshape(*file.log_prob.shape[:2], -1).sum(axis=(0, 2))
    return Comparison(
        relative(np.nansum(file.loss, axis=0), f_theirs),
        relative(log_prob, log_p_theirs),
        relative([file.surrogate], [total.item()]),
        float(np.linalg.norm(ours - reference) / np.linalg.norm(reference)),
        relative(ours, reference),
    )
