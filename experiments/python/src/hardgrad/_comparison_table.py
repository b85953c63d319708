"""The plain-text table of a comparison."""
from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Union

import numpy as np

if TYPE_CHECKING:
    from ._comparison import Comparison, Measured
    from ._moments import Moments

_WIDTH = 116


def table(of: Comparison) -> str:
    cost = "rows" if of.by == "rows" else "seconds"
    score = "work_normalised_variance" if of.by == "rows" else "time_normalised_variance"
    known = bool(of.reference)
    head = ["rank", "estimator", *(["relative bias", "p"] if known else []), "variance", "rows", "ms", f"variance x {cost}", *(["cosine"] if known else [])]
    lines, notes = [head], []
    for one in of.ordered():
        if one.status != "ok":
            lines.append(["-", one.estimator])
            notes.append(f"{one.estimator} {one.status}: {one.reason}.")
            continue
        doubt = " ?" if one.unsupported else ""
        lines.append([_rank(of, one), one.estimator, *([_bias(one) + doubt, _p(one.bias_p_value_plain)] if known else []),
                      _with_interval(one.variance, one.intervals["variance"]) + doubt, _number(one.rows), _number(1e3 * one.seconds),
                      _number(getattr(one, score)) + doubt, *([_number(one.cosine)] if known else [])])
        notes += [f"{one.estimator}: {note}." for note in one.notes]
    text = _aligned(lines) + _by_group(of, known)
    text += [""] + [wrapped for note in [_caption(of, cost), *of.notes, *notes] for wrapped in textwrap.wrap(note, _WIDTH, subsequent_indent="  ")]
    return "\n".join(text)


def _caption(of: Comparison, cost: str) -> str:
    ok = [one for one in of if one.status == "ok"]
    counts = [int(one.replicates) for one in ok]
    many = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    words = f"{many} estimates each of {of.parameters} parameters, {of.seconds:.1f} s ({of.own_seconds:.1f} s of them in the step and its backward pass). "
    if of.reference:
        norm, error = ok[0].estimand_norm, ok[0].estimand_standard_error
        words += f"Reference: {of.reference}, length {norm:.3g}" + (f" (standard error {error:.2g})" if error > 0 else "") + ". "
    if of.best:
        words += f"Least variance x {cost}: {of.best}"
        words += f"; not distinguishable from it: {', '.join(of.ties)}. " if of.ties else ". "
    words += "Intervals are 95%; rank: 1 + the number of estimators that are better beyond noise (all pairs together)."
    if any(of.biased(one.estimator) for one in ok):
        words += " biased: a bias was found, in the whole or in a group (p < 0.05, corrected)."
    if any(one.unsupported for one in ok):
        words += " ?: the estimates do not support their interval."
    return words


def _rank(of: Comparison, one: Measured) -> str:
    rank = of.rank[one.estimator]
    return "biased" if np.isnan(rank) else f"{rank:.0f}"


def _bias(one: Union[Measured, Moments]) -> str:
    value, (low, high) = one.numbers["relative_bias"], one.intervals.get("relative_bias", (np.nan, np.nan))
    return "-" if not np.isfinite(value) else f"< {high:.3g}" if low == 0 and high > 0 else _with_interval(value, (low, high))


def _with_interval(value: float, bounds: tuple[float, float]) -> str:
    low, high = bounds
    return _number(value) if not np.isfinite(low + high) or high - low < 1e-9 * abs(value) else f"{value:.3g} [{low:.3g}, {high:.3g}]"


def _p(value: float) -> str:
    return "-" if np.isnan(value) else "< .0001" if value < 1e-4 else f"{value:.2g}"


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "inf" if value > 0 else "-"


def _by_group(of: Comparison, known: bool) -> list[str]:
    """A second table, if the parameters have groups."""
    ok = [one for one in of.ordered() if one.status == "ok"]
    groups = list(ok[0].groups)
    if not groups:
        return []
    lines = [["estimator", *(f"{group}: {what}" for group in groups for what in (["relative bias"] if known else []) + ["variance"])]]
    for one in ok:
        each = [one.groups[group] for group in groups]
        lines.append([one.estimator, *(word for part in each for word in ([_bias(part)] if known else []) + [_number(part.numbers["variance"])])])
    return ["", *_aligned(lines)]


def _aligned(lines: list[list[str]]) -> list[str]:
    widths = [max(len(line[column]) for line in lines if column < len(line)) for column in range(len(lines[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in [lines[0], ["-" * width for width in widths], *lines[1:]]]
