"""Changes between two results beyond noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from .errors import InputError
from .frames import per_run
from .groups import Group, Network, runs_of, titles
from .identity import Pair, differences, matched
from .quantities import evaluation_names, most_common
from .result import Result
from .rounding import at_step, rounding
from .statistics import (
    Difference,
    Mean,
    holm,
    paired_difference,
    propagated_difference,
    propagated_mean,
    welch_difference,
)

_PROVENANCE = (
    "version",
    "git_commit",
    "git_dirty",
    "compiler",
    "flags",
    "blas",
    "blas_kernel",
    "instruction_set",
    "cpu",
    "threads",
    "plan_hash",
)


class Comparison(NamedTuple):
    """`cells`: one row per task, model, estimator and quantity in both results, as the first names
    them. `only_first`, `only_second`: estimators that only one result has. `settings`: those in
    which matched estimators differ, with both values, and those that are "not recorded in one or
    both". `provenance`: attributes that differ, with both values."""

    cells: pd.DataFrame
    only_first: list[tuple[str, str, str]]
    only_second: list[tuple[str, str, str]]
    settings: dict[str, tuple[str, str]]
    provenance: dict[str, tuple[str, str]]


def compare(
    first: xr.Dataset | Result,
    second: xr.Dataset | Result,
    at: str | int = "first",
    level: float = 0.05,
    absent: Mapping[str, object] = {},
) -> Comparison:
    """Second minus first, for the final held-out loss, the metric, and variance and squared bias at
    step `at`. Estimators are matched by their settings, whose defaults a sweep may leave out, and
    else by their names (`identity.matched`). `absent`: the values of settings that programs did not
    have yet (`identity.differences`).

    A measured quantity has an interval for each run. These intervals give the noise of the
    difference, over the seeds that both results have (`propagated_difference`). A quantity of
    training is paired over these seeds (`paired_difference`). Without common seeds, the two samples
    are independent (`welch_difference`). p-values are corrected for all rows together (Holm 1979)
    and then bounded by what so few seeds can give. `verdict` is "changed" below `level`, "within
    noise" above, "same" if the numbers are equal up to rounding, "infinite" if a number is, and
    "few seeds" if there are too few for a p-value below `level`. InputError if the results have
    nothing in common."""
    first, second = Result.of(first), Result.of(second)
    pairs = matched(first, second, absent)
    if not pairs:
        raise InputError(
            f"{second.path}: has no task, model and estimator in common with {first.path}"
        )
    rows: list[dict[str, object]] = []
    for quantity, name, values in _quantities(first, second, pairs, at):
        for pair in pairs:
            group = pair[0]
            if name is not None and group.panel not in name:
                continue
            found = _difference((first, second), pair, quantity, values, at)
            if found:
                rows.append(
                    {
                        "task": group.task,
                        "model": group.model,
                        "estimator": group.label,
                        "quantity": name[group.panel] if name is not None else quantity,
                        **found,
                    }
                )
    frame = pd.DataFrame(
        rows,
        columns=[
            "task",
            "model",
            "estimator",
            "quantity",
            "first",
            "second",
            *Difference._fields,
            "method",
        ],
    )
    unbounded = frame.pop("p_unbounded").to_numpy(dtype=float)
    bounds = frame.pop("p_least").to_numpy(dtype=float)
    frame["p_holm"] = np.fmax(holm(unbounded), bounds)
    few = frame["p_value"].isna() | (bounds >= level)
    frame["verdict"] = np.where(
        frame["method"].isin(["same", "infinite"]),
        frame["method"],
        np.where(few, "few seeds", np.where(frame["p_holm"] < level, "changed", "within noise")),
    )
    provenance = {
        name: (str(first.data.attrs.get(name, "")), str(second.data.attrs.get(name, "")))
        for name in _PROVENANCE
    }
    differ = {name: (one, other) for name, (one, other) in provenance.items() if one != other}
    set_to = differences(first, second, pairs, absent)
    return Comparison(
        frame,
        _without_partner(first, [one for one, _ in pairs]),
        _without_partner(second, [other for _, other in pairs]),
        set_to.differ | {path: ("not recorded in one or both",) * 2 for path in set_to.unknown},
        differ,
    )


def _without_partner(result: Result, matched: list[Group]) -> list[tuple[str, str, str]]:
    there = {id(group) for group in matched}
    return [(g.task, g.model, g.label) for g in result.groups if id(g) not in there]


def _quantities(
    first: Result, second: Result, pairs: list[Pair], at: str | int
) -> Iterator[tuple[str, dict[Network, str] | None, list[np.ndarray]]]:
    """Common quantities: the name, the variable evaluated in each panel, and the runs' numbers in
    both results."""
    partner = {one.panel: other.panel for one, other in pairs}
    for quantity, prefix in (("final_loss", "heldout"), ("metric", "metric")):
        names: dict[Network, str] = {}
        values = [np.full(one.count, np.nan) for one in (first, second)]
        there = [name for name in evaluation_names(first, prefix) if name in second]
        for panel, members in first.panels.items():
            runs = runs_of(members)
            name = most_common(first, there, runs)
            if name and panel in partner:
                names[panel] = name
                values[0][runs] = per_run(first, name)[runs]
                others = runs_of(second.panels[partner[panel]])
                values[1][others] = per_run(second, name)[others]
        if names:
            yield quantity, names, values
    for quantity in ("variance", "squared_bias"):
        if all(
            quantity in one and one.data.sizes.get("measurement_step") for one in (first, second)
        ):
            yield quantity, None, [per_run(one, quantity, at) for one in (first, second)]


