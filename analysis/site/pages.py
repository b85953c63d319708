"""The pages of a site: their common frame, the explorer, and one page per estimator and network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..answer_words import difference
from ..groups import Network
from ..numbers_in_words import bare_p, quantity_name, score
from ..output import file_name
from ..page import Html, link, page, rows_table, sortable_table
from ..report import cautions_part, figures_part, findings_part, provenance_part, ranking_part
from ..table import QUANTITIES, caption, keys_of, leading, only, readable
from .studies import Study, answered, command, explored, slug, stage

_FIGURES = ("metric_curves", "bias_variance", "variance_over_training")
_UNTRAINED = ("bias_variance", "variance_against_samples", "bias_against_temperature")
_RANKED = 60  # estimators in the ranking of a network and in the figure of its scores
_DRAWN = 12  # estimators in these figures, the best ones: as many as there are colours
_EXPLORED = ("relative bias", "squared bias", "variance", "variance × rows")


class Site(NamedTuple):
    """The content of all pages."""

    studies: list[Study]
    catalogue: dict[str, dict[str, dict[str, Any]]]  # by kind and name (`program.entries`)
    rows: dict[str, pd.DataFrame]  # `explored`, by study
    answers: dict[str, pd.DataFrame]  # `answered`, by study
    networks: dict[Network, str]  # their short titles

    @classmethod
    def of(cls, studies: list[Study], catalogue: dict[str, dict[str, dict[str, Any]]]) -> Site:
        rows = {study.name: explored(study) for study in studies}
        names: dict[Network, str] = {}
        for study in studies:
            for key, name in study.result.titles.items():
                names.setdefault(
                    key, name if name not in names.values() else f"{name} ({study.name})"
                )
        return cls(
            studies, catalogue, rows, {study.name: answered(study) for study in studies}, names
        )


def document(title: str, parts: Iterable[str], up: str = "") -> str:
    """A page under the common navigation; `up`: the way to the site's folder."""
    places = {
        "index": "Overview",
        "explorer": "Explorer",
        "estimators": "Estimators",
        "networks": "Networks",
        "claims": "Published claims",
    }
    return page(
        f"{title} · Hardgrad",
        [
            "<nav>"
            + " ".join(link(f"{up}{name}.html", text) for name, text in places.items())
            + "</nav>",
            f"<h1>{escape(title)}</h1>",
            *parts,
        ],
        shared=up,
        description=f"{title}: gradient estimators for hard attention, measured by Hardgrad.",
    )


def explorer(site: Site) -> str:
    """Two tables of every estimator, network and stage of training: at fixed and at tuned
    settings."""
    parts = [
        "<p>Every estimator on every network at every measured stage of training. Click a "
        "column's head to sort. A row's command runs it again; its "
        "file holds every number of it.</p>"
    ]
    for tuned, title, words in (
        (
            False,
            "At fixed settings",
            "All estimators of a network have the same settings, such as the learning rate.",
        ),
        (
            True,
            "At tuned settings",
            "Every estimator has the settings that were best for it in trials on other seeds.",
        ),
    ):
        studies = [study for study in site.studies if study.tuned == tuned]
        cells = [row for study in studies for row in _explored_rows(site, study)]
        if cells:
            name = "tuned" if tuned else "fixed"
            parts += [
                f'<h2 id="{name}">{title}</h2><p>{words}</p>',
                sortable_table(
                    f"{name}-table",
                    cells,
                    [
                        "estimator",
                        "network",
                        "stage",
                        *_EXPLORED[:1],
                        *_EXPLORED[2:],
                        "score at the end",
                        "rank",
                        "letters",
                        "target",
                        "file",
                        "command",
                    ],
                    ("estimator", "network", "stage", "target"),
                ),
            ]
    some = pd.concat(list(site.rows.values()))
    return document(
        "Explorer",
        [
            *parts,
            f"<p>{escape(caption(some))} “Rank” and “letters” are of the score at the end, "
            "in the runs of that "
            "file.</p>",
        ],
    )


