"""The curves of a running sweep, as a page that reloads itself; polls `hardgrad watch DIR
--json`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
import xarray as xr

from .curves import loss_curves
from .page import page, picture, rows_table
from .program import asked
from .result import Result

_STATUS = {"ok": 0, "failed": 1, "skipped": 2}
_AXES = ("task", "model", "estimator", "seed")


def told(hardgrad: str, folder: str) -> dict[str, Any]:
    """The program's report on the sweep in this folder. InputError with the program's message if it
    fails."""
    found: dict[str, Any] = json.loads(asked(hardgrad, "watch", folder, "--json"))
    return found


def dataset(found: dict[str, Any]) -> xr.Dataset:
    """Losses of the cells that have logged any, as a result (`load`): [run, step], NaN where a run
    has not logged yet."""
    cells = [cell for cell in found["cells"] if cell["training"]]
    steps = sorted({point["step"] for cell in cells for point in cell["training"]})
    place = {step: i for i, step in enumerate(steps)}
    curves = {"train_loss": "loss", "train_rows": "rows", "train_cpu_seconds": "cpu_seconds"}
    values = {name: np.full((len(cells), len(steps)), np.nan) for name in curves}
    for run, cell in enumerate(cells):
        for point in cell["training"]:
            for name, key in curves.items():
                values[name][run, place[point["step"]]] = (
                    np.nan if point[key] is None else point[key]
                )
    data = xr.Dataset(
        {name: (("run", "step"), numbers) for name, numbers in values.items()}, {"step": steps}
    )
    data["status"] = "run", np.array([_STATUS.get(cell["state"], 0) for cell in cells], dtype=int)
    for name in [*_AXES, *sorted({axis for cell in cells for axis in cell["axes"]} - set(_AXES))]:
        data.coords[name] = (
            "run",
            np.array([cell["axes"].get(name, "") for cell in cells], dtype=object),
        )
        data.coords[name].attrs["grid_axis"] = name
    return data.assign_attrs(path=found["name"])


def redrawn(found: dict[str, Any], by: str, every: float | None) -> str:
    """The current page; with `every`, the browser reloads it after this many seconds."""
    cells = found["cells"]
    states = [str(cell["state"]) for cell in cells]
    left = found["seconds_left"]
    head = (
        f"{states.count('ok')} of {len(cells)} cells done, {found['running']} running"
        + (f", {states.count('failed')} failed" if "failed" in states else "")
        + (f"; about {_clock(left)} of work left on one core" if left else "")
        + ("" if every else "; no cell is running: this is the final page")
    )
    parts = [f"<h1>{escape(found['name'])}</h1>", f"<p>{escape(head)}.</p>"]
    result = Result(dataset(found))
    if result.count:
        parts.append(picture(loss_curves(result, against=by), "Training loss"))
        losses = result.last("train_loss")
        rows = []
        for group in result.groups:
            logged = np.isfinite(result.values("train_loss")[group.runs]).any(axis=0)
            rows.append(
                [
                    group.label,
                    f"{np.nanmean(losses[group.runs]):.4g}",
                    result.values("step")[logged].max(),
                    len(group.runs),
                    f"{group.task} · {group.model}",
                ]
            )
        parts.append(
            rows_table(rows, ["estimator", "training loss", "step", "seeds", "network"], kept=True)
        )
    else:
        parts.append("<p>No cell has logged a loss yet.</p>")
    return page(found["name"], parts, reload=every)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
    )


def follow(
    look: Callable[[], dict[str, Any]], put: Callable[[str], object], by: str, every: float
) -> None:
    """Redraws the page until no cell of the sweep is running."""
    idle = 0
    while True:
        found = look()
        idle = 0 if found["running"] else idle + 1  # between two cells nothing runs for a moment
        over = idle > 1
        put(redrawn(found, by, None if over else every))
        if over:
            return
        time.sleep(every)
