"""Which views a model has."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from .attention import Attention

View = Callable[[Attention], Figure]
#: By the model's name; "" for views of every model, "*" for those of models without a view of their own.
VIEWS: dict[str, list[View]] = {}


def view(model: str) -> Callable[[View], View]:
    """Registers a view for models of this name."""
    def register(draw: View) -> View:
        VIEWS.setdefault(model, []).append(draw)
        return draw
    return register


def views_of(model: str) -> list[View]:
    """The views of a model, by its name."""
    return [*VIEWS.get(model, VIEWS.get("*", [])), *VIEWS.get("", [])]
