"""The user's logits and losses: their checks, the calls of a loss with rows of choices, and the way
to core's layout."""

from __future__ import annotations

import operator
from typing import Any, Callable, Literal, Optional, Union, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._core import NotFinite, UsageError, count_options

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Takes = Literal["options", "weights"]
TAKES = get_args(Takes)
Columns = Literal["shared", "separate"]
#: A table over all outcomes, or a function of the rows of a run.
Loss = Union[ArrayLike, Callable[..., Any]]

MOST_OUTCOMES = 1 << 20  #: of a table
MOST_ROWS = 1 << 16  #: of one call of a function that makes a table


class Logits:
    """The user's logits: [S] of one choice, [D, S] of D choices that share a loss, [E, D, S] of E
    examples."""

    def __init__(self, logits: ArrayLike):
        given = np.asarray(logits)
        if given.dtype.kind not in "fiu":
            raise UsageError(f"logits: {given.dtype} is not a type of real numbers")
        check_axes(given.shape)
        self.shape = given.shape
        self.rank = given.ndim
        self.batched = given.ndim == 3
        self.value: Floats = np.ascontiguousarray(given, np.float64).reshape(
            (1,) * (3 - given.ndim) + given.shape
        )
        self.count: Ints = count_options(self.value, self.rank)  #: [E, D] options of each choice


def check_axes(shape: tuple[int, ...], empty: bool = False) -> None:
    """UsageError unless this is a shape of logits. empty: a batch may be without examples or
    columns."""
    filled = shape[2:] if empty and len(shape) == 3 else shape
    if len(shape) not in (1, 2, 3) or 0 in filled:
        raise UsageError(
            f"logits have shape {list(shape)}; they are [options], [columns, options] or "
            "[examples, columns, options]"
        )
    if shape[-1] == 1:
        raise UsageError(
            f"logits of shape {list(shape)} have one option, so that nothing is chosen; a "
            "bit with logit l has two, with "
            "logits [0, l]: stack zeros and l along the last axis"
        )


def reals(given: Any) -> Floats:
    """TypeError for complex numbers, whose imaginary parts numpy would drop."""
    found = np.asarray(given)
    if found.dtype.kind == "c":
        raise TypeError("complex numbers")
    return np.asarray(found, np.float64)


def check_takes(takes: str) -> None:
    if takes not in TAKES:
        raise UsageError(f'takes is "options" or "weights", got {takes!r}')


def check_columns(columns: str) -> None:
    if columns not in ("shared", "separate"):
        raise UsageError(f'columns is "shared" or "separate", got {columns!r}')


def check_separate(shape: tuple[int, ...], bits: bool) -> bool:
    """Whether these logits of separate columns are of a batch. UsageError for other shapes."""
    axes = 2 - bits
    if len(shape) not in (axes, axes + 1):
        raise UsageError(
            f'columns="separate" takes logits {"[columns]" if bits else "[columns, options]"}, '
            f"alone or of a batch of examples; got shape {list(shape)}"
        )
    return len(shape) == axes + 1


