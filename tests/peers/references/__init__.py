"""Independent PyTorch implementations of the networks, from the equations in the head of each model's source: one example at a time,
without padding, batching or branching. There is one file per network. `CASES` lists the (task, settings) to compare. The function with
the network's name returns the losses and log probabilities of one row. `SOFT` is true if the soft form is also compared; then `options`
is None. `SUBSETS` lists those whose choices are subsets, and `HARD` others, which have no soft form. `BOUNDS` lists those to compare
with a learned posterior, for the lower bound; `FIXED` those without a choice, which have no score term and only a soft form."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator

_modules = {
    m.name: importlib.import_module(f"references.{m.name}") for m in pkgutil.iter_modules(__path__) if m.name != "layers"
}
REFERENCES: dict[str, Callable] = {name: getattr(module, name) for name, module in _modules.items()}


def cases(soft: bool = False) -> Iterator[tuple[str, str, str]]:
    """(network, task, settings) of all networks, or of those with a soft form."""
    for name, module in _modules.items():
        if not soft or getattr(module, "SOFT", False):
            yield from ((name, task, settings) for task, settings in module.CASES)


def listed(which: str) -> list[tuple[str, str, str]]:
    """(network, task, settings) of the lists BOUNDS or FIXED."""
    return [(name, task, settings) for name, module in _modules.items() for task, settings in getattr(module, which, ())]
