"""Networks whose choices feed later ones: `hardgrad.torch.episode`."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .. import _core
from .._core import UsageError
from ..losses import LogitLayout, given_ids, given_seed
from . import draws, policies
from .estimator import Site, of_episode
from .tensors import (
    DTYPES,
    Estimate,
    Slope,
    check_logits,
    check_losses,
    drawn_seed,
    eager,
    fetched,
    normal,
    of_core,
    one_hot,
    sent,
)

_RUN: dict[torch.dtype, Any] = {
    torch.float32: _core.run_episode_float,
    torch.float64: _core.run_episode_double,
}
_BLOCK: dict[torch.dtype, Any] = {torch.float32: _core.BlockFloat, torch.float64: _core.BlockDouble}


class _Input(NamedTuple):
    """Logits or losses that the network gave, in core's dtype. example: of each row (None: row e is
    of example e); asked: of logits."""

    tensor: Tensor
    example: Optional[Tensor]
    asked: Optional[LogitLayout]

    def slope(self, of_core: Any) -> Any:
        """In the tensor's shape."""
        return (
            of_core
            if self.asked is None
            else self.asked.at_logits(of_core).reshape(self.tensor.shape)
        )


class _Relaxed(NamedTuple):
    """The weights of a relaxed choice: a leaf for autograd, in the user's layout. parent: [R'], as
    an array."""

    name: str
    leaf: Tensor
    asked: LogitLayout
    parent: Any


class Choice:
    """A choice, on the rows that continue: several for each asking row if the estimator samples or
    enumerates.

    parent: [R'] the asking row that each row continues, so a state is continued by
        `state[choice.parent]`; example: [R'] the example of each row.
    """

    def __init__(
        self,
        options: Optional[Tensor],
        weights: Optional[Tensor],
        parent: Tensor,
        example: Tensor,
        place: int,
        count: Optional[int],
        dtype: torch.dtype,
        spec: str,
    ):
        self.parent, self.example, self.place = parent, example, place
        self._options = options
        self._weights = weights
        self._count = count
        self._dtype = dtype
        self._spec = spec

    def __repr__(self) -> str:
        of = self._weights if self._options is None else self._options
        kind = "weights" if self._options is None else "options"
        shape = [] if of is None else list(of.shape)
        return f"Choice({kind} of shape {shape}, {len(self.example)} rows, {self._spec})"

    @property
    def options(self) -> Tensor:
        """[R', D] the options chosen ([R', D, k] those of subsets, ascending). UsageError if the
        estimator replaces them by weights."""
        if self._options is None:
            raise UsageError(
                f"{self._spec} replaces choices by weights: the network reads choice.weights "
                "instead of choice.options"
            )
        return self._options

    @property
    def weights(self) -> Tensor:
        """[R', D, S] weights over the options, 1 at those chosen; [R', D] those of a 1 if asked
        with bits=True. Networks that read only these work with every estimator, also with
        relaxations, which differentiate the network in them."""
        if self._weights is None:
            self._weights = (
                self.options.to(self._dtype)
                if self._count is None
                else one_hot(self.options, self._count, self._dtype)
            )
        return self._weights


