"""A result as one self-contained HTML page that opens offline, without a server."""

from __future__ import annotations

import tomllib
from html import escape
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from .answer import answer
from .answer_words import HEAD, close_settings, lines, subject
from .answer_words import caption as caption_of_answer
from .attending import CERTAIN, certain, collapsed
from .drawing import titles
from .errors import InputError
from .figures import draw_all
from .frames import per_run
from .groups import Group, evaluated_on, groups, panels
from .groups import page as pick_page
from .inference import pareto, ranking
from .leading import MOST_SETTINGS, keys_of, leading, runs_of
from .page import page, picture, rows_table, sortable_table
from .rounding import marked
from .table import QUANTITIES, caption, evaluation_names, measurement_step, most_common, readable, table
from .tried import chosen, tried

_BRIEF = ("rank", "network", "estimator", "final loss", "variance", "runs")  # columns for settings that are not shown in full
MOST_SHOWN = 6  # tasks and models drawn within the page


def report(data: xr.Dataset, at: str | int = "first", trials: xr.Dataset | None = None, most: int = MOST_SETTINGS) -> str:
    """The page: summary, best estimators, tuning, ranking table, figures, every cell, failures and skips, and how to reproduce the result.
    `trials`: as returned by `load_tuning`. For each network the `most` best settings (`leading.leading`) are ranked in full, drawn
    and listed run by run; the others are in a collapsed table."""
    sweep = _sweep(data)
    title = sweep.get("name") or Path(str(data.attrs.get("path", ""))).stem or "Results"
    frame = table(data, at)
    kept = leading(frame, most)
    shown = data if kept.all() else runs_of(data, {key for key, here in zip(keys_of(data, frame), kept) if here})
    return page(f"{title}: {data.attrs.get('title', 'results')}",
                [f"<h1>{escape(title)}</h1>", *_summary(data, sweep.get("description", ""), trials), *_answer(data, trials), *_tuning(data, trials),
                 *_ranking(data, at, frame, kept), *_figures(shown, at), *_cells(shown, at, len(kept) - int(kept.sum())),
                 *_missing(data), *_origin(data)])


def _sweep(data: xr.Dataset) -> dict[str, str]:
    """Texts at the top of the sweep's configuration, such as name and description; empty if the result is not from a sweep."""
    try:
        found = tomllib.loads(str(data["configuration"].values)) if "configuration" in data else {}
    except tomllib.TOMLDecodeError:
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _summary(data: xr.Dataset, description: str, trials: xr.Dataset | None) -> list[str]:
    counted = [status for group in groups(data) for status in group.status]
    found = panels(data)
    labels = {group.label for members in found.values() for group in members}
    kinds = {group.estimator for members in found.values() for group in members}
    at_settings = f" at {len(labels)} settings" if len(labels) > len(kinds) else ""
    seeds = set(data["seed"].values.tolist()) if "seed" in data.variables else set()
    parts = ["<p>" + escape(
        (f"{description[:1].upper()}{description[1:]}. " if description else "")
        + f"{data.sizes['run']} runs: " + ", ".join(f"{counted.count(s)} {s}" for s in ("ok", "failed", "skipped") if counted.count(s))
        + f". {_counted(len(kinds), 'estimator')}{at_settings} on {_counted(len(found), 'network')}, {_counted(len(seeds), 'seed')} each at most."
        + (f" {trials.sizes['run']} earlier trials tuned their settings." if trials is not None else "")
        + (f" Run on {data.attrs['cpu']} (threads: {data.attrs.get('threads', '?')}); merged "
           f"{str(data.attrs.get('created_at', ''))[:16].replace('T', ' ')} UTC."
           if "cpu" in data.attrs else "")) + "</p>"]
    if data.attrs.get("status") != "complete":
        parts.append('<p class="warn"><strong>This result is incomplete: it lacks cells of the plan.</strong></p>')
    names = dict(zip(found, titles(list(found))))
    for panel, estimators in collapsed(data).items():
        parts.append(f'<p class="warn"><strong>Attention has collapsed</strong> on {escape(names[panel])} with {escape(", ".join(estimators))}: '
                     "nearly all words of a sentence attend to one position (metric_positions_used). The comparison there is between "
                     "decoders that practically do not use attention.</p>")
    for panel, estimators in certain(data).items():
        parts.append(f'<p class="warn"><strong>The policy is deterministic</strong> on {escape(names[panel])} with '
                     f"{escape(', '.join(estimators))}: at the last measurement all choices of a network had an entropy below "
                     f"{CERTAIN:g} nat (attention_entropy). Variance and bias there do not characterise the estimator.</p>")
    parts.append('<nav><a href="#answer">Answer</a> '
                 + ('<a href="#tuning">Tuning</a> ' if trials is not None else "") + '<a href="#ranking">Ranking</a> <a href="#figures">Figures</a> <a href="#cells">Every run</a> '
                 '<a href="#origin">Provenance</a></nav>')
    return parts


