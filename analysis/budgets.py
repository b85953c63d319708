"""Losses at equal training cost: at equal steps, rows or processor seconds."""

from __future__ import annotations

import numpy as np

from .result import Result

#: Costs of training, and their display names.
COSTS = {
    "steps": "training step",
    "rows": "rows so far (samples of the whole network)",
    "attention_values": "attention values so far",
    "cpu_seconds": "processor time of the cell's thread (s)",
}


def cost_so_far(result: Result, axis: str, cost: str) -> np.ndarray:
    """Training cost at the points of `axis` (step, evaluation_step or measurement_step), [run,
    axis]; NaN beyond the end of a run. Costs are recorded at every logged step and interpolated in
    between. They include the training of the network that a run started from (`train.start`)."""
    steps = result.values(axis).astype(float)
    before = _start(result, cost)[:, None]
    if cost == "steps":
        return before + steps
    result.need("train_loss", "nothing was trained: set train.steps in the sweep")
    logged = result.values("step").astype(float)
    so_far = result.need(
        f"train_{cost}", "it was recorded by an earlier version: run the sweep again"
    )
    places = np.full((len(so_far), len(steps)), np.nan)
    for run, (costs, there) in enumerate(zip(so_far, np.isfinite(so_far))):
        if there.any():
            places[run] = np.interp(steps, [0, *logged[there]], [0, *costs[there]], right=np.nan)
    return before + places


def _start(result: Result, cost: str) -> np.ndarray:
    """[run] Cost of the training that a run started from; 0 without any. A checkpoint of another
    sweep counts as 0."""
    if cost == "steps":
        settings = result.run_settings
        trained = [
            bool(one.get("train.start")) and not str(one["train.start"]).endswith(".h5")
            for one in settings
        ]
        return np.array(
            [
                float(one.get("train.start_steps") or 0) if here else 0.0
                for one, here in zip(settings, trained)
            ]
        )
    name = f"cost_start_{cost}"
    return (
        np.nan_to_num(result.values(name).astype(float))
        if name in result
        else np.zeros(result.count)
    )


def reached(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The largest cost at which each run has a value: values and places [run, axis] -> [run], NaN
    without any."""
    there = ~np.isnan(values) & np.isfinite(places)
    return np.array(
        [row[known].max() if known.any() else np.nan for row, known in zip(places, there)]
    )


def at_budget(values: np.ndarray, places: np.ndarray, budget: float) -> np.ndarray:
    """The value of each run [run] at a cost of `budget`: an evaluation at this cost, or linear
    interpolation between the evaluations before and after it. These must be close: their costs
    within a quarter, or their values within 2% of the range of the run's values. Else NaN, since
    interpolation over the steep part of a curve would be wrong. Between a number and an infinite
    loss it is infinite."""
    found = np.full(len(values), np.nan)
    for run, (row, at) in enumerate(zip(values, places)):
        there = ~np.isnan(row) & np.isfinite(at)
        x, y = at[there], row[there]
        if not x.size or not x[0] * (1 - 1e-9) <= budget <= x[-1] * (1 + 1e-9):
            continue
        after = int(np.clip(np.searchsorted(x, budget), 1, len(x) - 1)) if len(x) > 1 else 0
        ends = [after - 1, after] if len(x) > 1 else [0]
        exact = [i for i in ends if abs(x[i] - budget) <= 1e-9 * budget]
        if exact:
            found[run] = y[exact[0]]
        elif np.isinf(y[ends]).any():
            found[run] = y[ends][np.isinf(y[ends])][0]
        elif x[ends[1]] <= 1.25 * x[ends[0]] or abs(y[ends[1]] - y[ends[0]]) <= 0.02 * np.ptp(
            y[np.isfinite(y)]
        ):
            found[run] = np.interp(budget, x, y)
    return found
