"""A user's result beside the committed ones: is the file whole, does the estimator keep its
promises, and what differs beyond noise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from ..answer import answer
from ..answer_words import difference
from ..compare import compare
from ..errors import InputError
from ..groups import Group, Network, runs_of
from ..identity import Pair, differences, in_words, matched, same_network
from ..numbers_in_words import bare_p, quantity_name, score
from ..page import Html, link, rows_table
from ..program import absent_values, asked
from ..report import counted
from ..result import Result
from .pages import Site, document
from .studies import Study, opened, plain, slug


class Own(NamedTuple):
    study: Study
    verdicts: list[dict[str, object]]  # of `hardgrad test --json`, empty if none was given
    absent: Mapping[str, object] = {}  # values of settings that a file lacks (`absent_values`)


def own_result(path: Path, verdict: Path | None, hardgrad: str) -> Own:
    """A user's result. InputError unless `hardgrad check` finds it whole, or if the verdict is not
    the output of `hardgrad test --json`."""
    with plain(path) as file:  # one that was packed is compressed
        asked(hardgrad, "check", str(file))
    found: list[dict[str, object]] = []
    if verdict is not None:
        try:
            found = list(json.loads(verdict.read_text("utf-8")))
            if not found or not all(
                isinstance(one["passed"], bool) and isinstance(one["checks"], list) for one in found
            ):
                raise ValueError("it has no checks")
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"{verdict}: is not the output of `hardgrad test NAME --json`: {error}"
            ) from error
    return Own(opened(path, own=True), found, absent_values(hardgrad))


def own_page(site: Site, own: Own) -> str:
    """The checks, then for each network that a committed study has, too: changes of the same cells,
    and every new estimator against all others."""
    study = own.study
    parts = [
        f"<p>{counted(study.result.count, 'run')} in "
        f"{link(f'data/{study.path.name}', study.path.name)}; <code>hardgrad check</code>: "
        "whole.</p>",
        *_verdicts(own),
    ]
    for network in study.result.panels:
        parts.append(f"<h2>{link(f'networks/{slug(network)}.html', site.networks[network])}</h2>")
        there = [
            (one, theirs)
            for one in site.studies
            if not one.own
            and (theirs := same_network(network, study.result, one.result, own.absent))
        ]
        if not there:
            parts.append(
                "<p>No committed file has this network, so there is nothing to compare with.</p>"
            )
        for other, theirs in there:
            parts += _against(own, network, other, theirs)
    return document(f"Your result: {study.path.stem}", parts)


def _verdicts(own: Own) -> list[str]:
    if not own.verdicts:
        return [
            "<p>No verdict of <code>hardgrad test NAME --json</code> was given (<code>--test "
            "FILE</code>).</p>"
        ]
    rows = []
    for one in own.verdicts:
        checks = [check for check in one["checks"] if isinstance(check, dict)]  # type: ignore[attr-defined]
        failed = [
            f"{check['check']} on {check['where']}: {check['detail']}"
            for check in checks
            if check["outcome"] == "failed"
        ]
        rows.append(
            [
                next((one[kind] for kind in ("estimator", "model", "task") if kind in one), "?"),
                "passed" if one["passed"] else "failed",
                f"{sum(check['outcome'] == 'passed' for check in checks)} of {len(checks)}",
                "; ".join(map(str, failed)) or "–",
            ]
        )
    return [
        rows_table(rows, ["hardgrad test", "verdict", "checks passed", "failed"], wrap=("failed",))
    ]


def _against(own: Own, network: Network, other: Study, named: Network) -> list[str]:
    """`named`: the network's name in the other file."""
    mine, theirs = own.study.result.network(network), other.result.network(named)
    parts = [f"<h3>Beside {escape(other.name)}</h3>"]
    pairs, same = matched(theirs, mine, own.absent), list[Pair]()
    refused: dict[str, list[str]] = {}  # estimators, by their other settings
    measured: dict[str, list[str]] = {}
    unknown: list[str] = []
    for pair in pairs:
        found = differences(theirs, mine, [pair], own.absent)
        unknown += found.unknown
        if found.of_training():
            refused.setdefault(in_words(found.of_training()), []).append(pair[1].label)
            continue
        same.append(pair)
        if found.of_moments():
            measured.setdefault(in_words(found.of_moments()), []).append(pair[1].label)
    parts += [
        f"<p>Run with other settings, committed | yours ({escape(words)}), and so not compared: "
        f"{escape(', '.join(names))}.</p>"
        for words, names in refused.items()
    ]
    parts += [
        f"<p>Measured with other settings, committed | yours ({escape(words)}), so that their "
        f"variance and bias are not compared: {escape(', '.join(names))}.</p>"
        for words, names in measured.items()
    ]
    taken = {id(one) for _, one in pairs}
    fresh = [_beside(own, mine, theirs, group) for group in mine.groups if id(group) not in taken]
    unknown = list(dict.fromkeys([*unknown, *(path for one in fresh for path in one.unknown)]))
    if unknown:
        parts.append(
            '<p class="warn">One or both of the files do not record '
            f"{escape(', '.join(unknown))}, in which they may differ.</p>"
        )
    if same:
        changed = compare(
            theirs.part_of(runs_of([one for one, _ in same])),
            mine.part_of(runs_of([one for _, one in same])),
            "half",
            absent=own.absent,
        ).cells
        but = {name for names in measured.values() for name in names}
        labels = {one.label: mine_.label for one, mine_ in same}
        changed = changed[
            [
                quantity not in ("variance", "squared_bias") or labels[label] not in but
                for label, quantity in zip(changed["estimator"], changed["quantity"])
            ]
        ]
        shown = changed[changed["verdict"] == "changed"]
        parts.append(
            f"<p>{counted(len(changed), 'number')} of the same estimators: {len(shown)} "
            "changed beyond noise.</p>"
        )
        if len(shown):
            rows = [
                [
                    row["estimator"],
                    row["quantity"].replace("_", " "),
                    f"{row['first']:.4g}",
                    f"{row['second']:.4g}",
                    f"{row['difference']:+.3g} [{row['low']:.3g}, {row['high']:.3g}]",
                    f"{row['p_holm']:.2g}",
                ]
                for _, row in shown.iterrows()
            ]
            parts.append(
                rows_table(
                    rows, ["estimator", "quantity", "committed", "yours", "difference", "p (Holm)"]
                )
            )
    for one in fresh:
        parts += _new_group(mine, theirs, one)
    return parts


