"""Attention in a gradient file: probabilities and choices of every example."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import entr, logsumexp, softmax

from ..errors import InputError
from ..load import load_gradient

MOST_EXAMPLES = 4  # drawn at once


@dataclass(frozen=True)
class Numbers:
    """Choices of D numbers, from normal distributions."""

    value: np.ndarray  # [T, R, D] the chosen numbers
    mean: np.ndarray  # [T, R, D]
    deviation: np.ndarray  # [T, R, D]


@dataclass(frozen=True)
class Attention:
    """Attention in one batch: T steps, R rows, S options, B examples."""

    model: str  # its name
    settings: dict[str, Any]  # of the model, defaults included
    estimator: str  # spec
    # [B, T, S] probabilities that the option is chosen (of a subset: is one of those chosen), mean
    # over an example's rows; NaN without this option or without a choice
    soft: np.ndarray
    hard: (
        np.ndarray | None
        # [B, T, S] share of an example's rows that chose the option (relaxed: mean weights); None
        # if unknown
    )
    choices: (
        np.ndarray | None
    )  # [T, R] options; -1 without a choice; None if unknown, subsets, or relaxed
    row_example: np.ndarray  # [R]
    entropy: (
        np.ndarray
    )  # [B, T] in nat (Shannon 1948), mean over an example's rows; NaN without a choice
    batch: xr.Dataset
    numbers: Numbers | None = (
        None  # for choices that are numbers: then S is 0, and the entropy is differential
    )
    columns: np.ndarray | None = (
        None  # [B, T, D, S] `soft` of each of D simultaneous choices; None if there is one
    )
    relaxed: bool = False  # `hard` is of weights

    @property
    def shown(self) -> range:
        """The drawn examples."""
        return range(min(len(self.soft), MOST_EXAMPLES))

    def field(self, name: str) -> np.ndarray | None:
        """A field of the batch; None if it does not exist."""
        return self.batch[name].values if name in self.batch else None

    def need(self, name: str) -> np.ndarray:
        """A field of the batch; InputError if it does not exist."""
        if name not in self.batch:
            raise InputError(f"the batch has no field {name}, which the view of {self.model} needs")
        return self.batch[name].values

    def of_columns(self) -> np.ndarray:
        """[B, T, D, S] probabilities of each of the simultaneous choices."""
        return self.soft[:, :, None] if self.columns is None else self.columns

    def rows(self, example: int) -> np.ndarray:
        """The rows of an example; D simultaneous choices are consecutive rows."""
        return np.flatnonzero(self.row_example == example)

    def of(self, examples: Sequence[int]) -> Attention:
        """These examples alone, in this order. InputError for one that the batch does not have."""
        if absent := [b for b in examples if not 0 <= b < len(self.soft)]:
            raise InputError(f"there is no example {absent[0]} (of 0 to {len(self.soft) - 1})")
        kept = list(examples)
        rows = np.concatenate([self.rows(b) for b in kept]) if kept else np.array([], int)

        def some(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[:, rows]

        numbers = self.numbers and Numbers(
            *(value[:, rows] for value in vars(self.numbers).values())
        )
        return replace(
            self,
            soft=self.soft[kept],
            hard=None if self.hard is None else self.hard[kept],
            choices=some(self.choices),
            row_example=np.repeat(np.arange(len(kept)), [len(self.rows(b)) for b in kept]),
            entropy=self.entropy[kept],
            batch=self.batch.isel(example=kept),
            numbers=numbers,
            columns=None if self.columns is None else self.columns[kept],
        )


def load_attention(path: str | os.PathLike[str], unverified: bool = False) -> Attention:
    """Attention in a file of `hardgrad gradient --out`. InputError if it cannot be read or the
    model made no choices."""
    data, batch = load_gradient(path, unverified)
    if {"value", "mean", "log_scale", "row_example"} <= set(data):
        return _of_numbers(data, batch)
    if "logits" not in data or "row_example" not in data:
        raise InputError(
            f"{path}: has no logits: {data.attrs.get('model', 'the model')} made no choices, or "
            f"{data.attrs.get('estimator', 'the estimator')} enumerates choices itself; "
            "compute the gradient with reinforce or rloo"
        )
    settings = _settings(data)
    example = data["row_example"].values.astype(int)

    def rows_of(
        name: str,
    ) -> np.ndarray:  # [T, R] or [T, R, S]; columns (attention heads) are separate rows
        values = data[name].values
        return (
            values.reshape(len(values), -1, *values.shape[3:])
            if "column" in data[name].dims
            else values
        )

    example = np.repeat(example, data.sizes.get("column", 1))
    logits = rows_of("logits").astype(float)  # [T, R, S]
    options = np.isfinite(logits)
    probabilities = np.where(options, softmax(np.where(options, logits, -1e300), axis=2), np.nan)
    choices = rows_of("choices").astype(int) if "choices" in data else None
    taken = None
    entropy = np.where(options, entr(np.nan_to_num(probabilities)), 0).sum(axis=2, keepdims=True)
    asked = options.sum(axis=2, keepdims=True) > 1  # a row with one option makes no choice
    if choices is not None:
        taken = (choices[:, :, None] == np.arange(logits.shape[2])).astype(float)
        asked = choices[:, :, None] >= 0
    elif "weights" in data:
        taken = rows_of("weights").astype(float)
        sizes = np.rint(taken.sum(axis=2)).astype(int)  # of the subsets
        if (most := sizes.max(initial=0)) > 1:
            probabilities, entropy = of_subsets(logits, sizes, most, str(settings.get("law", "")))
            asked = options.sum(axis=2, keepdims=True) > sizes[:, :, None]  # else all are picked
    relaxed = taken is not None and choices is None and not np.isin(taken, (0, 1)).all()

    columns = data.sizes.get("column", 1)
    of_column = np.arange(len(example)) % columns

    def by_example(
        values: np.ndarray, column: int | None = None
    ) -> np.ndarray:  # [T, R, S] -> [B, T, S], mean over rows
        values = np.where(asked, values, np.nan)
        result = np.full((int(example.max(initial=-1)) + 1, *values.shape[::2]), np.nan)
        for b in range(len(result)):
            rows = values[:, (example == b) & ((column is None) | (of_column == column))]
            finite = np.isfinite(rows)
            result[b] = np.where(
                finite.any(axis=1),
                np.where(finite, rows, 0).sum(axis=1) / np.maximum(finite.sum(axis=1), 1),
                np.nan,
            )
        return result

    if taken is not None:
        taken = np.where(options, taken, np.nan)
    return Attention(
        str(data.attrs.get("model", "")).split("[")[0],
        settings,
        str(data.attrs.get("estimator", "")),
        by_example(probabilities),
        None if taken is None else by_example(taken),
        choices,
        example,
        by_example(entropy)[:, :, 0],
        batch,
        columns=np.stack([by_example(probabilities, d) for d in range(columns)], axis=2)
        if columns > 1
        else None,
        relaxed=relaxed,
    )


def of_subsets(
    logits: np.ndarray, sizes: np.ndarray, most: int, law: str
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [..., S] that an option is picked, and entropies [..., 1] in nat, of subsets of
    sizes [...], at most `most`, with p(z) in proportion to the product of exp(logit) over the picks
    (conditional Poisson; Chen & Liu 1997, recursion of Z(k)). NaN of another law, and without
    picks."""
    options = np.isfinite(logits)
    if law == "plackett_luce":
        return np.full(logits.shape, np.nan), np.full((*sizes.shape, 1), np.nan)

    def log_sums(x: np.ndarray) -> np.ndarray:  # [..., S, most + 1] of the options before each
        found = np.full((*x.shape[:-1], x.shape[-1] + 1, most + 1), -np.inf)
        found[..., 0, 0] = 0
        for i in range(x.shape[-1]):
            found[..., i + 1, :] = found[..., i, :]
            with_it = found[..., i, :-1] + x[..., i, None]
            found[..., i + 1, 1:] = np.logaddexp(found[..., i, 1:], with_it)
        return found

    before, after = log_sums(logits), log_sums(logits[..., ::-1])[..., ::-1, :]
    number = np.arange(most + 1)
    left = (
        sizes[..., None, None] - 1 - number
    )  # picks among the later options, if so many are before
    rest = np.take_along_axis(
        after[..., 1:, :],
        np.broadcast_to(np.clip(left, 0, most), after[..., 1:, :].shape),
        -1,
    )
    terms = np.where(left >= 0, before[..., :-1, :] + rest, -np.inf)
    z = np.take_along_axis(before[..., -1, :], sizes[..., None], -1)
    with np.errstate(invalid="ignore"):
        picked = np.where(options, np.exp(logsumexp(terms, axis=-1) + logits - z), np.nan)
    of_picks = np.where(options, np.nan_to_num(picked) * np.where(options, logits, 0), 0)
    return picked, z - of_picks.sum(-1, keepdims=True)


def _settings(data: xr.Dataset) -> dict[str, Any]:
    try:
        return dict(json.loads(str(data.attrs.get("model_settings", "{}"))))
    except ValueError as error:
        raise InputError(f"{data.attrs['path']}: model_settings is not JSON") from error


def _of_numbers(data: xr.Dataset, batch: xr.Dataset) -> Attention:
    example = data["row_example"].values.astype(int)
    value, mean, log_scale = (
        data[name].values.astype(float) for name in ("value", "mean", "log_scale")
    )
    of_row = (log_scale + np.log(2 * np.pi * np.e) / 2).sum(axis=2)  # [T, R]
    entropy = np.stack(
        [of_row[:, example == b].mean(axis=1) for b in range(int(example.max(initial=-1)) + 1)]
    )
    return Attention(
        str(data.attrs.get("model", "")).split("[")[0],
        _settings(data),
        str(data.attrs.get("estimator", "")),
        np.zeros((*entropy.shape, 0)),
        None,
        None,
        example,
        entropy,
        batch,
        Numbers(value, mean, np.exp(log_scale)),
    )
