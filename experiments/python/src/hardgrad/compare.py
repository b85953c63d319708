"""Which estimator on a network of the user's own: the part of `compare` that is the same in every
framework."""

from __future__ import annotations

import hashlib
import math
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Union

import numpy as np

from . import _core
from ._core import NotFinite, UsageError
from .comparison import Comparison, Measured, level_of_pairs
from .gradients import ALONE, Drawing, EstimatorCache, Floats, Parameters
from .replicates import (
    FEWEST,
    LEVEL,
    MOST,
    REFERENCE,
    REPLICATE,
    Collected,
    Collecting,
    Plan,
    Reference,
    checked,
    collected,
    median_interval,
    seed_of,
    turns_fit,
    warmed_up,
)

Step = Callable[..., Any]
Estimators = Union[
    Iterable[Any], Mapping[str, Any]
]  #: a list of specs, or of objects that hold one
#: A long run has half as many replicates, and half as much time, as all estimators together: a
#: third of the budget. More than those of this many estimators would narrow no interval much.
_LONGER = 4
_ALIKE = 16  # gradients that are equal if a reference has no noise
_UNBIASED = "rloo[samples=4]"


@dataclass(frozen=True)
class Options:
    """The options of `compare`."""

    reference: Any = "auto"
    replicates: Optional[int] = None
    seconds: Optional[float] = None
    by: str = "auto"
    seed: int = 0
    warmup: int = 200
    cap: float = 1e5
    coordinates: bool = False

    def __post_init__(self) -> None:
        if self.by not in ("auto", "rows", "seconds"):
            raise UsageError(f'by is "auto", "rows" or "seconds", got {self.by!r}')
        if self.replicates is not None and not 2 <= self.replicates <= MOST:
            raise UsageError(f"replicates are 2 to {MOST}, got {self.replicates}")
        if self.seconds is not None and not self.seconds > 0:
            raise UsageError(f"seconds are more than 0, got {self.seconds}")
        if self.warmup < 0 or self.seed < 0 or not self.cap >= 1:
            raise UsageError("warmup and seed are at least 0, cap at least 1")


@dataclass
class Entry:
    """One way to compute the loss. loss: in the framework's form (Parameters.asking); spec: of a
    registered estimator, or ""; asked: whether the user's step was given it."""

    name: str
    loss: Any
    spec: str
    asked: bool
    kept: EstimatorCache


def entries_of(step: Optional[Step], estimators: Estimators, of: type[Parameters]) -> list[Entry]:
    if isinstance(estimators, (str, *of.held)):
        estimators = [estimators]
    named = isinstance(estimators, Mapping)
    given = (
        list(estimators.items())
        if isinstance(estimators, Mapping)
        else [(None, value) for value in estimators]
    )
    found: list[Entry] = []
    for name, value in given:
        spec = value if isinstance(value, str) else value.spec if isinstance(value, of.held) else ""
        if not (spec or named):
            raise UsageError(
                f"estimators hold an object of type {type(value).__name__}: give it a name "
                "in a dictionary"
            )
        own = not spec and callable(value)
        if not own and step is None:
            raise UsageError(
                "step is None, so every estimator must be a function that returns a loss"
            )
        label = str(name) if named else spec
        count = sum(entry.spec == spec for entry in found)
        found.append(
            Entry(
                label if named or not count else f"{label} ({count + 1})",
                value if own else of.asking(step, value),
                spec,
                not own,
                {},
            )
        )
    if not found:
        raise UsageError("estimators are empty")
    return found


