"""Registry of the views of each model."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from .attention import Attention

View = Callable[[Attention], Figure]
#: By model name; "" for views of every model, "*" for views of models without their own view.
VIEWS: dict[str, list[View]] = {}


def view(model: str) -> Callable[[View], View]:
    """Registers a view for models of this name."""
    def register(draw: View) -> View:
        VIEWS.setdefault(model, []).append(draw)
        return draw
    return register


def views_of(model: str) -> list[View]:
    """The views of a model."""
    return [*VIEWS.get(model, VIEWS.get("*", [])), *VIEWS.get("", [])]
