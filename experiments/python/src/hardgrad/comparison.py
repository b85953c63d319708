"""The result of `compare`: the order of estimators by variance x cost, and which differ beyond
noise; the plain-text table."""

from __future__ import annotations

import json
import math
import os
import statistics
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Optional, Sequence, Union

import numpy as np

from ._core import UsageError, precision, quantities
from .gradients import Floats
from .replicates import LEVEL, Moments, median_interval

if TYPE_CHECKING:
    import xarray


class Score(NamedTuple):
    """variance: of one estimate, with its interval at a level for all pairs together; cost, times:
    of one estimate, and of each if they are not known, NaN if it failed; biased: whether a bias was
    found."""

    variance: float
    low: float
    high: float
    cost: float
    biased: bool
    times: Sequence[float] = ()
    level: float = 0.95


def level_of_pairs(count: int, level: float) -> float:
    """The level of each interval with which those of all pairs hold together (Dunn 1961)."""
    return 1 - (1 - level) / max(1, count * (count - 1) // 2)


def better(a: Score, b: Score) -> bool:
    """Whether a's variance x cost is less beyond noise: the interval of the ratio, made of those of
    both variances and of the costs' ratio (Zou & Donner 2008, Construction of confidence limits
    about effect measures), is below 1. Costs of the same turn are compared, since the load of the
    machine changes both."""
    if not (a.variance > 0 and b.variance > 0):
        return a.variance == 0 and b.low > 0
    below = math.log(b.variance / b.low) if b.low > 0 else math.inf
    above = math.log(a.high / a.variance)
    if a.times and b.times:
        ratios = [y / x for x, y in zip(a.times, b.times) if x > 0 and y > 0]
        if not ratios:
            return False
        dearer = statistics.median(ratios)
        least = median_interval(ratios, a.level)[0]
        noise = math.log(dearer / least) if least > 0 else math.inf
    else:
        dearer, noise = b.cost / a.cost, 0.0
    return math.log(b.variance / a.variance * dearer) - math.hypot(below, above, noise) > 0


def ranks(scores: Sequence[Score]) -> list[float]:
    """1 + the number of those without bias that are better beyond noise; NaN for those with a
    bias."""
    return [
        math.nan
        if score.biased
        else 1.0
        + sum(better(other, score) for other in scores if not other.biased and other is not score)
        for score in scores
    ]


#: The facts of all quantities of a measurement, by name: attributes in a result's file.
FACTS = quantities()


@dataclass(frozen=True)
class Measured:
    """One estimator. Its numbers are attributes, too: `of.variance`.

    status: "ok"; "skipped" if it does not fit, "failed" if it or the step fails; reason: why.
    numbers: by the names in results/README.md; `to_xarray` gives each with its meaning and units.
        squared_bias is unbiased, and may be negative; mean_cosine is of the mean; seconds are the
        median of an estimate's, of processors or of a CUDA device. NaN: unknown.
    intervals: 95%, by name. unsupported: why the replicates do not support them, such as a heavy
        tail; empty if they do.
    notes: remarks in words. groups: the same figures by group of parameters, without cosines, the
        tail and bias_p_value.
    wide: interval of the variance at the level that holds for all pairs of estimators together.
    times: seconds of each estimate, in turns with the other estimators; NaN if it failed.
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
    times: Sequence[float] = field(default=(), repr=False)
    mean: Optional[Floats] = field(default=None, repr=False)
    variances: Optional[Floats] = field(default=None, repr=False)

    @property
    def milliseconds(self) -> tuple[float, float]:
        """The interval of an estimate's cost."""
        low, high = self.intervals["seconds"]
        return 1e3 * low, 1e3 * high

    def __getattr__(self, name: str) -> float:
        numbers = self.__dict__.get("numbers", {})
        if name not in numbers:
            raise AttributeError(
                f"{self.__dict__.get('estimator', 'it')} has no {name}"
                + (f": {self.reason}" if "reason" in self.__dict__ and self.reason else "")
            )
        return float(numbers[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.numbers]


class Comparison:
    """The figures of all estimators; `print` shows them as a table. `result["rebar"]` are those of
    one, a `Measured`.

    reference: the source of the true gradient; "" if there is none.
    by: the cost that ranks, "rows" or "seconds".
    rank: by name, 1 + the number of estimators without bias whose variance x cost is less beyond
        noise. NaN if a bias was found, or if it failed. (Found: a p of the whole or of a group
        below 0.05, divided by the number of all these p.)
    best: the name with the least variance x cost, of those without bias ("" if there is none);
        ties: those not distinguishable from it.
    notes: remarks on all of them. seconds: of the whole call; own_seconds: of these in the user's
        step and its backward pass. parameters: their number P. framework: "torch" or "jax".
    """

    def __init__(
        self,
        measured: Sequence[Measured],
        reference: str,
        by: str,
        seed: int,
        notes: Sequence[str],
        seconds: float,
        own_seconds: float,
        parameters: int,
        framework: str,
        single: bool,
    ):
        self.measured = list(measured)
        self.reference = reference
        self.seed = seed
        self.notes = list(notes)
        self.seconds = seconds
        self.own_seconds = own_seconds
        self.parameters = parameters
        self.framework = framework
        self._single = single
        ok = [one for one in self.measured if one.status == "ok"]
        known = all(np.isfinite(one.rows) for one in ok)
        self.by = by if by != "auto" else "rows" if known else "seconds"
        if self.by == "rows" and not known:
            self.by = "seconds"
            self.notes.append(
                "Rows are unknown for code without hardgrad's draws: ranked by seconds."
            )
        scores = {one.estimator: self._score(one, len(ok)) for one in ok}
        self.rank = {one.estimator: np.nan for one in self.measured} | dict(
            zip(scores, ranks(list(scores.values())))
        )
        fair = {name: score for name, score in scores.items() if not score.biased}
        self.best = min(
            fair,
            key=lambda name: (self.rank[name], fair[name].variance * fair[name].cost),
            default="",
        )
        self.ties = [
            name
            for name, score in fair.items()
            if name != self.best and not better(fair[self.best], score)
        ]

    def _score(self, one: Measured, count: int) -> Score:
        p = [
            one.bias_p_value_plain,
            *(group.numbers["bias_p_value_plain"] for group in one.groups.values()),
        ]
        biased = any(
            value * count * len(p) < 0.05 for value in p
        )  # noise in one group may hide a bias in another
        if self.by == "rows":
            return Score(one.variance, *one.wide, one.rows, biased)
        level = level_of_pairs(len(self.measured), LEVEL)
        return Score(one.variance, *one.wide, one.seconds, biased, one.times, level)

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
        """By rank and variance x cost; then those with a bias, by mean squared error x cost; then
        those that failed."""

        def key(one: Measured) -> tuple[float, ...]:
            if one.status != "ok":
                return (2.0,)
            cost = one.rows if self.by == "rows" else one.seconds
            return (
                (1.0, one.mse * cost)
                if self.biased(one.estimator)
                else (0.0, self.rank[one.estimator], one.variance * cost)
            )

        return sorted(self.measured, key=key)

    def __str__(self) -> str:
        return table(self)

    def __repr__(self) -> str:
        """The table, also as the last line of a notebook's cell."""
        return str(self)

    def to_xarray(self, step: int = 0) -> xarray.Dataset:
        """The layout of a result (results/README.md): a run for each estimator. `hardgrad.analysis`
        tabulates and draws it.

        step: the training step, which labels the axis measurement_step.
        """
        import xarray

        runs = self.measured
        there = [one.estimator for one in runs if one.status == "ok"]
        names = sorted({name for one in runs for name in one.numbers})
        axes = ("run", "measurement_step")
        data: dict[str, Any] = {
            name: (axes, [[one.numbers.get(name, np.nan)] for one in runs], FACTS[name])
            for name in names
        }
        data |= {
            f"{name}_interval": (
                axes + ("bound",),
                [[one.intervals.get(name, (np.nan, np.nan))] for one in runs],
            )
            for name, facts in FACTS.items()
            if "interval" in facts
        }
        data |= {
            "rank": (axes, [[self.rank[one.estimator]] for one in runs], FACTS["rank"]),
            **{
                name: (axes, np.array([[text] for text in texts], object), FACTS[name])
                for name, texts in {
                    "measurement_unsupported": [one.unsupported for one in runs],
                    "measurement_note": ["; ".join(one.notes) for one in runs],
                    "estimand": [self.reference for _ in runs],
                }.items()
            },
            "status": (
                "run",
                np.array([("ok", "failed", "skipped").index(one.status) for one in runs], np.uint8),
                {"flag_values": np.arange(3, dtype=np.uint8), "flag_meanings": "ok failed skipped"},
            ),
            "reason": ("run", np.array([one.reason for one in runs], object)),
            "run_settings": (
                "run",
                np.array([json.dumps({"measure.level": 0.95})] * len(runs), object),
            ),
        }
        groups = list(self[there[0]].groups)
        for name in (name for name in FACTS if name.endswith("_by_group") and groups):
            number = name.removesuffix("_by_group")
            data[name] = (
                axes + ("parameter_group",),
                [
                    [[one.groups[g].numbers[number] if one.groups else np.nan for g in groups]]
                    for one in runs
                ],
                FACTS[name],
            )
        texts = {"task": self.framework, "model": f"{self.parameters} parameters"}
        coordinates: dict[str, Any] = {
            "run": np.arange(len(runs)),
            "measurement_step": [step],
            "bound": np.array(["low", "high"], object),
            "estimator": ("run", np.array([one.estimator for one in runs], object)),
            "seed": ("run", [self.seed] * len(runs)),
            **{name: ("run", np.array([text] * len(runs), object)) for name, text in texts.items()},
        }
        if groups:
            coordinates["parameter_group"] = np.array(groups, object)
        return xarray.Dataset(
            data,
            coordinates,
            {
                "schema_version": 2,
                "kind": "result",
                "status": "complete",
                "path": "compare",
                "title": "comparison on a network of one's own",
                "notes": " ".join(self.notes),
                **precision(self._single),
            },
        )

    def save(self, path: Union[str, os.PathLike[str]], step: int = 0) -> None:
        """Writes the dataset to an HDF5 file, which `python3 -m analysis report` opens (with a
        warning: it has no seal)."""
        written(self.to_xarray(step), path)


def written(data: xarray.Dataset, path: Union[str, os.PathLike[str]]) -> None:
    data = data.copy()
    data.attrs.pop("path", None)
    try:
        data.to_netcdf(os.fspath(path), engine="h5netcdf")
    except ModuleNotFoundError as missing:
        raise UsageError(
            f'save needs {missing.name}, which is not installed: install "hardgrad[analysis]"'
        ) from missing


_WIDTH = 116


def table(of: Comparison) -> str:
    cost = "rows" if of.by == "rows" else "seconds"
    score = "work_normalised_variance" if of.by == "rows" else "time_normalised_variance"
    known = bool(of.reference)
    head = [
        "rank",
        "estimator",
        *(["relative bias", "p"] if known else []),
        "variance",
        "rows",
        "ms",
        f"variance x {cost}",
        *(["cosine"] if known else []),
    ]
    lines, notes = [head], []
    for one in of.ordered():
        if one.status != "ok":
            lines.append(["-", one.estimator])
            notes.append(f"{one.estimator} {one.status}: {one.reason}.")
            continue
        doubt = " ?" if one.unsupported else ""
        lines.append(
            [
                _rank(of, one),
                one.estimator,
                *([_bias(one) + doubt, _p(one.bias_p_value_plain)] if known else []),
                _with_interval(one.variance, one.intervals["variance"]) + doubt,
                _number(one.rows),
                _with_interval(1e3 * one.seconds, one.milliseconds)
                if cost == "seconds"
                else _number(1e3 * one.seconds),
                _number(getattr(one, score)) + doubt,
                *([_number(one.cosine)] if known else []),
            ]
        )
        notes += [f"{one.estimator}: {note}." for note in one.notes]
    text = aligned(lines) + _by_group(of, known)
    text += [""] + [
        wrapped
        for note in [_caption(of, cost), *of.notes, *notes]
        for wrapped in textwrap.wrap(note, _WIDTH, subsequent_indent="  ")
    ]
    return "\n".join(text)


def _caption(of: Comparison, cost: str) -> str:
    ok = [one for one in of if one.status == "ok"]
    counts = [int(one.replicates) for one in ok]
    many = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    words = (
        f"{many} estimates each of {of.parameters} parameters, {of.seconds:.1f} s "
        f"({of.own_seconds:.1f} s of them in the step and its backward pass). "
    )
    if of.reference:
        norm, error = ok[0].estimand_norm, ok[0].estimand_standard_error
        words += (
            f"Reference: {of.reference}, length {norm:.3g}"
            + (f" (standard error {error:.2g})" if error > 0 else "")
            + ". "
        )
    if of.best:
        words += f"Least variance x {cost}: {of.best}"
        words += f"; not distinguishable from it: {', '.join(of.ties)}. " if of.ties else ". "
    words += (
        "Intervals are 95%; rank: 1 + the number of estimators that are better beyond noise (all "
        "pairs together)."
    )
    if any(of.biased(one.estimator) for one in ok):
        words += " biased: a bias was found, in the whole or in a group (p < 0.05, corrected)."
    if any(one.unsupported for one in ok):
        words += " ?: the estimates do not support their interval."
    return words


def _rank(of: Comparison, one: Measured) -> str:
    rank = of.rank[one.estimator]
    return "biased" if np.isnan(rank) else f"{rank:.0f}"


def _bias(one: Union[Measured, Moments]) -> str:
    value, (low, high) = (
        one.numbers["relative_bias"],
        one.intervals.get("relative_bias", (np.nan, np.nan)),
    )
    return (
        "-"
        if not np.isfinite(value)
        else f"< {high:.3g}"
        if low == 0 and high > 0
        else _with_interval(value, (low, high))
    )


def _with_interval(value: float, bounds: tuple[float, float]) -> str:
    low, high = bounds
    return (
        _number(value)
        if not np.isfinite(low + high) or high - low < 1e-9 * abs(value)
        else f"{value:.3g} [{low:.3g}, {high:.3g}]"
    )


def _p(value: float) -> str:
    return "-" if np.isnan(value) else "< .0001" if value < 1e-4 else f"{value:.2g}"


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "inf" if value > 0 else "-"


def _by_group(of: Comparison, known: bool) -> list[str]:
    """A second table, if the parameters have groups."""
    ok = [one for one in of.ordered() if one.status == "ok"]
    groups = list(ok[0].groups)
    if not groups:
        return []
    lines = [
        [
            "estimator",
            *(
                f"{group}: {what}"
                for group in groups
                for what in (["relative bias"] if known else []) + ["variance"]
            ),
        ]
    ]
    for one in ok:
        each = [one.groups[group] for group in groups]
        lines.append(
            [
                one.estimator,
                *(
                    word
                    for part in each
                    for word in ([_bias(part)] if known else [])
                    + [_number(part.numbers["variance"])]
                ),
            ]
        )
    return ["", *aligned(lines)]


def aligned(lines: list[list[str]]) -> list[str]:
    widths = [
        max(len(line[column]) for line in lines if column < len(line))
        for column in range(len(lines[0]))
    ]
    return [
        "  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip()
        for line in [lines[0], ["-" * width for width in widths], *lines[1:]]
    ]
