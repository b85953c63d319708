"""Registry of the views of each model."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from ..errors import InputError
from .attention import Attention

View = Callable[[Attention], Figure]
#: By model name; "" for views of every model, "*" for views of models without their own view.
VIEWS: dict[str, list[View]] = {}
#: By model name: a view of one or several networks on the same batch, one below the other.
VIEWS_OF_SEVERAL: dict[str, Callable[..., Figure]] = {}


def view(model: str) -> Callable[[View], View]:
    """Registers a view for models of this name."""

    def register(draw: View) -> View:
        VIEWS.setdefault(model, []).append(draw)
        return draw

    return register


def view_of_several(*networks: Attention) -> Callable[..., Figure]:
    """The view of several networks. InputError if their model has none, or their batches differ."""
    models = sorted({network.model for network in networks})
    if len(models) > 1 or models[0] not in VIEWS_OF_SEVERAL:
        raise InputError(
            f"{' and '.join(models)}: several files are drawn together for "
            f"{', '.join(VIEWS_OF_SEVERAL)} alone; give one file"
        )
    if not all(network.batch.equals(networks[0].batch) for network in networks):
        raise InputError(
            "the files have other examples; compute all with the same task, --batch and --seed"
        )
    return VIEWS_OF_SEVERAL[models[0]]


def views_of(model: str) -> list[View]:
    """The views of a model."""
    return [*VIEWS.get(model, VIEWS.get("*", [])), *VIEWS.get("", [])]
