"""Restarts: of runs that differ in their seed alone, the one that trained best, as people report networks that do not always learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from .errors import InputError
from .frames import per_run
from .groups import groups
from .inference import lower_is_better
from .table import evaluation_names, last, most_common

TRAINING_LOSS = "train_loss"
_TAIL = 0.1  # of the losses logged: a single batch says little


def judged(data: xr.Dataset, by: str = TRAINING_LOSS) -> np.ndarray:
    """[run] how well each run trained: its mean training loss over the last tenth of what was logged, or the last number of another
    quantity. NaN where there is none."""
    if by != TRAINING_LOSS:
        return per_run(data, by)
    per_run(data, by)  # complains where there is none
    found = np.full(data.sizes["run"], np.nan)
    for run, losses in enumerate(data[by].values):
        logged = losses[np.isfinite(losses)]
        if logged.size:
            found[run] = logged[-max(1, int(_TAIL * logged.size)):].mean()
    return found


def restarts(data: xr.Dataset, by: str = TRAINING_LOSS) -> xr.Dataset:
    """The best run of each group of restarts (everything but the seed equal) by what it was trained on, never by what it is judged by
    in the end. `restarts` [run] says of how many. InputError if no run has the quantity."""
    scores, sign = judged(data, by), 1 if lower_is_better(by) else -1
    best, counts = [], []
    for group in groups(data):
        there = group.runs[np.isfinite(scores[group.runs])]
        if there.size:
            best.append(int(there[np.argmin(sign * scores[there])]))
            counts.append(there.size)
    if not best:
        raise InputError(f"{data.attrs.get('path', 'result')}: no run has a number of {by}")
    return data.isel(run=best).assign_coords(restarts=("run", counts))


def restart_table(data: xr.Dataset, by: str = TRAINING_LOSS) -> pd.DataFrame:
    """One row per group of restarts: `seed` and score of the best by `by`, of how many `restarts`, its last held-out loss and metric, and
    beside each the mean over all restarts (`<name>_mean`)."""
    best, scores = restarts(data, by), judged(data, by)
    chosen = judged(best, by)
    rows: list[dict[str, object]] = []
    for group in groups(data):
        there = group.runs[np.isfinite(scores[group.runs])]
        if not there.size:
            continue
        at = len(rows)  # groups come in the same order
        row: dict[str, object] = {"task": group.task, "model": group.model, "estimator": group.label,
                                  "restarts": int(best["restarts"].values[at]), "seed": best["seed"].values[at], by: chosen[at]}
        for prefix in ("heldout", "metric"):
            name = most_common(data, evaluation_names(data, prefix), there)
            if name:
                row[name] = last(best, name)[at]
                row[name + "_mean"] = float(np.nanmean(last(data, name)[there]))
        rows.append(row)
    return pd.DataFrame(rows)
