"""Facts about estimators, models and tasks: from the program, and from the head of an estimator's file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..program import asked


def entries(hardgrad: str) -> dict[str, dict[str, dict[str, Any]]]:
    """By kind (estimators, models, tasks) and name: an element of `hardgrad list --json`."""
    found = json.loads(asked(hardgrad, "list", "--json"))
    return {kind: {str(one["name"]): one for one in found[kind]} for kind in ("estimators", "models", "tasks")}


def head_of(source: Path) -> str:
    """The comment at the head of a source file: equations, source, target, bias, departures from the paper. Empty if
    there is none."""
    found = re.match(r"(?://.*\n)+", source.read_text("utf-8")) if source.exists() else None
    return re.sub(r"^// ?", "", found[0], flags=re.M) if found else ""
