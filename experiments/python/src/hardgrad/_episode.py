"""Networks whose choices feed later ones: `hardgrad.torch.episode`."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from . import _core, _draws as draws
from ._core import UsageError
from ._losses import given_ids, given_seed
from ._parked import Parked
from ._sites import Site, of_episode
from ._tensors import DTYPES, Estimate, Slope, check_losses, drawn_seed, shared

_RUN = {torch.float32: _core.run_episode_float, torch.float64: _core.run_episode_double}


@dataclass(frozen=True)
class Choice:
    """The options chosen, on the rows that continue: several for each asking row if the estimator samples or enumerates.

    options: [R', D]; parent: [R'] the asking row that each row continues, so a state is continued by `state[choice.parent]`;
    example: [R'] the example of each row.
    """
    options: Tensor
    parent: Tensor
    example: Tensor
    place: int


class Run:
    """One run of a network, which makes choices and reports costs."""

    def __init__(self, asking: Any, examples: int, dtype: torch.dtype, given: list[Tensor]):
        self._asking, self._dtype, self._given = asking, dtype, given
        self._places = [examples]
        self._paid = False
        self._expected: Optional[Tensor] = None

    @property
    def expected_loss(self) -> Tensor:
        """[E] after the `with` block: the estimated expected loss. Its gradient is the estimator's."""
        if self._expected is None:
            raise UsageError("expected_loss is known once the `with` block has ended without an error; `run` returns it")
        return self._expected

    def choose(self, name: str, logits: Tensor, *, posterior: Optional[Tensor] = None, state: Optional[Tensor] = None,
               after: Optional[Choice] = None) -> Choice:
        """Makes a choice on the rows after the last choice, or after `after`; initially the rows are the examples.

        logits: [R, S], or [R, D, S] for D columns; -inf at the end of a row marks missing options.
        posterior: the logits of q(z | x, y), required if the episode has a posterior.
        state: [R, C] inputs of learned baselines; by default a 1. Not differentiated.
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
        """A loss [R] of the rows after the last choice, or after `after`. An example's loss is the sum of all its costs."""
        place = len(self._places) - 1 if after is None else after.place
        checked = check_losses(losses, self._places[place]).to(self._dtype)
        self._asking.cost(shared(checked, "the losses"), place)
        self._paid = True
        self._given.append(checked)

    def _logits(self, logits: Tensor, what: str) -> Tensor:
        shared(logits, what)
        if logits.dim() not in (2, 3) or 0 in logits.shape:
            raise UsageError(f"{what} have shape {list(logits.shape)}; they are [rows, options] or [rows, columns, options]")
        return (logits[:, None] if logits.dim() == 2 else logits).to(self._dtype)


class Episode:
    """The result of `episode`: used in a `with` block, or to run a function."""

    def __init__(self, examples: int, sites: dict[str, Site], named: draws.Given, posterior: bool, dtype: torch.dtype,
                 ids: Any, seed: int):
        self._examples, self._named, self._estimator, self._dtype = examples, named, draws.held(named, dtype), dtype
        self._learning = False
        self._sites = of_episode(sites)
        self._posterior, self._ids, self._seed = posterior, ids, seed
        self._given: list[Tensor] = []
        self._parked: Optional[Parked] = None

    def run(self, network: Callable[[Run], Any]) -> Tensor:
        """The expected loss [E] of a network given as a function: it runs once, or more often if the estimator needs that. The gradient is
        the estimator's at the logits of every choice, and the path gradient for parameters of the costs."""
        self._given, self._learning = [], draws.learns_now(self._named)

        def once(asking: Any) -> None:
            run = self._begun(asking)
            network(run)
            _require_cost(run)

        return self._expected(self._core(once))

    def __enter__(self) -> Run:
        if self._parked is not None:
            raise UsageError("this episode has begun already")
        self._given, self._learning = [], draws.learns_now(self._named)
        self._parked = Parked(self._core, f"{self._estimator.spec} runs the network more than once: "
                              "make it a function, and call episode(...).run(network)")
        self._running = self._begun(self._parked)
        return self._running

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        parked, self._parked = self._parked, None
        assert parked is not None
        if error is not None or not self._running._paid:
            parked.drop()
        if error is None:
            _require_cost(self._running)
            self._running._expected = self._expected(parked.end())

    def _core(self, network: Callable[[Any], Any]) -> Any:
        return _RUN[self._dtype](self._estimator, network, self._sites, self._posterior, self._examples, self._ids, self._seed, self._learning)

    def _begun(self, asking: Any) -> Run:
        return Run(asking, self._examples, self._dtype, self._given)

    def _expected(self, found: Any) -> Tensor:
        value, slopes, rows, gradient = found
        draws.drawn(self._named, self._estimator, rows, self._learning)
        own_slopes, own = draws.learned(self._named, self._dtype, gradient)
        of_runs: list[Slope] = [(torch.from_numpy(slope), torch.from_numpy(example)) for slope, example in slopes]
        result: Tensor = Estimate.apply(torch.from_numpy(value), of_runs + own_slopes, *self._given, *own)
        return result


def _require_cost(run: Run) -> None:
    if not run._paid:
        raise UsageError("the network has no cost: call e.cost(losses)")


def episode(examples: int, sites: dict[str, Site], estimator: draws.Given = "rloo[samples=4]", *, posterior: bool = False,
            dtype: Optional[torch.dtype] = None, ids: Optional[ArrayLike] = None, generator: Optional[torch.Generator] = None,
            seed: Optional[int] = None) -> Episode:
    """A network that makes one choice after another, and an estimate of its expected loss:

        with episode(8, {"item": Site(options=6, times=2)}, "rloo[samples=4]") as e:
            ...                              # e.choose(name, logits), repeatedly; e.cost(losses)
        e.expected_loss.mean().backward()

    The gradient is the estimator's at the logits of every choice, and the path gradient for parameters of the costs. A few
    estimators run the network more than once (e.g. `self_critic`). A block cannot do that: write the network as a function of e, and
    call `episode(...).run(network)`.

    examples: E, the initial number of rows.
    sites: the sites of its choices, by name.
    estimator: one with hard choices: score functions, coupled samples, sets without replacement, importance weights, enumerations.
        Relaxations need `expectation`.
    posterior: every choice comes with a learned posterior, as estimators of the evidence lower bound and the like require.
    dtype: of all numbers; by default PyTorch's.
    ids, generator, seed: as in `expectation`.
    """
    numbers = torch.get_default_dtype() if dtype is None else dtype
    if numbers not in DTYPES:
        raise UsageError(f"dtype is float32 or float64, got {numbers}")
    if examples < 1:
        raise UsageError("an episode needs at least one example")
    return Episode(examples, sites, estimator, posterior, numbers, given_ids(ids, examples), given_seed(drawn_seed(seed, generator)))
