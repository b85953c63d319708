"""The tables and numbers of `results/reference/*.md` that are made of the committed files: `python3
-m analysis tables` writes them. `tables.toml` says which numbers they hold; a page marks its place
with `<!-- table NAME -->` or `<!-- number NAME -->`, and `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..frames import per_run
from ..result import tomllib
from ..statistics import mean_interval
from ..table import readable
from ..table import table as ranking_table
from .studies import Study

_PLACE = re.compile(r"(<!-- (table|number) ([a-z0-9_]+) -->\n?).*?(<!-- end -->)", re.S)


class Specified(NamedTuple):
    """What `tables.toml` says, by name. A table: `study`; `head`, the titles of the columns of
    words; `rows`, for each its words, the estimator (also the last word, unless the words fill the
    head) and, if they distinguish it, other labels of the runs; `columns` (see `cell`). With
    `network`, a part of a task or model, it has instead every estimator of this network, or those
    of `estimators`, and a column may also be the title of one in `table.readable`. A number:
    `study`, `of`, the labels of its runs, and a column."""

    table: dict[str, dict[str, Any]]
    number: dict[str, dict[str, Any]]


def specified(path: Path) -> Specified:
    """The tables and numbers of a file. InputError if it cannot be read."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        return Specified(
            *({one["name"]: one for one in found.get(kind, [])} for kind in Specified._fields)
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def rewritten(text: str, found: Specified, studies: Sequence[Study]) -> str:
    """The page with its tables and numbers made anew. InputError if one is not specified."""

    def made(place: re.Match[str]) -> str:
        known = getattr(found, place[2])
        if place[3] not in known:
            raise InputError(f"{place[2]} {place[3]} is not specified")
        return (
            place[1]
            + {"table": markdown, "number": number}[place[2]](known[place[3]], studies)
            + place[4]
        )

    return _PLACE.sub(made, text)


def _study(one: dict[str, Any], studies: Sequence[Study]) -> Study:
    for study in studies:
        if study.name == one["study"]:
            return study
    raise InputError(f"{one['name']}: there is no study {one['study']}")


def number(one: dict[str, Any], studies: Sequence[Study]) -> str:
    """A number in a text."""
    return cell(_study(one, studies), one["of"], one)


def markdown(table: dict[str, Any], studies: Sequence[Study]) -> str:
    """One table in Markdown."""
    study = _study(table, studies)
    if "network" in table:
        lines = _every(table, study)
    else:
        lines = [[*table["head"], *(column["title"] for column in table["columns"])]]
        for row in table["rows"]:
            words = list(row.get("words", []))
            wanted = {name: value for name, value in row.items() if name != "words"}
            words += [f"`{row['estimator']}`"] if len(words) < len(table["head"]) else []
            lines.append(
                [
                    *words,
                    *(
                        cell(study, {**wanted, **column.get("of", {})}, column)
                        for column in table["columns"]
                    ),
                ]
            )
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _every(table: dict[str, Any], study: Study) -> list[list[str]]:
    networks = [network for network in study.result.panels if table["network"] in " ".join(network)]
    if len(networks) != 1:
        raise InputError(
            f"table {table['name']}: {len(networks)} networks of {study.name} have "
            f"{table['network']!r} in their names; one is needed"
        )
    frame = ranking_table(study.result.network(networks[0]))
    text = readable(frame)
    task, model = networks[0]
    lines = [
        [
            "estimator",
            *(
                column if isinstance(column, str) else column["title"]
                for column in table["columns"]
            ),
        ]
    ]
    wanted = table.get("estimators", list(frame["estimator"]))
    if missing := [name for name in wanted if name not in set(frame["estimator"])]:
        raise InputError(f"table {table['name']}: {study.name} has no {', '.join(missing)}")
    for i, estimator in enumerate(frame["estimator"]):
        if estimator not in wanted:
            continue
        lines.append(
            [
                f"`{estimator}`",
                *(
                    str(text[column].iloc[i])
                    if isinstance(column, str)
                    else cell(study, {"estimator": estimator, "task": task, "model": model}, column)
                    for column in table["columns"]
                ),
            ]
        )
    return lines


def cell(study: Study, wanted: dict[str, str], column: dict[str, Any]) -> str:
    """One cell: `quantity` at step `at` (default: first) of the runs with these labels, as `show`:
    each seed (default), mean, geometric mean, interval (mean ± half of the 95% interval), or of all
    these runs, which may then belong to several rows, the least, the most or the range; in `form`,
    a format of Python (default: three digits). Labels match as a whole, `model` and `task` also a
    part of them. InputError if no run matches, or if the runs belong to several rows."""
    result, show = study.result, column.get("show", "each")
    kept = np.ones(result.count, bool)
    for name, value in wanted.items():
        if name not in result:
            raise InputError(f"{study.name}: its runs have no {name}")
        labels = [str(label) for label in result.values(name)]
        kept &= np.array(
            [value in label if name in ("task", "model") else label == value for label in labels]
        )
    runs = np.flatnonzero(kept)
    several = show in ("least", "most", "range")
    groups = {
        group.label for group in result.groups if set(group.runs.tolist()) & set(runs.tolist())
    }
    places = {(result.values("task")[run], result.values("model")[run]) for run in runs}
    if not groups or not several and (len(groups) != 1 or len(places) != 1):
        raise InputError(
            f"{study.name}: {', '.join(f'{name}={value}' for name, value in wanted.items())} "
            f"matches {len(groups)} rows ({len(runs)} runs)"
        )
    values = per_run(result, column["quantity"], column.get("at", "first"))[runs]
    if not np.isfinite(values).all():
        return "–"

    def said(value: float) -> str:
        if "form" in column:
            return format(value, column["form"])
        return (
            format(float(f"{value:.3g}"), ",g")
            if 1e-3 <= abs(value) < 1e6 or value == 0
            else f"{value:.3g}"
        )

    if several:
        ends = {
            "least": [values.min()],
            "most": [values.max()],
            "range": [values.min(), values.max()],
        }[show]
        return " to ".join(dict.fromkeys(map(said, ends)))
    if show == "each":
        return ", ".join(map(said, values))
    mean = mean_interval(values, log=show == "geometric" and bool((values > 0).all()))
    return said(mean.mean) + (
        f" ± {said((mean.high - mean.low) / 2)}" if show == "interval" else ""
    )
