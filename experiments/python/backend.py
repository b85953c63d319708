"""Builds the package for pip: by CMake, then by setuptools from what that made.

The core and the program are built in build/release, as everything else; that takes minutes, and nothing if the scripts have done it.
The module is compiled by itself, in build/pip, for the Python that asks and with the pybind11 that pip brings.

HARDGRAD_BUILD names a folder instead in which the whole package has been built already, for this Python. The wheel is for processors
that can do what this one can, and for the libraries of this system.
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

__all__ = ["build_sdist", "build_wheel"]  # what it requires, pyproject.toml says

TREE = Path(__file__).resolve().parents[2]


def chosen_cmake() -> str:
    """Debian's own, if it is new enough, as hardgrad_choose in experiments/setup.sh has it."""
    try:
        said = subprocess.run(["/usr/bin/cmake", "--version"], capture_output=True, text=True).stdout
    except OSError:
        return "cmake"
    version = re.match(r"cmake version (\d+)\.(\d+)", said)
    return "/usr/bin/cmake" if version and tuple(map(int, version.groups())) >= (3, 25) else "cmake"


def is_of(build: Path, tree: Path) -> Optional[bool]:
    """Whether the build folder was configured there for this tree (None: it was not configured). A copied or moved tree brings along
    a build of another one."""
    cache = build / "CMakeCache.txt"
    if not cache.exists():
        return None
    of = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read_text(), re.MULTILINE)
    return of is not None and Path(of[1]).exists() and tree.samefile(of[1])


def build_core(cmake: str) -> Path:
    """Everything but the module, in build/release."""
    build = TREE / "build" / "release"
    if not (is_of(build, TREE) and (build / "hardgrad-parts.cmake").exists()):  # else the build configures itself where it has to
        fresh = ["--fresh"] if is_of(build, TREE) is False else []
        subprocess.run([cmake, "--preset", "release", *fresh], cwd=TREE, check=True)
    subprocess.run([cmake, "--build", "--preset", "release", "--target", "hardgrad_python_parts"], cwd=TREE, check=True)
    return build


def build_module(cmake: str, core: Path) -> Path:
    """The module for this Python. From the beginning: at each call pip has pybind11 in another place."""
    build = TREE / "build" / "pip" / str(sys.implementation.cache_tag)
    shutil.rmtree(build, ignore_errors=True)
    options = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_UNITY_BUILD": "ON", "HARDGRAD_BUILD": core, "Python_EXECUTABLE": sys.executable}
    try:
        import pybind11
        options["pybind11_DIR"] = pybind11.get_cmake_dir()
    except ImportError:  # pip was told --no-build-isolation: then it is the system's
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
    for left in ("wheel", "wheel.tmp"):  # of an earlier build, which may have had other files
        shutil.rmtree(TREE / "build" / left, ignore_errors=True)
    other = ["_core.*.so"] if module else []
    shutil.copytree(build / "python", TREE / "build" / "wheel", ignore=shutil.ignore_patterns("__pycache__", *other))
    if module:
        shutil.copy(module, TREE / "build" / "wheel" / "hardgrad")


def build_wheel(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None, metadata_directory: Optional[str] = None) -> str:
    import setuptools.build_meta  # here: a test imports the rest
    from setuptools.dist import Distribution
    (TREE / "build").mkdir(exist_ok=True)
    with open(TREE / "build" / "wheel.lock", "w") as lock:  # one at a time, whatever Python asks
        fcntl.flock(lock, fcntl.LOCK_EX)
        stage()
        Distribution.has_ext_modules = lambda self: True  # it holds a module for one Python and one platform, whoever compiled it
        name: str = setuptools.build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Optional[dict[str, Any]] = None) -> str:
    raise NotImplementedError("the package is built within Hardgrad's own tree: clone that")
