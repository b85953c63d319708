"""The libraries and compilers of core/dependencies.cmake."""

import re
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).resolve().parents[2] / "core" / "dependencies.cmake"


class Library(NamedTuple):
    name: str
    least: str  # version
    debian: str  # package
    conda: str  # package of conda-forge, or none


LIBRARIES = [Library(*row.split()) for row in re.findall(r'^  "(.*)"\)?$', LIST.read_text(), re.M)]
assert len(LIBRARIES) == len({library.name for library in LIBRARIES}) > 15
COMPILERS = {name: int(version) for name, version in re.findall(r"^set\(HARDGRAD_LEAST_(\w+) (\d+)\)", LIST.read_text(), re.M)}