class Run:
    """One run of a network, which makes choices and reports costs."""

    def __init__(
        self,
        asking: Any,
        examples: int,
        dtype: torch.dtype,
        given: list[_Input],
        spec: str,
        subsets: set[str],
    ):
        self._asking = asking
        self._dtype = dtype
        self._given = given
        self._spec = spec
        self._subsets = subsets
        self._places: list[tuple[int, Optional[Tensor]]] = [
            (examples, None)
        ]  # the number of rows, and their examples
        self._paid = False
        self.device = torch.device("cpu")  # of the last cost
        self._expected: Optional[Tensor] = None
        self._relaxed: list[_Relaxed] = []
        self._used: list[
            bool
        ] = []  # whether a later tensor depends on them; unknown where nothing was differentiated
        self._pulled = False

    def __repr__(self) -> str:
        made = len(self._places) - 1
        known = "" if self._expected is None else f", expected_loss={self._expected!r}"
        return f"Run({self._spec}, {made} choice{'' if made == 1 else 's'}{known})"

    @property
    def expected_loss(self) -> Tensor:
        """[E] after the `with` block: the estimated expected loss. Its gradient is the
        estimator's."""
        if self._expected is None:
            raise UsageError(
                "expected_loss is known once the `with` block has ended without an error; "
                "`run` returns it"
            )
        return self._expected

    @eager
    def choose(
        self,
        name: str,
        logits: Tensor,
        *,
        posterior: Optional[Tensor] = None,
        behaviour: Optional[Tensor] = None,
        reference: Optional[Tensor] = None,
        state: Optional[Tensor] = None,
        after: Optional[Choice] = None,
        bits: bool = False,
    ) -> Choice:
        """Makes a choice on the rows after the last choice, or after `after`; initially the rows
        are the examples.

        logits: [R, S], or [R, D, S] for D columns; -inf marks missing options.
        posterior: the logits of q(z | x, y), required if the episode has a posterior.
        behaviour, reference: the logits of these policies, in the shape of the given ones, as in
            `expectation`; each is required if the episode has it. They are not differentiated, but
            for a relaxation those of the reference in the weights of earlier choices.
        state: [R, C] inputs of learned baselines; by default a 1. Not differentiated.
        bits: logits and those of the others are [R, D], those of a 1; the site has two options.
        """
        if bits and name in self._subsets:
            raise UsageError(f'choice "{name}": bits=True asks for bits, but the site has subsets')
        place = len(self._places) - 1 if after is None else after.place
        given = [
            self._logits(x, what, bits)
            for x, what in ((logits, "logits"), (posterior, "the posterior's logits"))
            if x is not None
        ]
        if posterior is not None and posterior.shape != logits.shape:
            raise UsageError(
                f'choice "{name}": the posterior\'s logits have shape '
                f"{list(posterior.shape)}, those of the prior {list(logits.shape)}"
            )
        if state is not None:
            check_logits(state, "the numbers of the state")
        others = (("behaviour", behaviour), ("reference", reference))
        numbers = fetched(given if state is None else [*given, state], self._dtype)
        seen = None if state is None else numbers.pop()
        rows, example = self._places[place]
        if seen is not None and (seen.ndim != 2 or len(seen) != rows):
            raise UsageError(
                f'choice "{name}": state has shape {list(seen.shape)}; it is [{rows}, numbers]'
            )
        arrays = [x[:, None] if x.ndim == 2 and not bits else x for x in numbers]
        asked = LogitLayout(arrays[0], bits)
        inputs = [_Input(x, example, asked) for x in given]
        pulls = [self._pull(x) for x in inputs]
        near = None
        if reference is not None:
            near = _Input(self._logits(reference, "the reference's logits", bits), example, asked)
        options, weights, parent, examples = self._asking.choose(
            name,
            asked.numbers,
            None if posterior is None else asked.ordered(arrays[1]),
            *policies.for_core(others, logits, asked, self._dtype, asked.numbers.shape),
            seen,
            place,
            pulls[0],
            pulls[-1],
            None if near is None else self._pull(near),
        )
        self._given += inputs
        if near is not None:
            self._given.append(near._replace(tensor=near.tensor.detach()))
        chosen = (
            asked.weights(weights, parent) if options is None else asked.options(options, parent)
        )
        there, to_parent, to_example = sent([chosen, parent, examples], logits.device)
        self._places.append((len(parent), to_example))
        relaxed = None
        if options is None:
            self._relaxed.append(_Relaxed(name, there.requires_grad_(), asked, parent))
            self._used.append(False)
            relaxed = there.to(logits.dtype)
        return Choice(
            None if options is None else there,
            relaxed,
            to_parent,
            to_example,
            len(self._places) - 1,
            None if bits else logits.shape[-1],
            logits.dtype,
            self._spec,
        )

    @eager
    def cost(self, losses: Tensor, *, after: Optional[Choice] = None) -> None:
        """A loss [R] of the rows after the last choice, or after `after`. An example's loss is the
        sum of all its costs."""
        place = len(self._places) - 1 if after is None else after.place
        rows, example = self._places[place]
        given = _Input(normal(check_losses(losses, rows)).to(self._dtype), example, None)
        self._asking.cost(*fetched([given.tensor], self._dtype), place, self._pull(given))
        self.device, self._paid = losses.device, True
        self._given.append(given)

    def _pull(self, x: _Input) -> Optional[Callable[[Any], list[Any]]]:
        """The derivatives of x in the weights of all relaxed choices before it."""
        if not self._relaxed or not torch.is_grad_enabled():
            return None
        relaxed = list(self._relaxed)

        def pull(cotangent: Any) -> list[Any]:
            self._pulled = True
            if not x.tensor.requires_grad:
                return [None] * len(relaxed)
            slopes = torch.autograd.grad(
                x.tensor,
                [choice.leaf for choice in relaxed],
                sent([x.slope(cotangent)], x.tensor.device),
                retain_graph=True,
                allow_unused=True,
            )
            found = [place for place, slope in enumerate(slopes) if slope is not None]
            result: list[Any] = [None] * len(relaxed)
            for place, slope in zip(
                found, fetched([slopes[place] for place in found], self._dtype)
            ):
                self._used[place] = True
                result[place] = relaxed[place].asked.at_weights(slope, relaxed[place].parent)
            return result

        return pull

    def check_used(self) -> None:
        """UsageError if the estimator differentiated the network, but a choice had no effect by
        operations that autograd knows."""
        if self._pulled and not all(self._used):
            name = self._relaxed[self._used.index(False)].name
            raise UsageError(
                f'{self._spec} differentiates the network in the weights of choice "{name}", '
                "but no cost and no later logits depend on "
                "choice.weights by operations that autograd knows"
            )

    def _logits(self, logits: Tensor, what: str, bits: bool) -> Tensor:
        check_logits(logits, what)
        if bits:
            if logits.dim() != 2 or 0 in logits.shape:
                raise UsageError(
                    f"{what} have shape {list(logits.shape)}; with bits=True they are [rows, "
                    "columns]"
                )
        elif logits.dim() not in (2, 3) or 0 in logits.shape:
            raise UsageError(
                f"{what} have shape {list(logits.shape)}; they are [rows, options] or [rows, "
                "columns, options]"
            )
        return normal(logits).to(self._dtype)