def _explored_rows(site: Site, study: Study) -> Iterable[list[tuple[str, object]]]:
    frame = site.rows[study.name]
    text = readable(frame)
    keys = {title: name for name, title in QUANTITIES}
    for row, said in zip(frame.to_dict("records"), text.to_dict("records")):
        network = (row["task"], row["model"])
        main = "metric" if str(row["ranked_by"]).startswith("metric_") else "final loss"
        again = command(study, row["task"], row["model"], row["spec"])
        mark = " (yours)" if study.own else ""
        yield [
            (
                link(f"estimators/{file_name(_bare(row['estimator']))}.html", row["label"] + mark),
                row["label"] + mark,
            ),
            (
                link(f"networks/{slug(network)}.html", site.networks[network]),
                site.networks[network],
            ),
            (stage(row["share"]) if np.isfinite(row["share"]) else "–", row["share"]),
            (said.get(_EXPLORED[0], "–"), _shown_bias(row, said.get(_EXPLORED[0], ""))),
            *((said.get(title, "–"), row[keys[title]]) for title in _EXPLORED[2:]),
            (said.get(main, "–"), row[keys[main]]),
            (said["rank"], row["rank"]),
            (row["letters"], row["letters"]),
            (row["target"].replace("_", " "), row["target"]),
            (link(f"data/{study.path.name}", study.path.name), study.path.name),
            (Html(f"<details><summary>show</summary><code>{escape(again)}</code></details>"), ""),
        ]


def _shown_bias(row: dict[str, Any], said: str) -> float:
    """The relative bias that the table shows, as a number: 0 if there is none, an upper limit, or
    the bias."""
    return (
        0.0
        if said == "unbiased"
        else float(row["relative_bias_high" if said.startswith("<") else "relative_bias"])
    )


def _bare(estimator: str) -> str:
    return estimator.split("[")[0]


def estimator_page(site: Site, name: str, described: str, head: str) -> str:
    """The facts of an estimator, where it wins and loses, and its numbers along training."""
    entry = site.catalogue["estimators"].get(name)
    parts = (
        [f"<p>{escape(entry['summary'][:1].upper() + entry['summary'][1:])}.</p>"]
        if entry
        else ["<p>An estimator of your own.</p>"]
    )
    if entry:
        biased = "unbiased" if entry["unbiased"] else "biased"
        other = entry["biased_by"] if entry["unbiased"] else entry["unbiased_by"]
        facts = [
            ("source", entry["paper"]),
            ("target", entry["target"].replace("_", " ")),
            (
                "bias",
                biased
                + (
                    f" ({'biased' if entry['unbiased'] else 'unbiased'} with {', '.join(other)})"
                    if other
                    else ""
                ),
            ),
            (
                "cost",
                f"{entry['evaluations']} evaluations of the network (K samples, S options, T "
                "choices)",
            ),
            ("needs", "; ".join(one["text"] for one in entry["needs"]) or "nothing in particular"),
            (
                "promises, tested",
                _section(described, "PROMISES") or "none beyond its target and bias",
            ),
            (
                "known as",
                "; ".join(f"{one['name']} ({one['paper']})" for one in entry["known_as"]) or "–",
            ),
        ]
        parts.append(rows_table(facts, ["", name], wrap=(name,)))
    if head:
        parts.append(
            f'<h2 id="equations">Equations, from the head of its file</h2><pre>{escape(head)}</pre>'
        )
    parts += _wins(site, name)
    for study in site.studies:
        frame = site.rows[study.name]
        mine = frame[[_bare(one) == name for one in frame["estimator"]]]
        if len(mine) and np.isfinite(mine["share"]).any():
            mine = mine[np.isfinite(mine["share"])]
            parts += [
                f"<h3>{escape(study.name)}: bias and variance</h3>",
                _along(site, study, mine, ("label", "network")),
            ]
    if entry and entry["parameters"]:
        rows = [
            [one["name"], one["default"], one["range"], one["help"]] for one in entry["parameters"]
        ]
        titles = ["parameter", "default", "range", "meaning"]
        text = rows_table(rows, titles, wrap=("meaning",))
        parts.append(f"<details><summary>Parameters</summary>{text}</details>")
    return document(name, parts, "../")


