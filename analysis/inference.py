"""Inference from a result: data frames of tests, ranks and fronts, per task and model."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import xarray as xr

from .errors import InputError
from .frames import matches, per_run
from .groups import Group, by_seed, panels
from .load import need
from .rounding import doubtful
from .statistics import (holm, interquartile_mean_interval, paired_difference, pairwise_differences, pareto_front,
                         probability_of_improvement, ranks)
from .table import evaluation_names, measurement_step, measurements, most_common

FINAL_LOSS = "final_loss"  # placeholder for the held-out loss that ranks the table


def bias_tests(data: xr.Dataset, at: str | int = "first", level: float = 0.05) -> pd.DataFrame:
    """Is the gradient biased? One row per run measured at step `at`: its p-value of "no bias" (along many directions, Bonferroni), and
    the p-value corrected for the number of runs (Holm 1979). `biased` if it is below `level` and the replicates support it
    (`supported`)."""
    need(data, "bias_p_value", "set measure.at in the sweep")
    step = measurement_step(data, at)
    p = per_run(data, "bias_p_value", step)
    there = np.flatnonzero(np.isfinite(p))
    frame = pd.DataFrame({name: data[name].values[there] for name in ("run", "task", "model", "estimator", "seed") if name in data.variables})
    frame["squared_bias"] = per_run(data, "squared_bias", step)[there] if "squared_bias" in data else np.nan
    frame["p_value"], frame["p_holm"] = p[there], holm(p[there])
    frame["supported"] = ~doubtful(data, step)[there]
    frame["biased"] = (frame["p_holm"] < level) & frame["supported"]
    return frame


def lower_is_better(quantity: str) -> bool:
    """False for metrics other than error rates, and for cosine and signal-to-noise ratio."""
    return quantity not in ("cosine", "snr") and not (quantity.startswith("metric_") and "error" not in quantity)


def _scores(data: xr.Dataset, quantity: str, at: str | int) -> np.ndarray:
    """The quantity of every run; the final loss is chosen for each panel as in the table."""
    if quantity != FINAL_LOSS:
        return per_run(data, quantity, at)
    scores = np.full(data.sizes["run"], np.nan)
    for members in panels(data).values():
        runs = np.concatenate([group.runs for group in members])
        name = most_common(data, evaluation_names(data, "heldout"), runs)
        if name:
            scores[runs] = per_run(data, name)[runs]
    if not np.isfinite(scores).any():
        raise InputError(f"{data.attrs.get('path', 'result')}: has no held-out loss: nothing was evaluated")
    return scores


def comparisons(data: xr.Dataset, quantity: str = FINAL_LOSS, baseline: str | None = None, at: str | int = "first") -> pd.DataFrame:
    """Every pair of estimators of a panel, or each against `baseline` (a label, or a bare name if only one estimator has it), paired over
    their common seeds: mean difference with Student's t interval, p-values of the t test and the sign-flip test, and the former
    corrected for all rows (Holm 1979)."""
    scores = _scores(data, quantity, at)
    rows: list[dict[str, object]] = []
    for (task, model), members in panels(data).items():
        matrix, _ = by_seed(data, members, scores)
        labels = [group.label for group in members]
        against = _label(baseline, members) if baseline is not None else None
        for i, j in combinations(range(len(members)), 2):
            if baseline is not None and against not in (labels[i], labels[j]):
                continue
            if against == labels[i]:
                i, j = j, i  # the baseline is second
            found = paired_difference(matrix[i], matrix[j])
            if found.count:
                rows.append({"task": task, "model": model, "first": labels[i], "second": labels[j], **found._asdict()})
    if not rows:
        where = data.attrs.get("path", "result")
        raise InputError(f"{where}: no two runs share a seed and have {quantity}"
                         + (f" with {baseline}" if baseline is not None else ""))
    frame = pd.DataFrame(rows)
    frame["p_holm"] = holm(frame["p_value"].to_numpy())
    return frame


def _label(wanted: str, members: list[Group]) -> str | None:
    """The label for `wanted`: itself, or the only estimator of that name; None if there is none. InputError if several match."""
    found = ([group.label for group in members if group.label == wanted]
             or [group.label for group in members if matches(wanted, group.estimator)])
    if len(found) > 1:
        raise InputError(f"{wanted} matches several estimators: {', '.join(found)}; give one of these")
    return found[0] if found else None


def ranking(data: xr.Dataset, quantity: str = FINAL_LOSS, at: str | int = "first") -> pd.DataFrame:
    """Rank of every estimator in its panel with a bootstrap interval over seeds, and its probability of being the best."""
    scores, parts = _scores(data, quantity, at), []
    for (task, model), members in panels(data).items():
        found = ranks(by_seed(data, members, scores)[0], lower_is_better(quantity))
        parts.append(pd.DataFrame({"task": task, "model": model, "estimator": [group.label for group in members],
                                   "rank": found.rank, "rank_low": found.low, "rank_high": found.high, "best": found.best}))
    return pd.concat(parts, ignore_index=True).sort_values(["task", "model", "rank"], kind="stable", ignore_index=True)


def _strata(data: xr.Dataset, scores: np.ndarray) -> dict[str, dict[tuple[str, str], np.ndarray]]:
    """By estimator's label and panel: the scores of its runs."""
    found: dict[str, dict[tuple[str, str], np.ndarray]] = {}
    for panel, members in panels(data).items():
        for group in members:
            if np.isfinite(scores[group.runs]).any():
                found.setdefault(group.label, {})[panel] = scores[group.runs]
    return found