def measured(
    entries: list[Entry], step: Optional[Step], parameters: Parameters, options: Options
) -> Comparison:
    """`compare` with checked arguments. Estimators given by name are kept in their entries, with
    their learned state."""
    most = options.replicates or (MOST if options.seconds else 256)
    numbers = np.empty(parameters.size)
    found: list[Measured] = []
    digests: set[bytes] = set()
    with ALONE, parameters.own_noise():
        begin = time.monotonic()
        end = begin + options.seconds if options.seconds else math.inf
        longer = min(_LONGER, len(entries) / 2)
        share = Plan(
            options.seed,
            min(max(int(longer * most), FEWEST), MOST),
            _part(end, longer / (longer + len(entries))),
        )
        truth, why = _reference(options, entries, step, parameters, numbers, share)
        wide = level_of_pairs(len(entries), LEVEL)
        together = turns_fit(len(entries), parameters)
        for place in range(0, len(entries), len(entries) if together else 1):
            part = entries[place:] if together else entries[place : place + 1]
            until = _part(end, len(part) / (len(entries) - place))
            for one in _underway(part, parameters, truth, until, most, numbers, options):
                measured_one = _measured(one, parameters, truth, wide, options.coordinates)
                found.append(measured_one)
                if one.entry.asked and measured_one.status == "ok":
                    digests.add(one.digest)
    if all(one.status != "ok" for one in found):
        raise UsageError(
            f"{found[0].estimator}: {found[0].reason}"
            + (f" (and {len(found) - 1} more failed)" if len(found) > 1 else "")
        )
    notes = [why] if why else []
    if parameters.frozen:
        notes.append(
            f"{parameters.frozen} of {parameters.frozen + len(parameters.parts)} parameters "
            "require no gradient, and are left out."
        )
    if (
        len(digests) == 1
        and sum(entry.asked and one.status == "ok" for entry, one in zip(entries, found)) > 1
    ):
        notes.append(
            "All estimators give the same gradient with the same seed: the step ignores the "
            "estimator that it is given."
        )
    return Comparison(
        found,
        truth.what if truth else "",
        options.by,
        options.seed,
        notes,
        time.monotonic() - begin,
        parameters.spent,
        parameters.size,
        parameters.framework,
        parameters.single,
    )


def _part(end: float, share: float) -> float:
    now = time.monotonic()
    return now + max(0.0, end - now) * share if math.isfinite(end) else math.inf


def _reference(
    options: Options,
    entries: list[Entry],
    step: Optional[Step],
    parameters: Parameters,
    numbers: Any,
    plan: Plan,
) -> tuple[Optional[Reference], str]:
    """The true gradient; and a note if there is none, or the exact one could not be had for an
    unusual reason, such as memory."""
    wanted = options.reference
    if wanted is None:
        return None, ""
    own = next(
        (entry for entry in entries if isinstance(wanted, str) and entry.name == wanted), None
    )
    auto = wanted == "auto" and own is None
    if step is None and own is None:
        if not auto:
            raise UsageError("reference: step is None, so it must be the name of an entry")
        return (
            None,
            "There is no reference, since step is None: name an unbiased entry by reference=.",
        )
    candidates: list[tuple[str, Any]] = []
    if own:
        candidates.append((own.name, own.loss))
    else:
        for value in (f"exact[cap={options.cap:.0f}]", _UNBIASED) if auto else (wanted,):
            candidates.append(
                (
                    value
                    if isinstance(value, str)
                    else getattr(value, "spec", type(value).__name__),
                    parameters.asking(step, value),
                )
            )
    failures: list[str] = []
    unusual: list[str] = []
    for name, loss in candidates:
        try:
            return _true(
                name.split("[cap=")[0] if auto else name, Drawing(parameters, loss, numbers), plan
            ), " ".join(unusual)
        except Exception as error:  # of the user's own code, too
            if not auto:
                raise UsageError(f"reference {name}: {_in_words(error)}") from error
            failures.append(f"{name}: {_in_words(error)}")
            if not isinstance(error, UsageError):
                unusual.append(f"The exact reference failed: {_in_words(error)}.")
    return None, f"There is no reference: {'; '.join(failures)}."


