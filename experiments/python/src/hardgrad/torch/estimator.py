"""Estimators as PyTorch modules: `hardgrad.torch.Estimator`; and the sites that they are made for:
the choices that a network makes under one name."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional, Union

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _core
from .._core import UsageError
from ..losses import check_subset
from . import draws
from .expectation import expectation
from .laws import Law
from .tensors import fetched, sent

#: name, options, columns, times, width of the state, number of the reach
#: (core/choice/structure.hpp), options of a subset (0: one option)
SiteTuple = tuple[str, int, int, int, int, int, int]
_OWN_COSTS, _LATER_COSTS, _LATER_CHOICES = 1, 2, 3


@dataclass(frozen=True)
class Site:
    """A site: the choices that a network makes under one name. options: the most options; columns:
    simultaneous choices; times: the most choices in a run; state: number of inputs of learned
    baselines; feeds_choices: whether later choices depend on it; subset: each choice picks so many
    options, without order.
    """

    options: int
    columns: int = 1
    times: int = 1
    state: int = 1
    feeds_choices: bool = True
    subset: Optional[int] = None

    def __post_init__(self) -> None:
        check_subset(self.subset, self.options)


def of_episode(sites: Mapping[str, Site]) -> list[SiteTuple]:
    if not sites:
        raise UsageError("an episode needs at least one site")
    return [
        (
            name,
            site.options,
            site.columns,
            site.times,
            site.state,
            _LATER_CHOICES if site.feeds_choices else _LATER_COSTS,
            site.subset or 0,
        )
        for name, site in sites.items()
    ]


def of_expectation(site: Site) -> list[SiteTuple]:
    return [("choice", site.options, site.columns, 1, site.state, _OWN_COSTS, site.subset or 0)]


class Estimator(draws.Module):
    """An estimator that keeps its learned state, as a module of your network:

        self.estimator = hardgrad.torch.Estimator("nvil[samples=4]")
        ...
        loss = self.estimator(logits, f).mean()

    Its own parameters (baselines, control variates) are parameters of the module. Averages, and the
    state of its Adam, are part of `state_dict`. It learns at each call in which gradients are
    recorded, unless it is in `eval()` mode. Copies and pickles hold the learned state. Threads may
    share it.

    spec: e.g. "nvil[samples=4]". UsageError if there is none of this name, or its settings are
        wrong.
    sites: a Site, for `expectation`, or those of an `episode` by name. Without them the parameters
        are made at the first call, for the sites of that call.
    posterior: whether the episode has one.
    seed: of its parameters' initial values.
    learning_rate: of its own Adam. None: its parameters belong in an optimiser of yours; `backward`
        adds to their gradients those of the estimator's own loss (a mean over the examples),
        whatever the weight of the estimate in your loss. Needs sites. Where torch.distributed is
        initialised, a call that learns then takes the mean of the averages of all processes, which
        wait for each other and make the same calls: with DistributedDataParallel, equal parts of a
        batch, and ids and a seed, all processes learn as a single one with the whole batch does.
    process_group: the processes whose averages are reduced; None: all; False: none, each has its
        own.
    dtype: of its parameters; by default that of the first logits, with sites PyTorch's.
    """

    def __init__(
        self,
        spec: str,
        sites: Union[None, Site, Mapping[str, Site]] = None,
        *,
        posterior: bool = False,
        seed: int = 0,
        learning_rate: Optional[float] = 1e-3,
        dtype: Optional[torch.dtype] = None,
        process_group: Any = None,
    ):
        super().__init__()
        self.process_group = process_group
        self.spec, self._seed, self._learning_rate, self._dtype = spec, seed, learning_rate, dtype
        self._begin()
        if sites is not None:
            numbers = torch.get_default_dtype() if dtype is None else dtype
            self._make(
                of_expectation(sites) if isinstance(sites, Site) else of_episode(sites),
                posterior,
                numbers == torch.float64,
            )
        elif learning_rate is None:
            raise UsageError(
                f"{spec}: your optimiser trains its parameters, so they are made now: pass "
                "its sites, such as "
                "hardgrad.torch.Site(options=2, columns=50, state=200)"
            )

    def forward(self, logits: Law, f: Any, **named: Any) -> Tensor:
        """`expectation` with this estimator."""
        return expectation(logits, f, self, **named)

    @property
    def learns(self) -> bool:
        """Whether it has a state to learn; known once it is made for sites, False before."""
        return self._held.learns

    @property
    def core(self) -> _core.Estimator:
        """The same as a `hardgrad.Estimator`, with the learned state, for `hardgrad.moments` and
        the like."""
        self.ready(torch.float64)
        return self._held

    def extra_repr(self) -> str:
        return repr(self.spec)

    # Core has a working copy of the parameters. Those of the module count: they may be assigned,
    # cast, moved and loaded.

    def _begin(self) -> None:
        self._held = _core.Estimator(self.spec, self._seed, self._learning_rate)
        self._wide: Optional[bool] = None  # the precision that has learned; None until it is made
        self._seen: list[tuple[int, int]] = []

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Core's own lock: with a second one, two threads could wait for each other."""
        self._held._lock()
        try:
            yield
        finally:
            self._held._unlock()

    def _make(self, sites: Any, posterior: bool, wide: bool) -> None:
        self._held._make(sites, posterior, wide)
        self._made(wide)

    def _made(self, wide: bool) -> None:
        """Takes over the parameters of an estimator that core has made."""
        self._wide = wide
        for name, value in self._held._learned(wide)[0]:
            if (inside := name.replace(".", "_")) not in self._parameters:
                numbers = torch.from_numpy(value).to(
                    self._dtype or (torch.float64 if wide else torch.float32)
                )
                self.register_parameter(
                    inside, torch.nn.Parameter(numbers, requires_grad=self._learning_rate is None)
                )
        self._seen = self._versions()

    def _own(self) -> list[Tensor]:
        return list(self._parameters.values())

    def _versions(self) -> list[tuple[int, int]]:
        return [(x.data_ptr(), x._version) for x in self._own()]

    def _push(self, wide: bool, averages: Any, optimizer: Any) -> None:
        self._held._restore(wide, fetched(self._own(), torch.float64), averages, optimizer)
        self._wide, self._seen = wide, self._versions()

    def ready(self, dtype: torch.dtype) -> None:
        """Before a draw in this dtype."""
        wide = dtype == torch.float64
        with self._locked():
            if (
                self._wide is None
                or not self._held.learns
                or (wide == self._wide and self._seen == self._versions())
            ):
                return
            if wide != self._wide:
                sites, posterior = self._held._made_for(self._wide)
                self._held._make(sites, posterior, wide)
            self._push(wide, *self._held._learned(self._wide)[1:])

    def learned(self, dtype: torch.dtype, gradient: Any) -> list[tuple[Tensor, Tensor]]:
        """After a draw: takes over the new state. Returns the parameters for the caller's optimiser
        with their gradients."""
        wide = dtype == torch.float64
        with self._locked():
            if self._learning_rate is None and draws.learns_now(self) and not draws.compared():
                self._reduce(wide)
            own = self._own()
            if self._wide is None and self._held.learns:
                self._made(wide)
            elif own and self._learning_rate is not None:
                with torch.no_grad():
                    for parameter, value in zip(
                        own,
                        sent([value for _, value in self._held._learned(wide)[0]], own[0].device),
                    ):
                        parameter.copy_(value)
                self._seen = self._versions()
            if not len(gradient):
                return []
            parts = sent([gradient], own[0].device)[0].split([x.numel() for x in own])
            return [
                (parameter, part.reshape(parameter.shape).to(parameter.dtype))
                for parameter, part in zip(own, parts)
            ]

    def _reduce(self, wide: bool) -> None:
        """Takes the mean of the averages of all processes."""
        if self.process_group is False or not dist.is_available() or not dist.is_initialized():
            return
        group, count = self.process_group, dist.get_world_size(self.process_group)
        mine = torch.from_numpy(self._held._learned(wide)[1])
        if count == 1 or mine.numel() == 0:
            return
        if dist.get_backend(group) == "nccl":
            mine = mine.cuda()
        all_of_them = [torch.empty_like(mine) for _ in range(count)]
        dist.all_gather(all_of_them, mine, group=group)
        self._held._average(wide, [each.cpu().numpy() for each in all_of_them])

    # The learned state beside the parameters.

    def get_extra_state(self) -> dict[str, Any]:
        with self._locked():
            if self._wide is None:
                return {}
            (sites, posterior), (_, averages, optimizer) = (
                self._held._made_for(self._wide),
                self._held._learned(self._wide),
            )
            return {
                "sites": sites,
                "posterior": posterior,
                "double": self._wide,
                "averages": torch.from_numpy(averages),
                "optimizer": torch.from_numpy(optimizer),
            }

    def set_extra_state(self, state: Any) -> None:
        if not state:
            return
        with self._locked():
            if self._wide is None:
                self._make(state["sites"], state["posterior"], state["double"])
            assert self._wide is not None
            self._push(
                self._wide, *(state[name].cpu().numpy() for name in ("averages", "optimizer"))
            )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        state = state_dict.get(prefix + "_extra_state")
        if self._wide is None and state:  # its parameters are not there yet
            self._make(state["sites"], state["posterior"], state["double"])
        super()._load_from_state_dict(state_dict, prefix, *others)

    def __getstate__(self) -> dict[str, Any]:
        state = {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("_held", "_wide", "_seen", "process_group")
        }
        group = False if self.process_group is False else None  # no group can be copied
        return state | {"process_group": group, "_learned": self.get_extra_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        learned = state.pop("_learned")
        super().__setstate__(state)
        self._begin()
        if learned:
            self._held._make(learned["sites"], learned["posterior"], learned["double"])
            self._wide = learned["double"]
            self.set_extra_state(learned)
