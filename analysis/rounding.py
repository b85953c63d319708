"""Numbers that are rounding and nothing else: shown as 0, so that nobody takes them for a bias."""

from __future__ import annotations

import re

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


def at_step(data: xr.Dataset, name: str, step: int) -> np.ndarray:
    """[run] (intervals: [run, 2]) A measured quantity at a step; a bias that rounding explains is 0, with its interval."""
    values = data[name].sel(measurement_step=step).values
    stem = name.removesuffix("_interval")
    if stem not in ("squared_bias", "relative_bias") or "squared_bias" not in data.data_vars:
        return values
    tiny = np.abs(data["squared_bias"].sel(measurement_step=step).values) <= rounding(data, step)
    return np.where(tiny if values.ndim == 1 else tiny[:, None], 0.0, values)
