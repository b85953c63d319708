"""Verification of an estimator: `hardgrad.test`."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from . import _core
from ._written import Function, checked, name_of


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
        failed = [f"  failed   {check.check}, {check.where}: {check.detail}" for check in self.checks if check.outcome == "failed"]
        verdict = "passed" if self.passed else "FAILED" if failed else "FAILED, it supports no network"
        return "\n".join(failed + [f"{self.estimator}: {verdict}, {self.count('passed')} of {len(self.checks)} checks passed, "
                                   f"{self.count('skipped')} skipped"])


def test(estimator: Union[str, Function], samples: int = 1, *, derivatives: bool = False, unbiased: bool = True,
         first_failure: bool = False, full: bool = False) -> Verdict:
    """A quick verdict, in seconds: the contract, exact moments and invariances, on small networks with choices of every kind.

    estimator: the name of a registered one, e.g. "rloo[samples=4]"; or a function as in `written`, which is called once for each
        step of a run, with the losses of the whole run. `hardgrad.torch.test` takes a PyTorch function that draws its own samples.
    samples, derivatives: as in `written`. One check takes twice the samples, another calls it from several threads.
    unbiased: the function's claim; if false, the bias is reported, not judged.
    first_failure: stop after the first check that fails.
    full: the verification of `hardgrad test`: also on every model, with other targets, settings and numbers, and with ten times the draws
        where outcomes are too many for exact moments.

    An exception is a failed check; KeyboardInterrupt and SystemExit are passed through.
    """
    if isinstance(estimator, str):
        name, found = estimator, _core.test(estimator, first_failure, not full)
    else:
        name, found = name_of(estimator), _core.test_written(checked(estimator, samples), samples, derivatives, unbiased, first_failure, not full)
    passed, claims, checks = found
    return Verdict(name, passed, claims, tuple(Check(*check) for check in checks))


test.__test__ = False  # type: ignore[attr-defined]  # not a test for pytest
