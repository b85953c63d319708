"""Measured quantities for display: the exact value if it was recorded besides the sampled one, and 0 for a bias that rounding explains."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import xarray as xr

from .steps import Step, pick

_ULPS = 64  # relative to the gradient's norm; several times the observed error of gradient sums and quadratures
_LEAST = 1e-30  # for a gradient of zero


def precision(data: xr.Dataset) -> float:
    """The relative spacing of the numbers in which a result was measured, from its `configuration`; single precision by default."""
    text = str(data["configuration"].values) if "configuration" in data else ""
    double = re.search(r"precision\s*=?\s*['\"]?double", text) or re.match(r"# hardgrad measure .*--exact", text)
    return float(np.finfo("float64" if double else "float32").eps)


def rounding(data: xr.Dataset, step: Step) -> np.ndarray:
    """[run] The largest squared bias at a measured step that rounding explains: (64 eps)² (|gradient|² + variance), at least 1e-30."""
    squares = np.zeros(data.sizes["run"])
    for name, power in (("estimand_norm", 2), ("variance", 1)):
        if name in data.data_vars and data[name].dims == ("run", "measurement_step"):
            squares += np.nan_to_num(pick(data, name, step)) ** power
    return np.maximum((_ULPS * precision(data)) ** 2 * squares, _LEAST)


# Quantities that follow from exactly known numbers and from numbers without sampling noise.
_EXACT: dict[str, tuple[tuple[str, ...], Callable[..., np.ndarray]]] = {
    "variance": (("exact_variance",), lambda v: v),
    "squared_bias": (("exact_squared_bias",), lambda b: b),
    "cosine": (("exact_cosine",), lambda c: c),
    "relative_bias": (("exact_squared_bias", "estimand_norm"), lambda b, norm: np.sqrt(b) / norm),
    "mse": (("exact_variance", "exact_squared_bias"), lambda v, b: v + b),
    "snr": (("estimand_norm", "exact_variance"), lambda norm, v: norm**2 / v),
    "work_normalised_variance": (("exact_variance", "rows"), lambda v, rows: v * rows)}


def _exactly(data: xr.Dataset, name: str, step: Step) -> np.ndarray:
    """[run] The exact value of a measured quantity, NaN if it is unknown."""
    if name not in _EXACT or any(need not in data.data_vars for need in _EXACT[name][0]):
        return np.full(data.sizes["run"], np.nan)
    needs, value = _EXACT[name]
    with np.errstate(divide="ignore", invalid="ignore"):
        return value(*(pick(data, need, step) for need in needs))


def at_step(data: xr.Dataset, name: str, step: Step) -> np.ndarray:
    """[run] (intervals: [run, 2]) A measured quantity at a step. The exact value, if recorded, replaces the sampled one. A bias that
    rounding explains is 0, and so is its interval."""
    def shown(values: np.ndarray, stem: str) -> np.ndarray:
        exact = _exactly(data, stem, step)
        known = np.isfinite(exact)
        return np.where(known if values.ndim == 1 else known[:, None], exact if values.ndim == 1 else exact[:, None], values) if known.any() else values

    values = pick(data, name, step)
    stem = name.removesuffix("_interval")
    values = shown(values, stem)
    if stem not in ("squared_bias", "relative_bias") or "squared_bias" not in data.data_vars:
        return values
    tiny = np.abs(shown(pick(data, "squared_bias", step), "squared_bias")) <= rounding(data, step)
    return np.where(tiny if values.ndim == 1 else tiny[:, None], 0.0, values)


def doubtful(data: xr.Dataset, step: Step) -> np.ndarray:
    """[run] Whether the replicates do not support the estimates from them (`measurement_unsupported`)."""
    if "measurement_unsupported" not in data.data_vars:
        return np.zeros(data.sizes["run"], bool)
    return pick(data, "measurement_unsupported", step).astype(str) != ""


def marked(data: xr.Dataset, name: str, step: Step) -> np.ndarray:
    """[run] Whether a measured quantity is displayed with a question mark: it is sampled, and its replicates do not support it."""
    return doubtful(data, step) & ~np.isfinite(_exactly(data, name, step))
