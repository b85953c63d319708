"""Which estimator is best: each at its best settings, at equal cost, and how sure that is."""

from __future__ import annotations

import textwrap
from itertools import combinations

import numpy as np
import pandas as pd
import xarray as xr

from .budgets import at_budget, cost_so_far, reached
from .errors import InputError
from .groups import Group, by_seed, evaluated_on, in_words, panels
from .inference import FINAL_LOSS, lower_is_better
from .load import need
from .statistics import Difference, holm, mean_interval, paired_difference, pairs_needed, shared_ranks
from .table import evaluation_names, most_common, with_interval
from .tried import said
from .tuning import at_edge, tuned

#: What is made equal, and how people read it.
BUDGETS = {"steps": "steps", "rows": "rows", "cpu_seconds": "CPU seconds"}
LEVEL = 0.05
POWER = 0.8


def answer(data: xr.Dataset, quantity: str = FINAL_LOSS) -> pd.DataFrame:
    """One row per task, model, budget and estimator, the best first.

    Compared are the estimators; further axes of the grid, such as learning rates, are tuned: each estimator stands at the setting
    best for it (`setting`; `edge` names what lies at the end of its range), its seeds scored at what the other seeds chose
    (`tuning.tuned`). Where the sweep has tuned already ([tune]), the setting and its edge are those. `quantity` is the held-out loss that ranks (or any other held-out loss or metric by its variable's name) when
    training had cost `at` steps, rows or processor seconds: the most that every run of the network reached.

    `score`, `low`, `high`: mean over seeds and its 95% interval. `difference`, `difference_low`, `difference_high`: to the best, paired
    over seeds, above zero is worse. `p_value` is that of the paired t test, `p_corrected` the same corrected for all pairs of
    estimators and all budgets of the network (Holm 1979). `verdict`: best; worse; unclear (it cannot be told apart from the best);
    alone; none (no number at this cost). `failed` of `runs` failed at the chosen setting, `tried_failed` of `tried` at all: each counts
    as the worst score of the network. `rank` counts the estimators that are better beyond noise. `seeds_needed`: how many seeds
    would tell it apart from the best with 80% probability if the difference is as large as it looks.
    """
    rows: list[dict[str, object]] = []
    costs = _costs(data)
    for (task, model), members in panels(data).items():
        name = _variable(data, members, quantity)
        if name is not None:
            split = evaluated_on(data, np.concatenate([group.runs for group in members]))
            rows += [{"task": task, "model": model, "quantity": name, "split": split, **row} for row in _panel(data, members, name, costs)]
    if not rows:
        raise InputError(f"{data.attrs.get('path', 'result')}: has no {'held-out loss' if quantity == FINAL_LOSS else quantity}: nothing was "
                         "evaluated (set train.steps, and train.evaluate_every for more than the end)")
    return pd.DataFrame(rows)


def _costs(data: xr.Dataset) -> dict[str, np.ndarray]:
    """By budget, what training had cost at each evaluation, [run, evaluation_step]; what an earlier version did not record is left
    out. Nothing without evaluations."""
    found: dict[str, np.ndarray] = {}
    for budget in BUDGETS if "evaluation_step" in data.dims else ():
        try:
            found[budget] = cost_so_far(data, "evaluation_step", budget)
        except InputError:
            continue
    return found


def _variable(data: xr.Dataset, members: list[Group], quantity: str) -> str | None:
    if quantity != FINAL_LOSS:
        need(data, quantity, f"what was evaluated has: {', '.join(evaluation_names(data, 'heldout') + evaluation_names(data, 'metric'))}")
        return quantity
    runs = np.concatenate([group.runs for group in members])
    losses = evaluation_names(data, "heldout")
    loss = most_common(data, losses, runs)
    shared = [name for name in evaluation_names(data, "metric") if _had_by_all(data, members, name)]
    return shared[0] if loss and shared and not _had_by_all(data, members, loss) else loss


def _had_by_all(data: xr.Dataset, members: list[Group], name: str) -> bool:
    """Whether every estimator that has an evaluation at all has this one."""
    evaluated = evaluation_names(data, "heldout") + evaluation_names(data, "metric")
    def has(runs: np.ndarray, names: list[str]) -> bool:
        return any(np.isfinite(data[one].values[runs]).any() for one in names)
    return all(has(group.runs, [name]) for group in members if has(group.runs, evaluated))


