"""The step of training at which a bias or variance is shown: for each network the first, the last, the middle, or a given one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from .errors import InputError
from .groups import panels
from .load import need


class Step(NamedTuple):
    """A measured step of every run. Networks may train for different numbers of steps, so `words` may name several."""

    places: np.ndarray  # [run] positions along `measurement_step`; -1: the run's network was not measured then
    words: str  # "step 300", "steps 300 and 600"


def measurement_step(data: xr.Dataset, at: str | int = "first") -> Step:
    """The step for "first", "last", "half" (the measured step nearest to half of the last one; the later of two) or a number, of each
    network. At the first step, 0, estimators that share a seed share their parameters; learned baselines are untrained there.
    InputError if no network was measured at a step of this number."""
    steps = need(data, "measurement_step", "set measure.at in the sweep").values.astype(int)
    there, places = _measured(data), np.full(data.sizes["run"], -1)
    if at not in ("first", "last", "half") and not (str(at).lstrip("-").isdigit() and int(at) in steps):
        raise InputError(f"{data.attrs.get('path', 'result')}: nothing was measured at step {at} "
                         f"(there are: first, half, last, {', '.join(map(str, steps))})")
    for members in panels(data).values():
        runs = np.concatenate([group.runs for group in members])
        own = np.flatnonzero(there[runs].any(axis=0))
        if own.size and at in ("first", "last"):
            places[runs] = own[0 if at == "first" else -1]
        elif own.size and at == "half":
            far = np.abs(steps[own] - steps[own[-1]] / 2)
            places[runs] = own[np.flatnonzero(far == far.min())[-1]]
        elif at not in ("first", "last", "half"):
            places[runs] = int(np.flatnonzero(steps == int(at))[0])
    used = [str(steps[place]) for place in sorted(set(places.tolist()) - {-1})]
    return Step(places, f"step{'s' if len(used) > 1 else ''} " + (" and ".join(filter(None, [", ".join(used[:-1]), used[-1]])) if used else "–"))


def _measured(data: xr.Dataset) -> np.ndarray:
    """[run, measurement_step] Whether a run was measured, or the measurement was skipped for a reason."""
    there = np.zeros((data.sizes["run"], data.sizes["measurement_step"]), bool)
    for name in data.data_vars:
        if data[name].dims == ("run", "measurement_step"):
            values = data[name].values
            there |= np.isfinite(values) if values.dtype.kind == "f" else values.astype(str) != "" if values.dtype.kind == "O" else False
    return there


def pick(data: xr.Dataset, name: str, step: Step) -> np.ndarray:
    """[run, ...] The values of a variable over [run, measurement_step, ...] at the step; NaN or "" where a run has none."""
    values = data[name].values
    found = values[np.arange(len(values)), step.places]
    found = found.astype(float) if values.dtype.kind in "fiu" else found.copy()
    found[step.places < 0] = np.nan if found.dtype.kind == "f" else ""
    return found
