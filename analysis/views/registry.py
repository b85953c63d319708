"""Registry of the views of each model."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from ..errors import InputError
from .attention import Attention

View = Callable[[Attention], Figure]
#: By model name; "" for views of every model, "*" for views of models without their own view.
VIEWS: dict[str, list[View]] = {}
#: By model name: a view of two networks on the same batch, the first above the second.
VIEWS_OF_TWO: dict[str, Callable[[Attention, Attention], Figure]] = {}


def view(model: str) -> Callable[[View], View]:
    """Registers a view for models of this name."""

    def register(draw: View) -> View:
        VIEWS.setdefault(model, []).append(draw)
        return draw

    return register


def view_of_two(first: Attention, second: Attention) -> Callable[[Attention, Attention], Figure]:
    """The view of two networks. InputError if their model has none, or their batches differ."""
    if first.model != second.model or first.model not in VIEWS_OF_TWO:
        models = first.model if first.model == second.model else f"{first.model} and {second.model}"
        raise InputError(
            f"{models}: two files are drawn together for {', '.join(VIEWS_OF_TWO)} alone; "
            "give one file"
        )
    if not first.batch.equals(second.batch):
        raise InputError(
            "the files have other examples; compute both with the same task, --batch and --seed"
        )
    return VIEWS_OF_TWO[first.model]


def views_of(model: str) -> list[View]:
    """The views of a model."""
    return [*VIEWS.get(model, VIEWS.get("*", [])), *VIEWS.get("", [])]