def _panel(data: xr.Dataset, members: list[Group], name: str, costs: dict[str, np.ndarray]) -> list[dict[str, object]]:
    """Rows of one network: every budget, every estimator, with p-values corrected over all of them."""
    estimators = list(dict.fromkeys(group.estimator for group in members))
    failed = np.zeros(data.sizes["run"], bool)
    for group in members:
        failed[group.runs] = [status == "failed" for status in group.status]
    runs = np.concatenate([group.runs for group in members])
    values = data[name].values[runs]
    sign = 1 if lower_is_better(name) else -1
    sections: list[_Section] = []
    tests: list[float] = []
    for budget, places in costs.items():
        ends = np.where(failed[runs], np.nan, reached(values, places[runs]))  # what fell over limits no one else
        if not np.isfinite(ends).any():
            continue
        limit = float(np.nanmin(ends))
        scores = np.full(data.sizes["run"], np.nan)
        scores[runs] = sign * at_budget(values, places[runs], limit)
        scores[failed] = np.nanmax(np.where(failed, np.nan, scores)) if np.isfinite(scores[~failed]).any() else np.nan
        section = _Section(budget, limit, by_seed(data, members, scores)[0], members, estimators)
        sections.append(section)
        tests += section.p_values.values()
    corrected = iter(holm(np.array(tests)))
    return [row for section in sections
            for row in section.rows({pair: float(next(corrected)) for pair in section.p_values}, len(tests), sign)]


class _Section:
    """One network at one budget: estimators at their best settings, lower is better."""

    def __init__(self, budget: str, limit: float, scores: np.ndarray, members: list[Group], estimators: list[str]):
        self.budget, self.limit, self.estimators = budget, limit, estimators
        self.settings: list[list[dict[str, str]]] = []
        self.chosen: list[int] = []
        self.tried: list[int] = []  # runs at all settings, and how many of them failed
        self.tried_failed: list[int] = []
        self.groups: list[Group] = []  # of each estimator, at the setting chosen
        best = []
        for estimator in estimators:
            mine = [i for i, group in enumerate(members) if group.estimator == estimator]
            found = tuned(scores[mine])
            self.settings.append([members[i].others for i in mine])
            self.chosen.append(found.chosen)
            self.tried.append(sum(len(members[i].runs) for i in mine))
            self.tried_failed.append(sum(members[i].status.count("failed") for i in mine))
            self.groups.append(members[mine[found.chosen]])
            best.append(found.scores)
        self.scores = np.array(best)  # [estimators, seeds]
        pairs = {pair: self.difference(*pair) for pair in combinations(range(len(estimators)), 2)}
        self.p_values = {pair: difference.p_value for pair, difference in pairs.items() if difference.count > 1}

    def difference(self, i: int, j: int) -> Difference:
        return paired_difference(self.scores[i], self.scores[j], resamples=0)

    def rows(self, corrected: dict[tuple[int, int], float], tests: int, sign: int) -> list[dict[str, object]]:
        """`corrected`: p-values of pairs of estimators, the smaller number first; `sign`: -1 where the scores were turned round."""
        known = np.isfinite(self.scores).any(axis=1)
        with np.errstate(invalid="ignore"):
            means = np.array([np.nanmean(row) if there else np.inf for row, there in zip(self.scores, known)])
        order = np.argsort(means, kind="stable")
        best, several = int(order[0]), int(known.sum()) > 1
        p_values = np.full((len(self.scores),) * 2, np.nan)
        for (i, j), p in corrected.items():
            p_values[i, j] = p_values[j, i] = p
        ranks = shared_ranks(self.scores, p_values, LEVEL)
        rows = []
        for i in map(int, order):
            mean = mean_interval(sign * self.scores[i])
            here = self.difference(i, best)
            p = p_values[i, best]
            if not known[i]:
                verdict = "none"
            elif i == best:
                verdict = "best" if several else "alone"
            else:
                verdict = "worse" if p < LEVEL else "unclear"
            group = self.groups[i]
            edges = [f"{name} of {span}" for name, span in at_edge(self.settings[i], self.chosen[i]).items()]
            rows.append({
                "budget": self.budget, "at": self.limit, "estimator": self.estimators[i],
                "setting": in_words({**group.others, **group.tuned}),
                "edge": "; ".join(edges + ([group.edge] if group.edge else [])),
                "runs": len(group.runs), "failed": group.status.count("failed"), "tried": self.tried[i], "tried_failed": self.tried_failed[i],
                "rank": ranks[i],
                "score": mean.mean, "low": mean.low, "high": mean.high, "seeds": int(np.isfinite(self.scores[i]).sum()),
                "difference": here.difference if i != best else 0.0, "difference_low": here.low if i != best else 0.0,
                "difference_high": here.high if i != best else 0.0, "p_value": here.p_value if i != best else np.nan,
                "p_corrected": p if i != best else np.nan, "tests": tests, "verdict": verdict,
                "seeds_needed": self._seeds_needed(i, best, tests) if verdict == "unclear" else np.nan})
        return rows

    def _seeds_needed(self, i: int, j: int, tests: int) -> float:
        pairs = self.scores[i] - self.scores[j]
        pairs = pairs[np.isfinite(pairs)]
        return pairs_needed(float(pairs.mean()), float(pairs.std(ddof=1)), LEVEL / tests, POWER) if pairs.size > 1 else np.nan


