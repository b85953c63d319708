"""A static site and tables of result files."""

from .build import REFERENCE, build
from .own import own_result
from .studies import committed
from .tables import rewritten, specified

__all__ = ["REFERENCE", "build", "committed", "own_result", "rewritten", "specified"]
