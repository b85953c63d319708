"""Is an estimator what it says it is?"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from . import _core
from ._written import Function, checked, name_of


@dataclass(frozen=True)
class Check:
    """One thing that was tried.

    check: what, e.g. "exact mean".
    where: on which network.
    outcome: "passed", "failed" or "skipped".
    detail: figures, or why.
    """
    check: str
    where: str
    outcome: str
    detail: str


@dataclass(frozen=True)
class Verdict:
    """What a verification found. `print` shows what failed, and how many checks there were.

    claims_unbiased: otherwise its bias is told in the details, not judged.
    """
    estimator: str
    passed: bool
    claims_unbiased: bool
    checks: tuple[Check, ...]

    def count(self, outcome: str) -> int:
        """Checks that were passed, failed or skipped."""
        return sum(check.outcome == outcome for check in self.checks)

    def __str__(self) -> str:
        failed = [f"  failed   {check.check}, {check.where}: {check.detail}" for check in self.checks if check.outcome == "failed"]
        verdict = "passed" if self.passed else "FAILED" if failed else "FAILED, it supports no network"
        return "\n".join(failed + [f"{self.estimator}: {verdict}, {self.count('passed')} of {len(self.checks)} checks passed, "
                                   f"{self.count('skipped')} skipped"])


def test(estimator: Union[str, Function], samples: int = 1, *, derivatives: bool = False, unbiased: bool = True,
         first_failure: bool = False) -> Verdict:
    """The verification of `hardgrad test`: the contract, exact moments and invariances, on small networks with choices of every
    kind, and on every model. It takes seconds.

    estimator: the name of a registered one, e.g. "rloo[samples=4]"; or a function as of `written`, which is then called once for
        each step of a run, with the losses of the whole run.
    samples, derivatives: as of `written`. One check takes twice the samples.
    unbiased: the function claims to be; otherwise its bias is told, not judged.
    first_failure: leave out what follows the first check that fails.
    """
    if isinstance(estimator, str):
        name, found = estimator, _core.test(estimator, first_failure)
    else:
        name, found = name_of(estimator), _core.test_written(checked(estimator, samples), samples, derivatives, unbiased, first_failure)
    passed, claims, checks = found
    return Verdict(name, passed, claims, tuple(Check(*check) for check in checks))


test.__test__ = False  # type: ignore[attr-defined]  # pytest is not to take it for one of its own