class _Beside(NamedTuple):
    """A new estimator beside the committed ones."""

    group: Group
    alike: list[Group]  # of these, with its settings
    differ: str  # the settings of another one, in words
    unknown: list[str]


def _beside(own: Own, mine: Result, theirs: Result, group: Group) -> _Beside:
    """Those with its settings, but for those of the estimator and those that were tuned for it."""
    own_settings = ["estimator", "target", *theirs.tuned_axes]
    beside = _Beside(group, [], "", [])
    for one in theirs.groups:
        found = differences(theirs, mine, [(one, group)], own.absent)
        if differ := found.of_training(own_settings):
            beside = beside._replace(differ=beside.differ or in_words(differ))
            continue
        beside.alike.append(one)
        beside.unknown.extend(found.unknown_but(own_settings))
    return beside


def _new_group(mine: Result, theirs: Result, beside: _Beside) -> list[str]:
    group, alike = beside.group, beside.alike
    if not alike:
        return [
            f"<p>New: <code>{escape(group.label)}</code>, run with other settings, committed | "
            f"yours ({escape(beside.differ)}), and so not compared.</p>"
        ]
    renamed = mine.part_of(group.runs).data.assign_coords(
        {
            name: ("run", np.full(len(group.runs), text, object), mine.data[name].attrs)
            for name, text in zip(("task", "model"), alike[0].panel)
        }
    )
    return _new(
        Result(renamed), theirs.part_of(runs_of(alike)), str(renamed["estimator"].values[0])
    )


def _new(mine: Result, theirs: Result, name: str) -> list[str]:
    """A new estimator against every committed one, as `answer --baseline`."""
    sides = theirs.data, mine.data
    shared = [
        one
        for one in sides[0].variables
        if one != "run"
        and one in sides[1].variables
        and sides[0][one].dims[:1] == sides[1][one].dims[:1] == ("run",)
    ]
    both = xr.concat(
        [data[shared].reset_coords() for data in sides],
        dim="run",
        join="outer",
        combine_attrs="override",
    )
    found = answer(both, baseline=name)
    found = found[(found["budget"] == "steps") & np.isfinite(found["score"])]
    if not len(found):
        return [f"<p>{escape(name)} has no score.</p>"]
    return [
        f"<p>New: <code>{escape(name)}</code>, at {found['at'].iloc[0]:,.0f} steps; "
        "differences to it are paired over common seeds, corrected for "
        f"{int(found['tests'].max())} comparisons.</p>",
        rows_table(
            list(_lines(found)),
            [
                "estimator",
                quantity_name(str(found["quantity"].iloc[0])),
                "behind yours",
                "p",
                "verdict",
            ],
        ),
    ]


def _lines(found: pd.DataFrame) -> list[list[object]]:
    return [
        [
            Html(f"<code>{escape(row['estimator'])}</code>"),
            score(row["share"], row["score"], row["low"], row["high"]),
            "yours"
            if row["verdict"] == "baseline"
            else difference(row)
            if np.isfinite(row["difference"])
            else "–",
            bare_p(row["p_corrected"]),
            {
                "worse": "yours is better",
                "better": "yours is worse",
                "unclear": "not distinguishable",
            }.get(row["verdict"], "–"),
        ]
        for _, row in found.iterrows()
    ]
