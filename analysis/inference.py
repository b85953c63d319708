"""Inference from a result: data frames of tests, ranks and fronts, per task and model."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import xarray as xr

from .errors import InputError
from .frames import per_run
from .groups import Group, runs_of
from .measured import biased_runs, measurements
from .quantities import evaluation_names, most_common
from .result import Result
from .rounding import at_step, has_reliability_warning
from .statistics import (
    holm,
    interquartile_mean_interval,
    pairwise_differences,
    pareto_front,
    probability_of_improvement,
)
from .steps import Step

FINAL_LOSS = "final_loss"  # placeholder for the held-out loss that ranks the table


def bias_tests(
    data: xr.Dataset | Result, at: str | int = "first", level: float = 0.05
) -> pd.DataFrame:
    """Is the gradient biased? One row per run measured at step `at`: its p-value of "no bias"
    (along many directions, Bonferroni), and the p-value corrected for the number of runs (Holm
    1979). `biased` if it is below `level` and the replicates support it (`supported`)."""
    result = Result.of(data)
    result.need("bias_p_value", "set measure.at in the sweep")
    step = result.step(at)
    p = at_step(result, "bias_p_value", step)
    places = np.flatnonzero(np.isfinite(p))
    frame = pd.DataFrame(
        {
            name: result.values(name)[places]
            for name in ("run", "task", "model", "estimator", "seed")
            if name in result
        }
    )
    frame["squared_bias"] = (
        at_step(result, "squared_bias", step)[places] if "squared_bias" in result else np.nan
    )
    frame["p_value"], frame["p_holm"] = p[places], holm(p[places])
    frame["supported"] = ~has_reliability_warning(result, step)[places]
    frame["biased"] = biased_runs(result, step, level)[places]
    return frame


def _scores(result: Result, quantity: str, at: str | int) -> np.ndarray:
    """The quantity of every run; the final loss is chosen for each panel as in the table."""
    if quantity != FINAL_LOSS:
        return per_run(result, quantity, at)
    scores = np.full(result.count, np.nan)
    for members in result.panels.values():
        runs = runs_of(members)
        name = most_common(result, evaluation_names(result, "heldout"), runs)
        if name:
            scores[runs] = per_run(result, name)[runs]
    if not np.isfinite(scores).any():
        raise InputError(f"{result.path}: has no held-out loss: nothing was evaluated")
    return scores


def _lower(result: Result, quantity: str) -> bool:
    """Whether lower is better."""
    return quantity == FINAL_LOSS or result.lower_is_better(quantity)


def _strata(result: Result, scores: np.ndarray) -> dict[str, dict[tuple[str, str], np.ndarray]]:
    """By estimator's label and panel: the scores of its runs."""
    found: dict[str, dict[tuple[str, str], np.ndarray]] = {}
    for panel, members in result.panels.items():
        for group in members:
            if np.isfinite(scores[group.runs]).any():
                found.setdefault(group.label, {})[panel] = scores[group.runs]
    return found


def aggregates(
    data: xr.Dataset | Result, quantity: str = FINAL_LOSS, at: str | int = "first"
) -> pd.DataFrame:
    """Interquartile mean over the runs of all panels with a stratified bootstrap interval (Agarwal
    et al. 2021). Scores are scaled in every panel: its lowest run is 0, its highest 1, as an
    infinite loss. Compare only estimators with the same number of `panels`."""
    result = Result.of(data)
    scores = _scores(result, quantity, at).copy()
    for members in result.panels.values():
        runs = runs_of(members)
        there = scores[runs][np.isfinite(scores[runs])]
        if there.size:
            low, high = there.min(), there.max()
            scores[runs] = (np.clip(scores[runs], low, high) - low) / (
                high - low if high > low else 1
            )
    rows = []
    for label, strata in _strata(result, scores).items():
        mean = interquartile_mean_interval(list(strata.values()))
        rows.append(
            {
                "estimator": label,
                "iqm": mean.mean,
                "iqm_low": mean.low,
                "iqm_high": mean.high,
                "panels": len(strata),
                "runs": mean.count,
            }
        )
    return pd.DataFrame(rows).sort_values(
        "iqm", ascending=_lower(result, quantity), kind="stable", ignore_index=True
    )