def _section(described: str, title: str) -> str:
    """The lines of a section of `hardgrad describe`, as one."""
    _, _, rest = described.partition(f"\n{title}\n")
    return " ".join(line.strip() for line in rest.split("\n\n")[0].splitlines())


_WORDS = {
    "better": "Better than {} beyond noise on",
    "unclear": "Not distinguishable from {} on",
    "worse": "Worse than {} beyond noise on",
}


def _wins(site: Site, name: str) -> list[str]:
    """Its score on every network, and where it is better or worse, beyond noise, than the estimator
    that all are compared with."""
    rows: list[list[object]] = []
    places: dict[str, list[str]] = {}
    for study in site.studies:
        every = site.answers[study.name]
        found = every[every["budget"] == "steps"] if len(every) else every
        for _, row in (
            found[[_bare(one) == name for one in found["estimator"]]].iterrows()
            if len(found)
            else ()
        ):
            network = (row["task"], row["model"])
            here = link(f"../networks/{slug(network)}.html", site.networks[network])
            if row["verdict"] in _WORDS and row["seeds"] > 1:
                places.setdefault(_WORDS[row["verdict"]].format(row["reference"]), []).append(here)
            target = (
                (found["task"] == network[0])
                & (found["model"] == network[1])
                & (found["target"] == row["target"])
                & np.isfinite(found["rank"])
            )
            rows.append(
                [
                    here,
                    Html(f"<code>{escape(row['estimator'])}</code>"),
                    row["setting"] or "–",
                    f"{quantity_name(row['quantity'])} "
                    f"{score(row['share'], row['score'], row['low'], row['high'])}",
                    f"{row['rank']:.0f} of {int(target.sum())}"
                    if np.isfinite(row["rank"])
                    else "–",
                    row["target"].replace("_", " "),
                    row["reference"],
                    difference(row)
                    if np.isfinite(row["difference"]) and row["verdict"] in _WORDS
                    else "–",
                    bare_p(row["p_corrected"]),
                    _by_rows(every, row),
                    study.name + (" (tuned)" if study.tuned else ""),
                ]
            )
    if not rows:
        return [
            '<h2 id="wins">Where it wins and loses</h2><p>No file here trains a network with '
            "it.</p>"
        ]
    shown = [i for i in range(11) if i != 2 or any(row[2] != "–" for row in rows)]
    head = [
        "network",
        "as",
        "setting",
        "score",
        "rank",
        "target",
        "compared with",
        "behind it",
        "p",
        "at equal rows",
        "file",
    ]
    said = " ".join(
        f"{escape(words)} {', '.join(dict.fromkeys(here))}." for words, here in places.items()
    )
    return [
        '<h2 id="wins">Where it wins and loses</h2>',
        f"<p>{said}</p>",
        rows_table([[row[i] for i in shown] for row in rows], [head[i] for i in shown]),
        "<p>At equal steps, but for the difference at equal rows (evaluations of the network). It "
        "names the other estimator where another is best there; a dash: the runs have no score "
        "at this cost, or no other estimator has one. "
        "Rank: by the mean, among the estimators of its target. "
        "Differences are paired over seeds; positive is worse; intervals and p "
        "are corrected for the comparisons of the network.</p>",
    ]


def _by_rows(every: pd.DataFrame, row: pd.Series) -> str:
    """The comparison at equal rows: the verdict and the difference. It names the reference if that
    is another than at equal steps: the best may change with the budget."""
    here = (every["budget"] == "rows").to_numpy()
    for name in ("estimator", "task", "model"):
        here &= (every[name] == row[name]).to_numpy()
    if not here.any():
        return "–"
    found = every[here].iloc[0]
    if found["verdict"] not in _WORDS:
        return found["verdict"] if found["verdict"] in ("best", "baseline") else "–"
    if found["reference"] == row["reference"]:
        return f"{found['verdict']}, {difference(found)}"
    of = {"unclear": "unclear, from {}"}.get(found["verdict"], found["verdict"] + " than {}")
    return f"{of.format(found['reference'])}, {difference(found)}"