def _answer(data: xr.Dataset, trials: xr.Dataset | None) -> list[str]:
    """The best estimator at equal cost, in words; empty if nothing was trained."""
    shown, pages = pick_page(data, 1, MOST_SHOWN)
    try:
        found = answer(shown)
    except InputError:
        return []
    parts = ['<h2 id="answer">Which estimator is best?</h2>']
    names = dict(zip(panels(data), titles(list(panels(data)))))
    if pages > 1:
        parts.append(f"<p>The first {MOST_SHOWN} of {len(names)} networks; <code>python3 -m analysis answer RESULT.h5</code> lists all.</p>")
    rows, missing, close = [], [], []
    for panel, part in found.groupby(["task", "model"], sort=False):
        rows += [[name, *line] for name, line in zip_longest([names[panel], *subject(part).split(", ")], lines(part), fillvalue="")]
        close += [f"<p>{escape(names[panel])}: {escape(sentence[:1].lower() + sentence[1:])}</p>" for sentence in close_settings(part)]
        never = set(part["estimator"]) - set(part.loc[part["verdict"] != "none", "estimator"])
        missing += [f"{names[panel]}: {', '.join(sorted(never))}"] if never else []
    words = caption_of_answer(found, trials is not None)
    if missing:
        words += f" Not compared, because they do not define this loss: {'; '.join(missing)}."
    return [*parts, rows_table(rows, ["network", *HEAD], wrap=("best",), kept=True), *close, f"<p>{escape(words)}</p>"]


def _tuning(data: xr.Dataset, trials: xr.Dataset | None) -> list[str]:
    """Settings tried and chosen for each estimator; empty without tuning."""
    searched = chosen(data, trials)
    if searched is None or trials is None:
        return []
    found, several = tried(trials), len(panels(data)) > 1
    compared = [name for name in searched.columns[: searched.columns.get_loc("setting")] if name not in ("task", "model")] + (["task", "model"] if several else [])
    quantities = {str(q).removeprefix("heldout_").removeprefix("metric_").replace("_", " ") for q in searched["quantity"] if q}
    rows = [[*(row[name] for name in compared), _number(row["score"]), row["setting"] or "none", row["settings"], row["trials"], row["failed"] or "",
             row["edge"] or ""] for _, row in searched.iterrows()]
    parts = ['<h2 id="tuning">Tuned settings</h2>',
             rows_table(rows, [*compared, "score", "setting", "of settings", "trials", "failed", "at the edge of the range"], wrap=("at the edge of the range",),
                        kept=True),
             f"<p>Score: {escape(' or '.join(sorted(quantities)))} at the end of the last round's trials, mean over the tuning seeds. The score chose "
             "the setting, so it does not estimate the estimator's performance. The results below are from later runs, on other seeds and another "
             "split. Extend a range if the chosen value is at its edge.</p>"]
    folded = []
    for key, part in found.groupby(list(searched.columns[: searched.columns.get_loc("setting")]), sort=False):
        names = dict(zip(searched.columns, key if isinstance(key, tuple) else (key,)))
        lines = [[row["round"], "" if not np.isfinite(row["steps"]) else f"{row['steps']:.0f}", row["setting"], _number(row["score"]),
                  f"{row['failed']} of {row['trials']}" if row["failed"] else "", ("chosen" if row["round"] == part["round"].max() else "went on") if row["kept"] else ""]
                 for _, row in part.iterrows()]
        folded.append(f"<details><summary>{escape(' · '.join(str(names[name]) for name in compared))}</summary>"
                      + rows_table(lines, ["round", "steps", "setting", "score", "failed", ""]) + "</details>")
    return [*parts, f"<details><summary>All settings tried</summary>{''.join(folded)}</details>"]


