"""Estimators written in Python."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np

from ._core import Estimator, UsageError
from ._losses import Floats, Ints, reals


@dataclass(frozen=True)
class Drawn:
    """The arguments of an estimator written in Python: N samples, those of an example side by side.

    probabilities: [N, D, S] of the options, for each sample's choices; 0 for missing options.
    options: [N, D] the chosen options.
    losses: [N]
    derivatives: [N, D, S] of the losses in the weights over the options, at the chosen options; None unless requested.
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
    """An estimator of your own, for `moments`, `gradient` and `hardgrad.torch.expectation`: its exact mean and covariance on a loss
    that you choose show whether it is right.

    estimator: a function from the samples (`Drawn`) to each sample's gradient at the logits [N, D, S]; the mean over an example's
        samples is the estimate. The path gradient for parameters within the loss is added.
    samples: K independent samples of every example.
    derivatives: it needs the losses' derivatives in the weights, so that the loss must be a table or take weights.

    The score function: `written(lambda of: of.losses[:, None, None] * (of.one_hot - of.probabilities))`.
    """
    return Estimator._written(checked(estimator, samples), samples, derivatives, name_of(estimator))


def name_of(estimator: Callable[..., Any]) -> str:
    return str(getattr(estimator, "__name__", type(estimator).__name__))


def checked(estimator: Function, samples: int) -> Callable[..., Floats]:
    """The function in core's calling convention; checks the shape of its result."""
    if samples < 1:
        raise UsageError(f"samples must be at least 1, got {samples}")
    name = name_of(estimator)

    def called(probabilities: Floats, options: Ints, losses: Floats, slopes: Optional[Floats], count: int) -> Floats:
        answer = estimator(Drawn(probabilities, options, losses, slopes, count))
        try:
            found = reals(answer)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{name} returned {type(answer).__name__}, not an array of real numbers") from error
        if found.shape != probabilities.shape:
            raise UsageError(f"{name} returned a gradient of shape {list(found.shape)}, expected {list(probabilities.shape)}: one "
                             "for each sample")
        return found

    return called
