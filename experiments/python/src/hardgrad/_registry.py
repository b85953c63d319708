"""The registered estimators, models, tasks and targets."""
from __future__ import annotations

import json
from typing import Any

from . import _core


def estimators() -> list[str]:
    """Names of all estimators, in alphabetical order."""
    return _core.estimators()


def describe(name: str) -> dict[str, Any]:
    """The declaration of an estimator (or model, task, target): summary, paper, target, bias, needs, and parameters with their
    types, defaults and ranges. As `hardgrad describe NAME --json`.

    Other names of an estimator are understood. If several entries share a name, add the kind: `model:bits`. UsageError if the name
    is unknown or ambiguous.
    """
    found = json.loads(_core.describe(name))
    if len(found) > 1:
        kinds = " or ".join(f'"{entry["kind"]}:{entry["name"]}"' for entry in found)
        raise _core.UsageError(f'describe: "{name}" is ambiguous: use {kinds}')
    entry: dict[str, Any] = found[0]
    return entry
