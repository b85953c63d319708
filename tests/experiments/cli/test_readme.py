"""The README names what is registered, with its target. (Its commands are run by tests/guides.)"""
import re
from pathlib import Path

import pytest

from program import as_json

README = Path(__file__).resolve().parents[3] / "README.md"


def rows(heading: str) -> list[list[str]]:
    """Cells of the first table's rows after a heading, the title row left out."""
    text = README.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in text.split("\n\n| ", 1)[1].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not set(line) <= set("|-")]


def names(cell: str) -> list[str]:
    return re.findall(r"`([a-z_]+)`", cell)


def test_estimators_are_those_registered():
    table = {names(row[0])[0]: row for row in rows("Estimators")}
    registered = {entry["name"]: entry for entry in as_json("list", "estimators")}
    assert table.keys() == registered.keys()
    words = {"expected loss": "expected_loss", "marginal likelihood": "marginal_likelihood", "ELBO": "elbo",
             "regularised loss": "regularised", "the soft network's loss": "soft", "K-sample bound": "importance_bound",
             "reweighted wake-sleep": "wake", "dreamt wake-sleep": "wake_sleep", "thermodynamic objective": "thermodynamic",
             "expected loss under sparsemax": "sparsemax"}
    for name, row in table.items():
        assert words[row[3]] == registered[name]["target"], name
        assert row[4].startswith("yes") == registered[name]["unbiased"], name


@pytest.mark.parametrize("kind", ["models", "tasks"])
def test_models_and_tasks_are_those_registered(kind):
    text = README.read_text(encoding="utf-8").split("## Models and tasks\n", 1)[1].split("\n## ", 1)[0]
    table = text.strip().split("\n\n")[0 if kind == "models" else 1]
    named = {name for line in table.splitlines()[2:] for name in names(line.strip("|").split("|")[0])}
    assert named == {entry["name"] for entry in as_json("list", kind)}
