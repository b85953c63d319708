"""Views of a network's attention, from a gradient file. Every model may have its own view.

A view is a function from `Attention` to a matplotlib Figure, registered under the model's name::

    @view("my_model")
    def my_paths(attention: Attention) -> Figure: ...

in a module that is imported here. Other models are drawn as plain heat maps.
"""

from . import (  # noqa: F401  (each registers its views)
    canvases,
    captions,
    documents,
    general,
    glimpses,
    machines,
    memory,
    pairs,
    pondering,
    programs,
    sentences,
    tapes,
)
from .attention import MOST_EXAMPLES, Attention, load_attention
from .registry import VIEWS, view, view_of_several, views_of

__all__ = [
    "Attention",
    "MOST_EXAMPLES",
    "VIEWS",
    "load_attention",
    "view",
    "view_of_several",
    "views_of",
]
