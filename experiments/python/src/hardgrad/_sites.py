"""Sites: the choices that a network makes under one name."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional

from ._core import UsageError
from ._losses import check_subset

#: name, options, columns, times, width of the state, number of the reach (core/choice/structure.hpp), options of a subset (0: one option)
SiteTuple = tuple[str, int, int, int, int, int, int]
_OWN_COSTS, _LATER_COSTS, _LATER_CHOICES = 1, 2, 3


@dataclass(frozen=True)
class Site:
    """A site: the choices that a network makes under one name. options: the most options; columns: simultaneous choices; times: the
    most choices in a run; state: number of inputs of learned baselines; feeds_choices: whether later choices depend on it; subset: each
    choice picks so many options, without order.
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
    return [(name, site.options, site.columns, site.times, site.state, _LATER_CHOICES if site.feeds_choices else _LATER_COSTS, site.subset or 0)
            for name, site in sites.items()]


def of_expectation(site: Site) -> list[SiteTuple]:
    return [("choice", site.options, site.columns, 1, site.state, _OWN_COSTS, site.subset or 0)]
