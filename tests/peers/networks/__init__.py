"""Batched networks as people write them, one file each: one row per sample, padding with masks, no Python loop over the batch. The
references, which read one example at a time, are for correctness only; these are for speed, and their gradients are compared with
Hardgrad's, too.

Each file has `prepare(file)`, the arrays and numbers that do not depend on parameters, and a function with the network's name and the
arguments of `plain.py`. Choices are given. `rows` below is common to all."""

from __future__ import annotations

import importlib

import numpy as np


def load(model: str):
    """-> `prepare`, the network."""
    module = importlib.import_module(f"networks.{model}")
    return module.prepare, getattr(module, model)


def layer(x, p, name, a):
    return x.linear(a, p[f"{name}.weight"], p.get(f"{name}.bias"))


def within(length, longest):
    """[B, longest]: whether a position is before its sentence's end."""
    return np.arange(longest) < np.asarray(length)[:, None]
