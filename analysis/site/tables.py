"""The tables and numbers of `results/reference/*.md` that are made of the committed files: `python3
-m analysis tables` writes them. `tables.toml` says which numbers they hold; a page marks its place
with `<!-- table NAME -->` or `<!-- number NAME -->`, and `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..frames import per_run
from ..result import tomllib
from ..statistics import Mean, mean_interval
from ..table import readable
from ..table import table as ranking_table
from .studies import Study

_PLACE = re.compile(r"(<!-- (table|number) ([a-z0-9_]+) -->\n?)(?:(?!<!--).)*(<!-- end -->)", re.S)


class Specified(NamedTuple):
    """The entries of `tables.toml`, by name. A table: `study`; `head`, the titles of the columns of
    words; `rows`, for each its words, the estimator (also the last word, unless the words fill the
    head) and, if they distinguish it, other labels of the runs; without `rows`, every estimator;
    `columns` (see `cell`); `like`, another table whose entries it has, too. With `network`, a part
    of a task or model, it has instead every estimator of this network, or those of `estimators`,
    and a column may also be the title of one in `table.readable`. A number: `study`, `of`, the
    labels of its runs, and a column."""

    table: dict[str, dict[str, Any]]
    number: dict[str, dict[str, Any]]


def specified(path: Path) -> Specified:
    """The tables and numbers of a file. InputError if it cannot be read."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
        known = [{one["name"]: one for one in found.get(kind, [])} for kind in Specified._fields]
        return Specified(
            *(
                {
                    name: {**of[one["like"]], **one} if "like" in one else one
                    for name, one in of.items()
                }
                for of in known
            )
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def rewritten(text: str, found: Specified, studies: Sequence[Study]) -> str:
    """The page with its tables and numbers made anew; those of a study that is not among these stay
    as they are. InputError if one is not specified."""
    made_of = {study.name for study in studies}

    def made(place: re.Match[str]) -> str:
        known = getattr(found, place[2])
        if place[3] not in known:
            raise InputError(f"{place[2]} {place[3]} is not specified")
        if known[place[3]]["study"] not in made_of:
            return place[0]
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
        lines += [
            [
                *words,
                *(cell(study, _labels(wanted, column), column) for column in table["columns"]),
            ]
            for words, wanted in _rows(table, study)
        ]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _rows(table: dict[str, Any], study: Study) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Words and labels of each row; without `rows`, of every estimator."""
    every = [{"estimator": str(one)} for one in dict.fromkeys(study.result.values("estimator"))]
    for row in table.get("rows") or every:
        words = list(row.get("words", []))
        words += [f"`{row['estimator']}`"] if len(words) < len(table["head"]) else []
        yield words, {name: value for name, value in row.items() if name != "words"}


def numbers_of(
    table: dict[str, Any], study: Study, column: int
) -> list[tuple[list[str], np.ndarray]]:
    """Of a table with `columns`: the words of each row, and the numbers of its runs in a column."""
    one = table["columns"][column]
    found = [
        (words, _numbers(study, _labels(wanted, one), one)) for words, wanted in _rows(table, study)
    ]
    return [(words, values) for words, values in found if np.isfinite(values).any()]


def _labels(wanted: dict[str, str], column: dict[str, Any]) -> dict[str, str]:
    """Those of a row in a column, with the column's own; its `instead` = [a, b] puts b in place of
    a part a of the row's estimator. InputError if the estimator has no such part."""
    if "instead" in column:
        part, other = column["instead"]
        if part not in wanted["estimator"]:
            raise InputError(f"{wanted['estimator']}: has no {part} to replace by {other}")
        wanted = {**wanted, "estimator": wanted["estimator"].replace(part, other)}
    return {**wanted, **column.get("of", {})}


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
    """One cell: `quantity` at step `at` (default: first) of the runs with these labels, as `show`
    (see `_SHOWN`; default: each seed) in `form`, a format of Python (default: three digits), of the
    quantity divided by `over`, the same quantity of the runs with other labels. Labels match as a
    whole; of `model` and `task` a part is enough, or the parts around a `*`, unless `=` is before
    it. A dash if there is no run or no number. InputError if no run has such a label, or if the
    runs belong to several rows."""
    values = _numbers(study, wanted, column)
    if "over" in column:
        values = values / _numbers(study, {**wanted, **column["over"]}, column)
    show = column.get("show", "each")
    if show not in _SHOWN:
        raise InputError(f"{study.name}: show = {show!r}: use one of {', '.join(_SHOWN)}")
    if not values.size or not np.isfinite(values).all():
        return "–"

    def said(value: float) -> str:
        if "form" in column:
            return format(value, column["form"])
        return (
            format(float(f"{value:.3g}"), ",g")
            if 1e-3 <= abs(value) < 1e6 or value == 0
            else f"{value:.3g}"
        )

    return _SHOWN[show](values, said, column)


def _joined(*ends: str) -> str:
    return " to ".join(dict.fromkeys(ends))


def _mean(values: np.ndarray, log: bool = False) -> Mean:
    return mean_interval(values, log=log and bool((values > 0).all()))


#: How the numbers of a row become words. The first three may belong to several rows.
_SHOWN: dict[str, Callable[[np.ndarray, Callable[[float], str], dict[str, Any]], str]] = {
    "least": lambda values, said, _: said(values.min()),
    "most": lambda values, said, _: said(values.max()),
    "range": lambda values, said, _: _joined(said(values.min()), said(values.max())),
    "each": lambda values, said, _: ", ".join(map(said, values)),
    "mean": lambda values, said, _: said(_mean(values).mean),
    "median": lambda values, said, _: said(float(np.median(values))),
    "geometric": lambda values, said, _: said(_mean(values, log=True).mean),
    "interval": lambda values, said, _: (  # mean ± half of the 95% interval
        f"{said(_mean(values).mean)} ± {said((_mean(values).high - _mean(values).low) / 2)}"
    ),
    "deviation": lambda values, said, _: (  # mean ± standard deviation of the seeds
        f"{said(float(values.mean()))} ± {said(float(values.std(ddof=1)))}"
    ),
    "spread": lambda values, said, _: (  # least, median and most
        ", ".join(map(said, (values.min(), float(np.median(values)), values.max())))
    ),
    "count": lambda values, said, column: (  # of the seeds that reach `least`
        f"{int((values >= column['least']).sum())} of {values.size}"
    ),
}


def _numbers(study: Study, wanted: dict[str, str], column: dict[str, Any]) -> np.ndarray:
    """The quantity of the runs with these labels."""
    result = study.result
    kept = np.ones(result.count, bool)
    for name, value in wanted.items():
        if name not in result:
            raise InputError(f"{study.name}: its runs have no {name}")
        labels = [str(label) for label in result.values(name)]
        has = np.array([_has(label, value, name in ("task", "model")) for label in labels])
        if not has.any():
            raise InputError(f"{study.name}: no run has {name}={value}")
        kept &= has
    runs = np.flatnonzero(kept)
    groups = {
        group.label for group in result.groups if set(group.runs.tolist()) & set(runs.tolist())
    }
    places = {(result.values("task")[run], result.values("model")[run]) for run in runs}
    if column.get("show") not in ("least", "most", "range") and max(len(groups), len(places)) > 1:
        raise InputError(
            f"{study.name}: {', '.join(f'{name}={value}' for name, value in wanted.items())} "
            f"matches {len(groups)} rows ({len(runs)} runs)"
        )
    return per_run(result, column["quantity"], column.get("at", "first"))[runs]


def _has(label: str, value: str, part: bool) -> bool:
    """Whether a label is the value (of a `part`: the value after a `=`), or (`part`) contains its
    parts in this order."""
    if not part or value.startswith("="):
        return label == value.removeprefix("=" if part else "")
    return re.search(".*".join(map(re.escape, value.split("*"))), label) is not None