def check_shared(losses: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """UsageError for losses [R, D] of columns that share one."""
    if len(losses) == 2 and losses == shape:
        raise UsageError(
            f"f returned losses of shape {list(shape)}, one for each row and column: pass "
            'columns="separate" if each column has its own loss, or sum them over the columns'
        )


def wrong_separate(shape: tuple[int, ...], got: Any) -> UsageError:
    """The error for losses that are not [R, D]."""
    found = list(got.shape) if hasattr(got, "shape") else type(got).__name__
    return UsageError(
        f'with columns="separate" f returns losses {list(shape)}: one for each row and column; '
        f"got {found}"
    )


def check_subset(subset: Optional[int], options: int, bits: bool = False) -> int:
    """The options that a choice picks; 0 if its choices are no subsets. UsageError unless there are
    as many."""
    if subset is None:
        return 0
    try:
        found = operator.index(subset)
    except TypeError:
        found = 0
    if bits:
        raise UsageError(
            "subset= picks among options, and bits=True has none: leave out one of them"
        )
    if not 1 <= found <= options:
        raise UsageError(
            f"subset is the number of options that a choice picks, from 1 to the {options} "
            f"that there are, got {subset!r}"
        )
    return found


def given_seed(seed: int) -> int:
    """UsageError unless this is a seed."""
    try:
        found = operator.index(seed)
    except TypeError:
        found = -1
    if not 0 <= found < 1 << 64:
        raise UsageError(f"a seed is a whole number from 0 to 18446744073709551615, got {seed!r}")
    return found


def given_ids(ids: Optional[ArrayLike], examples: int) -> Optional[NDArray[np.uint32]]:
    """[E] ids of examples, in core's format."""
    if ids is None:
        return None
    given = np.asarray(ids)
    if (
        given.shape != (examples,)
        or given.dtype.kind not in "iu"
        or (given < 0).any()
        or (given >= 1 << 32).any()
    ):
        raise UsageError(
            f"ids are {examples} whole numbers from 0 to 4294967295, one for each example"
        )
    return given.astype(np.uint32)


def numbers(answer: Any, shape: tuple[int, ...], what: str) -> Floats:
    """The result of a user's function as numbers of this shape; UsageError for anything else."""
    try:
        values = reals(answer)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the {what} that f returned are {type(answer).__name__}, not an array of real numbers"
        ) from error
    if values.shape != shape:
        raise UsageError(
            f"f returned {what} of shape {list(values.shape)}, expected {list(shape)}: one "
            "for each row"
        )
    return values


class Function:
    """A function of numpy arrays, called once for all rows of a run (core's calling convention: see
    _core.pyi)."""

    def __init__(self, f: Callable[..., Any], takes: Takes, logits: Logits):
        self.f = f
        self.takes = takes
        self.batched = logits.batched
        self.options = logits.shape[-1]

    def __call__(
        self, choice: Any, example: Ints, differentiable: bool = False
    ) -> tuple[Floats, Optional[Callable[[Floats], Floats]]]:
        if self.takes == "weights" and choice.ndim == 2:
            choice = np.eye(self.options)[choice]
        answer = self.f(choice, example) if self.batched else self.f(choice)
        if self.takes == "options":
            return numbers(answer, example.shape, "losses"), None
        losses, slopes = (
            answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
        )
        value = numbers(losses, example.shape, "losses")
        if slopes is None or not differentiable:
            return value, None
        slope = numbers(slopes, choice.shape, "derivatives")
        return value, lambda cotangent: cotangent[:, None, None] * slope


def outcomes(count: Ints) -> Ints:
    """All sets of options [n, D] for columns with `count` [D] options, the last column varying
    fastest."""
    all_of_them: Ints = np.indices(tuple(count), np.int64).reshape(len(count), -1).T
    return all_of_them


def tabulated(function: Function, logits: Logits) -> Floats:
    """[E, S^D] the losses of all outcomes, in as few calls as possible; 0 for missing options."""
    examples, columns, options = logits.value.shape
    check_outcomes(options, columns, examples)
    each = [outcomes(count) for count in logits.count]
    chosen = np.concatenate(each)
    example = np.repeat(np.arange(examples), [len(rows) for rows in each])
    losses = np.empty(len(chosen))
    for first in range(0, len(chosen), MOST_ROWS):
        rows = slice(first, first + MOST_ROWS)
        losses[rows] = function(chosen[rows], example[rows])[0]
    if not np.isfinite(losses).all():
        row = np.isfinite(losses).argmin()
        raise NotFinite(
            f"the loss of row {row}, options {chosen[row].tolist()}, is {losses[row]}, not a "
            "finite number"
        )
    table = np.zeros((examples, options**columns))
    table[example, np.ravel_multi_index(tuple(chosen.T), (options,) * columns)] = losses
    return table


def check_outcomes(options: int, columns: int, examples: int = 1) -> None:
    if examples * float(options) ** columns > MOST_OUTCOMES:
        raise UsageError(
            f"{columns} columns of {options} options have {float(options) ** columns:.6g} "
            "outcomes an example; "
            f"a table may have {MOST_OUTCOMES} in all: take fewer columns, options or examples"
        )