class Episode:
    """The result of `episode`: used in a `with` block, or to run a function."""

    def __init__(
        self,
        examples: int,
        sites: dict[str, Site],
        named: draws.Given,
        laws: tuple[bool, bool, bool],
        dtype: torch.dtype,
        ids: Any,
        seed: int,
    ):
        self._examples = examples
        self._named = named
        self._estimator = draws.held(named, dtype)
        self._dtype = dtype
        self._learning = False
        self._sites = of_episode(sites)
        self._subsets = {name for name, site in sites.items() if site.subset}
        self._laws, self._ids, self._seed = laws, ids, seed
        self._given: list[_Input] = []
        self._block: Any = None
        self._runs: list[Run] = []

    def __repr__(self) -> str:
        sites = ", ".join(site[0] for site in self._sites)
        return f"Episode({self._estimator.spec}, {self._examples} examples, sites: {sites})"

    @eager
    def run(self, network: Callable[[Run], Any]) -> Tensor:
        """The expected loss [E] of a network given as a function: it runs once, or more often if
        the estimator needs that. The gradient is the estimator's at the logits of every choice, and
        the path gradient for parameters of the costs."""
        self._begin()

        def once(asking: Any) -> None:
            run = self._begun(asking)
            network(run)
            _require_cost(run)

        return self._expected(_RUN[self._dtype](*self._wanted(), once))

    @eager
    def __enter__(self) -> Run:
        if self._block is not None:
            raise UsageError("this episode has begun already")
        self._begin()
        self._block = _BLOCK[self._dtype](*self._wanted())
        return self._begun(self._block.asking)

    @eager
    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        block, self._block = self._block, None
        run = self._runs[0]
        if error is not None or not run._paid:
            block.drop()
        if error is None:
            _require_cost(run)
            run._expected = self._expected(block.end())

    def _begin(self) -> None:
        self._given, self._runs, self._learning = [], [], draws.learns_now(self._named)

    def _wanted(self) -> Any:
        return (
            self._estimator,
            self._sites,
            self._laws,
            self._examples,
            self._ids,
            self._seed,
            self._learning,
            draws.mixture(self._seed),
        )

    def _begun(self, asking: Any) -> Run:
        self._runs.append(
            Run(
                asking,
                self._examples,
                self._dtype,
                self._given,
                self._estimator.spec,
                self._subsets,
            )
        )
        return self._runs[-1]

    def _expected(self, found: Any) -> Tensor:
        value, slopes, rows, gradient, ratios = found
        for run in self._runs:
            run.check_used()
        draws.drawn(self._named, self._estimator, rows, self._learning, ratios)
        own_slopes, own = draws.learned(self._named, self._dtype, gradient)
        device, given = self._runs[-1].device, self._given
        there = [x.tensor.device for x in given]
        moved: dict[int, Tensor] = {}
        for other in {device, *there}:
            places = [place for place, its in enumerate(there) if its == other]
            arrays = [given[place].slope(slopes[place]) for place in places] + (
                [value] if other == device else []
            )
            moved |= zip(places + [len(given)], sent(arrays, other))
        of_runs: list[Slope] = [
            (moved[place], None if x.example is None else x.example.to(x.tensor.device))
            for place, x in enumerate(given)
        ]
        return Estimate.apply(
            (moved[len(given)], of_runs + own_slopes), *(x.tensor for x in given), *own
        )  # type: ignore[no-any-return]


