"""Builds the package for pip: by CMake, in build/release as everything else, then by setuptools from what that made.

HARDGRAD_BUILD names another folder, in which the package has been built already. The wheel is for processors that can do what this
one can, and for the libraries of this system.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import setuptools.build_meta
from setuptools.build_meta import get_requires_for_build_sdist, get_requires_for_build_wheel
from setuptools.dist import Distribution

__all__ = ["build_sdist", "build_wheel", "get_requires_for_build_sdist", "get_requires_for_build_wheel"]

TREE = Path(__file__).resolve().parents[2]


def stage() -> None:
    """Makes build/wheel/hardgrad."""
    build = os.environ.get("HARDGRAD_BUILD")
    if not build:
        for command in (["cmake", "--preset", "release", f"-DPython_EXECUTABLE={sys.executable}"],
                        ["cmake", "--build", "--preset", "release", "--target", "hardgrad_python"]):
            subprocess.run(command, cwd=TREE, check=True)
        build = str(TREE / "build" / "release")
    for left in ("wheel", "wheel.tmp"):  # of an earlier build, which may have had other files
        shutil.rmtree(TREE / "build" / left, ignore_errors=True)
    shutil.copytree(Path(build) / "python", TREE / "build" / "wheel", ignore=shutil.ignore_patterns("__pycache__"))


def build_wheel(wheel_directory: str, config_settings: Optional[dict[str, Any]] = None, metadata_directory: Optional[str] = None) -> str:
    stage()
    Distribution.has_ext_modules = lambda self: True  # it holds a module for one Python and one platform, whoever compiled it
    name: str = setuptools.build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: Optional[dict[str, Any]] = None) -> str:
    raise NotImplementedError("the package is built within Hardgrad's own tree: clone that")