def _ranking(data: xr.Dataset, at: str | int, frame: pd.DataFrame, kept: np.ndarray) -> list[str]:
    """The ranking table; rows that are not `kept` follow in a collapsed table with only the columns of the ranking."""
    text = readable(frame)
    keys = keys_of(data, frame)
    names = {panel: name for panel, name in zip(panels(data), titles(list(panels(data))))}
    text.insert(0, "network", [names[task, model] for task, model, _ in keys])
    for column in ("rank", "final loss", "estimator"):  # final order: estimator, final loss, rank
        if column in text:
            text.insert(0, column, text.pop(column))
    try:
        ranked = ranking(data).set_index(["task", "model", "estimator"])
        frame["ranks first"] = [ranked.at[key, "best"] for key in keys]
        text.insert(text.columns.get_loc("rank") + 1, "ranks first", ["–" if not np.isfinite(best) else f"{100 * best:.0f}%" for best in frame["ranks first"]])
    except InputError:
        pass  # nothing was trained
    try:
        front = pareto(data, at).set_index(["task", "model", "estimator"])["front"]
        text["front"] = ["yes" if front[key] else "" for key in keys]
    except InputError:
        pass  # nothing was measured
    columns = {title: name for name, title in QUANTITIES} | {"rank": "rank", "ranks first": "ranks first"}

    def values(title: str) -> list[object]:
        return frame[columns[title]].tolist() if title in columns else text[title].tolist()

    cells = [row for row, here in zip(zip(*(zip(text[title].astype(str), values(title)) for title in text)), kept) if here]
    words = caption(frame)
    if "ranks first" in text:
        words += (" “ranks first” is the share of bootstrap resamples over seeds in which its mean is the best; it is overconfident with few "
                  "seeds.")
    if "front" in text:
        words += " “front”: on the Pareto front of bias, variance and rows among estimators of the same target."
    parts = ['<h2 id="ranking">Ranking</h2>', sortable_table("ranking-table", cells, list(text.columns)), f"<p>{escape(words)}</p>"]
    if kept.all():
        return parts
    brief = text.loc[~kept, [column for column in _BRIEF if column in text]]
    counts = f"{int(kept.sum())} of {_counted(len(frame), 'setting')}"
    return [*parts[:1], f"<p>{counts}: of each network the best of every estimator, then the next best. The figures and runs below show these settings. "
            f"<code>python3 -m analysis report RESULT.h5 --settings {len(frame)}</code> shows all.</p>", *parts[1:],
            f"<details><summary>The other {len(brief)} settings</summary>{rows_table(brief.values.tolist(), list(brief.columns))}</details>"]


def _figures(data: xr.Dataset, at: str | int) -> list[str]:
    parts = ['<h2 id="figures">Figures</h2>']
    shown, pages = pick_page(data, 1, MOST_SHOWN)
    if pages > 1:
        parts.append(f"<p>The first {MOST_SHOWN} of {len(panels(data))} networks are drawn here; "
                     "<code>python3 -m analysis draw RESULT.h5 --page N</code> draws all.</p>")
    links, drawn = [], []
    for name, figure in draw_all(shown, at):
        title = name.replace("_", " ").replace("bias v", "bias and v").replace("heldout", evaluated_on(data)).capitalize()
        if isinstance(figure, InputError):
            drawn.append(f"<p>{escape(title)}: not drawn: {escape(str(figure))}</p>")
        else:
            links.append(f'<a href="#{name}">{escape(title)}</a>')
            drawn.append(f'<h3 id="{name}">{escape(title)}</h3>{picture(figure, title)}')
    return [*parts, f"<nav>{' '.join(links)}</nav>", *drawn]


