"""The result of `compare`."""
from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence, Union

import numpy as np

from ._comparison_table import table
from ._core import UsageError, precision, quantities
from ._gradients import Floats
from ._moments import Moments
from ._ranking import Score, better, ranks

if TYPE_CHECKING:
    import xarray

#: The attributes of measured quantities in a result's file.
FACTS = quantities()


@dataclass(frozen=True)
class Measured:
    """One estimator. Its numbers are attributes, too: `of.variance`.

    status: "ok"; "skipped" if it does not fit, "failed" if it or the step fails; reason: why.
    numbers: by the names in results/README.md: replicates, variance (sum over coordinates), squared_bias (unbiased: may be negative),
        relative_bias, mse, snr, cosine (mean of the estimates' cosines to the reference), bias_p_value_plain (of no bias),
        bias_p_value, effective_sample_size, tail_index, rows and seconds of an estimate, work_normalised_variance (variance x rows).
        Also mean_cosine (cosine of the mean), time_normalised_variance (variance x seconds), not_finite (estimates left out), warmup
        (steps in which it learned before). NaN: unknown.
    intervals: 95%, by name. unsupported: why the replicates do not support them, such as a heavy tail; empty if they do.
    notes: remarks in words. groups: the same figures by group of parameters, without cosines, the tail and bias_p_value.
    wide: interval of the variance at the level that holds for all pairs of estimators together.
    mean, variances: [P] of each coordinate, if wanted.
    """
    estimator: str
    status: str
    reason: str
    numbers: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    unsupported: str = ""
    notes: tuple[str, ...] = ()
    groups: dict[str, Moments] = field(default_factory=dict)
    wide: tuple[float, float] = (np.nan, np.nan)
    mean: Optional[Floats] = field(default=None, repr=False)
    variances: Optional[Floats] = field(default=None, repr=False)

    def __getattr__(self, name: str) -> float:
        numbers = self.__dict__.get("numbers", {})
        if name not in numbers:
            raise AttributeError(f"{self.__dict__.get('estimator', 'it')} has no {name}" + (f": {self.reason}" if "reason" in self.__dict__ and self.reason else ""))
        return float(numbers[name])


