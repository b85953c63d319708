"""The tables of estimators, models and tasks list all registered names. (tests/guides runs the commands of the pages.)"""

import re
from pathlib import Path

import pytest

from program import as_json

TREE = Path(__file__).resolve().parents[3]
ESTIMATORS = TREE / "estimators" / "README.md"
FAMILIES = {
    "Score function",
    "Enumeration and deterministic attention",
    "Coupled samples",
    "Relaxation and control variates",
    "Without replacement",
    "Importance weights and learned posteriors",
}


def tables(page: Path) -> dict[str, list[list[list[str]]]]:
    """{heading: tables} of a page's `##` headings ("" before the first). A table is a list of rows of cells; the first is the header."""
    found: dict[str, list[list[list[str]]]] = {"": []}
    heading, inside = "", False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:].strip()
            assert heading not in found, f"{page}: two headings {heading}"
            found[heading] = []
        if not line.startswith("|"):
            inside = False
        elif not set(line) <= set("|-"):
            if not inside:
                found[heading].append([])
            inside = True
            found[heading][-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def names(cell: str) -> list[str]:
    return re.findall(r"`([a-z_]+)`", cell)


def test_estimators_are_those_registered():
    families = {
        heading: inside for heading, inside in tables(ESTIMATORS).items() if inside and inside[0][0][0] == "name and file"
    }
    assert families.keys() == FAMILIES
    rows = []
    for heading, inside in families.items():
        assert len(inside) == 1 and len(inside[0]) > 1, heading
        title, *body = inside[0]
        assert [title[i] for i in (0, 3, 4)] == ["name and file", "target", "unbiased"], heading
        assert all(len(row) == len(title) for row in body), heading
        rows += body
    table = {names(row[0])[0]: row for row in rows}
    assert len(table) == len(rows), "an estimator has two rows"
    registered = {entry["name"]: entry for entry in as_json("list", "estimators")}
    assert table.keys() == registered.keys()
    words = {
        "expected loss": "expected_loss",
        "marginal likelihood": "marginal_likelihood",
        "ELBO": "elbo",
        "regularised loss": "regularised",
        "the soft network's loss": "soft",
        "K-sample bound": "importance_bound",
        "reweighted wake-sleep": "wake",
        "dreamt wake-sleep": "wake_sleep",
        "thermodynamic objective": "thermodynamic",
        "expected loss under sparsemax": "sparsemax",
        "loss of the best of k samples": "best_of",
    }
    for name, row in table.items():
        assert row[0] == f"[`{name}`]({name}.cpp)" and (ESTIMATORS.parent / f"{name}.cpp").is_file(), name
        assert words[row[3]] == registered[name]["target"], name
        assert row[4].startswith("yes") == registered[name]["unbiased"], name
    papers = {name: re.findall(r"([A-Z][\w-]+)[^;]*?(\d{4})", row[2]) for name, row in table.items()}
    assert {name for name, found in papers.items() if not found} == {"exact", "path_only"}
    unlike = {name for name, of in papers.items() for paper in of if any(x not in registered[name]["paper"] for x in paper)}
    assert unlike == {"straight_through"}  # Shah et al. 2024 is of its subsets
    assert f"; {len(registered['policy_gradient']['presets'])} presets" in table["policy_gradient"][1]
    shortened = {name for name, row in table.items() if row[5].replace("`", "") != registered[name]["evaluations"]}
    assert shortened == {"policy_gradient", "rebar", "relax"}  # their costs have up to eight cases


@pytest.mark.parametrize("kind, page", [("models", "core/models/README.md"), ("tasks", "experiments/tasks/README.md")])
def test_models_and_tasks_are_those_registered(kind, page):
    title, *body = tables(TREE / page)[""][0]
    assert title[0] == kind.removesuffix("s")
    listed = [name for row in body for name in names(row[0])]
    assert sorted(listed) == sorted(entry["name"] for entry in as_json("list", kind))
