"""What is registered."""
from __future__ import annotations

import json
from typing import Any

from . import _core


def estimators() -> list[str]:
    """Names of all estimators, in alphabetical order."""
    return _core.estimators()


def describe(name: str) -> dict[str, Any]:
    """All that is declared of an estimator (or model, task, target): summary, paper, target, bias, needs, parameters with their
    types, defaults and ranges. As `hardgrad describe NAME --json`.

    Names an estimator has elsewhere are understood. Of a name that several have, say which: `model:bits`. UsageError if there is
    none, or several.
    """
    found = json.loads(_core.describe(name))
    if len(found) > 1:
        kinds = " or ".join(f'"{entry["kind"]}:{entry["name"]}"' for entry in found)
        raise _core.UsageError(f'describe: "{name}" is several things: say {kinds}')
    entry: dict[str, Any] = found[0]
    return entry
