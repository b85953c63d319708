"""Which estimator is best, or how each compares to a baseline: at its best settings, at equal cost,
with the uncertainty. `answer_words` formats the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from .budgets import at_budget, cost_so_far, reached
from .errors import InputError
from .frames import matches
from .groups import Group, in_common, in_words, runs_of
from .quantities import comparable, lost, ranking_quantity
from .result import Result
from .statistics import (
    Mean,
    Pairwise,
    error_factor,
    mean_interval,
    pairs_needed,
    pairs_tested,
    pairwise_differences,
    ranked,
)
from .tuning import Near, at_edge, nearest, tuned

#: Budgets at which estimators are compared, and their display names.
BUDGETS = {"steps": "steps", "rows": "rows", "cpu_seconds": "CPU seconds"}
LEVEL = 0.05
POWER = 0.8
#: A network with more than MANY estimators is compared with leave-one-out, which is named before
#: the numbers: with the best, which the same numbers choose, all pairs are a family of thousands of
#: tests.
MANY, USUAL = 12, "rloo"


def answer(
    data: xr.Dataset | Result,
    quantity: str | None = None,
    baseline: str | None = None,
    equivalence_margin: float = 0.0,
) -> pd.DataFrame:
    """The ranking: one row per task, model, budget and estimator, the best first.

    Estimators are compared; other axes of the grid, such as learning rates, are tuned. Each
    estimator is shown at its best setting (`setting`); `edge` names values at the end of the range
    tried. Each seed is scored at the setting that the other seeds chose (`tuning.tuned`). If the
    sweep has a [tune] section, setting and edge come from it. `quantity` ranks, by its variable's
    name (default: the task's metric, or the held-out loss: `quantities.ranking_quantity`). It is
    taken at a training cost of `at` steps, rows or processor seconds: the largest cost that every
    run of the network reached.

    `score`, `low`, `high`: mean over seeds and its 95% interval, for each estimator alone. The best
    estimator was chosen by its score, so its score is slightly optimistic. `difference`,
    `difference_low`, `difference_high`: difference to the `reference`, paired over seeds, with a
    95% interval; positive is worse. The reference is `baseline` (an estimator, as the sweep names
    it or by its bare name), or without it the best estimator (of more than MANY estimators:
    leave-one-out, if there is one). `tests` is the size of the family: a network at one budget is
    one question. Against a baseline, which is named before, it counts the other estimators; against
    the best, which the same numbers chose, all pairs. All intervals of a question hold
    simultaneously (Dunn 1961, `statistics.pairwise_differences`). They include the uncertainty of a
    setting that the seeds chose, but not of one that [tune] chose. `p_value` is that of the paired
    t test with the bounds of `statistics.noise`, `p_corrected` is corrected for the `tests`. Fewer
    than six seeds have no interval of 95% and no verdict.

    `verdict`: best (or baseline); worse or better (the interval of the difference excludes 0);
    unclear (it does not); alone (no other estimator has a number); none (no number at this cost).
    `equivalence_margin`: the smallest difference that matters, in the unit of the quantity. With
    it, worse and better are beyond this difference, and an interval within it is the verdict
    equivalent; so for the letters. `rank`: the place by score among the estimators of the same
    `target`. Estimators of one network and budget that share one of the `letters` do not differ
    beyond noise, all pairs tested together. `seeds_needed`: seeds at which an unclear difference
    would be found with 80% probability, if the true difference equals the estimate
    (`statistics.pairs_needed`).

    `failed` of `runs` failed at the chosen setting or had an infinite loss, `tried_failed` of
    `tried` at all settings. Such a run counts as the worst score of the network. `steps`, `rows`:
    the mean cost of the runs at this budget. `settings_close` of an estimator's `settings` do not
    differ from the chosen one beyond noise. `next_setting` is the next best; `next_difference`,
    `next_low`, `next_high` are its difference to the chosen one and the interval
    (`tuning.nearest`). InputError if nothing was evaluated, or if no network has the baseline."""
    return answer_and_pairs(Result.of(data), quantity, baseline, equivalence_margin)[0]


class Pairs(NamedTuple):
    """All pairs of a network's estimators at one budget; lower scores are better."""

    estimators: list[str]
    found: Pairwise
    scores: np.ndarray  # [estimators, seeds]

    def seeds(self, first: str, second: str) -> int:
        """The number of seeds that two estimators share."""
        return int(
            np.isfinite(self.scores[[self.estimators.index(name) for name in (first, second)]])
            .all(axis=0)
            .sum()
        )

    def p_value(self, first: str, second: str) -> float:
        """The p-value of two estimators, corrected for all pairs; NaN if they share fewer than two
        seeds."""
        return float(
            self.found.p_corrected[self.estimators.index(first), self.estimators.index(second)]
        )

    def worse_than(self, estimator: str) -> dict[str, float]:
        """The estimators that are worse than this one beyond noise, and their p-values, corrected
        for all pairs."""
        to = self.estimators.index(estimator)
        return {
            name: float(p)
            for name, difference, p in zip(
                self.estimators, self.found.difference[:, to], self.found.p_corrected[:, to]
            )
            if difference > 0 and p < LEVEL
        }


def answer_and_pairs(
    result: Result,
    quantity: str | None = None,
    baseline: str | None = None,
    equivalence_margin: float = 0.0,
) -> tuple[pd.DataFrame, dict[tuple[str, str, str], Pairs]]:
    """The `answer`, and by task, model and budget the differences between all pairs of
    estimators."""
    found, pairs = result.once(
        ("answer", quantity, baseline, equivalence_margin),
        lambda: _answered(result, quantity, baseline, equivalence_margin),
    )
    return found.copy(), pairs


def _answered(
    result: Result, quantity: str | None, baseline: str | None, equivalence_margin: float
) -> tuple[pd.DataFrame, dict[tuple[str, str, str], Pairs]]:
    rows: list[dict[str, object]] = []
    pairs: dict[tuple[str, str, str], Pairs] = {}
    costs = _costs(result)
    for (task, model), members in result.panels.items():
        name = ranking_quantity(result, members, quantity)
        reference = _reference(baseline, members) if baseline is not None else _usual(members)
        if name is not None and (baseline is None or reference is not None):
            lower = result.lower_is_better(name)
            split = in_common(result.splits[runs_of(members)])
            targets = {
                group.estimator: in_common(result.targets[group.runs], "") for group in members
            }
            for section in _sections(result, members, name, lower, costs, targets):
                rows += [
                    {
                        "task": task,
                        "model": model,
                        "quantity": name,
                        "lower_is_better": lower,
                        "share": result.is_share(name),
                        "split": split,
                        **row,
                    }
                    for row in section.rows(1 if lower else -1, reference, equivalence_margin)
                ]
                pairs[task, model, section.budget] = Pairs(
                    section.estimators, section.pairs, section.scores
                )
    names = dict.fromkeys(group.estimator for group in result.groups)
    if baseline is not None and not any(matches(baseline, name) for name in names):
        raise InputError(
            f"{result.path}: has no estimator {baseline} (estimators are: {', '.join(names)})"
        )
    if not rows:
        raise InputError(
            f"{result.path}: has no {quantity or 'loss or metric of an evaluation'}: "
            + (
                "; ".join(unranked(result, pd.DataFrame()))
                or "nothing was evaluated (set train.steps, and train.evaluate_every for more "
                "than the end)"
            )
        )
    return pd.DataFrame(rows), pairs


def unranked(result: Result, found: pd.DataFrame) -> list[str]:
    """In words, each network without a row in the answer because runs of it failed: how many, and
    the first one's reason."""
    ranked_ones, words = set(zip(found["task"], found["model"])) if len(found) else set(), []
    for (task, model), members in result.panels.items():
        failed = [
            run
            for group in members
            for run, status in zip(group.runs, group.status)
            if status == "failed"
        ]
        if failed and (task, model) not in ranked_ones:
            reason = str(result.values("reason")[failed[0]]) if "reason" in result else ""
            words.append(
                f"{task} · {model} has no score: {len(failed)} of "
                f"{sum(len(group.runs) for group in members)} runs failed"
                + (f" ({reason})" if reason else "")
            )
    return words


def _reference(wanted: str, members: list[Group]) -> str | None:
    """The estimator meant by `wanted`: of this name, or the only one of this bare name; None if
    there is none. InputError if several match."""
    names = list(dict.fromkeys(group.estimator for group in members))
    found = [name for name in names if name == wanted] or [
        name for name in names if matches(wanted, name)
    ]
    if len(found) > 1:
        raise InputError(
            f"{wanted} matches several estimators: {', '.join(found)}; give one of these"
        )
    return found[0] if found else None


def _usual(members: list[Group]) -> str | None:
    """Leave-one-out, if a network has many estimators and one of these; else None."""
    names = list(dict.fromkeys(group.estimator for group in members))
    found = [name for name in names if matches(USUAL, name)]
    return found[0] if len(names) > MANY and len(found) == 1 else None


def _costs(result: Result) -> dict[str, np.ndarray]:
    """By budget, the training cost at each evaluation, [run, evaluation_step]. Omits costs that an
    earlier version did not record; empty without evaluations."""
    found: dict[str, np.ndarray] = {}
    for budget in BUDGETS if "evaluation_step" in result.data.dims else ():
        try:
            found[budget] = cost_so_far(result, "evaluation_step", budget)
        except InputError:
            continue
    return found


def _sections(
    result: Result,
    members: list[Group],
    name: str,
    lower: bool,
    costs: dict[str, np.ndarray],
    targets: dict[str, str],
) -> Iterator[_Section]:
    """One network at every budget; intervals are simultaneous within a budget."""
    runs = runs_of(members)
    failed = np.concatenate([[status == "failed" for status in group.status] for group in members])
    values = result.values(name)[runs]
    for budget, places in costs.items():
        ends = np.where(
            failed, np.nan, reached(values, places[runs])
        )  # a failed run does not limit the budget
        if not np.isfinite(ends).any():
            continue
        limit = float(np.nanmin(ends))
        scores = np.full(result.count, np.nan)
        scores[runs] = at_budget(values, places[runs], limit)
        spent = {name: np.full(result.count, np.nan) for name in costs if name != "cpu_seconds"}
        for name, cost in spent.items():
            for run in runs:
                there = np.isfinite(places[run])
                if there.any():
                    cost[run] = np.interp(limit, places[run][there], costs[name][run][there])
        yield _Section(
            budget,
            limit,
            comparable(result, members, scores, lower),
            members,
            targets,
            [int(lost(group, scores).sum()) for group in members],
            spent,
        )


def _mean(values: np.ndarray) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else np.nan


class _Section:
    """One network at one budget: estimators at their best settings, lower is better."""

    def __init__(
        self,
        budget: str,
        limit: float,
        scores: np.ndarray,
        members: list[Group],
        targets: dict[str, str],
        gone: list[int],
        spent: dict[str, np.ndarray],
    ):
        """`gone`: runs of each group that are lost. `spent` [run]: cost in steps and rows at the
        limit."""
        self.budget = budget
        self.limit = limit
        self.estimators = list(targets)
        self.targets = list(targets.values())
        self.settings: list[list[dict[str, str]]] = []
        self.chosen: list[int] = []
        self.tried: list[int] = []  # runs at all settings; failed ones below
        self.tried_failed: list[int] = []
        self.failed: list[int] = []  # at the chosen setting
        self.spent = spent
        self.groups: list[Group] = []  # of each estimator, at its chosen setting
        self.near: list[Near] = []  # how close its other settings are
        best, unsettled = [], []
        for estimator in self.estimators:
            mine = [i for i, group in enumerate(members) if group.estimator == estimator]
            tuning = tuned(scores[mine])
            self.settings.append([members[i].others for i in mine])
            self.chosen.append(tuning.chosen)
            self.tried.append(sum(len(members[i].runs) for i in mine))
            self.tried_failed.append(sum(gone[i] for i in mine))
            self.failed.append(gone[mine[tuning.chosen]])
            self.groups.append(members[mine[tuning.chosen]])
            self.near.append(nearest(scores[mine], tuning.chosen))
            best.append(tuning.scores)
            unsettled.append(tuning.unsettled)
        self.scores = np.array(best)  # [estimators, seeds]
        self.unsettled = np.array(unsettled)  # [estimators]
        self.pairs = pairwise_differences(
            self.scores, level=1 - LEVEL, unsettled=self.unsettled
        )  # the family of the letters

    def rows(
        self, sign: int, reference: str | None, equivalence_margin: float
    ) -> list[dict[str, object]]:
        """`sign`: -1 where the scores were negated. `reference`: the baseline; None: the best.
        `equivalence_margin`: the smallest difference that matters."""
        known = np.isfinite(self.scores).any(axis=1)
        place = ranked(self.scores, self.targets, self.pairs, equivalence_margin)
        to = int(place.order[0]) if reference is None else self.estimators.index(reference)
        several = int(known.sum()) > 1
        others = int(
            (np.isfinite(self.scores) & np.isfinite(self.scores[to]))
            .sum(axis=1)[np.arange(len(known)) != to]
            .astype(bool)
            .sum()
        )
        tests = pairs_tested(self.scores) if reference is None else others
        found = (
            self.pairs
            if reference is None
            else pairwise_differences(self.scores, max(tests, 1), 1 - LEVEL, self.unsettled)
        )
        rows = []
        for i in map(int, place.order):
            mean = self._score(i, sign)
            here = [
                float(part[i, to]) if i != to else nothing
                for part, nothing in zip(found, (0.0, 0.0, 0.0, np.nan, np.nan))
            ]
            if not known[i]:
                verdict = "none"
            elif i == to:
                verdict = ("best" if reference is None else "baseline") if several else "alone"
            else:
                verdict = (
                    "worse"
                    if here[1] > equivalence_margin
                    else "better"
                    if here[2] < -equivalence_margin
                    else "equivalent"
                    if equivalence_margin and max(-here[1], here[2]) <= equivalence_margin
                    else "unclear"
                )
            group = self.groups[i]
            edges = [
                f"{name} of {span}"
                for name, span in at_edge(self.settings[i], self.chosen[i]).items()
            ]
            rows.append(
                {
                    "budget": self.budget,
                    "at": self.limit,
                    "target": self.targets[i],
                    "estimator": self.estimators[i],
                    "setting": in_words({**group.others, **group.tuned}),
                    "edge": "; ".join(edges + ([group.edge] if group.edge else [])),
                    "runs": len(group.runs),
                    "failed": self.failed[i],
                    "tried": self.tried[i],
                    "tried_failed": self.tried_failed[i],
                    **{
                        name: _mean(self.spent[name][group.runs]) if name in self.spent else np.nan
                        for name in ("steps", "rows")
                    },
                    "rank": place.rank[i],
                    "letters": place.letters[i],
                    "reference": self.estimators[to],
                    "score": mean.mean,
                    "low": mean.low,
                    "high": mean.high,
                    "seeds": int(np.isfinite(self.scores[i]).sum()),
                    **dict(
                        zip(
                            (
                                "difference",
                                "difference_low",
                                "difference_high",
                                "p_value",
                                "p_corrected",
                            ),
                            here,
                        )
                    ),
                    "tests": tests,
                    "verdict": verdict,
                    "seeds_needed": self._seeds_needed(i, to, max(tests, 1))
                    if verdict == "unclear"
                    else np.nan,
                    **self._settings(i),
                }
            )
        return rows

    def _score(self, i: int, sign: int) -> Mean:
        mean = mean_interval(sign * self.scores[i], 1 - LEVEL)
        wider = (
            float(np.sqrt(mean.count * error_factor(mean.count, self.unsettled[i])))
            if mean.count > 1
            else np.nan
        )
        return mean._replace(
            low=mean.mean - wider * (mean.mean - mean.low),
            high=mean.mean + wider * (mean.high - mean.mean),
        )

    def _settings(self, i: int) -> dict[str, object]:
        near = self.near[i]
        return {
            "settings": len(self.settings[i]),
            "settings_close": near.close,
            "next_setting": in_words(self.settings[i][near.next]) if near.next >= 0 else "",
            "next_difference": near.difference,
            "next_low": near.low,
            "next_high": near.high,
        }

    def _seeds_needed(self, i: int, j: int, tests: int) -> float:
        pairs = self.scores[i] - self.scores[j]
        pairs = pairs[np.isfinite(pairs)]
        if pairs.size < 2:
            return np.nan
        own = pairs.std(ddof=1) * np.sqrt(
            pairs.size * float(error_factor(pairs.size, self.unsettled[i] | self.unsettled[j]))
        )
        return pairs_needed(
            float(pairs.mean()), float(own), LEVEL, tests, POWER, pilot=pairs.size - 1
        )