class Comparison:
    """The figures of all estimators; `print` shows them as a table. `result["rebar"]` are those of one, a `Measured`.

    reference: the source of the true gradient; "" if there is none.
    by: the cost that ranks, "rows" or "seconds".
    rank: by name, 1 + the number of estimators without bias whose variance x cost is less beyond noise. NaN if a bias was found, or
        if it failed. (Found: a p of the whole or of a group below 0.05, divided by the number of all these p.)
    best: the name with the least variance x cost, of those without bias ("" if there is none); ties: those not distinguishable from it.
    notes: remarks on all of them. seconds: of the whole call; own_seconds: of these in the user's step
        and its backward pass. parameters: their number P. framework: "torch" or "jax".
    """

    def __init__(self, measured: Sequence[Measured], reference: str, by: str, seed: int, notes: Sequence[str], seconds: float,
                 own_seconds: float, parameters: int, framework: str, single: bool):
        self.measured, self.reference, self.seed, self.notes = list(measured), reference, seed, list(notes)
        self.seconds, self.own_seconds, self.parameters, self.framework, self._single = seconds, own_seconds, parameters, framework, single
        ok = [one for one in self.measured if one.status == "ok"]
        known = all(np.isfinite(one.rows) for one in ok)
        self.by = by if by != "auto" else "rows" if known else "seconds"
        if self.by == "rows" and not known:
            self.by = "seconds"
            self.notes.append("Rows are unknown for code without hardgrad's draws: ranked by seconds.")
        scores = {one.estimator: self._score(one, len(ok)) for one in ok}
        self.rank = {one.estimator: np.nan for one in self.measured} | dict(zip(scores, ranks(list(scores.values()))))
        fair = {name: score for name, score in scores.items() if not score.biased}
        self.best = min(fair, key=lambda name: fair[name].variance * fair[name].cost, default="")
        self.ties = [name for name, score in fair.items() if name != self.best and not better(fair[self.best], score)]

    def _score(self, one: Measured, count: int) -> Score:
        p = [one.bias_p_value_plain, *(group.numbers["bias_p_value_plain"] for group in one.groups.values())]
        biased = any(value * count * len(p) < 0.05 for value in p)  # noise in one group may hide a bias in another
        return Score(one.variance, *one.wide, one.rows if self.by == "rows" else one.seconds, biased)

    def biased(self, name: str) -> bool:
        """Whether a bias was found."""
        return self[name].status == "ok" and bool(np.isnan(self.rank[name]))

    def __getitem__(self, name: str) -> Measured:
        for one in self.measured:
            if one.estimator == name:
                return one
        raise KeyError(name)

    def __iter__(self) -> Iterator[Measured]:
        return iter(self.measured)

    def __len__(self) -> int:
        return len(self.measured)

    def ordered(self) -> list[Measured]:
        """By rank and variance x cost; then those with a bias, by mean squared error x cost; then those that failed."""
        def key(one: Measured) -> tuple[float, ...]:
            if one.status != "ok":
                return (2.0,)
            cost = one.rows if self.by == "rows" else one.seconds
            return (1.0, one.mse * cost) if self.biased(one.estimator) else (0.0, self.rank[one.estimator], one.variance * cost)
        return sorted(self.measured, key=key)

    def __str__(self) -> str:
        return table(self)

    def to_xarray(self, step: int = 0) -> xarray.Dataset:
        """The layout of a result (results/README.md): a run for each estimator. `hardgrad.analysis` tabulates and draws it.

        step: the training step, which labels the axis measurement_step.
        """
        import xarray
        runs = self.measured
        there = [one.estimator for one in runs if one.status == "ok"]
        names = sorted({name for one in runs for name in one.numbers})
        axes = ("run", "measurement_step")
        data: dict[str, Any] = {name: (axes, [[one.numbers.get(name, np.nan)] for one in runs], FACTS.get(name, {})) for name in names}
        data |= {f"{name}_interval": (axes + ("bound",), [[one.intervals.get(name, (np.nan, np.nan))] for one in runs])
                 for name, facts in FACTS.items() if "interval" in facts}
        data |= {"rank": (axes, [[self.rank[one.estimator]] for one in runs]),
                 "measurement_unsupported": (axes, np.array([[one.unsupported] for one in runs], object)),
                 "measurement_note": (axes, np.array([["; ".join(one.notes)] for one in runs], object)),
                 "estimand": (axes, np.array([[self.reference] for _ in runs], object)),
                 "status": ("run", np.array([("ok", "failed", "skipped").index(one.status) for one in runs], np.uint8),
                            {"flag_values": np.arange(3, dtype=np.uint8), "flag_meanings": "ok failed skipped"}),
                 "reason": ("run", np.array([one.reason for one in runs], object)),
                 "run_settings": ("run", np.array([json.dumps({"measure.level": 0.95})] * len(runs), object))}
        groups = list(self[there[0]].groups)
        if groups:
            for name in ("variance", "squared_bias", "relative_bias", "bias_p_value_plain"):
                data[f"{name}_by_group"] = (axes + ("parameter_group",), [[[one.groups[group].numbers[name] if one.groups else np.nan for group in groups]]
                                                                         for one in runs])
        texts = {"task": self.framework, "model": f"{self.parameters} parameters"}
        coordinates: dict[str, Any] = {"run": np.arange(len(runs)), "measurement_step": [step], "bound": np.array(["low", "high"], object),
                                       "estimator": ("run", np.array([one.estimator for one in runs], object)),
                                       "seed": ("run", [self.seed] * len(runs)),
                                       **{name: ("run", np.array([text] * len(runs), object)) for name, text in texts.items()}}
        if groups:
            coordinates["parameter_group"] = np.array(groups, object)
        return xarray.Dataset(data, coordinates, {"schema_version": 2, "kind": "result", "status": "complete", "path": "compare",
                                                  "title": "comparison on a network of one's own", "notes": " ".join(self.notes),
                                                  **precision(self._single)})

    def save(self, path: Union[str, os.PathLike[str]], step: int = 0) -> None:
        """Writes the dataset to an HDF5 file, which `python3 -m analysis report` opens (with a warning: it has no seal)."""
        written(self.to_xarray(step), path)


def written(data: xarray.Dataset, path: Union[str, os.PathLike[str]]) -> None:
    data = data.copy()
    data.attrs.pop("path", None)
    try:
        data.to_netcdf(os.fspath(path), engine="h5netcdf")
    except ModuleNotFoundError as missing:
        raise UsageError(f"save needs {missing.name}, which is not installed: install hardgrad[analysis]") from missing