def subject(found: pd.DataFrame) -> str:
    """What is compared: "held-out expected loss, lower is better"."""
    quantity = str(found["quantity"].iloc[0])
    words = quantity.removeprefix("heldout_").removeprefix("metric_").replace("_", " ")
    return f"{found['split'].iloc[0]} {words}, {'lower' if lower_is_better(quantity) else 'higher'} is better"


def _budget(row: pd.Series) -> str:
    return f"{BUDGETS[row['budget']]} ({row['at']:,.0f})" if row["budget"] != "cpu_seconds" else f"{BUDGETS[row['budget']]} ({row['at']:,.3g})"


#: Columns of `lines`.
HEAD = ("at equal", "best", "its score", "cannot be told apart from", "first by", "seeds to settle", "worse beyond noise")


def lines(found: pd.DataFrame) -> list[list[str]]:
    """The answer for one network as a table, a line for each budget."""
    table = []
    for _, part in found.groupby("budget", sort=False):
        best, unclear, worse = part.iloc[0], part[part["verdict"] == "unclear"], part[part["verdict"] == "worse"]
        near = unclear.iloc[0] if len(unclear) else None
        if best["verdict"] in ("none", "alone"):
            table.append([_budget(best), "–" if best["verdict"] == "none" else f"– (only {_at(best)} has a number)"] + ["–"] * (len(HEAD) - 2))
            continue
        table.append([_budget(best), _at(best), with_interval(best["score"], best["low"], best["high"]),
                      _names(unclear, 1) or "–", _by(near) if near is not None else "–",
                      "–" if near is None or np.isnan(near["seeds_needed"]) else
                      f"{near['seeds_needed']:.0f}" if np.isfinite(near["seeds_needed"]) else "over 1,000",
                      _names(worse, 1) or "–"])
    return table


def sentences(found: pd.DataFrame) -> list[str]:
    """The answer for one network in words, a sentence or two for each budget."""
    said = []
    for _, part in found.groupby("budget", sort=False):
        best = part.iloc[0]
        head = f"At equal {_budget(best)}: "
        if best["verdict"] in ("none", "alone"):
            why = "no" if best["verdict"] == "none" else "only one"
            said.append(head + f"{why} estimator has a number there; evaluate more often (train.evaluate_every).")
            continue
        words = head + f"{_at(best)}, {with_interval(best['score'], best['low'], best['high'])}"
        unclear, worse = part[part["verdict"] == "unclear"], part[part["verdict"] == "worse"]
        if len(unclear):
            near = unclear.iloc[0]
            words += f"; cannot be told apart from {_names(unclear)}"
            words += f": {_shown(near)}{_needed(near)}." if near["seeds"] > 1 else ": with one seed nothing can."
        else:
            words += "."
        if len(worse):
            near = worse.iloc[0]
            words += f" {'Next' if not len(unclear) else 'Worse beyond noise'}: {_shown(near)}{_setting(near)}, p {_p(near['p_corrected'])}."
        said.append(words)
    missing = found[found["verdict"] == "none"]
    for names, budgets in _together(missing).items():
        where = "" if len(budgets) == found["budget"].nunique() else f" at equal {' and '.join(BUDGETS[b] for b in budgets)}"
        said.append(f"No number{where}: {names} (another loss, or no evaluation near it: train.evaluate_every).")
    said += _failures(found)
    return said


