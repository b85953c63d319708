"""Networks whose choices feed later ones: `hardgrad.torch.episode`."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from . import _core
from ._core import Estimator, UsageError
from ._losses import given_ids, given_seed
from ._tensors import DTYPES, Estimate, check_losses, drawn_seed, shared

_RUN = {torch.float32: _core.run_episode_float, torch.float64: _core.run_episode_double}


@dataclass(frozen=True)
class Site:
    """What a network asks for under one name: choices of up to so many options, in so many columns at once, up to so many times a
    run. state: how many numbers learned baselines see. apart: no later choice depends on it.
    """
    options: int
    columns: int = 1
    times: int = 1
    state: int = 1
    apart: bool = False


@dataclass(frozen=True)
class Choice:
    """What was chosen, on the rows that go on: several for each that asked, where it is sampled or enumerated.

    options: [R', D]; parent: [R'] the asking row that each continues, so that a state goes on as `state[choice.parent]`; example: [R']
    whose rows they are.
    """
    options: Tensor
    parent: Tensor
    example: Tensor
    place: int


class Episode:
    """One run of a network, which asks and says what it costs."""

    def __init__(self, asking: Any, examples: int, dtype: torch.dtype, given: list[Tensor]):
        self._asking, self._dtype, self._given = asking, dtype, given
        self._places = [examples]

    def choose(self, name: str, logits: Tensor, *, posterior: Optional[Tensor] = None, state: Optional[Tensor] = None,
               after: Optional[Choice] = None) -> Choice:
        """Asks on the rows after the last choice, or after another one; at first they are the examples.

        logits: [R, S], or [R, D, S] of D columns; -inf at the end of a row are options that there are none of.
        posterior: the same of q(z | x, y), if the episode has one.
        state: [R, C] what learned baselines see; by default a 1. Not differentiated.
        """
        place = len(self._places) - 1 if after is None else after.place
        inputs = [self._logits(x, what) for x, what in ((logits, "logits"), (posterior, "the posterior's logits")) if x is not None]
        seen = None if state is None else shared(state.to(self._dtype), "the numbers of the state")
        if seen is not None and (seen.ndim != 2 or len(seen) != self._places[place]):
            raise UsageError(f'choice "{name}": state has shape {list(seen.shape)}; it is [{self._places[place]}, numbers]')
        arrays = [shared(x, "logits") for x in inputs]
        options, parent, example = self._asking.choose(name, arrays[0], arrays[1] if posterior is not None else None, seen, place)
        self._given += inputs
        self._places.append(len(parent))
        return Choice(torch.from_numpy(options), torch.from_numpy(parent), torch.from_numpy(example), len(self._places) - 1)

    def cost(self, losses: Tensor, *, after: Optional[Choice] = None) -> None:
        """A loss [R] of the rows after the last choice, or after another one. An example's loss is the sum of all its costs."""
        place = len(self._places) - 1 if after is None else after.place
        checked = check_losses(losses, self._places[place]).to(self._dtype)
        self._asking.cost(shared(checked, "the losses"), place)
        self._given.append(checked)

    def _logits(self, logits: Tensor, what: str) -> Tensor:
        shared(logits, what)
        if logits.dim() not in (2, 3) or 0 in logits.shape:
            raise UsageError(f"{what} have shape {list(logits.shape)}; they are [rows, options] or [rows, columns, options]")
        return (logits[:, None] if logits.dim() == 2 else logits).to(self._dtype)


def episode(network: Callable[[Episode], Any], examples: int, sites: dict[str, Site], estimator: Union[str, Estimator] = "rloo[samples=4]",
            *, posterior: bool = False, dtype: Optional[torch.dtype] = None, ids: Optional[ArrayLike] = None,
            generator: Optional[torch.Generator] = None, seed: Optional[int] = None) -> Tensor:
    """The expected loss [E] of a network that makes one choice after another, as an estimator sees it; its gradient is the estimator's, at
    the logits of every choice, and that of the costs' own parameters.

    network: a function that runs once, or as often as the estimator wants; it asks with `e.choose` and pays with `e.cost`.
    examples: E, the rows that it starts with.
    sites: what it may ask for, by name.
    estimator: of those with hard choices: score functions, coupled samples, sets without replacement, importance weights, enumerations.
        Relaxations take `expectation`.
    posterior: every choice comes with a learned posterior; wanted by estimators of the evidence lower bound and the like.
    dtype: of all numbers; by default PyTorch's.
    ids, generator, seed: as of `expectation`.
    """
    numbers = torch.get_default_dtype() if dtype is None else dtype
    if numbers not in DTYPES:
        raise UsageError(f"dtype is float32 or float64, got {numbers}")
    if examples < 1 or not sites:
        raise UsageError("an episode has examples and sites")
    held = estimator if isinstance(estimator, Estimator) else Estimator(estimator)
    given: list[Tensor] = []
    declared = [(name, site.options, site.columns, site.times, site.state, site.apart) for name, site in sites.items()]
    value, slopes = _RUN[numbers](held, lambda asking: network(Episode(asking, examples, numbers, given)), declared, posterior, examples,
                                  given_ids(ids, examples), given_seed(drawn_seed(seed, generator)), torch.is_grad_enabled())
    result: Tensor = Estimate.apply(torch.from_numpy(value), [(torch.from_numpy(slope), torch.from_numpy(example)) for slope, example in slopes],
                                    *given)
    return result
