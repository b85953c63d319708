"""Measured quantities as they are shown: the exact value where it was recorded beside a sample, and 0 for a bias that is rounding."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import xarray as xr

_ULPS = 64  # of the gradient's norm: what sums of gradients, and quadratures, have been seen to lose, several times over
_LEAST = 1e-30  # of a gradient that is zero itself


def precision(data: xr.Dataset) -> float:
    """The relative spacing of the numbers a result was measured in, by its `configuration`: single precision unless it says
    otherwise."""
    text = str(data["configuration"].values) if "configuration" in data else ""
    double = re.search(r"precision\s*=?\s*['\"]?double", text) or re.match(r"# hardgrad measure .*--exact", text)
    return float(np.finfo("float64" if double else "float32").eps)


def rounding(data: xr.Dataset, step: int) -> np.ndarray:
    """[run] The squared bias at a measured step that rounding alone explains: (64 eps)² (|gradient|² + variance), at least 1e-30."""
    squares = np.zeros(data.sizes["run"])
    for name, power in (("estimand_norm", 2), ("variance", 1)):
        if name in data.data_vars and data[name].dims == ("run", "measurement_step"):
            squares += np.nan_to_num(data[name].sel(measurement_step=step).values.astype(float)) ** power
    return np.maximum((_ULPS * precision(data)) ** 2 * squares, _LEAST)


# How a quantity follows from numbers that are known exactly, and from those that are the same for every sample.
_EXACT: dict[str, tuple[tuple[str, ...], Callable[..., np.ndarray]]] = {
    "variance": (("exact_variance",), lambda v: v),
    "squared_bias": (("exact_squared_bias",), lambda b: b),
    "cosine": (("exact_cosine",), lambda c: c),
    "relative_bias": (("exact_squared_bias", "estimand_norm"), lambda b, norm: np.sqrt(b) / norm),
    "mse": (("exact_variance", "exact_squared_bias"), lambda v, b: v + b),
    "snr": (("estimand_norm", "exact_variance"), lambda norm, v: norm**2 / v),
    "work_normalised_variance": (("exact_variance", "rows"), lambda v, rows: v * rows)}


def _exactly(data: xr.Dataset, name: str, step: int) -> np.ndarray:
    """[run] The exact value of a measured quantity, NaN where it is not known."""
    if name not in _EXACT or any(need not in data.data_vars for need in _EXACT[name][0]):
        return np.full(data.sizes["run"], np.nan)
    needs, value = _EXACT[name]
    with np.errstate(divide="ignore", invalid="ignore"):
        return value(*(data[need].sel(measurement_step=step).values.astype(float) for need in needs))


def at_step(data: xr.Dataset, name: str, step: int) -> np.ndarray:
    """[run] (intervals: [run, 2]) A measured quantity at a step. Where its exact value was recorded that is taken, not the sampled one;
    a bias that rounding explains is 0, with its interval."""
    def shown(values: np.ndarray, stem: str) -> np.ndarray:
        exact = _exactly(data, stem, step)
        known = np.isfinite(exact)
        return np.where(known if values.ndim == 1 else known[:, None], exact if values.ndim == 1 else exact[:, None], values) if known.any() else values

    values = data[name].sel(measurement_step=step).values
    stem = name.removesuffix("_interval")
    values = shown(values, stem)
    if stem not in ("squared_bias", "relative_bias") or "squared_bias" not in data.data_vars:
        return values
    tiny = np.abs(shown(data["squared_bias"].sel(measurement_step=step).values, "squared_bias")) <= rounding(data, step)
    return np.where(tiny if values.ndim == 1 else tiny[:, None], 0.0, values)


def doubtful(data: xr.Dataset, step: int) -> np.ndarray:
    """[run] Whether replicates do not support what is formed of them (`measurement_unsupported`)."""
    if "measurement_unsupported" not in data.data_vars:
        return np.zeros(data.sizes["run"], bool)
    return data["measurement_unsupported"].sel(measurement_step=step).values.astype(str) != ""


def marked(data: xr.Dataset, name: str, step: int) -> np.ndarray:
    """[run] Whether a measured quantity is to be shown with a question mark: it is sampled, and its replicates do not support it."""
    return doubtful(data, step) & ~np.isfinite(_exactly(data, name, step))