def _difference(
    sides: tuple[Result, Result],
    pair: Pair,
    quantity: str,
    values: list[np.ndarray],
    at: str | int,
) -> dict[str, object] | None:
    """The numbers of one row; None if either result has none."""
    by = [
        dict(zip(seeds, matrix[0]))
        for matrix, seeds in (side.by_seed([g], v) for side, g, v in zip(sides, pair, values))
    ]
    by = [{seed: value for seed, value in side.items() if not np.isnan(value)} for side in by]
    if not all(by):
        return None
    seeds = [seed for seed in by[0] if seed in by[1]]
    x, y = (
        np.array([side[seed] for seed in seeds] if seeds else list(side.values())) for side in by
    )
    row = {"first": float(np.mean(x)), "second": float(np.mean(y))}
    if not np.isfinite([*x, *y]).all():
        return (
            row
            | Difference(np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, len(seeds))._asdict()
            | {"method": "infinite"}
        )
    if len(x) == len(y) and np.allclose(
        x, y, rtol=max(map(_digits, sides)), atol=_rounding(sides[0], pair[0], quantity, at)
    ):
        return (
            row
            | Difference(
                row["second"] - row["first"], np.nan, np.nan, np.nan, np.nan, np.nan, len(seeds)
            )._asdict()
            | {"method": "same"}
        )
    means = [_own(side, g, quantity, seeds or None, at) for side, g in zip(sides, pair)]
    known = [
        mean for mean in means if mean is not None and np.isfinite([mean.low, mean.high]).all()
    ]
    if len(known) == 2:
        found, method = propagated_difference(known[1], known[0]), "measured"
    elif seeds:
        found, method = paired_difference(y, x), "paired"
    else:
        found, method = welch_difference(y, x), "independent"
    return row | found._asdict() | {"method": method}


def _own(
    result: Result, group: Group, quantity: str, seeds: list[str] | None, at: str | int
) -> Mean | None:
    """The mean of a measured quantity over these seeds, with the interval of the measurement."""
    name = f"{quantity}_interval"
    if name not in result:
        return None
    values, bounds = per_run(result, quantity, at), at_step(result, name, result.step(at))
    sides = [result.by_seed([group], numbers) for numbers in (values, bounds[:, 0], bounds[:, 1])]
    kept = [i for i, seed in enumerate(sides[0][1]) if seeds is None or seed in seeds]
    return propagated_mean(*(matrix[0][kept] for matrix, _ in sides))


def _digits(result: Result) -> float:
    """By how much, relatively, two roundings of a number differ: packed files have fewer bits."""
    return max(1e-9, 2.0 ** (1 - int(result.data.attrs.get("significant_bits", 52))))


def _rounding(result: Result, group: Group, quantity: str, at: str | int) -> float:
    """The part of a quantity that may be rounding error."""
    if quantity not in ("variance", "squared_bias"):
        return 0.0
    return float(rounding(result, result.step(at))[group.runs].max())


def as_json(found: Comparison) -> dict[str, object]:
    """`cells` as a list of objects with NaN as null, `changed` the number of changed cells, and the
    rest as in `Comparison`."""
    cells = [
        {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in row.items()
        }
        for row in found.cells.to_dict("records")
    ]
    keys = ("task", "model", "estimator")
    return {
        "changed": int((found.cells["verdict"] == "changed").sum()),
        "cells": cells,
        "only_first": [dict(zip(keys, key)) for key in found.only_first],
        "only_second": [dict(zip(keys, key)) for key in found.only_second],
        "settings": {path: list(pair) for path, pair in found.settings.items()},
        "provenance": {name: list(pair) for name, pair in found.provenance.items()},
    }


def format_comparison(found: Comparison) -> str:
    """The comparison as text: changes, counts, and differences in provenance."""
    cells, lines = found.cells, []
    counts = cells["verdict"].value_counts()
    lines.append(
        f"{len(cells)} comparisons: "
        + (
            ", ".join(
                f"{counts[v]} {v}"
                for v in ("changed", "within noise", "same", "few seeds", "infinite")
                if v in counts
            )
            or "none"
        )
    )
    changed = cells[cells["verdict"] == "changed"].sort_values("p_holm", kind="stable")
    networks = list(dict.fromkeys(zip(cells["task"], cells["model"])))
    names = dict(zip(networks, titles(networks)))
    rows = [
        [
            "estimator",
            "network",
            "quantity",
            "first",
            "second",
            "difference",
            "95% interval",
            "p (Holm)",
        ]
    ]
    for _, row in changed.iterrows():
        rows.append(
            [
                row["estimator"],
                names[row["task"], row["model"]],
                row["quantity"].replace("_", " "),
                f"{row['first']:.4g}",
                f"{row['second']:.4g}",
                f"{row['difference']:+.3g}",
                f"[{row['low']:.3g}, {row['high']:.3g}]",
                f"{row['p_holm']:.2g}",
            ]
        )
    if len(rows) > 1:
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines += [
            "",
            *(
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                for row in rows
            ),
        ]
    for title, keys in (
        ("only in the first", found.only_first),
        ("only in the second", found.only_second),
    ):
        if keys:
            lines += [
                "",
                f"{title}:",
                *(f"  {estimator} on {task} · {model}" for task, model, estimator in keys),
            ]
    for title, differ in (
        ("set differently", found.settings),
        ("run differently", found.provenance),
    ):
        if differ:
            lines += [
                "",
                f"{title}:",
                *(f"  {name}: {a or '–'} | {b or '–'}" for name, (a, b) in differ.items()),
            ]
    return "\n".join(lines)
