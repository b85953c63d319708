"""Restarts: the best-trained of runs that differ only in their seed, for networks that do not
always learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from .errors import InputError
from .frames import per_run
from .groups import Group
from .quantities import evaluation_names, most_common
from .result import Result

TRAINING_LOSS = "train_loss"
_TAIL = 0.1  # share of the logged losses to average, since single batches are noisy


def judged(result: Result, by: str = TRAINING_LOSS) -> np.ndarray:
    """[run] Training score of each run: its mean training loss over the last tenth of the logged
    steps, or the last number of another quantity. NaN without any."""
    found = per_run(result, by)
    if by == TRAINING_LOSS:
        for run, losses in enumerate(result.values(by)):
            logged = losses[np.isfinite(losses)]
            if logged.size:
                found[run] = logged[-max(1, int(_TAIL * logged.size)) :].mean()
    return found


def _chosen(result: Result, scores: np.ndarray, by: str) -> list[tuple[Group, np.ndarray, int]]:
    """Every group with scores, its scored runs, and the best of these. InputError if there is
    none."""
    sign, found = 1 if result.lower_is_better(by) else -1, []
    for group in result.groups:
        there = group.runs[np.isfinite(scores[group.runs])]
        if there.size:
            found.append((group, there, int(there[np.argmin(sign * scores[there])])))
    if not found:
        raise InputError(f"{result.path}: no run has a value of {by}")
    return found


def restarts(data: xr.Dataset | Result, by: str = TRAINING_LOSS) -> xr.Dataset:
    """The best run of each group of restarts (runs that differ only in their seed), chosen by a
    training quantity, not by the final evaluation. `restarts` [run] is the number of runs in its
    group. InputError if no run has the quantity."""
    result = Result.of(data)
    chosen = _chosen(result, judged(result, by), by)
    return result.data.isel(run=[best for _, _, best in chosen]).assign_coords(
        restarts=("run", [there.size for _, there, _ in chosen])
    )


def restart_table(data: xr.Dataset | Result, by: str = TRAINING_LOSS) -> pd.DataFrame:
    """One row per group of restarts: `seed` and score of the best run by `by`, the number of
    `restarts`, its last held-out loss and metric, and for each the mean over all restarts
    (`<name>_mean`)."""
    result = Result.of(data)
    scores = judged(result, by)
    names = [evaluation_names(result, prefix) for prefix in ("heldout", "metric")]
    rows = []
    for group, there, best in _chosen(result, scores, by):
        row: dict[str, object] = {
            "task": group.task,
            "model": group.model,
            "estimator": group.label,
            "restarts": there.size,
            "seed": result.values("seed")[best],
            by: scores[best],
        }
        for several in names:
            name = most_common(result, several, there)
            if name:
                row[name], row[name + "_mean"] = (
                    result.last(name)[best],
                    float(np.nanmean(result.last(name)[there])),
                )
        rows.append(row)
    return pd.DataFrame(rows)