def _failures(found: pd.DataFrame) -> list[str]:
    """Which estimators' runs failed, at the setting chosen and at all that were tried."""
    part = found[found["budget"] == found["budget"].iloc[0]]
    part = part[part["tried_failed"] > 0]
    if part.empty:
        return []
    each = ", ".join(f"{row.estimator} {row.tried_failed} of {row.tried}"
                     + (f" ({row.failed} of {row.runs} at the setting chosen)" if row.tried > row.runs else "") for row in part.itertuples())
    return [f"Failed runs: {each}. Each counts as the worst score of the network."]


def _together(missing: pd.DataFrame) -> dict[str, list[str]]:
    """Budgets by the names of what is missing there."""
    found: dict[str, list[str]] = {}
    for budget, part in missing.groupby("budget", sort=False):
        found.setdefault(_names(part), []).append(str(budget))
    return found


def caption(found: pd.DataFrame, beforehand: bool = False) -> str:
    """How to read the answer. `beforehand`: settings were chosen by other runs."""
    seeds, tests = int(found["seeds"].max()), int(found["tests"].max())
    words = ("Mean over seeds ± half of its 95% interval; differences are paired over seeds, [95% interval], above zero is worse. "
             "Each estimator stands at the best of the settings tried for it, chosen "
             + ("beforehand, on other seeds and another split." if beforehand else "by the other seeds.")
             + " Costs include the training that a run started from. Between evaluations that are near to each other losses are taken on a "
             "straight line; else there is no number.")
    if seeds > 1 and tests:
        words += (f" p: paired t tests, corrected for all comparisons of a network ({tests} at most; Holm). With {seeds} seeds, a test that "
                  f"assumes nothing about the noise (sign flips) cannot give a p below {2.0 ** (1 - seeds):.2g}.")
    return words


def _at(row: pd.Series) -> str:
    return str(row["estimator"]) + _setting(row)


def _setting(row: pd.Series) -> str:
    return ((f" with {row['setting']}" if row["setting"] else "")
            + (f" (the end of the range tried: {row['edge']}; look further)" if row["edge"] else ""))


def _names(part: pd.DataFrame, most: int = 3) -> str:
    """The names, or the first ones; no remainder of one."""
    names = list(part["estimator"])
    return ", ".join(names) if len(names) <= most + 1 else ", ".join(names[:most]) + f" and {len(names) - most} more"


def _shown(row: pd.Series) -> str:
    return f"{row['estimator']} {_by(row)}"


def _by(row: pd.Series) -> str:
    if not np.isfinite(row["difference_low"]):
        return f"{row['difference']:+.3g} (of one seed)"
    return f"{row['difference']:+.3g} [{row['difference_low']:.3g}, {row['difference_high']:.3g}]"


def _needed(row: pd.Series) -> str:
    if not np.isfinite(row["seeds_needed"]):
        return "" if np.isnan(row["seeds_needed"]) else ", which no 1,000 seeds would settle"
    return f", which {row['seeds_needed']:.0f} seeds would settle if it is as large as it looks"


def _p(value: float) -> str:
    return "< .0001" if value < 1e-4 else f"{value:.2g}"


def format_answer(found: pd.DataFrame, searched: pd.DataFrame | None = None) -> str:
    """All networks as plain text, and how to read it. `searched`: how settings were chosen (`tried.chosen`)."""
    blocks = []
    for (task, model), part in found.groupby(["task", "model"], sort=False):
        lines = [f"{task} · {model} · {subject(part)}"]
        lines += [textwrap.fill(sentence, 120, initial_indent="  ", subsequent_indent="    ") for sentence in sentences(part)]
        blocks.append("\n".join(lines))
    if searched is not None:
        blocks.append("Tuned beforehand:\n" + "\n".join(textwrap.fill(line, 120, initial_indent="  ", subsequent_indent="    ")
                                                        for line in said(searched)))
    return "\n\n".join([*blocks, textwrap.fill(caption(found, searched is not None), 120)])
