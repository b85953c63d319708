"""Calls of the program `hardgrad`, and the facts about estimators, models and tasks that it or the
head of a file tells."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

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
        raise InputError(
            f"{hardgrad}: cannot be run: {error.strerror}; build it, or name it with --hardgrad"
        ) from error
    if done.returncode:
        said = (
            done.stderr.strip()
            or done.stdout.strip()
            or f"{hardgrad} ended with status {done.returncode}"
        )
        raise InputError("; ".join(said.removeprefix("hardgrad: ").splitlines()))
    return done.stdout


def entries(hardgrad: str) -> dict[str, dict[str, dict[str, Any]]]:
    """By kind (estimators, models, tasks) and name: an element of `hardgrad list --json`."""
    record = json.loads(asked(hardgrad, "list", "--json"))
    return {
        kind: {str(one["name"]): one for one in record[kind]}
        for kind in ("estimators", "models", "tasks")
    }


def absent_values(hardgrad: str) -> dict[str, object]:
    """What programs without a setting or parameter, which was added later, did: its value, by path
    as in `identity.differences`."""
    every = [entry for known in entries(hardgrad).values() for entry in known.values()]
    every += json.loads(asked(hardgrad, "list", "targets", "--json"))
    found = {
        f"{entry['kind']}.{entry['name']}.{one['name']}": one["absent"]
        for entry in every
        for one in entry["parameters"]
    }
    sweep = json.loads(asked(hardgrad, "describe", "sweep", "--json"))["parameters"]
    found |= {str(one["name"]): one["absent"] for one in sweep}
    return {path: value for path, value in found.items() if value is not None}


def head_of(source: Path) -> str:
    """The comment at the head of a source file: equations, source, target, bias, departures from
    the paper. Empty if there is none."""
    found = re.match(r"(?://.*\n)+", source.read_text("utf-8")) if source.exists() else None
    return re.sub(r"^// ?", "", found[0], flags=re.M) if found else ""
