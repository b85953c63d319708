"""Selection of runs, and tidy data frames."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from .errors import InputError
from .result import Result
from .rounding import at_step

_AXES = ("measurement_step", "evaluation_step", "step", "run")


def select(data: xr.Dataset, **wanted: Any) -> xr.Dataset:
    """The runs with these labels: `select(data, task="qa", estimator=["rloo", "nvil"], seed=1,
    status="ok")`.

    A name selects every spec of that name ("rloo" also selects `rloo[samples=4]`); a full spec
    selects only itself; a list selects any of its members. Labels are `status` and everything with
    one value per run: task, model, estimator, seed, other axes of the grid. InputError if a label
    does not exist or no run remains."""
    result = Result(data)
    kept = np.ones(data.sizes["run"], dtype=bool)
    for name, value in wanted.items():
        if name != "status" and (name not in data.variables or data[name].dims != ("run",)):
            labels = [str(n) for n in data.variables if data[n].dims == ("run",)]
            raise InputError(f"{result.path}: runs have no {name}{_suggest(name, labels)}")
        have = result.status if name == "status" else [str(v) for v in data[name].values]
        also = result.estimators if name == "estimator" else have  # as displayed
        values = (
            [str(value)]
            if isinstance(value, str) or not isinstance(value, Iterable)
            else [str(v) for v in value]
        )
        for one in values:
            if not any(matches(one, label) for label in [*have, *also]):
                raise InputError(f"{result.path}: no run has {name} {one}{_suggest(one, have)}")
        kept &= np.array(
            [
                any(matches(one, label) for one in values for label in both)
                for both in zip(have, also)
            ],
            dtype=bool,
        )
    if not kept.any():
        raise InputError(
            f"{result.path}: no run has {', '.join(f'{n}={v}' for n, v in wanted.items())} "
            "in combination"
        )
    return data.isel(run=np.flatnonzero(kept))


def matches(wanted: str, label: str) -> bool:
    """A bare name matches every spec of that name, a full spec only itself."""
    return label == wanted or ("[" not in wanted and label.split("[")[0] == wanted)


def _suggest(word: str, words: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, set(words) | {w.split("[")[0] for w in words}, 1)
    return f" (did you mean {near[0]}?)" if near else ""


def tidy(data: xr.Dataset | Result, axis: str = "measurement_step") -> pd.DataFrame:
    """A tidy frame (Wickham 2014): one row per run and place on `axis` (measurement_step,
    evaluation_step, step, or run alone).

    Columns: run, task, model, estimator, seed and every other number or text with one value per
    run; `status` by name; `setting_<parameter>` for every parameter of the estimators, including
    defaults (missing if an estimator lacks it); `train_<setting>` and `measure_<setting>` for all
    training and measurement settings of the run, including overrides and defaults; every variable
    over the axis, intervals as `<quantity>_low` and `<quantity>_high`. Rows without a number, such
    as steps that a run did not measure, are dropped. InputError if the result lacks the axis."""
    if axis not in _AXES:
        raise InputError(f"tidy: {axis} is not an axis (axes are: {', '.join(_AXES)})")
    result = Result.of(data)
    data = result.data
    if axis != "run":
        result.need(axis, "it was not recorded")
    frame = pd.DataFrame({"run": data["run"].values})
    for name in ("task", "model", "estimator", "seed"):
        if name in data.variables:
            frame[name] = data[name].values
    frame["status"] = result.status
    done = {
        *frame.columns,
        "status",
        *(f"{of}_settings" for of in ("task", "model", "estimator", "target", "run")),
    }
    own = [str(n) for n in data.variables if data[n].dims == ("run",) and n not in done]
    frame = frame.join(pd.DataFrame({name: data[name].values for name in own}, index=frame.index))
    if "estimator_settings" in data:
        settings = [
            {f"setting_{name}": value for name, value in one.items()}
            for one in result.estimator_settings
        ]
        frame = frame.join(pd.DataFrame(settings, index=frame.index))
    trained = pd.DataFrame(
        [
            {path.replace(".", "_"): value for path, value in one.items()}
            for one in result.run_settings
        ],
        index=frame.index,
    )
    frame = frame.join(trained[[name for name in trained if name not in frame]])
    if axis == "run":
        return frame

    columns: dict[str, np.ndarray] = {}
    for name in map(str, data.data_vars):
        dims = data[name].dims
        if dims == ("run", axis):
            columns[name] = data[name].values.ravel()
        elif dims == ("run", axis, "bound"):
            stem = name.removesuffix("_interval")
            for i, side in enumerate(("low", "high")):
                columns[f"{stem}_{side}"] = data[name].values[..., i].ravel()
    places = data[axis].values
    long = frame.loc[frame.index.repeat(len(places))].reset_index(drop=True)
    long = long.join(pd.DataFrame({axis: np.tile(places, len(frame)), **columns}))
    numbers = [name for name, values in columns.items() if values.dtype.kind == "f"]
    return long[long[numbers].notna().any(axis=1)].reset_index(drop=True) if numbers else long


def per_run(result: Result, quantity: str, at: str | int = "first") -> np.ndarray:
    """One number per run, NaN if it has none: a measured quantity at step `at` (`Result.step`), the
    last value of a quantity logged or evaluated over training, or a scalar itself. A bias that
    rounding explains is 0. InputError if the variable does not exist."""
    data = result.data
    if quantity not in data.data_vars or data[quantity].dtype.kind not in "fiu":
        numbers = [
            str(n)
            for n in data.data_vars
            if data[n].dtype.kind == "f" and data[n].dims[:1] == ("run",)
        ]
        raise InputError(f"{result.path}: has no quantity {quantity}{_suggest(quantity, numbers)}")
    values = data[quantity]
    if values.dims == ("run",):
        return values.values.astype(float)
    if values.dims == ("run", "measurement_step"):
        return at_step(result, quantity, result.step(at))
    if len(values.dims) == 2 and values.dims[0] == "run":
        return result.last(quantity)
    raise InputError(
        f"{result.path}: {quantity} has more than one number per run: its axes are "
        f"{', '.join(map(str, values.dims))}"
    )
