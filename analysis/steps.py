"""The step of training at which a bias or variance is shown: for each network the first, the last,
the middle, or a given one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

NAMED = ("first", "last", "half")


class Step(NamedTuple):
    """A measured step of every run. Networks may train for different numbers of steps, so `words`
    may name several."""

    places: (
        np.ndarray
    )  # [run] positions along `measurement_step`; -1: the run's network was not measured then
    words: str  # "step 300", "steps 300 and 600"

    def of(self, values: np.ndarray) -> np.ndarray:
        """[run, ...] The values at the step of an array over [run, measurement_step, ...]; NaN or
        "" where a run has none."""
        found = values[np.arange(len(values)), self.places]
        found = found.astype(float) if values.dtype.kind in "fiu" else found.copy()
        found[self.places < 0] = np.nan if found.dtype.kind == "f" else ""
        return found


def measured(data: xr.Dataset) -> np.ndarray:
    """[run, measurement_step] Whether a run was measured, or the measurement was skipped for a
    reason."""
    there = np.zeros((data.sizes["run"], data.sizes["measurement_step"]), bool)
    for name in data.data_vars:
        if data[name].dims == ("run", "measurement_step"):
            values = data[name].values
            if values.dtype.kind == "f":
                there |= np.isfinite(values)
            elif values.dtype.kind == "O":
                there |= values.astype(str) != ""
    return there


def chosen_step(
    steps: np.ndarray, measured: np.ndarray, networks: list[np.ndarray], at: str | int
) -> Step:
    """The step `at` of each network: "first", "last", "half" (the measured step nearest to half of
    the last one; the later of two) or one of the numbers in `steps`. `measured` [run, step]:
    whether a run was measured at a step.
    `networks`: the runs of each."""
    places = np.full(len(measured), -1)
    for runs in networks:
        own = np.flatnonzero(measured[runs].any(axis=0))
        if own.size and at in ("first", "last"):
            places[runs] = own[0 if at == "first" else -1]
        elif own.size and at == "half":
            far = np.abs(steps[own] - steps[own[-1]] / 2)
            places[runs] = own[np.flatnonzero(far == far.min())[-1]]
        elif at not in NAMED:
            places[runs] = int(np.flatnonzero(steps == int(at))[0])
    used = [str(steps[place]) for place in sorted(set(places.tolist()) - {-1})]
    words = " and ".join(filter(None, [", ".join(used[:-1]), used[-1]])) if used else "–"
    return Step(places, f"step{'s' if len(used) > 1 else ''} {words}")
