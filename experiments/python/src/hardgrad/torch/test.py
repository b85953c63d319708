"""Verification of an estimator that is a PyTorch function: `hardgrad.torch.test`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._core import Error, UsageError
from ..estimators import Check, Verdict, name_of
from ..gradients import ALONE, Drawing
from ..replicates import REPLICATE, Plan, Reference, checked, collected
from .compare import Tensors
from .expectation import expectation

Loss = Callable[..., Tensor]
#: From logits [E, D, S] and f to the estimate: a number for each example, or their mean.
Function = Callable[[Tensor, Loss], Tensor]

_LEVEL = 1e-4  # of each of two p-values, of independent draws, with which a mean is wrong
_COPIES = 8  # of each example, so that one call draws more
_DRAWS, _DRAWS_FULL = 500, 5000


class _Network(NamedTuple):
    """Logits [E, D, S] of E examples, `copies` of each, and a loss that is not linear in z, with
    parameters theta [D, S]."""

    where: str
    logits: Tensor
    theta: Tensor
    copies: int
    shift: float = 0.0

    def loss(self, z: Tensor, example: Tensor) -> Tensor:
        examples, columns, options = self.logits.shape
        if z.dim() != 3 or z.shape[1:] != (columns, options) or example.shape != z.shape[:1]:
            raise UsageError(
                f"the estimator called f with z of shape {list(z.shape)} and example of "
                f"shape {list(example.shape)}, expected "
                f"[rows, {columns}, {options}] and [rows]"
            )
        x = (z * self.theta).sum((1, 2))
        return (
            (x - 0.5 * (example % (examples // self.copies))) ** 2
            + torch.sin(2 * x)
            + (z[:, 0, 0] * z[:, -1, -1])
            + self.shift
        )

    def exact(self) -> Tensor:
        """The expected loss of the mean example, by enumeration."""
        return expectation(self.logits, self.loss, "exact").mean()


def _networks(device: torch.device) -> Iterator[_Network]:
    generator = torch.Generator().manual_seed(11)
    for where, examples, columns, options, scale, copies in (
        ("a bit", 1, 1, 2, 1.0, _COPIES),
        ("a choice of 4 options", 2, 1, 4, 1.0, _COPIES),
        ("3 bits that share a loss", 3, 3, 2, 1.0, _COPIES),
        ("2 choices of 3 options that share a loss", 2, 2, 3, 1.0, _COPIES),
        ("a peaked choice of 5 options", 1, 1, 5, 2.0, _COPIES),
        ("a bit, a batch of 2", 2, 1, 2, 1.0, 1),
    ):  # a small batch: what examples take from each other shows
        logits, theta = (
            torch.randn(*shape, generator=generator, dtype=torch.double).to(device)
            for shape in ((examples, columns, options), (columns, options))
        )
        yield _Network(
            where,
            (scale * logits).repeat(copies, 1, 1).requires_grad_(),
            theta.requires_grad_(),
            copies,
        )


@contextmanager
def _as_it_is(estimator: Any) -> Iterator[list[Tensor]]:
    """A module in evaluation mode, in double precision; yields its parameters. Afterwards all is as
    before."""
    if not isinstance(estimator, torch.nn.Module):
        yield []
        return
    mode = estimator.training
    before = {name: x.clone() for name, x in estimator.state_dict().items()}
    dtypes = {name: x.dtype for name, x in estimator.named_parameters()}
    estimator.eval().double()
    try:
        yield list(estimator.parameters())
    finally:
        for dtype in set(dtypes.values()):
            estimator.to(dtype)
        estimator.load_state_dict(before)
        estimator.train(mode)


class _Tester:
    def __init__(self, estimator: Function, unbiased: bool, first_failure: bool, draws: int):
        self.estimator = estimator
        self.unbiased = unbiased
        self.first_failure = first_failure
        self.draws = draws
        self.checks: list[Check] = []

    def run(self, own: list[Tensor]) -> None:
        for network in _networks(own[0].device if own else torch.device("cpu")):
            for check, of in (("mean", network), ("shift", network._replace(shift=3.0))):
                if not self._add(check, of):
                    return
        if own:
            generator = torch.Generator().manual_seed(12)
            with torch.no_grad():
                for parameter in own:
                    parameter.add_(
                        0.5
                        * torch.randn(
                            parameter.shape, generator=generator, dtype=parameter.dtype
                        ).to(parameter.device)
                    )
            self._add("mean, other own parameters", network)

    def _add(self, check: str, network: _Network) -> bool:
        """Whether to go on."""
        try:
            outcome, detail = self._judged(network)
        except Exception as error:  # of the user's function, too
            outcome = "failed"
            detail = (
                " ".join(str(error).split())
                if isinstance(error, Error)
                else f"{type(error).__name__}: {error}"
            )
        self.checks.append(Check(check, network.where, outcome, detail))
        return not (self.first_failure and outcome == "failed")

    def _judged(self, network: _Network) -> tuple[str, str]:
        def step() -> Any:
            estimate = self.estimator(network.logits, network.loss)
            if not isinstance(estimate, Tensor) or estimate.shape not in (
                (),
                network.logits.shape[:1],
            ):
                what = (
                    f"a tensor of shape {list(estimate.shape)}"
                    if isinstance(estimate, Tensor)
                    else f"an object of type {type(estimate).__name__}"
                )
                raise UsageError(
                    f"it returned {what}, expected [{len(network.logits)}], a number for "
                    "each example, or a number, their mean"
                )
            return estimate.mean()

        parameters = Tensors({"logits": network.logits, "the loss's parameters": network.theta})
        with parameters.own_noise():
            drawing, exact = (
                Drawing(parameters, loss, np.empty(parameters.size))
                for loss in (step, network.exact)
            )
            truth = Reference("exact", exact(0).numbers)
            checked(drawing, Plan(1, self.draws))
            off: set[str] = set(parameters.groups)
            for seed in (1, 2):  # the second draws confirm the first
                drawn = collected(drawing, truth, Plan(seed, self.draws), REPLICATE)
                if drawn.not_finite:
                    return "failed", f"{drawn.not_finite} of {self.draws} estimates are not finite"
                if drawn.unreached:
                    names = list(parameters.groups)
                    listed = " and ".join(names[place] for place in drawn.unreached)
                    return "failed", f"no gradient reaches {listed}"
                found = {name: drawn.replicates.moments(name).numbers for name in parameters.groups}
                off &= {name for name, of in found.items() if of["bias_p_value_plain"] < _LEVEL}
                if not (off and self.unbiased):
                    break
        words = "; ".join(
            f"{name}: off by {100 * of['relative_bias']:.3g}% of the length (p = "
            f"{of['bias_p_value_plain']:.1g})"
            for name, of in found.items()
            if name in (off or found)
        )
        if off and self.unbiased:
            return (
                "failed",
                f"it claims to be unbiased, but the mean of {self.draws} estimates is wrong: "
                f"{words}",
            )
        return "passed", words


def test(
    estimator: Function, *, unbiased: bool = True, first_failure: bool = False, full: bool = False
) -> Verdict:
    """A verdict on an estimator that is a PyTorch function, in seconds:

        def mine(logits, f):                                      # REINFORCE
            law = torch.distributions.OneHotCategorical(logits=logits)
            z = law.sample()
            losses = f(z, torch.arange(len(z)))
            return losses + losses.detach() * law.log_prob(z).sum(-1)

        print(hardgrad.torch.test(mine))

    estimator: a function (or a module, e.g. with baselines) of logits [E, D, S] and f, as in
        `expectation`. f takes z [R, D, S], of any number of rows, and example [R], the position of
        each row's example; it may be called several times and differentiated. The samples are the
        function's own: independent, coupled or enumerated, with noise of PyTorch's generator. It
        returns [E], or their mean, whose backward pass is the gradient estimate, at the logits and
        for parameters of the losses. A module is tested in evaluation mode, also with other values
        of its parameters; it gets its former state.
    unbiased: the claim; if false, the bias is reported, not judged.
    first_failure: stop after the first check that fails.
    full: ten times the draws.

    On six small networks, also with a constant added to the losses: the estimate is finite and
    determined by the seed, and the mean is the exact gradient (by enumeration). Means are of 500
    calls with eight copies of each example, or of a batch of two. One fails with p < 1e-4, if as
    many further draws confirm it. Choices that feed later ones are not tried: `compare` judges such
    a network.
    """
    with ALONE, _as_it_is(estimator) as own:
        tester = _Tester(estimator, unbiased, first_failure, _DRAWS_FULL if full else _DRAWS)
        tester.run(own)
    passed = all(check.outcome == "passed" for check in tester.checks)
    return Verdict(name_of(estimator), passed, unbiased, tuple(tester.checks))


test.__test__ = False  # type: ignore[attr-defined]  # not a test for pytest