def improvement_probabilities(
    data: xr.Dataset | Result, quantity: str = FINAL_LOSS, at: str | int = "first"
) -> pd.DataFrame:
    """Probability that a run of `first` beats one of `second`, averaged over the panels with both
    (Agarwal et al. 2021)."""
    result = Result.of(data)
    strata = _strata(result, _scores(result, quantity, at))
    rows = []
    for first, second in combinations(strata, 2):
        shared = [panel for panel in strata[first] if panel in strata[second]]
        if shared:
            runs = [[strata[one][panel] for panel in shared] for one in (first, second)]
            probability = probability_of_improvement(runs[0], runs[1], _lower(result, quantity))
            rows.append(
                {
                    "first": first,
                    "second": second,
                    "probability": probability.mean,
                    "probability_low": probability.low,
                    "probability_high": probability.high,
                    "panels": len(shared),
                }
            )
    return pd.DataFrame(
        rows,
        columns=["first", "second", "probability", "probability_low", "probability_high", "panels"],
    )


def pareto(data: xr.Dataset | Result, at: str | int = "first", level: float = 0.05) -> pd.DataFrame:
    """The Pareto front of |bias|, variance and cost (rows of one gradient), among estimators of the
    same panel and target.

    Means over seeds, compared beyond noise. |bias| counts as zero unless `bias_tests` finds a bias
    in a run of the group, at `level`. An estimator is off the front only if another is no worse in
    all three criteria beyond the 95% intervals of the differences (paired over seeds; for too few
    seeds, by the intervals of the means)."""
    result = Result.of(data)
    for name in ("squared_bias", "variance", "rows"):
        result.need(name, "set measure.at in the sweep")
    step = result.step(at)
    biased = biased_runs(result, step, level)
    rows, every = [], []
    of = [measurements(result, name, step) for name in ("squared_bias", "variance", "rows")]
    for (task, model), members in result.panels.items():
        every += members
        for group in members:
            bias, variance, cost = (one(group).mean for one in of)
            found = biased[group.runs].any()
            target = str(result.targets[group.runs][0])
            rows.append(
                {
                    "task": task,
                    "model": model,
                    "target": target,
                    "estimator": group.label,
                    "bias": np.sqrt(max(bias, 0)) if found else 0 * bias,
                    "variance": variance,
                    "rows": cost,
                }
            )
    frame = pd.DataFrame(rows)
    frame["front"] = False
    numbers = {name: at_step(result, name, step) for name in ("squared_bias", "variance", "rows")}
    for _, part in frame.groupby(["task", "model", "target"], sort=False):
        members = [every[i] for i in part.index]
        known = np.isfinite(part[["bias", "variance", "rows"]].to_numpy()).all(axis=1)
        ends = [
            _upper_ends(result, members, name, step, values) for name, values in numbers.items()
        ]
        bias = part["bias"].to_numpy(float)
        exact = np.logical_or.outer(bias == 0, bias == 0)  # zero is exact
        ends[0] = np.where(exact, np.subtract.outer(bias**2, bias**2), ends[0])
        frame.loc[part.index, "front"] = pareto_front(known, ends)
    return frame


def _upper_ends(
    result: Result, members: list[Group], name: str, step: Step, values: np.ndarray
) -> np.ndarray:
    """[groups, groups] upper end of the interval of each difference (row minus column) of `values`
    [run], the quantity at that step: paired over seeds, or where these are too few, from the
    intervals of the means. Without an interval, the difference itself."""
    differences = pairwise_differences(result.by_seed(members, values)[0], tests=1)
    means = list(map(measurements(result, name, step), members))
    mean, half = np.array([m.mean for m in means]), np.array([(m.high - m.low) / 2 for m in means])
    difference = mean[:, None] - mean[None, :]
    width = np.hypot(half[:, None], half[None, :])  # as `propagated_difference`
    return np.where(
        np.isfinite(differences.high),
        differences.high,
        np.where(np.isfinite(width), difference + width, difference),
    )
