"""The tables of `results/reference/*.md` that are made of the committed files: `python3 -m analysis tables` writes them. `tables.toml` says which numbers
each holds; a page marks its place with `<!-- table NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..frames import per_run
from ..groups import panels
from ..statistics import mean_interval
from .studies import Study

_PLACE = re.compile(r"(<!-- table ([a-z0-9_]+) -->\n).*?(<!-- end -->)", re.S)


def specified(path: Path) -> dict[str, dict[str, Any]]:
    """The tables of a file by name: `study`; `head`, the titles of the columns of words; `rows`, for each its words, the estimator (also the last
    word, unless the words fill the head) and, if they distinguish it, other labels of the runs; `columns` (see `cell`)."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))["table"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    return {one["name"]: one for one in found}


def rewritten(text: str, tables: dict[str, dict[str, Any]], studies: Sequence[Study]) -> str:
    """The page with its tables made anew. InputError if one is not specified."""
    def made(place: re.Match[str]) -> str:
        if place[2] not in tables:
            raise InputError(f"table {place[2]} is not specified")
        return place[1] + markdown(tables[place[2]], studies) + place[3]

    return _PLACE.sub(made, text)


def markdown(table: dict[str, Any], studies: Sequence[Study]) -> str:
    """One table in Markdown."""
    study = next((one for one in studies if one.name == table["study"]), None)
    if study is None:
        raise InputError(f"table {table['name']}: there is no study {table['study']}")
    lines = [[*table["head"], *(column["title"] for column in table["columns"])]]
    for row in table["rows"]:
        words, wanted = list(row.get("words", [])), {name: value for name, value in row.items() if name != "words"}
        words += [f"`{row['estimator']}`"] if len(words) < len(table["head"]) else []
        lines.append([*words, *(cell(study, {**wanted, **column.get("of", {})}, column) for column in table["columns"])])
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def cell(study: Study, wanted: dict[str, str], column: dict[str, Any]) -> str:
    """One cell: `quantity` at step `at` (default: first) of the runs with these labels, as `show`: each seed (default), mean, geometric mean, or interval
    (mean ± half of the 95% interval); in `form`, a format of Python (default: three digits). Labels match as a whole, `model` and `task` also a part of them. InputError if no run
    matches, or if the runs belong to several rows."""
    data = study.data
    kept = np.ones(data.sizes["run"], bool)
    for name, value in wanted.items():
        if name not in data.variables:
            raise InputError(f"{study.name}: its runs have no {name}")
        labels = [str(label) for label in data[name].values]
        kept &= np.array([value in label if name in ("task", "model") else label == value for label in labels])
    runs = np.flatnonzero(kept)
    groups = {group.label for members in panels(data).values() for group in members if set(group.runs.tolist()) & set(runs.tolist())}
    if len(groups) != 1 or len({(data["task"].values[run], data["model"].values[run]) for run in runs}) != 1:
        raise InputError(f"{study.name}: {', '.join(f'{name}={value}' for name, value in wanted.items())} matches {len(groups)} rows ({len(runs)} runs)")
    values = per_run(data, column["quantity"], column.get("at", "first"))[runs]
    if not np.isfinite(values).all():
        return "–"
    show = column.get("show", "each")

    def said(value: float) -> str:
        if "form" in column:
            return format(value, column["form"])
        return format(float(f"{value:.3g}"), ",g") if 1e-3 <= abs(value) < 1e6 or value == 0 else f"{value:.3g}"

    if show == "each":
        return ", ".join(map(said, values))
    mean = mean_interval(values, log=show == "geometric" and bool((values > 0).all()))
    return said(mean.mean) + (f" ± {said((mean.high - mean.low) / 2)}" if show == "interval" else "")