def _true(name: str, drawing: Drawing, plan: Plan) -> Reference:
    first = checked(drawing, plan)
    if first is None:
        raise NotFinite("its gradient is not finite")
    if _without_noise(drawing, first, plan, 1 if name.split("[")[0] == "exact" else _ALIKE):
        return Reference(f"{name}, without noise", first)
    run = collected(drawing, None, plan, REFERENCE).replicates
    mean, _ = run.coordinates()
    return Reference(f"{run.count} x {name}", mean, run)


def _without_noise(drawing: Drawing, first: Floats, plan: Plan, draws: int) -> bool:
    """Whether all gradients are `first`. Those of a peaked step are alike until it draws a rare
    option."""
    near = (1e-5 if drawing.parameters.single else 1e-10) * np.linalg.norm(first)
    for number in range(draws):
        mixture = _core.Mixture()
        other = drawing(seed_of(plan.seed, REFERENCE, number), mixture=mixture).numbers
        if mixture.seen != (0, 0) or np.linalg.norm(first - other) > near:
            return False
    return True


@dataclass
class _Underway:
    """An entry whose replicates are drawn. spent: seconds so far; collecting: None if it failed."""

    entry: Entry
    warmed: int = 0
    digest: bytes = b""
    spent: float = 0.0
    collecting: Optional[Collecting] = None
    failure: Optional[Exception] = None


def _underway(
    entries: list[Entry],
    parameters: Parameters,
    truth: Optional[Reference],
    end: float,
    most: int,
    numbers: Any,
    options: Options,
) -> list[_Underway]:
    """The entries with their replicates, drawn in turns, so that other work of the machine slows
    all alike. Each gets an equal share of the time until `end`, and of the time that others
    leave."""
    begin = time.monotonic()
    several = [_Underway(entry) for entry in entries]
    for one in several:
        plan = Plan(options.seed, most, _part(end, 1 / len(entries)))
        with _charged(one):
            _begin(one, parameters, truth, plan, numbers, options)
    active = [one for one in several if one.collecting]
    first = 0
    while active:
        left = end - begin - sum(one.spent for one in several if one not in active)
        share = left / len(active)
        for one in active[first:] + active[:first]:  # none is always the first
            assert one.collecting
            late = one.spent > share or time.monotonic() > end
            if one.collecting.whole or one.collecting.number >= FEWEST and late:
                active.remove(one)
                continue
            with _charged(one):
                one.collecting.draw()
            if one.failure:
                active.remove(one)
        first = (first + 1) % max(1, len(active))
    return several


@contextmanager
def _charged(one: _Underway) -> Iterator[None]:
    """An exception is kept with its entry, whose time is counted."""
    begin = time.monotonic()
    try:
        yield
    except Exception as error:  # of the user's own code, too: the other estimators are kept
        one.failure = error
    one.spent += time.monotonic() - begin


def _begin(
    one: _Underway,
    parameters: Parameters,
    truth: Optional[Reference],
    plan: Plan,
    numbers: Any,
    options: Options,
) -> None:
    drawing = Drawing(parameters, one.entry.loss, numbers, one.entry.kept)
    first = checked(drawing, plan)
    if drawing.learns:
        one.warmed = warmed_up(drawing, plan, options.warmup)
        first = checked(drawing, plan)
    one.digest = hashlib.blake2b(b"" if first is None else first.tobytes()).digest()
    one.collecting = Collecting(drawing, truth, plan, REPLICATE)


def _measured(
    one: _Underway,
    parameters: Parameters,
    truth: Optional[Reference],
    wide: float,
    coordinates: bool,
) -> Measured:
    error = one.failure
    if error is None:
        assert one.collecting
        try:
            drawn = one.collecting.finished()
            return _figures(one.entry, drawn, parameters, truth, one.warmed, wide, coordinates)
        except Exception as failure:
            error = failure
    status = "skipped" if isinstance(error, UsageError) and one.entry.spec else "failed"
    return Measured(one.entry.name, status, _in_words(error))


