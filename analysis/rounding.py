"""Measured quantities for display: the exact value if it was recorded besides the sampled one, and 0 for a bias that rounding explains."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .result import Result
from .steps import Step

_ULPS = 64  # relative to the gradient's norm; several times the observed error of gradient sums and quadratures
_LEAST = 1e-30  # for a gradient of zero


def precision(result: Result) -> float:
    """The relative spacing of the numbers in which a result was measured, from its `configuration`; single precision by default."""
    text = str(result.values("configuration")) if "configuration" in result else ""
    double = re.search(r"precision\s*=?\s*['\"]?double", text) or re.match(r"# hardgrad measure .*--exact", text)
    return float(np.finfo("float64" if double else "float32").eps)


def rounding(result: Result, step: Step) -> np.ndarray:
    """[run] The largest squared bias at a measured step that rounding explains: (64 eps)² (|gradient|² + variance), at least 1e-30."""
    squares = np.zeros(result.count)
    for name, power in (("estimand_norm", 2), ("variance", 1)):
        if name in result and result.data[name].dims == ("run", "measurement_step"):
            squares += np.nan_to_num(result.at(name, step)) ** power
    return np.maximum((_ULPS * precision(result)) ** 2 * squares, _LEAST)


# Quantities that follow from exactly known numbers and from numbers without sampling noise.
_EXACT: dict[str, tuple[tuple[str, ...], Callable[..., np.ndarray]]] = {
    "variance": (("exact_variance",), lambda v: v),
    "squared_bias": (("exact_squared_bias",), lambda b: b),
    "cosine": (("exact_cosine",), lambda c: c),
    "relative_bias": (("exact_squared_bias", "estimand_norm"), lambda b, norm: np.sqrt(b) / norm),
    "mse": (("exact_variance", "exact_squared_bias"), lambda v, b: v + b),
    "snr": (("estimand_norm", "exact_variance"), lambda norm, v: norm**2 / v),
    "work_normalised_variance": (("exact_variance", "rows"), lambda v, rows: v * rows)}


def _exactly(result: Result, name: str, step: Step) -> np.ndarray:
    """[run] The exact value of a measured quantity, NaN if it is unknown."""
    if name not in _EXACT or any(need not in result for need in _EXACT[name][0]):
        return np.full(result.count, np.nan)
    needs, value = _EXACT[name]
    with np.errstate(divide="ignore", invalid="ignore"):
        return value(*(result.at(need, step) for need in needs))


def at_step(result: Result, name: str, step: Step) -> np.ndarray:
    """[run] (intervals: [run, 2]) A measured quantity at a step. The exact value, if recorded, replaces the sampled one. A bias that
    rounding explains is 0, and so is its interval."""
    def shown(values: np.ndarray, stem: str) -> np.ndarray:
        exact = _exactly(result, stem, step)
        known = np.isfinite(exact)
        return np.where(known if values.ndim == 1 else known[:, None], exact if values.ndim == 1 else exact[:, None], values) if known.any() else values

    values = result.at(name, step)
    stem = name.removesuffix("_interval")
    values = shown(values, stem)
    if stem not in ("squared_bias", "relative_bias") or "squared_bias" not in result:
        return values
    tiny = np.abs(shown(result.at("squared_bias", step), "squared_bias")) <= rounding(result, step)
    return np.where(tiny if values.ndim == 1 else tiny[:, None], 0.0, values)


def doubtful(result: Result, step: Step) -> np.ndarray:
    """[run] Whether the replicates do not support the estimates from them (`measurement_unsupported`)."""
    if "measurement_unsupported" not in result:
        return np.zeros(result.count, bool)
    return result.at("measurement_unsupported", step).astype(str) != ""


def marked(result: Result, name: str, step: Step) -> np.ndarray:
    """[run] Whether a measured quantity is displayed with a question mark: it is sampled, and its replicates do not support it."""
    return doubtful(result, step) & ~np.isfinite(_exactly(result, name, step))
