"""Estimators: the registered ones, those written in Python, and a verdict on either."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

import numpy as np

from . import _core
from ._core import Estimator, UsageError
from .losses import Floats, Ints, reals


def estimators() -> list[str]:
    """Names of all estimators, in alphabetical order."""
    return _core.estimators()


def describe(name: str) -> dict[str, Any]:
    """The declaration of an estimator (or model, task, target): summary, paper, target, bias,
    needs, and parameters with their types, defaults and ranges. As `hardgrad describe NAME --json`.

    Other names of an estimator are understood. If several entries share a name, add the kind:
    `model:bits`. UsageError if the name is unknown or ambiguous.
    """
    record = json.loads(_core.describe(name))
    if len(record) > 1:
        kinds = " or ".join(f'"{entry["kind"]}:{entry["name"]}"' for entry in record)
        raise _core.UsageError(f'describe: "{name}" is ambiguous: use {kinds}')
    entry: dict[str, Any] = record[0]
    return entry


@dataclass(frozen=True)
class Drawn:
    """The arguments of an estimator written in Python: N samples, those of an example side by side.

    probabilities: [N, D, S] of the options, for each sample's choices; 0 for missing options.
    options: [N, D] the chosen options.
    losses: [N]
    derivatives: [N, D, S] of the losses in the weights over the options, at the chosen options;
        None unless requested.
    samples: K, per example.
    """

    probabilities: Floats
    options: Ints
    losses: Floats
    derivatives: Optional[Floats]
    samples: int

    @property
    def one_hot(self) -> Floats:
        """[N, D, S] the chosen options; minus the probabilities, it is grad log p at the logits."""
        eye: Floats = np.eye(self.probabilities.shape[-1])[self.options]
        return eye


Function = Callable[[Drawn], Any]


def written(estimator: Function, samples: int = 1, *, derivatives: bool = False) -> Estimator:
    """An estimator of your own, for `moments`, `gradient` and `hardgrad.torch.expectation`: its
    exact mean and covariance on a loss that you choose show whether it is right.

    estimator: a function from the samples (`Drawn`) to each sample's gradient at the logits [N, D,
        S]; the mean over an example's samples is the estimate. The path gradient for parameters
        within the loss is added.
    samples: K independent samples of every example.
    derivatives: it needs the losses' derivatives in the weights, so that the loss must be a table
        or take weights.

    The score function: `written(lambda of: of.losses[:, None, None] * (of.one_hot -
    of.probabilities))`.
    """
    return Estimator._written(checked(estimator, samples), samples, derivatives, name_of(estimator))


def name_of(estimator: Callable[..., Any]) -> str:
    return str(getattr(estimator, "__name__", type(estimator).__name__))


def checked(estimator: Function, samples: int) -> Callable[..., Floats]:
    """The function in core's calling convention; checks the shape of its result."""
    if samples < 1:
        raise UsageError(f"samples must be at least 1, got {samples}")
    name = name_of(estimator)

    def called(
        probabilities: Floats, options: Ints, losses: Floats, slopes: Optional[Floats], count: int
    ) -> Floats:
        answer = estimator(Drawn(probabilities, options, losses, slopes, count))
        try:
            values = reals(answer)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{name} returned {type(answer).__name__}, not an array of real numbers"
            ) from error
        if values.shape != probabilities.shape:
            raise UsageError(
                f"{name} returned a gradient of shape {list(values.shape)}, expected "
                f"{list(probabilities.shape)}: one "
                "for each sample"
            )
        return values

    return called


@dataclass(frozen=True)
class Check:
    """One check.

    check: its kind, e.g. "exact mean".
    where: the network.
    outcome: "passed", "failed" or "skipped".
    detail: figures, or the reason.
    """

    check: str
    where: str
    outcome: str
    detail: str


@dataclass(frozen=True)
class Verdict:
    """The result of a verification. `print` shows the failed checks, and the number of checks.

    claims_unbiased: if false, the bias is reported in the details, not judged.
    """

    estimator: str
    passed: bool
    claims_unbiased: bool
    checks: tuple[Check, ...]

    def count(self, outcome: str) -> int:
        """Number of checks that passed, failed or were skipped."""
        return sum(check.outcome == outcome for check in self.checks)

    def __str__(self) -> str:
        failed = [
            f"  failed   {check.check}, {check.where}: {check.detail}"
            for check in self.checks
            if check.outcome == "failed"
        ]
        verdict = (
            "passed" if self.passed else "FAILED" if failed else "FAILED, it supports no network"
        )
        return "\n".join(
            failed
            + [
                f"{self.estimator}: {verdict}, {self.count('passed')} of {len(self.checks)} "
                "checks passed, "
                f"{self.count('skipped')} skipped"
            ]
        )


def test(
    estimator: Union[str, Function],
    samples: int = 1,
    *,
    derivatives: bool = False,
    unbiased: bool = True,
    first_failure: bool = False,
    full: bool = False,
) -> Verdict:
    """A quick verdict, in seconds: the contract, exact moments and invariances, on small networks
    with choices of every kind.

    estimator: the name of a registered one, e.g. "rloo[samples=4]"; or a function as in `written`,
        which is called once for each step of a run, with the losses of the whole run.
        `hardgrad.torch.test` takes a PyTorch function that draws its own samples.
    samples, derivatives: as in `written`. One check takes twice the samples, another calls it from
        several threads.
    unbiased: the function's claim; if false, the bias is reported, not judged.
    first_failure: stop after the first check that fails.
    full: the verification of `hardgrad test`: also on every model, with other targets, settings and
        numbers, and with ten times the draws where outcomes are too many for exact moments.

    An exception is a failed check; KeyboardInterrupt and SystemExit are passed through.
    """
    if isinstance(estimator, str):
        name, found = estimator, _core.test(estimator, first_failure, not full)
    else:
        name = name_of(estimator)
        found = _core.test_written(
            checked(estimator, samples), samples, derivatives, unbiased, first_failure, not full
        )
    passed, claims, checks = found
    return Verdict(name, passed, claims, tuple(Check(*check) for check in checks))


test.__test__ = False  # type: ignore[attr-defined]  # not a test for pytest
