"""Does attention depend on what is asked? Where it does not, a benchmark of attention ranks decoders without any."""

from __future__ import annotations

import numpy as np
import xarray as xr

from .frames import per_run
from .groups import panels

#: Share of the positions that words could attend to below which attention has collapsed: nearly all words of a sentence attend to one.
COLLAPSED = 0.1


def collapsed(data: xr.Dataset) -> dict[tuple[str, str], list[str]]:
    """By task and model, the estimators whose networks attend, at their last evaluation, to nearly one position whatever the word:
    `metric_positions_used`, averaged over their runs, is below `COLLAPSED`. Nothing where that was not evaluated."""
    found: dict[tuple[str, str], list[str]] = {}
    if "metric_positions_used" not in data:
        return found
    used = per_run(data, "metric_positions_used")
    for panel, members in panels(data).items():
        for group in members:
            values = used[group.runs]
            if np.isfinite(values).any() and np.nanmean(values) < COLLAPSED:
                found.setdefault(panel, []).append(group.estimator)
    return found
