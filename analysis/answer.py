"""Which estimator is best: each at its best settings, at equal cost, with the uncertainty. `answer_words` formats the answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from .budgets import at_budget, cost_so_far, reached
from .errors import InputError
from .groups import Group, by_seed, evaluation_splits, in_common, in_words, panels
from .inference import FINAL_LOSS, lower_is_better
from .load import need
from .statistics import Mean, error_factor, mean_interval, pairs_needed, pairs_tested, pairwise_differences, shared_ranks
from .table import evaluation_names, most_common
from .tuning import Near, at_edge, nearest, tuned

#: Budgets at which estimators are compared, and their display names.
BUDGETS = {"steps": "steps", "rows": "rows", "cpu_seconds": "CPU seconds"}
LEVEL = 0.05
POWER = 0.8


def answer(data: xr.Dataset, quantity: str = FINAL_LOSS) -> pd.DataFrame:
    """One row per task, model, budget and estimator, the best first.

    Estimators are compared; other axes of the grid, such as learning rates, are tuned. Each estimator is shown at its best setting
    (`setting`); `edge` names values at the end of the range tried. Each seed is scored at the setting that the other seeds chose
    (`tuning.tuned`). If the sweep has a [tune] section, setting and edge come from it. `quantity` ranks: the held-out loss, or another
    held-out loss or metric by its variable's name. It is taken at a training cost of `at` steps, rows or processor seconds: the
    largest cost that every run of the network reached.

    `score`, `low`, `high`: mean over seeds and its 95% interval, for each estimator alone. The best estimator was chosen by its score,
    so its score is slightly optimistic. `difference`, `difference_low`, `difference_high`: difference to the best, paired over seeds,
    with a 95% interval; positive is worse. `tests` counts the pairs of estimators in all budgets of the network. Their intervals hold
    simultaneously, whichever estimator is best (Dunn 1961, `statistics.pairwise_differences`). Both kinds of interval include the
    uncertainty of a setting that the seeds chose, but not of one that [tune] chose. `p_value` is that of the paired t test,
    `p_corrected` is `p_value` times `tests`. `verdict`: best; worse (the interval of the difference is above 0); unclear (it is not);
    alone (no other estimator has a number); none (no number at this cost). `rank`: 1 + the number of estimators that are better beyond
    noise. `seeds_needed`: seeds at which an unclear difference would be found with 80% probability, if the true difference equals
    the estimate (`statistics.pairs_needed`).

    `failed` of `runs` failed at the chosen setting, `tried_failed` of `tried` at all settings. A failed run counts as the worst score
    of the network. `settings_close` of an estimator's `settings` do not differ from the chosen one beyond noise. `next_setting` is the
    next best; `next_difference`, `next_low`, `next_high` are its difference to the chosen one and the interval (`tuning.nearest`).
    InputError if nothing was evaluated.
    """
    rows: list[dict[str, object]] = []
    costs, splits = _costs(data), evaluation_splits(data)
    for (task, model), members in panels(data).items():
        name = _variable(data, members, quantity)
        if name is not None:
            split = in_common(splits[np.concatenate([group.runs for group in members])])
            rows += [{"task": task, "model": model, "quantity": name, "split": split, **row} for row in _panel(data, members, name, costs)]
    if not rows:
        raise InputError(f"{data.attrs.get('path', 'result')}: has no {'held-out loss' if quantity == FINAL_LOSS else quantity}: nothing was "
                         "evaluated (set train.steps, and train.evaluate_every for more than the end)")
    return pd.DataFrame(rows)


def _costs(data: xr.Dataset) -> dict[str, np.ndarray]:
    """By budget, the training cost at each evaluation, [run, evaluation_step]. Omits costs that an earlier version did not record;
    empty without evaluations."""
    found: dict[str, np.ndarray] = {}
    for budget in BUDGETS if "evaluation_step" in data.dims else ():
        try:
            found[budget] = cost_so_far(data, "evaluation_step", budget)
        except InputError:
            continue
    return found


def _variable(data: xr.Dataset, members: list[Group], quantity: str) -> str | None:
    if quantity != FINAL_LOSS:
        need(data, quantity, f"evaluated quantities are: {', '.join(evaluation_names(data, 'heldout') + evaluation_names(data, 'metric'))}")
        return quantity
    runs = np.concatenate([group.runs for group in members])
    losses = evaluation_names(data, "heldout")
    loss = most_common(data, losses, runs)
    shared = [name for name in evaluation_names(data, "metric") if _had_by_all(data, members, name)]
    return shared[0] if loss and shared and not _had_by_all(data, members, loss) else loss


def _had_by_all(data: xr.Dataset, members: list[Group], name: str) -> bool:
    """Whether every estimator with any evaluation has this one."""
    evaluated = evaluation_names(data, "heldout") + evaluation_names(data, "metric")
    def has(runs: np.ndarray, names: list[str]) -> bool:
        return any(np.isfinite(data[one].values[runs]).any() for one in names)
    return all(has(group.runs, [name]) for group in members if has(group.runs, evaluated))


def _panel(data: xr.Dataset, members: list[Group], name: str, costs: dict[str, np.ndarray]) -> list[dict[str, object]]:
    """Rows of one network: every budget and estimator, with simultaneous intervals."""
    estimators = list(dict.fromkeys(group.estimator for group in members))
    failed = np.zeros(data.sizes["run"], bool)
    for group in members:
        failed[group.runs] = [status == "failed" for status in group.status]
    runs = np.concatenate([group.runs for group in members])
    values = data[name].values[runs]
    sign = 1 if lower_is_better(name) else -1
    sections: list[_Section] = []
    for budget, places in costs.items():
        ends = np.where(failed[runs], np.nan, reached(values, places[runs]))  # a failed run does not limit the budget
        if not np.isfinite(ends).any():
            continue
        limit = float(np.nanmin(ends))
        scores = np.full(data.sizes["run"], np.nan)
        scores[runs] = sign * at_budget(values, places[runs], limit)
        scores[failed] = np.nanmax(np.where(failed, np.nan, scores)) if np.isfinite(scores[~failed]).any() else np.nan
        sections.append(_Section(budget, limit, by_seed(data, members, scores)[0], members, estimators))
    tests = sum(pairs_tested(section.scores) for section in sections)
    return [row for section in sections for row in section.rows(tests, sign)]


class _Section:
    """One network at one budget: estimators at their best settings, lower is better."""

    def __init__(self, budget: str, limit: float, scores: np.ndarray, members: list[Group], estimators: list[str]):
        self.budget, self.limit, self.estimators = budget, limit, estimators
        self.settings: list[list[dict[str, str]]] = []
        self.chosen: list[int] = []
        self.tried: list[int] = []  # runs at all settings; failed ones below
        self.tried_failed: list[int] = []
        self.groups: list[Group] = []  # of each estimator, at its chosen setting
        self.near: list[Near] = []  # how close its other settings are
        best, unsettled = [], []
        for estimator in estimators:
            mine = [i for i, group in enumerate(members) if group.estimator == estimator]
            found = tuned(scores[mine])
            self.settings.append([members[i].others for i in mine])
            self.chosen.append(found.chosen)
            self.tried.append(sum(len(members[i].runs) for i in mine))
            self.tried_failed.append(sum(members[i].status.count("failed") for i in mine))
            self.groups.append(members[mine[found.chosen]])
            self.near.append(nearest(scores[mine], found.chosen))
            best.append(found.scores)
            unsettled.append(found.unsettled)
        self.scores, self.unsettled = np.array(best), np.array(unsettled)  # [estimators, seeds], [estimators]

    def rows(self, tests: int, sign: int) -> list[dict[str, object]]:
        """`tests`: comparisons in all budgets of the network; `sign`: -1 where the scores were negated."""
        known = np.isfinite(self.scores).any(axis=1)
        with np.errstate(invalid="ignore"):
            means = np.array([np.nanmean(row) if there else np.inf for row, there in zip(self.scores, known)])
        order = np.argsort(means, kind="stable")
        best, several = int(order[0]), int(known.sum()) > 1
        found = pairwise_differences(self.scores, tests, 1 - LEVEL, self.unsettled)
        ranks = shared_ranks(self.scores, found)
        rows = []
        for i in map(int, order):
            mean = self._score(i, sign)
            here = [float(part[i, best]) if i != best else nothing for part, nothing in zip(found, (0.0, 0.0, 0.0, np.nan, np.nan))]
            if not known[i]:
                verdict = "none"
            elif i == best:
                verdict = "best" if several else "alone"
            else:
                verdict = "worse" if here[1] > 0 else "unclear"
            group = self.groups[i]
            edges = [f"{name} of {span}" for name, span in at_edge(self.settings[i], self.chosen[i]).items()]
            rows.append({
                "budget": self.budget, "at": self.limit, "estimator": self.estimators[i],
                "setting": in_words({**group.others, **group.tuned}),
                "edge": "; ".join(edges + ([group.edge] if group.edge else [])),
                "runs": len(group.runs), "failed": group.status.count("failed"), "tried": self.tried[i], "tried_failed": self.tried_failed[i],
                "rank": ranks[i],
                "score": mean.mean, "low": mean.low, "high": mean.high, "seeds": int(np.isfinite(self.scores[i]).sum()),
                **dict(zip(("difference", "difference_low", "difference_high", "p_value", "p_corrected"), here)),
                "tests": tests, "verdict": verdict,
                "seeds_needed": self._seeds_needed(i, best, tests) if verdict == "unclear" else np.nan,
                **self._settings(i)})
        return rows

    def _score(self, i: int, sign: int) -> Mean:
        mean = mean_interval(sign * self.scores[i], 1 - LEVEL)
        wider = float(np.sqrt(mean.count * error_factor(mean.count, self.unsettled[i]))) if mean.count > 1 else np.nan
        return mean._replace(low=mean.mean - wider * (mean.mean - mean.low), high=mean.mean + wider * (mean.high - mean.mean))

    def _settings(self, i: int) -> dict[str, object]:
        near = self.near[i]
        return {"settings": len(self.settings[i]), "settings_close": near.close,
                "next_setting": in_words(self.settings[i][near.next]) if near.next >= 0 else "",
                "next_difference": near.difference, "next_low": near.low, "next_high": near.high}

    def _seeds_needed(self, i: int, j: int, tests: int) -> float:
        pairs = self.scores[i] - self.scores[j]
        pairs = pairs[np.isfinite(pairs)]
        if pairs.size < 2:
            return np.nan
        own = pairs.std(ddof=1) * np.sqrt(pairs.size * float(error_factor(pairs.size, self.unsettled[i] | self.unsettled[j])))
        return pairs_needed(float(pairs.mean()), float(own), LEVEL / tests, POWER, freedom=pairs.size - 1)
