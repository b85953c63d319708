"""Builds the package for pip: with CMake, then setuptools.

The core and the program are built in build/release, as usual; that takes minutes, or no time if the scripts have built them already.
The module is compiled separately, in build/pip, for the calling Python and with pip's pybind11.

HARDGRAD_BUILD names a folder in which the whole package has been built already for this Python; then nothing is compiled. The wheel
needs a processor with the features of this one, and the libraries of this system.
"""
from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

__all__ = ["build_sdist", "build_wheel"]  # requirements: see pyproject.toml

TREE = Path(__file__).resolve().parents[2]


def chosen_cmake() -> str:
    """The choice of experiments/setup.sh."""
    return subprocess.run(["bash", "-c", '. experiments/setup.sh; echo "$hardgrad_cmake"'], cwd=TREE, check=True, capture_output=True,
                          text=True).stdout.strip()


def is_of(build: Path, tree: Path) -> Optional[bool]:
    """Whether the build folder was configured at this place for this tree (None: not configured). A copied or moved tree contains
    the build of another tree."""
    cache = build / "CMakeCache.txt"
    if not cache.exists():
        return None
    of = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read_text(), re.MULTILINE)
    return of is not None and Path(of[1]).exists() and tree.samefile(of[1])


def build_core(cmake: str) -> Path:
    """Builds everything except the module, in build/release."""
    build = TREE / "build" / "release"
    if not (is_of(build, TREE) and (build / "hardgrad-parts.cmake").exists()):  # otherwise the build reconfigures itself if needed
        fresh = ["--fresh"] if is_of(build, TREE) is False else []
        subprocess.run([cmake, "--preset", "release", *fresh], cwd=TREE, check=True)
    subprocess.run([cmake, "--build", "--preset", "release", "--target", "hardgrad_python_parts"], cwd=TREE, check=True)
    return build


def build_module(cmake: str, core: Path) -> Path:
    """Builds the module for this Python. Always from scratch: at each call pip puts pybind11 in a different place."""
    build = TREE / "build" / "pip" / str(sys.implementation.cache_tag)
    shutil.rmtree(build, ignore_errors=True)
    options = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_UNITY_BUILD": "ON", "HARDGRAD_BUILD": core, "Python_EXECUTABLE": sys.executable}
    try:
        import pybind11
        options["pybind11_DIR"] = pybind11.get_cmake_dir()
    except ImportError:  # --no-build-isolation: the system's pybind11
        pass
    subprocess.run([cmake, "-G", "Ninja", "-S", TREE / "experiments" / "python", "-B", build,
                    *(f"-D{name}={value}" for name, value in options.items())], check=True)
    subprocess.run([cmake, "--build", build], check=True)
    (module,) = (build / "python" / "hardgrad").glob("_core.*")
    return module


def stage() -> None:
    """Makes build/wheel/hardgrad."""
    given = os.environ.get("HARDGRAD_BUILD")
    cmake = chosen_cmake()
    build = Path(given) if given else build_core(cmake)
    module = None if given else build_module(cmake, build)
    for left in ("wheel", "wheel.tmp"):  # an earlier build may have had other files
        shutil.rmtree(TREE / "build" / left, ignore_errors=True)
    other = ["_core.*.so"] if module else []
    shutil.copytree(build / "python", TREE / "build" / "wheel", ignore=shutil.ignore_patterns("__pycache__", *other))
    if module:
        shutil.copy(module, TREE / "build" / "wheel" / "hardgrad")


def build_wheel(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None, metadata_directory: Optional[str] = None) -> str:
    import setuptools.build_meta  # imported here, because a test imports only the other functions
    from setuptools.dist import Distribution
    (TREE / "build").mkdir(exist_ok=True)
    with open(TREE / "build" / "wheel.lock", "w") as lock:  # one build at a time
        fcntl.flock(lock, fcntl.LOCK_EX)
        stage()
        Distribution.has_ext_modules = lambda self: True  # it contains a compiled module, for one Python and platform
        name: str = setuptools.build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Optional[dict[str, Any]] = None) -> str:
    raise NotImplementedError("the package is built within Hardgrad's own tree: clone that")
