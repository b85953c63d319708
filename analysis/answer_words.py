"""Which estimator is best, in words: as sentences, as a table, with a caption."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd

from .answer import BUDGETS, MANY
from .numbers_in_words import difference_in_words, p_value, quantity_name
from .numbers_in_words import score as in_percent
from .statistics import fewest_pairs, least_p
from .tried import said

_MOST_CLOSE = 3  # estimators whose close settings are named
_MOST_SHOWN = MANY  # estimators of one verdict against a baseline


def subject(found: pd.DataFrame) -> str:
    """The compared quantity: "held-out expected loss, lower is better"."""
    quantity = str(found["quantity"].iloc[0])
    return (
        f"{found['split'].iloc[0]} {quantity_name(quantity)}, "
        f"{'lower' if found['lower_is_better'].iloc[0] else 'higher'} is better"
    )


def _budget(row: pd.Series) -> str:
    return (
        f"{BUDGETS[row['budget']]} ({row['at']:,.0f})"
        if row["budget"] != "cpu_seconds"
        else f"{BUDGETS[row['budget']]} ({row['at']:,.3g})"
    )


def _reference(part: pd.DataFrame) -> pd.Series:
    """The row of the estimator to which the others are compared."""
    return part[part["estimator"] == part["reference"]].iloc[0]


def _with_score(row: pd.Series) -> str:
    return in_percent(row["share"], row["score"], row["low"], row["high"])


#: Columns of `lines`.
HEAD = (
    "at equal",
    "compared with",
    "its score",
    "better beyond noise",
    "not distinguishable from",
    "smallest difference",
    "seeds needed",
    "worse beyond noise",
)


def lines(found: pd.DataFrame) -> list[list[str]]:
    """The answer for one network as a table, a line for each budget."""
    table = []
    for _, part in found.groupby("budget", sort=False):
        best = _reference(part)
        better, unclear, worse = (
            part[part["verdict"] == verdict] for verdict in ("better", "unclear", "worse")
        )
        near = unclear.iloc[0] if len(unclear) else None
        if best["verdict"] in ("none", "alone"):
            table.append(
                [
                    _budget(best),
                    "–" if best["verdict"] == "none" else f"– (only {_at(best)} has a value)",
                ]
                + ["–"] * (len(HEAD) - 2)
            )
            continue
        table.append(
            [
                _budget(best),
                f"{_at(best)} ({best['verdict']})",
                _with_score(best),
                _names(better, 1) or "–",
                _names(unclear, 1) or "–",
                difference(near) if near is not None else "–",
                "–"
                if near is None or np.isnan(near["seeds_needed"])
                else f"{near['seeds_needed']:.0f}"
                if np.isfinite(near["seeds_needed"])
                else "over 1,000"
                if near["difference"]
                else "–",
                _names(worse, 1) or "–",
            ]
        )
    return table


def sentences(found: pd.DataFrame) -> list[str]:
    """The answer for one network in words, a sentence or two for each budget; against a baseline,
    all estimators with their differences."""
    said = []
    for _, part in found.groupby("budget", sort=False):
        best = _reference(part)
        head = f"At equal {_budget(best)}: "
        if best["verdict"] in ("none", "alone"):
            why = "no" if best["verdict"] == "none" else "only one"
            said.append(
                head
                + f"{why} estimator has a value there; evaluate more often (train.evaluate_every)."
            )
            continue
        words = head + f"{_at(best)}, {_with_score(best)}"
        if best["verdict"] == "baseline":
            said.append(words + f" (the baseline). {_against(part)}")
            continue
        unclear, worse = part[part["verdict"] == "unclear"], part[part["verdict"] == "worse"]
        if len(unclear):
            near = unclear.iloc[0]
            words += f"; not distinguishable from {_names(unclear)}"
            words += f": {_shown(near)}{_needed(near)}."
        else:
            words += "."
        equal = part[part["verdict"] == "equivalent"]
        if len(equal):
            words += f" No difference that matters: {_names(equal)}."
        if len(worse):
            near = worse.iloc[0]
            words += (
                f" {'Next' if not len(unclear) else 'Worse beyond noise'}: "
                f"{_shown(near)}{_setting(near)}, {p_value(near['p_corrected'])}."
            )
        said.append(words)
    missing = found[found["verdict"] == "none"]
    for names, budgets in _together(missing).items():
        where = (
            ""
            if len(budgets) == found["budget"].nunique()
            else f" at equal {' and '.join(BUDGETS[b] for b in budgets)}"
        )
        said.append(
            f"No value{where}: {names} (it has another loss, or no evaluation near this "
            "cost: train.evaluate_every)."
        )
    return said + _failures(found) + close_settings(found)


def _against(part: pd.DataFrame) -> str:
    """Every estimator against the baseline: better, unclear and worse."""
    words = []
    for verdict, title in (
        ("better", "Better beyond noise"),
        ("equivalent", "No difference that matters"),
        ("unclear", "Not distinguishable"),
        ("worse", "Worse beyond noise"),
    ):
        each = [
            _shown(row)
            + (f" ({p_value(row['p_corrected'])})" if np.isfinite(row["p_corrected"]) else "")
            for _, row in part[part["verdict"] == verdict].iterrows()
        ]
        if len(each) > _MOST_SHOWN + 1:
            each[_MOST_SHOWN:] = [f"and {len(each) - _MOST_SHOWN} more"]
        words += [f"{title}: {'; '.join(each)}."] if each else []
    return " ".join(words)


def _failures(found: pd.DataFrame) -> list[str]:
    """Estimators with failed runs, at the chosen setting and at all settings."""
    part = found[found["budget"] == found["budget"].iloc[0]]
    part = part[part["tried_failed"] > 0]
    if part.empty:
        return []
    each = ", ".join(
        f"{row.estimator} {row.tried_failed} of {row.tried}"
        + (f" ({row.failed} of {row.runs} at the chosen setting)" if row.tried > row.runs else "")
        for row in part.itertuples()
    )
    return [
        f"Failed runs, and runs with an infinite loss: {each}. Such a run counts as the "
        "worst score of the network."
    ]


def close_settings(found: pd.DataFrame) -> list[str]:
    """Estimators with settings that do not differ from the chosen one beyond noise, where the seeds
    chose the setting."""
    part = found[(found["budget"] == found["budget"].iloc[0]) & (found["settings_close"] > 0)]
    each = [
        f"{row.estimator} {row.settings_close} of {row.settings - 1} (next {row.next_setting} "
        f"{difference_in_words(row.next_difference, row.next_low, row.next_high)})"
        for row in part.head(_MOST_CLOSE).itertuples()
    ]
    if not each:
        return []
    more = f" and {len(part) - len(each)} more estimators" if len(part) > len(each) else ""
    return [f"Settings not distinguishable from the chosen one: {', '.join(each)}{more}."]


def _together(missing: pd.DataFrame) -> dict[str, list[str]]:
    """Budgets by the names of the estimators without a value there."""
    found: dict[str, list[str]] = {}
    for budget, part in missing.groupby("budget", sort=False):
        found.setdefault(_names(part), []).append(str(budget))
    return found


def caption(found: pd.DataFrame, beforehand: bool = False) -> str:
    """How to read the answer. `beforehand`: the settings were chosen by other runs."""
    seeds, tests = int(found["seeds"].max()), int(found["tests"].max())
    chosen = (
        " or ".join(f"the {one}" for one in ("best", "baseline") if one in set(found["verdict"]))
        or "the best"
    )
    words = (
        f"Mean over seeds ± half of its 95% interval. Differences to {chosen} are paired "
        "over seeds, with a [95% interval]; positive is worse. "
        "Each estimator is shown at its best setting, "
        + (
            "chosen beforehand, on other seeds and another split. Intervals do not include "
            "the uncertainty of this choice. "
            if beforehand
            else "chosen by the other seeds. "
        )
        + "Costs include the training that a run started from. Scores are interpolated "
        "linearly between close evaluations; otherwise "
        "there is no value."
    )
    if seeds > 1 and tests:
        family = (
            "comparisons with the baseline"
            if chosen == "the baseline"
            else "pairs of estimators, since the same numbers choose the best"
        )
        words += (
            " Each network at one budget is one question: its intervals of differences and "
            "p (paired t tests, widened for skewed and discrete "
            f"scores) are corrected for the {tests} {family} (at most; Dunn 1961), so they "
            "hold simultaneously. Two estimators are not "
            "distinguishable if the interval of their difference contains 0. No p is below "
            f"{least_p(seeds):.2g}, the least that {seeds} seeds can "
            "give (sign flips)."
        )
        words += (
            ""
            if seeds >= fewest_pairs()
            else f" Fewer than {fewest_pairs()} seeds give no interval of 95% and no verdict."
        )
    return words


def _at(row: pd.Series) -> str:
    return str(row["estimator"]) + _setting(row)


def _setting(row: pd.Series) -> str:
    return (f" with {row['setting']}" if row["setting"] else "") + (
        f" (at the end of the range tried: {row['edge']}; extend it)" if row["edge"] else ""
    )


def _names(part: pd.DataFrame, most: int = 3) -> str:
    """The names, or the first ones and the number of the others, which is at least 2."""
    names = list(part["estimator"])
    return (
        ", ".join(names)
        if len(names) <= most + 1
        else ", ".join(names[:most]) + f" and {len(names) - most} more"
    )


def _shown(row: pd.Series) -> str:
    return f"{row['estimator']} {difference(row)}"


def difference(row: pd.Series) -> str:
    """The difference to the reference; of shares in percentage points."""
    points = bool(row["share"])
    here = (
        float(row[name]) * (100 if points else 1)
        for name in ("difference", "difference_low", "difference_high")
    )
    words = difference_in_words(*here)
    return words + " points" if points and np.isfinite(row["difference"]) else words


def _needed(row: pd.Series) -> str:
    if not np.isfinite(row["seeds_needed"]):
        return (
            ""
            if np.isnan(row["seeds_needed"]) or row["difference"] == 0
            else ", which needs over 1,000 seeds"
        )
    return f"; {row['seeds_needed']:.0f} seeds would resolve a difference of this size"


def format_answer(
    found: pd.DataFrame,
    searched: pd.DataFrame | None = None,
    equivalence_margin: float = 0.0,
    missing: Sequence[str] = (),
) -> str:
    """The answers for all networks as plain text, with a caption. `searched`: how settings were
    chosen (`tried.chosen`). `equivalence_margin`: as in `answer`. `missing`: networks without an
    answer (`answer.unranked`)."""
    blocks = []
    for (task, model), part in found.groupby(["task", "model"], sort=False):
        lines = [f"{task} · {model} · {subject(part)}"]
        lines += [
            textwrap.fill(sentence, 120, initial_indent="  ", subsequent_indent="    ")
            for sentence in sentences(part)
        ]
        blocks.append("\n".join(lines))
    if searched is not None:
        blocks.append(
            "Tuned beforehand:\n"
            + "\n".join(
                textwrap.fill(line, 120, initial_indent="  ", subsequent_indent="    ")
                for line in said(searched)
            )
        )
    blocks += [textwrap.fill(f"{line}.", 120, subsequent_indent="  ") for line in missing]
    words = caption(found, searched is not None) + (
        f" Differences up to {equivalence_margin:g} do not matter: "
        "better and worse are beyond them."
        if equivalence_margin
        else ""
    )
    return "\n\n".join([*blocks, textwrap.fill(words, 120)])
