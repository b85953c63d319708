"""Calls of the program `hardgrad`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .errors import InputError

TREE = Path(__file__).resolve().parents[1]


def program() -> str:
    """The default program: on the path, or in the build folder."""
    return shutil.which("hardgrad") or str(TREE / "build/release/hardgrad")


def asked(hardgrad: str, *arguments: str) -> str:
    """The output of the program. InputError with its message if it fails."""
    try:
        done = subprocess.run([hardgrad, *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"{hardgrad}: cannot be run: {error.strerror}; build it, or name it with --hardgrad") from error
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip() or f"{hardgrad} ended with status {done.returncode}"
        raise InputError("; ".join(said.removeprefix("hardgrad: ").splitlines()))
    return done.stdout
