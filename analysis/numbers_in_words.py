"""Numbers, intervals, shares and p-values as text."""

from __future__ import annotations

import numpy as np


def number(value: float) -> str:
    """Three digits, or "infinite"; "–" without a number."""
    return "–" if np.isnan(value) else f"{value:.3g}" if np.isfinite(value) else "infinite"


def with_interval(mean: float, low: float, high: float) -> str:
    """ "1.234 ± 0.034", "1.23 [1.1, 1.5]" if asymmetric, "1.23" without an interval, "1.23457"
    without noise, "–" without a number."""
    if not np.isfinite(mean) or not (np.isfinite(low) and np.isfinite(high)):
        return number(mean)
    below, above = mean - low, high - mean
    if max(below, above) < 1e-9 * abs(mean):
        return f"{mean:.6g}"  # no noise but rounding: shown with more digits for comparison
    if abs(below - above) <= 1e-6 * (abs(below) + abs(above)):
        return _plus_minus(mean, above) if above else number(mean)
    return f"{number(mean)} [{number(low)}, {number(high)}]"


def difference_in_words(value: float, low: float, high: float) -> str:
    """ "+0.034 [-0.01, 0.078]"; "+0.034 [too few seeds]"; "no common seed"."""
    if not np.isfinite(value):
        return "no common seed"
    if low == value == high:
        return f"{value:+.3g}"
    return (
        f"{value:+.3g} [{low:.3g}, {high:.3g}]"
        if np.isfinite(low)
        else f"{value:+.3g} [too few seeds]"
    )


def _plus_minus(mean: float, half: float) -> str:
    """Both rounded to the second digit of the half width: "0.6603 ± 0.0012", "(0.2 ± 1.6)e-05"."""
    half = float(f"{half:.1e}")
    largest = int(np.floor(np.log10(max(abs(mean), half))))
    shift = largest if not -3 <= largest < 5 else 0
    mean, half = mean / 10.0**shift, half / 10.0**shift
    digits = min(max(1 - int(np.floor(np.log10(half))), 0), 9)
    text = f"{round(mean, digits) + 0.0:.{digits}f} ± {half:.{digits}f}"  # never "-0"
    return f"({text})e{shift:+03d}" if shift else text


def score(share: bool, mean: float, low: float = np.nan, high: float = np.nan) -> str:
    """A score with its interval; a share as a percentage: "97.6% ± 4.1%"."""
    if not share or not np.isfinite(mean):
        return with_interval(mean, low, high)
    half = 50 * (high - low)
    digits = 0 if half >= 9.95 else 1
    return f"{100 * mean:.{digits}f}%" + (
        f" ± {half:.{digits}f}%" if np.isfinite(half) and half > 0 else ""
    )


def p_value(value: float) -> str:
    """ "p < .001", "p = .02"; "" without a number."""
    if not np.isfinite(value):
        return ""
    return "p < .001" if value < 1e-3 else f"p = {value:.2g}".replace("0.", ".", 1)


def bare_p(value: float) -> str:
    """ "< .001", ".02", for a column of p-values; "" without a number."""
    return p_value(value).removeprefix("p ").removeprefix("= ")


def quantity_name(quantity: str) -> str:
    """ "exact match", "expected loss"."""
    return quantity.removeprefix("heldout_").removeprefix("metric_").replace("_", " ")
