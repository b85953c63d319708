"""Measured quantities for display: the exact value if it was recorded besides the sampled one, and
0 for a bias that rounding explains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .result import Result
from .steps import Step


def rounding(result: Result, step: Step) -> np.ndarray:
    """[run] The largest squared bias at a measured step that rounding explains: (share lost to
    rounding)² (|gradient|² + variance), at least a number for a gradient of zero. The file states
    both."""
    squares = np.zeros(result.count)
    for name, power in (("estimand_norm", 2), ("variance", 1)):
        if name in result and result.data[name].dims == ("run", "measurement_step"):
            squares += np.nan_to_num(result.at(name, step)) ** power
    return np.maximum(result.fact("rounding") ** 2 * squares, result.fact("least_squared_bias"))


# Quantities that follow from others, which are replaced by their exact twins, if they have one.
_FOLLOWS: dict[str, tuple[tuple[str, ...], Callable[..., np.ndarray]]] = {
    "relative_bias": (("squared_bias", "estimand_norm"), lambda b, norm: np.sqrt(b) / norm),
    "mse": (("variance", "squared_bias"), lambda v, b: v + b),
    "snr": (("estimand_norm", "variance"), lambda norm, v: norm**2 / v),
    "work_normalised_variance": (("variance", "rows"), lambda v, rows: v * rows),
}
_WITHOUT_NOISE = ("estimand_norm", "rows")


def _exactly(result: Result, name: str, step: Step) -> np.ndarray:
    """[run] The exact value of a measured quantity, NaN if it is unknown."""
    needs, value = _FOLLOWS.get(name, ((name,), lambda own: own))
    known = [
        need if need in _WITHOUT_NOISE and name in _FOLLOWS else result.exact_twin(need)
        for need in needs
    ]
    if not all(one in result for one in known):
        return np.full(result.count, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return value(*(result.at(str(one), step) for one in known))


def at_step(result: Result, name: str, step: Step) -> np.ndarray:
    """[run] (intervals: [run, 2]) A measured quantity at a step. The exact value, if recorded,
    replaces the sampled one. A bias that rounding explains is 0, and so is its interval."""

    def shown(values: np.ndarray, stem: str) -> np.ndarray:
        exact = _exactly(result, stem, step)
        known = np.isfinite(exact)
        return (
            np.where(
                known if values.ndim == 1 else known[:, None],
                exact if values.ndim == 1 else exact[:, None],
                values,
            )
            if known.any()
            else values
        )

    values = result.at(name, step)
    stem = name.removesuffix("_interval")
    values = shown(values, stem)
    if stem not in ("squared_bias", "relative_bias") or "squared_bias" not in result:
        return values
    tiny = np.abs(shown(result.at("squared_bias", step), "squared_bias")) <= rounding(result, step)
    return np.where(tiny if values.ndim == 1 else tiny[:, None], 0.0, values)


def has_reliability_warning(result: Result, step: Step) -> np.ndarray:
    """[run] Whether the replicates do not support the estimates from them
    (`measurement_unsupported`)."""
    if "measurement_unsupported" not in result:
        return np.zeros(result.count, bool)
    return result.at("measurement_unsupported", step).astype(str) != ""


def shows_reliability_warning(result: Result, name: str, step: Step) -> np.ndarray:
    """[run] Whether a measured quantity is displayed with a question mark: it is sampled, and its
    replicates do not support it."""
    return has_reliability_warning(result, step) & ~np.isfinite(_exactly(result, name, step))
