"""Raises an ImportError with the build command if the compiled module is missing."""
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

_FOLDER = Path(__file__).parent
if not any((_FOLDER / f"_core{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
    _others = sorted(path.name for path in _FOLDER.glob("_core.*.so"))
    raise ImportError(f"hardgrad is not built for this Python{f' (found {_others[0]}, which it cannot load)' if _others else ''}: in Hardgrad's tree, "
                      "`python -m pip install .` builds it for the calling Python, and `cmake --build --preset release --target hardgrad_python` "
                      "for Debian's, in build/release/python")