def aggregates(data: xr.Dataset, quantity: str = FINAL_LOSS, at: str | int = "first") -> pd.DataFrame:
    """Interquartile mean over the runs of all panels with a stratified bootstrap interval (Agarwal et al. 2021). Scores are scaled in
    every panel: its lowest run is 0, its highest 1. Compare only estimators with the same number of `panels`."""
    scores = _scores(data, quantity, at).copy()
    scores[~np.isfinite(scores)] = np.nan
    for members in panels(data).values():
        runs = np.concatenate([group.runs for group in members])
        if np.isfinite(scores[runs]).any():
            low, high = np.nanmin(scores[runs]), np.nanmax(scores[runs])
            scores[runs] = (scores[runs] - low) / (high - low if high > low else 1)
    rows = []
    for label, strata in _strata(data, scores).items():
        mean = interquartile_mean_interval(list(strata.values()))
        rows.append({"estimator": label, "iqm": mean.mean, "iqm_low": mean.low, "iqm_high": mean.high, "panels": len(strata),
                     "runs": mean.count})
    return pd.DataFrame(rows).sort_values("iqm", ascending=lower_is_better(quantity), kind="stable", ignore_index=True)


def improvement_probabilities(data: xr.Dataset, quantity: str = FINAL_LOSS, at: str | int = "first") -> pd.DataFrame:
    """Probability that a run of `first` beats one of `second`, averaged over the panels with both (Agarwal et al. 2021)."""
    strata = _strata(data, _scores(data, quantity, at))
    rows = []
    for first, second in combinations(strata, 2):
        shared = [panel for panel in strata[first] if panel in strata[second]]
        if shared:
            runs = [[strata[one][panel] for panel in shared] for one in (first, second)]
            found = probability_of_improvement(runs[0], runs[1], lower_is_better(quantity))
            rows.append({"first": first, "second": second, "probability": found.mean, "probability_low": found.low,
                         "probability_high": found.high, "panels": len(shared)})
    return pd.DataFrame(rows, columns=["first", "second", "probability", "probability_low", "probability_high", "panels"])


def pareto(data: xr.Dataset, at: str | int = "first", level: float = 0.05) -> pd.DataFrame:
    """The Pareto front of |bias|, variance and cost (rows of one gradient), among estimators of the same panel and target.

    Means over seeds, compared beyond noise. |bias| counts as zero unless `bias_tests` finds a bias in a run of the group, at `level`.
    An estimator is off the front only if another is no worse in all three criteria beyond the 95% intervals of the differences
    (paired over seeds; for a single seed, by the measurements' intervals).
    """
    for name in ("squared_bias", "variance", "rows"):
        need(data, name, "set measure.at in the sweep")
    step = measurement_step(data, at)
    tests = bias_tests(data, at, level)
    biased = set(tests.loc[tests["biased"], "run"].tolist())
    targets = data["own_target"].sel(measurement_step=step).values if "own_target" in data else None
    rows, every = [], []
    of = [measurements(data, name, step) for name in ("squared_bias", "variance", "rows")]
    for (task, model), members in panels(data).items():
        every += members
        for group in members:
            bias, variance, cost = (one(group).mean for one in of)
            found = any(run in biased for run in data["run"].values[group.runs])
            target = next((str(t) for t in targets[group.runs] if str(t)), "") if targets is not None else ""
            rows.append({"task": task, "model": model, "target": target, "estimator": group.label,
                         "bias": np.sqrt(max(bias, 0)) if found else 0 * bias, "variance": variance, "rows": cost})
    frame = pd.DataFrame(rows)
    frame["front"] = False
    numbers = {name: per_run(data, name, step) for name in ("squared_bias", "variance", "rows")}
    for _, part in frame.groupby(["task", "model", "target"], sort=False):
        members = [every[i] for i in part.index]
        known = np.isfinite(part[["bias", "variance", "rows"]].to_numpy()).all(axis=1)
        ends = [_upper_ends(data, members, name, step, values) for name, values in numbers.items()]
        bias = part["bias"].to_numpy(float)
        exact = np.logical_or.outer(bias == 0, bias == 0)  # zero is exact
        ends[0] = np.where(exact, np.subtract.outer(bias**2, bias**2), ends[0])
        frame.loc[part.index, "front"] = pareto_front(known, ends)
    return frame


def _upper_ends(data: xr.Dataset, members: list[Group], name: str, step: int, values: np.ndarray) -> np.ndarray:
    """[groups, groups] upper end of the interval of each difference (row minus column) of `values` [run], the quantity at that step:
    paired over seeds, or from the intervals of single measurements. Without an interval, the difference itself."""
    scores, seeds = by_seed(data, members, values)
    if len(seeds) > 1:
        found = pairwise_differences(scores, tests=1)
        return np.where(np.isfinite(found.high), found.high, found.difference)
    means = list(map(measurements(data, name, step), members))
    mean, half = np.array([m.mean for m in means]), np.array([(m.high - m.low) / 2 for m in means])
    difference, width = mean[:, None] - mean[None, :], np.hypot(half[:, None], half[None, :])  # as `propagated_difference`
    return np.where(np.isfinite(width), difference + width, difference)