def _require_cost(run: Run) -> None:
    if not run._paid:
        raise UsageError("the network has no cost: call e.cost(losses)")


@eager
def episode(
    examples: int,
    sites: dict[str, Site],
    estimator: draws.Given = "rloo[samples=4]",
    *,
    posterior: bool = False,
    behaviour: bool = False,
    reference: bool = False,
    dtype: Optional[torch.dtype] = None,
    ids: Optional[ArrayLike] = None,
    generator: Optional[torch.Generator] = None,
    seed: Optional[int] = None,
) -> Episode:
    """A network that makes one choice after another, and an estimate of its expected loss:

        with episode(8, {"item": Site(options=6, times=2)}, "rloo[samples=4]") as e:
            ...                              # e.choose(name, logits), repeatedly; e.cost(losses)
        e.expected_loss.mean().backward()

    The gradient is the estimator's at the logits of every choice, and the path gradient for
    parameters of the costs. A few estimators run the network more than once (e.g. `self_critic`). A
    block cannot do that: write the network as a function of e, and call
    `episode(...).run(network)`.

    examples: E, the initial number of rows.
    sites: the sites of its choices, by name.
    estimator: any. With relaxations, and estimators that contain them, the network reads
        `choice.weights`, not `choice.options`.
    posterior: every choice comes with a learned posterior, as estimators of the evidence lower
        bound and the like require.
    behaviour, reference: every choice comes with a behaviour policy, which draws, or with a
        reference policy, to stay near: see `expectation`.
    dtype: float32 or float64, in which Hardgrad computes; by default PyTorch's. Tensors may be on
        any device, also of float16 and bfloat16; choices are where their logits are.
    ids, generator, seed: as in `expectation`.
    """
    numbers = of_core(torch.get_default_dtype()) if dtype is None else dtype
    if numbers not in DTYPES:
        raise UsageError(f"dtype is float32 or float64, got {numbers}")
    if examples < 1:
        raise UsageError("an episode needs at least one example")
    return Episode(
        examples,
        sites,
        estimator,
        (posterior, behaviour, reference),
        numbers,
        given_ids(ids, examples),
        given_seed(drawn_seed(seed, generator)),
    )