def given_table(table: Loss, logits: Logits) -> Floats:
    """[1 or E, S^D] from a table [S, ..., S] for all examples, or [E, S, ..., S]; 0 for missing
    options."""
    examples, columns, options = logits.value.shape
    check_outcomes(options, columns, examples)
    shape = (options,) * columns
    try:
        given = reals(table).copy()
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the loss is neither a function nor a table of real numbers but {type(table).__name__}"
        ) from error
    if given.shape == shape:
        given = given[None]
    elif not (logits.batched and given.shape == (examples,) + shape):
        raise UsageError(
            f"a table of {columns} columns with {options} options has shape {list(shape)}"
            f"{f' or {[examples, *shape]}' if logits.batched else ''}, got {list(given.shape)}"
        )
    for i in range(len(given)):
        # One table for all examples: the union of their outcomes.
        count = logits.count[i] if len(given) == examples else logits.count.max(axis=0)
        possible = np.zeros(shape, bool)
        possible[tuple(slice(n) for n in count)] = True
        if not np.isfinite(given[i][possible]).all():
            raise UsageError("the table has an entry that is not a finite number")
        given[i][~possible] = 0
    return given.reshape(len(given), -1)


class LogitLayout:
    """The layout of a user's logits: [D, S] of some rows (or of one), or [D] of bits. Core's is [D,
    S], with the missing options last. All arrays are NumPy's.

    numbers: the logits for core. bits: the user gave the logits of a 1.
    """

    def __init__(self, logits: Any, bits: bool):
        self.bits = bits
        self._order: Any = None  # the user's option at each place of core's
        self.numbers = self.ordered(logits)
        if bits or self.numbers.min(initial=0) > -np.inf:  # a 1 that is missing is last
            return
        missing = self.numbers == -np.inf
        if (missing[..., :-1] > missing[..., 1:]).any():
            for place in np.argwhere(np.isnan(logits) | (logits == np.inf))[:1]:
                raise UsageError(
                    f"logits: entry {place.tolist()} is {logits[tuple(place)]}: logits are finite, "
                    "or -inf for missing options"
                )
            self._order = np.argsort(missing, -1, kind="stable")
            self._back = np.argsort(self._order, -1)
            self.numbers = self.ordered(logits)

    def ordered(self, logits: Any) -> Any:
        """Logits for core, of the same options."""
        if self.bits:
            return _second(logits)
        return logits if self._order is None else np.take_along_axis(logits, self._order, -1)

    def at_logits(self, slope: Any) -> Any:
        """The slope at the user's logits, from that at core's."""
        if self.bits:
            return slope[..., 1]
        return slope if self._order is None else np.take_along_axis(slope, self._back, -1)

    def options(self, options: Any, row: Any) -> Any:
        """The user's options [R', D], or [R', D, k] of subsets, from core's. row: [R'] the row of
        the logits for each."""
        if self._order is None:
            return options
        return np.take_along_axis(
            _of(self._order, row), options.reshape(*options.shape[:2], -1), -1
        ).reshape(options.shape)

    def weights(self, weights: Any, row: Any) -> Any:
        """The user's weights [R', D, S], or [R', D] of bits, from core's."""
        if self.bits:
            return weights[..., 1]
        return (
            weights
            if self._order is None
            else np.take_along_axis(weights, _of(self._back, row), -1)
        )

    def at_weights(self, slope: Any, row: Any) -> Any:
        """The slope in core's weights, from that in the user's."""
        if self.bits:
            return _second(slope)
        return (
            slope if self._order is None else np.take_along_axis(slope, _of(self._order, row), -1)
        )


def _second(numbers: Any) -> Any:
    """[..., 2] zeros and the numbers; in less time than np.stack."""
    both = np.zeros((*numbers.shape, 2), numbers.dtype)
    both[..., 1] = numbers
    return both


def _of(places: Any, row: Any) -> Any:
    """[R', D, S] those of the rows."""
    return (
        places.reshape(-1, *places.shape[-2:])[row]
        if places.ndim > 1
        else places[None][np.zeros_like(row)][:, None]
    )