def _along(site: Site, study: Study, frame: pd.DataFrame, first: tuple[str, ...]) -> str:
    """Bias and variance of these rows, by stage of training."""
    text = readable(frame)
    named = {
        "label": frame["label"].tolist(),
        "network": [
            site.networks[task, model] for task, model in zip(frame["task"], frame["model"])
        ],
    }
    shown = [title for title in _EXPLORED if title in text]
    rows = [
        [
            *(named[name][i] for name in first),
            stage(frame["share"].iloc[i]),
            *(text[title].iloc[i] for title in shown),
        ]
        for i in range(len(frame))
    ]
    return rows_table(
        rows, [*("estimator" if name == "label" else name for name in first), "stage", *shown]
    )


def network_page(site: Site, network: Network, put: Callable[[Figure, str], str]) -> str:
    """The findings, ranking, figures and numbers of every study of a network; `put` writes a figure
    and makes its HTML."""
    task, model = (
        site.catalogue[kind].get(_bare(spec), {})
        for kind, spec in zip(("tasks", "models"), network)
    )
    parts = [
        f"<p><code>{escape(network[0])}</code> with <code>{escape(network[1])}</code></p>",
        rows_table(
            [
                ["task", task.get("summary", "–")],
                ["model", model.get("summary", "–")],
                ["source of the model", model.get("paper", "–")],
            ],
            ["", "in a sentence"],
            wrap=("in a sentence",),
        ),
    ]
    for study in site.studies:
        found = site.answers[study.name]
        frame = site.rows[study.name]
        frame = frame[(frame["task"] == network[0]) & (frame["model"] == network[1])]
        if not len(frame):
            continue
        result = study.result.network(network)
        part = (
            found[(found["task"] == network[0]) & (found["model"] == network[1])]
            if len(found)
            else found
        )
        half = frame[frame["step"] == _nearest_half(frame)]
        half.attrs["measured_at"] = (
            f"step {half['step'].iloc[0]}" if half["step"].iloc[0] >= 0 else None
        )
        title = study.name + (", tuned settings" if study.tuned else "")
        parts += [
            f'<h2 id="{escape(study.name)}">{escape(title)}</h2>',
            *_deeper(findings_part(result, "half")),
            *_deeper(ranking_part(result, part, half, 1, _RANKED)),
            *_deeper(cautions_part(result)),
        ]
        if np.isfinite(frame["share"]).any():
            sorted_rows = frame.sort_values(["share", "rank"], kind="stable")
            parts.append(
                "<details><summary>Bias and variance along "
                f"training</summary>{_along(site, study, sorted_rows, ('label',))}</details>"
            )
        keys, kept = keys_of(result, half), leading(half, _DRAWN)
        best = only(result, {key for key, here in zip(keys, kept) if here})
        if np.nanmax(frame["share"].fillna(1)) > 0:
            parts += _deeper(
                [
                    *figures_part(result, "half", ("final_scores",), put, _RANKED),
                    *figures_part(best, "half", _FIGURES, put)[1:],
                ]
            )
        else:
            parts += _deeper(figures_part(best, "half", _UNTRAINED, put))
        parts += (
            [f"<p>The curves and points are of the {_DRAWN} best estimators of {len(kept)}.</p>"]
            if not kept.all()
            else []
        )
        parts.append(
            f"<p>Again: <code>{escape(command(study, *network))}</code>. Numbers: "
            f"{link(f'../data/{study.path.name}', study.path.name)}.</p>"
        )
        parts.append(
            "<details><summary>Provenance</summary>"
            + "".join(_deeper(provenance_part(result)))
            + "</details>"
        )
    return document(site.networks[network], parts, "../")


def _nearest_half(frame: pd.DataFrame) -> int:
    return int(
        frame["step"].iloc[int(np.argmin(np.abs(frame["share"].fillna(0).to_numpy() - 0.5)))]
    )


def _deeper(parts: Iterable[str]) -> list[str]:
    """Sections of the report as parts of a section: their headings a level lower, without
    anchors."""
    return [
        part.replace("<h3", "<h4")
        .replace("</h3>", "</h4>")
        .replace("<h2", "<h3")
        .replace("</h2>", "</h3>")
        for part in parts
    ]