def _cells(data: xr.Dataset, at: str | int, others: int = 0) -> list[str]:
    """Every run, by network and estimator, collapsed; `others` settings are omitted."""
    losses = evaluation_names(data, "heldout")
    columns: dict[str, list[str]] = {}
    for name, title in (("squared_bias", "squared bias"), ("variance", "variance"), ("rows", "rows"), ("bias_p_value_plain", "p (unbiased)"),
                        ("bias_p_value", "p (corrected)")):
        if name in data and "measurement_step" in data[name].dims:
            doubtful = marked(data, name, measurement_step(data, at)) & (name != "rows")
            columns[title] = [_number(v) + (" ?" if mark else "") for v, mark in zip(per_run(data, name, at), doubtful)]
    if "total_rows" in data:
        columns["rows in all"] = [_number(v) for v in per_run(data, "total_rows")]
    if "train_cpu_seconds" in data:  # wall time includes all concurrent runs
        columns["CPU seconds of training"] = [_number(v) for v in per_run(data, "train_cpu_seconds")]
    ends = data["ended_by"].values if "ended_by" in data else None
    logs = data["log"].values if "log" in data else None
    names = ["seed_hex" if int(seed) < 0 else "seed" for seed in data["seed"].values] if "seed" in data.variables else None

    def one(group: Group, final: list[str] | None) -> str:
        here = {"final loss": final, **columns} if final is not None else columns
        lines = [[str(data[names[run]].values[run]) if names else "", status, *(text[run] for text in here.values()),
                  *([str(ends[run]).replace("_", " ")] if ends is not None else []),
                  str(data["reason"].values[run])] for run, status in zip(group.runs, group.status)]
        head = ["seed", "status", *here, *(["ended by"] if ends is not None else []), "reason"]
        texts = list(dict.fromkeys(str(logs[run]) for run in group.runs if str(logs[run]).strip())) if logs is not None else []
        printed = f"<details><summary>printed</summary><pre>{escape(chr(10).join(texts))}</pre></details>" if texts else ""
        counts = ", ".join(f"{group.status.count(s)} {s}" for s in ("ok", "failed", "skipped") if group.status.count(s))
        return (f"<details><summary>{escape(group.label)} – {counts}</summary>{rows_table(lines, head, wrap=('reason',))}"
                f"{printed}</details>")

    parts = ['<h2 id="cells">Every run</h2>']
    if others:
        parts.append(f"<p>Runs of the best settings only; the file holds those of the other {others} (<code>hardgrad export RESULT.h5</code>).</p>")
    for (task, model), members in panels(data).items():
        loss = most_common(data, losses, np.concatenate([group.runs for group in members]))
        final = [_number(v) for v in per_run(data, loss)] if loss else None
        parts.append(f"<details><summary>{escape(task)} · {escape(model)}</summary>"
                     + "".join(one(group, final) for group in members) + "</details>")
    return parts


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")


def _number(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value:.4g}"


def _missing(data: xr.Dataset) -> list[str]:
    missing = [(g, i) for g in groups(data) for i in range(len(g.runs)) if g.status[i] != "ok"]
    if not missing:
        return []
    frame = pd.DataFrame([[g.status[i], g.label, str(data["reason"].values[g.runs[i]]), g.task, g.model] for g, i in missing],
                         columns=["status", "estimator", "reason", "task", "model"])
    counted = frame.groupby(list(frame.columns), sort=False).size().reset_index(name="runs")
    return ["<h2>Failed and skipped runs</h2>", rows_table(counted.values.tolist(), list(counted.columns), wrap=("reason",))]


def _origin(data: xr.Dataset) -> list[str]:
    skip = {"path", "coordinates", "title", "Conventions"}
    parts = ['<h2 id="origin">Provenance</h2>',
             rows_table([[key, value] for key, value in data.attrs.items() if key not in skip], ["attribute", "value"], wrap=("value",))]
    if "configuration" in data and str(data["configuration"].values):
        parts.append("<h2>How to reproduce</h2><p>Save this as <code>sweep.toml</code>, then "
                     "<code>hardgrad run sweep.toml --out DIR &amp;&amp; hardgrad merge DIR --out RESULT.h5</code>.</p>"
                     f"<pre>{escape(str(data['configuration'].values))}</pre>")
    return parts