def _figures(
    entry: Entry,
    drawn: Collected,
    parameters: Parameters,
    truth: Optional[Reference],
    warmed: int,
    wide: float,
    coordinates: bool,
) -> Measured:
    run = drawn.replicates
    of = run.moments(rows=drawn.rows)
    mean, variances = run.coordinates()
    high = of.intervals["variance"][1]
    # As in the mean cosine: noise makes the mean of a long run longer than the true gradient.
    of_noise = 1.0
    if truth is not None and truth.run is not None:
        of_noise = of.numbers["estimand_norm"] / float(np.linalg.norm(truth.gradient))
        of_noise = of_noise if of_noise**2 > 0.5 else math.nan
    more = {
        "rows": drawn.rows,
        "seconds": drawn.seconds,
        "time_normalised_variance": of.numbers["variance"] * drawn.seconds,
        "mean_cosine": _cosine(mean, truth.gradient) / of_noise if truth else math.nan,
        "unseen_variance": math.nan if drawn.not_finite else run.unseen_variance(),
        "effective_ratio_share": drawn.ratios.effective_share,
        "largest_ratio": drawn.ratios.largest,
        "not_finite": drawn.not_finite,
        "warmup": warmed,
    }
    notes = []
    if drawn.not_finite:
        notes.append(
            f"{drawn.not_finite} of {drawn.not_finite + run.count} estimates are not finite, "
            "and are left out"
        )
    if drawn.unreached:
        listed = "; ".join(parameters.in_words(place) for place in drawn.unreached[:3])
        notes.append(
            f"no gradient reaches {len(drawn.unreached)} of {len(parameters.parts)} "
            f"parameters ({listed}"
            f"{'; ...' if len(drawn.unreached) > 3 else ''})"
        )
    if warmed:
        notes.append(f"it learned for {warmed} steps before")
    if entry.asked and entry.spec and drawn.specs and entry.spec not in drawn.specs:
        notes.append(f"the step does not use it, but {', '.join(sorted(drawn.specs))}")
    if of.numbers["bias_p_value_plain"] < 1e-3 and _claims(entry.spec):
        notes.append(
            "it claims no bias: either its replicates lack rare terms, or its target is not "
            "the reference's"
        )
    if of.unsupported:
        notes.append(of.unsupported)
    groups = {name: run.moments(name, drawn.rows, of.unsupported) for name in parameters.groups}
    silent = any(group.numbers["variance"] == 0 for group in groups.values())
    beyond = of.numbers["variance"] + more["unseen_variance"] > high
    if not drawn.sought and (beyond or silent and more["unseen_variance"] > 0):
        notes.append(
            f"rare draws are not sought: what none of its {run.count} estimates shows has a "
            f"probability of at most {run.unseen_probability:.2g}, and adds at most "
            f"{more['unseen_variance']:.2g} to the variance if it is no larger than they are"
        )
    if not (drawn.sought or entry.spec) and of.numbers["variance"] == 0:
        notes.append(
            f"its {run.count} estimates are equal: a draw with a probability of at most "
            f"{run.unseen_probability:.2g} may be missing"
        )
    return Measured(
        entry.name,
        "ok",
        "",
        {**of.numbers, **more},
        {**of.intervals, "seconds": median_interval(drawn.known_times, LEVEL)},
        of.unsupported,
        tuple(notes),
        groups,
        run.variance_interval(wide),
        drawn.times,
        mean if coordinates else None,
        variances if coordinates else None,
    )


def _claims(spec: str) -> bool:
    try:
        return bool(spec) and _core.claims_unbiased(spec)
    except UsageError:  # an estimator written in Python
        return False


def _cosine(a: Any, b: Any) -> float:
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths > 0 else math.nan


def _in_words(error: Exception) -> str:
    words = " ".join(str(error).split())
    return words if isinstance(error, _core.Error) else f"{type(error).__name__}: {words}"
