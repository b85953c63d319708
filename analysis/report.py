"""A result as one self-contained HTML page that opens offline, without a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from html import escape
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from .answer import answer
from .answer_words import HEAD, close_settings, difference, lines, subject
from .answer_words import caption as caption_of_answer
from .attending import CERTAIN, certain, collapsed
from .errors import InputError
from .figures import BY_COST, MOST_LINES, draw_all
from .findings import findings
from .frames import per_run
from .groups import Group, runs_of
from .inference import pareto
from .numbers_in_words import bare_p, quantity_name, score
from .page import blocks_table, page, picture, rows_table, small_picture, sortable_table
from .quantities import evaluation_names, most_common
from .result import Result
from .rounding import shows_reliability_warning
from .table import MOST_SETTINGS, QUANTITIES, caption, keys_of, leading, only, readable, table
from .tried import chosen, tried

_BRIEF = (
    "rank",
    "network",
    "estimator",
    "final loss",
    "variance",
    "runs",
)  # columns for settings that are not shown in full
MOST_SHOWN = 6  # tasks and models drawn within the page


def report(
    data: xr.Dataset | Result,
    at: str | int = "half",
    trials: xr.Dataset | Result | None = None,
    most: int | None = None,
) -> str:
    """The page: findings, the ranking of each network, figures, the answer at equal cost, tuning,
    all numbers, every cell, failures and skips, and how to reproduce the result. `trials`: as
    returned by `load_tuning`. For each network the `most` best settings (`table.leading`; default:
    MOST_SETTINGS) are ranked in full and listed run by run; the others are in a collapsed table.
    Figures have `most` settings (default: as `draw_all`)."""
    drawn, most = most, most or MOST_SETTINGS
    result, trials = Result.of(data), None if trials is None else Result.of(trials)
    attributes = result.data.attrs
    title = result.texts.get("name") or Path(str(attributes.get("path", ""))).stem or "Results"
    frame = table(result, at)
    kept = leading(frame, most)
    shown = (
        result
        if kept.all()
        else only(result, {key for key, here in zip(keys_of(result, frame), kept) if here})
    )
    found, pages = answered(result)
    parts = [
        *findings_part(result, at),
        *ranking_part(result, found, frame, pages, most),
        *cautions_part(result),
        *figures_part(result, at, most=drawn),
        *_at_equal_cost(result, found, trials is not None),
        *_tuning(result, trials),
        *_numbers(result, at, frame, kept),
        *_cells(shown, at, len(kept) - int(kept.sum())),
        *_missing(result),
        *provenance_part(result),
    ]
    return page(
        f"{title}: {attributes.get('title', 'results')}",
        [f"<h1>{escape(title)}</h1>", *_summary(result, trials), navigation(parts), *parts],
    )


def navigation(parts: list[str]) -> str:
    """Links to the sections of the page."""
    found = re.findall(r'<h2 id="([a-z]+)">([^<]*)</h2>', "".join(parts))
    return "<nav>" + " ".join(f'<a href="#{name}">{title}</a>' for name, title in found) + "</nav>"


def _summary(result: Result, trials: Result | None) -> list[str]:
    """The size of the sweep, in a line; a warning if the result is incomplete."""
    description, each = result.texts.get("description", ""), result.status
    labels = {group.label for group in result.groups}
    kinds = {group.estimator for group in result.groups}
    at_settings = f" at {len(labels)} settings" if len(labels) > len(kinds) else ""
    seeds = set(result.values("seed").tolist()) if "seed" in result else set()
    others = ", ".join(f"{each.count(s)} {s}" for s in ("failed", "skipped") if each.count(s))
    parts = [
        "<p>"
        + escape(
            (f"{description[:1].upper()}{description[1:]}: " if description else "")
            + f"{counted(len(kinds), 'estimator')}{at_settings} on "
            f"{counted(len(result.panels), 'network')} with up to "
            f"{counted(len(seeds), 'seed')}, "
            f"{result.count} runs"
            + (f" ({others})" if others else "")
            + "."
            + (
                f" {trials.count} earlier trials tuned their settings."
                if trials is not None
                else ""
            )
        )
        + "</p>"
    ]
    if result.data.attrs.get("status") != "complete":
        parts.append(
            '<p class="warn"><strong>This result is incomplete: it lacks cells of the '
            "plan.</strong></p>"
        )
    return parts


def findings_part(result: Result, at: str | int) -> list[str]:
    """The findings, in sentences; empty if nothing was trained and nothing measured."""
    said = findings(result, at)
    return (
        [
            '<h2 id="findings">Findings</h2>',
            '<ul class="found">' + "".join(f"<li>{escape(line)}</li>" for line in said) + "</ul>",
        ]
        if said
        else []
    )


def cautions_part(result: Result) -> list[str]:
    """Networks whose attention does not attend, or is no longer random."""
    said = []
    for panel, estimators in collapsed(result).items():
        said.append(
            f"<strong>Attention has collapsed</strong> on {escape(result.titles[panel])} "
            f"with {escape(', '.join(estimators))}: nearly all words of a "
            "sentence attend to one position (metric_positions_used), so these are "
            "comparisons of decoders that do not use attention."
        )
    for panel, estimators in certain(result).items():
        said.append(
            f"<strong>The policy is deterministic</strong> on {escape(result.titles[panel])} "
            f"with {escape(', '.join(estimators))}: at the last measurement "
            f"all choices of a network had an entropy below {CERTAIN:g} nat "
            "(attention_entropy); its variance there is not that of learning."
        )
    return [f'<p class="warn">{line}</p>' for line in said]


def answered(result: Result) -> tuple[pd.DataFrame, int]:
    """The ranking of the first networks, empty if nothing was evaluated; and the number of pages of
    networks."""
    shown, pages = result.page(1, MOST_SHOWN)
    try:
        return answer(shown), pages
    except InputError:
        return pd.DataFrame(), pages


def ranking_part(
    result: Result, found: pd.DataFrame, frame: pd.DataFrame, pages: int, most: int
) -> list[str]:
    """A table for each network: its `most` best estimators by target and score at equal steps,
    with the scores at equal rows if those differ; empty if nothing was evaluated."""
    if not len(found):
        return []
    parts = ['<h2 id="ranking">Ranking</h2>']
    text = readable(frame)
    moments = [name for name in ("relative bias", "squared bias", "variance") if name in text]
    several = (
        frame[["task", "model", "estimator"]].duplicated(keep=False).to_numpy()
    )  # settings that were tuned: their moments are below
    measured = {
        key: list(row)
        for key, row, more in zip(
            zip(frame["task"], frame["model"], frame["estimator"]),
            text[moments].to_numpy(),
            several,
        )
        if not more
    }
    for panel, part in found[found["budget"] == "steps"].groupby(["task", "model"], sort=False):
        count, part = len(part), part.head(most)
        named = part["reference"].iloc[0] if "baseline" in set(part["verdict"]) else "the best"
        by_rows = _at_equal_rows(found, (str(panel[0]), str(panel[1])), part)
        blocks: list[tuple[str, list[list[object]]]] = []
        targets = list(dict.fromkeys(part["target"]))
        for target in targets:
            rows = [
                [
                    f"{row['rank']:.0f}" if np.isfinite(row["rank"]) else "–",
                    str(row["estimator"]) + (f" ({row['setting']})" if row["setting"] else ""),
                    score(row["share"], row["score"], row["low"], row["high"]),
                    row["letters"],
                    *(text[str(row["estimator"])] for text in by_rows.values()),
                    row["verdict"]
                    if row["verdict"] in ("best", "baseline")
                    else difference(row)
                    if np.isfinite(row["difference"])
                    else "–",
                    bare_p(row["p_corrected"]),
                    *measured.get(
                        (str(panel[0]), str(panel[1]), row["estimator"]), [""] * len(moments)
                    ),
                ]
                for _, row in part[part["target"] == target].iterrows()
            ]
            blocks.append(
                (
                    f"target: {target.replace('_', ' ')}"
                    if target
                    else ""
                    if len(targets) == 1
                    else "target not recorded",
                    rows,
                )
            )
        head = [
            "rank",
            "estimator",
            quantity_name(str(part["quantity"].iloc[0])),
            "letters",
            *by_rows,
            f"behind {named}",
            "p",
            *moments,
        ]
        parts.append(
            f"<h3>{escape(result.titles[panel])}: {escape(subject(part))}, at "
            f"{part['at'].iloc[0]:,.0f} steps</h3>{blocks_table(blocks, head)}"
        )
        parts += [f"<p>The best {most} of {count} estimators.</p>"] if count > most else []
    tests, seeds = int(found["tests"].max()), int(found["seeds"].max())
    words = f"Mean of {seeds} seeds ± half of its 95% interval. " if seeds > 1 else "One seed. "
    if tests and seeds > 1:
        words += (
            "Estimators of a network that share a letter do not differ beyond noise: paired "
            "t tests over seeds, corrected for all pairs of the "
            "network (Dunn 1961). p and the differences are of these tests, corrected for "
            f"{tests}; ranks are by the mean at equal steps, within one target. Scores at equal "
            "rows (evaluations of the network) have letters of their own. "
        )
    if frame.attrs.get("measured_at"):
        words += (
            "Bias (of the gradient's mean, relative to the true gradient's norm) and "
            f"variance at {frame.attrs['measured_at']}; “unbiased” is known, "
            "by derivation or by exact moments; “<”: within noise of zero, with the upper "
            "end of the 95% interval."
        )
    if pages > 1:
        words += (
            f" The first {MOST_SHOWN} of {len(result.panels)} networks; <code>python3 -m "
            "analysis answer RESULT.h5</code> lists all."
        )
    return [*parts, f"<p>{words}</p>"]


def _at_equal_rows(
    found: pd.DataFrame, panel: tuple[str, str], part: pd.DataFrame
) -> dict[str, dict[str, str]]:
    """Columns by title: the scores at equal rows with their letters, by estimator; empty if rows
    were not recorded or all estimators had as many."""
    rows = found[
        (found["budget"] == "rows") & (found["task"] == panel[0]) & (found["model"] == panel[1])
    ]
    if not len(rows) or part["rows"].nunique() < 2:
        return {}
    text = {
        str(row["estimator"]): " ".join(
            (score(row["share"], row["score"], row["low"], row["high"]), row["letters"])
        ).strip()
        for _, row in rows.iterrows()
    }
    return {
        f"at {rows['at'].iloc[0]:,.0f} rows": {
            str(name): text.get(str(name), "–") for name in part["estimator"]
        }
    }


def _at_equal_cost(result: Result, found: pd.DataFrame, beforehand: bool) -> list[str]:
    """The best estimator at equal steps, rows and processor time, collapsed; empty if nothing was
    evaluated.
    `beforehand`: as in `answer_words.caption`."""
    if not len(found):
        return []
    parts = ['<h2 id="answer">Which estimator is best at equal cost?</h2>']
    rows, missing, close = [], [], []
    for panel, part in found.groupby(["task", "model"], sort=False):
        rows += [
            [name, *line]
            for name, line in zip_longest(
                [result.titles[panel], *subject(part).split(", ")], lines(part), fillvalue=""
            )
        ]
        close += [
            f"<p>{escape(result.titles[panel])}: {escape(sentence[:1].lower() + sentence[1:])}</p>"
            for sentence in close_settings(part)
        ]
        never = set(part["estimator"]) - set(part.loc[part["verdict"] != "none", "estimator"])
        missing += [f"{result.titles[panel]}: {', '.join(sorted(never))}"] if never else []
    words = caption_of_answer(found, beforehand)
    if missing:
        words += f" Without a value: {'; '.join(missing)}."
    return [
        *parts,
        rows_table(rows, ["network", *HEAD], wrap=("compared with",), kept=True),
        *close,
        f"<p>{escape(words)}</p>",
    ]


def _tuning(result: Result, trials: Result | None) -> list[str]:
    """Settings tried and chosen for each estimator; empty without tuning."""
    searched = chosen(result, trials)
    if searched is None or trials is None:
        return []
    found, several = tried(trials), len(result.panels) > 1
    compared = [
        name
        for name in searched.columns[: searched.columns.get_loc("setting")]
        if name not in ("task", "model")
    ] + (["task", "model"] if several else [])
    quantities = {
        str(q).removeprefix("heldout_").removeprefix("metric_").replace("_", " ")
        for q in searched["quantity"]
        if q
    }
    rows = [
        [
            *(row[name] for name in compared),
            _number(row["score"]),
            row["setting"] or "none",
            row["settings"],
            row["trials"],
            row["failed"] or "",
            row["edge"] or "",
        ]
        for _, row in searched.iterrows()
    ]
    parts = [
        '<h2 id="tuning">Tuned settings</h2>',
        rows_table(
            rows,
            [
                *compared,
                "score",
                "setting",
                "of settings",
                "trials",
                "failed",
                "at the edge of the range",
            ],
            wrap=("at the edge of the range",),
            kept=True,
        ),
        f"<p>Score: {escape(' or '.join(sorted(quantities)))} at the end of the last round's "
        "trials, mean over the tuning seeds. The score chose "
        "the setting, so it does not estimate the estimator's performance. The results below "
        "are from later runs, on other seeds and another "
        "split. Extend a range if the chosen value is at its edge.</p>",
    ]
    folded = []
    for key, part in found.groupby(
        list(searched.columns[: searched.columns.get_loc("setting")]), sort=False
    ):
        names = dict(zip(searched.columns, key if isinstance(key, tuple) else (key,)))
        lines = [
            [
                row["round"],
                "" if not np.isfinite(row["steps"]) else f"{row['steps']:.0f}",
                row["setting"],
                _number(row["score"]),
                f"{row['failed']} of {row['trials']}" if row["failed"] else "",
                ("chosen" if row["round"] == part["round"].max() else "went on")
                if row["kept"]
                else "",
            ]
            for _, row in part.iterrows()
        ]
        title = " · ".join(str(names[name]) for name in compared)
        folded.append(
            f"<details><summary>{escape(title)}</summary>"
            + rows_table(lines, ["round", "steps", "setting", "score", "failed", ""])
            + "</details>"
        )
    return [*parts, f"<details><summary>All settings tried</summary>{''.join(folded)}</details>"]


def _numbers(result: Result, at: str | int, frame: pd.DataFrame, kept: np.ndarray) -> list[str]:
    """Bias, variance, cost and scores of every setting; rows that are not `kept` follow in a
    collapsed table with only the columns of the ranking."""
    text = readable(frame)
    keys = keys_of(result, frame)
    text.insert(0, "network", [result.titles[task, model] for task, model, _ in keys])
    main = "metric" if frame["ranked_by"].str.startswith("metric_").any() else "final loss"
    for column in (
        "letters",
        "rank",
        main,
        "estimator",
    ):  # final order: estimator, score, rank, letters
        if column in text:
            text.insert(0, column, text.pop(column))
    try:
        front = pareto(result, at).set_index(["task", "model", "estimator"])["front"]
        text["front"] = ["yes" if front[key] else "" for key in keys]
    except InputError:
        pass  # nothing was measured
    columns = {title: name for name, title in QUANTITIES} | {"rank": "rank"}

    def values(title: str) -> list[object]:
        return frame[columns[title]].tolist() if title in columns else text[title].tolist()

    cells = [
        row
        for row, here in zip(
            zip(*(zip(text[title].astype(str), values(title)) for title in text)), kept
        )
        if here
    ]
    words = caption(frame)
    if "front" in text:
        words += (
            " “front”: on the Pareto front of bias, variance and rows among estimators of the "
            "same target."
        )
    parts = [
        '<h2 id="numbers">All numbers</h2>',
        sortable_table("ranking-table", cells, list(text.columns)),
        f"<p>{escape(words)}</p>",
    ]
    if kept.all():
        return parts
    brief = text.loc[~kept, [column for column in _BRIEF if column in text]]
    counts = f"{int(kept.sum())} of {counted(len(frame), 'setting')}"
    return [
        *parts[:1],
        f"<p>{counts}: of each network the best of every estimator, then the next best. The "
        "runs below are of these settings. "
        f"<code>python3 -m analysis report RESULT.h5 --settings {len(frame)}</code> shows all.</p>",
        *parts[1:],
        f"<details><summary>The other {len(brief)} "
        f"settings</summary>{rows_table(brief.values.tolist(), list(brief.columns))}</details>",
    ]


def figures_part(
    result: Result,
    at: str | int,
    names: Collection[str] | None = None,
    put: Callable[[Figure, str], str] = picture,
    most: int | None = None,
) -> list[str]:
    """The figures that apply, or those of `names`; `put` makes the HTML of a figure and its title;
    `most` as in `draw_all`. Of more than MOST_SETTINGS settings, unless `most` is given, the same
    quantity is not drawn again against every cost, and letters are text."""
    parts = ['<h2 id="figures">Figures</h2>']
    shown, pages = result.page(1, MOST_SHOWN)
    if pages > 1:
        parts.append(
            f"<p>The first {MOST_SHOWN} of {len(result.panels)} networks are drawn here; "
            "<code>python3 -m analysis draw RESULT.h5 --page N</code> draws all.</p>"
        )
    links, drawn, without = [], [], []
    settings = len({group.label for group in result.groups})
    many = most is None and not names and settings > MOST_SETTINGS
    if many:
        put = small_picture
        parts.append(
            f"<p>Curves and points are of the best {MOST_LINES} of {settings} settings, rows of "
            f"the best {MOST_SETTINGS}: those that are first of a network, then those that are "
            "second, and so on. For others: <code>python3 -m analysis draw RESULT.h5 --settings "
            "N</code> or <code>--estimator NAME</code>; against rows, attention values and time: "
            "<code>--figure loss_by_rows</code> and the like.</p>"
        )
    for name, figure in draw_all(shown, at, names, most=most, without=BY_COST if many else ()):
        title = (
            name.replace("_", " ")
            .replace("bias v", "bias and v")
            .replace("heldout", result.evaluated_on)
            .capitalize()
        )
        if isinstance(figure, InputError):
            without.append(f"<li>{escape(title)}: {escape(str(figure))}</li>")
        else:
            links.append(f'<a href="#{name}">{escape(title)}</a>')
            drawn.append(f'<h3 id="{name}">{escape(title)}</h3>{put(figure, title)}')
    lacking = (
        []
        if names
        else [
            "<details><summary>Figures that this result "
            f"lacks</summary><ul>{''.join(without)}</ul></details>"
        ]
        if without
        else []
    )
    return [*parts, f"<nav>{' '.join(links)}</nav>", *drawn, *lacking] if drawn else lacking


def _cells(result: Result, at: str | int, others: int = 0) -> list[str]:
    """Every run, by network and estimator, collapsed; `others` settings are omitted."""
    losses = evaluation_names(result, "heldout")
    columns: dict[str, list[str]] = {}
    for name, title in (
        ("squared_bias", "squared bias"),
        ("variance", "variance"),
        ("rows", "rows"),
        ("bias_p_value_plain", "p (unbiased)"),
        ("bias_p_value", "p (corrected)"),
    ):
        if name in result and "measurement_step" in result.data[name].dims:
            warned = shows_reliability_warning(result, name, result.step(at)) & (name != "rows")
            columns[title] = [
                _number(v) + (" ?" if mark else "")
                for v, mark in zip(per_run(result, name, at), warned)
            ]
    if "total_rows" in result:
        columns["rows in all"] = [_number(v) for v in per_run(result, "total_rows")]
    if "train_cpu_seconds" in result:  # wall time includes all concurrent runs
        columns["CPU seconds of training"] = [
            _number(v) for v in per_run(result, "train_cpu_seconds")
        ]
    ends = result.values("ended_by") if "ended_by" in result else None
    logs = result.values("log") if "log" in result else None
    names = (
        ["seed_hex" if int(seed) < 0 else "seed" for seed in result.values("seed")]
        if "seed" in result
        else None
    )

    def one(group: Group, final: list[str] | None) -> str:
        here = {"final loss": final, **columns} if final is not None else columns
        lines = [
            [
                str(result.values(names[run])[run]) if names else "",
                status,
                *(text[run] for text in here.values()),
                *([str(ends[run]).replace("_", " ")] if ends is not None else []),
                str(result.values("reason")[run]),
            ]
            for run, status in zip(group.runs, group.status)
        ]
        head = ["seed", "status", *here, *(["ended by"] if ends is not None else []), "reason"]
        texts = (
            list(dict.fromkeys(str(logs[run]) for run in group.runs if str(logs[run]).strip()))
            if logs is not None
            else []
        )
        printed = (
            f"<details><summary>printed</summary><pre>{escape(chr(10).join(texts))}</pre></details>"
            if texts
            else ""
        )
        counts = ", ".join(
            f"{group.status.count(s)} {s}"
            for s in ("ok", "failed", "skipped")
            if group.status.count(s)
        )
        return (
            f"<details><summary>{escape(group.label)} – "
            f"{counts}</summary>{rows_table(lines, head, wrap=('reason',))}"
            f"{printed}</details>"
        )

    parts = ['<h2 id="cells">Every run</h2>']
    if others:
        parts.append(
            f"<p>Runs of the best settings only; the file holds those of the other {others} "
            "(<code>hardgrad export RESULT.h5</code>).</p>"
        )
    for (task, model), members in result.panels.items():
        loss = most_common(result, losses, runs_of(members))
        final = [_number(v) for v in per_run(result, loss)] if loss else None
        parts.append(
            f"<details><summary>{escape(task)} · {escape(model)}</summary>"
            + "".join(one(group, final) for group in members)
            + "</details>"
        )
    return parts


def counted(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")


def _number(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value:.4g}"


def _missing(result: Result) -> list[str]:
    missing = [(g, i) for g in result.groups for i in range(len(g.runs)) if g.status[i] != "ok"]
    if not missing:
        return []
    frame = pd.DataFrame(
        [
            [g.status[i], g.label, str(result.values("reason")[g.runs[i]]), g.task, g.model]
            for g, i in missing
        ],
        columns=["status", "estimator", "reason", "task", "model"],
    )
    counted = frame.groupby(list(frame.columns), sort=False).size().reset_index(name="runs")
    return [
        "<h2>Failed and skipped runs</h2>",
        rows_table(counted.values.tolist(), list(counted.columns), wrap=("reason",)),
    ]


def provenance_part(result: Result) -> list[str]:
    skip = {"path", "coordinates", "title", "Conventions"}
    parts = [
        '<h2 id="origin">Provenance</h2>',
        rows_table(
            [[key, value] for key, value in result.data.attrs.items() if key not in skip],
            ["attribute", "value"],
            wrap=("value",),
        ),
    ]
    if "configuration" in result and str(result.values("configuration")):
        parts.append(
            "<h2>How to reproduce</h2><p>Save this as <code>sweep.toml</code>, then "
            "<code>hardgrad run sweep.toml --out DIR &amp;&amp; hardgrad merge DIR --out "
            "RESULT.h5</code>.</p>"
            f"<pre>{escape(str(result.values('configuration')))}</pre>"
        )
    return parts
