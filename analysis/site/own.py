"""A user's result beside the committed ones: is the file whole, does the estimator keep its
promises, and what differs beyond noise."""

from __future__ import annotations

import json
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
from ..groups import Network
from ..numbers_in_words import bare_p, quantity_name, score
from ..page import Html, link, rows_table
from ..program import asked
from ..report import counted
from ..result import Result
from .pages import Site, document
from .studies import Study, opened, slug


class Own(NamedTuple):
    study: Study
    verdicts: list[dict[str, object]]  # of `hardgrad test --json`, empty if none was given
    defaults: dict[str, object] = {}  # of the settings of a sweep, by path


def own_result(path: Path, verdict: Path | None, hardgrad: str) -> Own:
    """A user's result. InputError unless `hardgrad check` finds it whole, or if the verdict is not
    the output of `hardgrad test --json`."""
    asked(hardgrad, "check", str(path))
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
    described = json.loads(asked(hardgrad, "describe", "sweep", "--json"))["parameters"]
    return Own(
        opened(path, own=True),
        found,
        {str(one["name"]): one["default"] for one in described if "default" in one},
    )


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
        there = [one for one in site.studies if not one.own and network in one.result.panels]
        if not there:
            parts.append(
                "<p>No committed file has this network, so there is nothing to compare with.</p>"
            )
        for other in there:
            parts += _against(own, other, network)
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


class Settings(NamedTuple):
    """Settings of training of two results of one network."""

    differ: list[str]  # "train.steps 600 | 300"
    unknown: list[str]  # paths that one result did not record, and that have no default


_NO_EFFECT = ("train.log_every", "train.save_every", "train.save_seconds")


def trained_differently(first: Result, second: Result, defaults: dict[str, object]) -> Settings:
    """What differs between the settings of training. One that a result did not record, since its
    program did not have it, had the default."""
    sides, found = [one.run_settings for one in (first, second)], Settings([], [])
    for path in sorted(
        {path for side in sides for one in side for path in one if path.startswith("train.")}
        - set(_NO_EFFECT)
    ):
        if path not in defaults and any(path not in one for side in sides for one in side):
            found.unknown.append(path)
            continue
        values = [
            "/".join(sorted({str(one.get(path, defaults.get(path))) for one in side}))
            for side in sides
        ]
        if values[0] != values[1]:
            found.differ.append(f"{path} {values[0]} | {values[1]}")
    return found


def _against(own: Own, other: Study, network: Network) -> list[str]:
    mine, theirs = own.study.result.network(network), other.result.network(network)
    parts = [f"<h3>Beside {escape(other.name)}</h3>"]
    settings = trained_differently(theirs, mine, own.defaults)
    if settings.differ:
        return [
            *parts,
            f"<p>Trained with other settings ({escape('; '.join(settings.differ))}), so the "
            "two are not compared.</p>",
        ]
    if settings.unknown:
        parts.append(
            '<p class="warn">Only one of the two files records '
            f"{escape(', '.join(settings.unknown))}; the other may differ in it.</p>"
        )
    have, names = (list(dict.fromkeys(one.values("estimator").tolist())) for one in (theirs, mine))
    common = [name for name in names if name in have]
    if common:
        changed = compare(_only(theirs, common), _only(mine, common), "half").cells
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
    for name in names:
        if name not in have:
            parts += _new(_only(mine, [name]), theirs, name)
    return parts


def _only(result: Result, names: list[str]) -> Result:
    """The runs of these estimators, as the sweep names them."""
    return result.of_runs(np.flatnonzero(np.isin(result.values("estimator").astype(str), names)))


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
