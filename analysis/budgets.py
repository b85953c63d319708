"""What a run had reached by the time it had cost so much: losses at equal steps, rows or processor seconds."""

from __future__ import annotations

import numpy as np
import xarray as xr

from .load import need

#: What training may cost, and how people read it.
COSTS = {"steps": "training step", "rows": "rows so far (samples of the whole network)", "attention_values": "attention values so far",
         "cpu_seconds": "processor time of the cell's thread (s)"}


def cost_so_far(data: xr.Dataset, axis: str, cost: str) -> np.ndarray:
    """What training had cost at the points of `axis` (step, evaluation_step or measurement_step), [run, axis]; NaN where a run was
    not trained that far. Costs are recorded at every logged step and interpolated in between."""
    steps = data[axis].values.astype(float)
    if cost == "steps":
        return np.broadcast_to(steps, (data.sizes["run"], len(steps)))
    need(data, "train_loss", "nothing was trained: set train.steps in the sweep")
    logged = data["step"].values.astype(float)
    so_far = need(data, f"train_{cost}", "it was recorded by an earlier version: run the sweep again").values
    places = np.full((len(so_far), len(steps)), np.nan)
    for run, (costs, there) in enumerate(zip(so_far, np.isfinite(so_far))):
        if there.any():
            places[run] = np.interp(steps, [0, *logged[there]], [0, *costs[there]], right=np.nan)
    return places


def reached(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The most that each run had cost where it has a value: values and places [run, axis] -> [run], NaN without any."""
    there = np.isfinite(values) & np.isfinite(places)
    return np.array([row[known].max() if known.any() else np.nan for row, known in zip(places, there)])


def at_budget(values: np.ndarray, places: np.ndarray, budget: float) -> np.ndarray:
    """The value of each run [run] when it had cost `budget`, between the evaluations before and after it on a straight line; NaN
    where it has none on both sides."""
    found = np.full(len(values), np.nan)
    for run, (row, at) in enumerate(zip(values, places)):
        there = np.isfinite(row) & np.isfinite(at)
        x, y = at[there], row[there]
        if x.size and x[0] <= budget <= x[-1] * (1 + 1e-9):
            found[run] = np.interp(budget, x, y)
    return found
