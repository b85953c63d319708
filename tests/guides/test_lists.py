"""Counts and lists on pages and in configurations are those of the registry."""

import json
import os
import re
import subprocess
import tomllib

from test_links import TREE, pages


def listed(*what: str, verb: str = "list") -> list | dict:
    return json.loads(
        subprocess.run(
            [os.environ["HARDGRAD_BINARY"], verb, *what, "--json"], capture_output=True, text=True, check=True
        ).stdout
    )


def test_the_front_page_counts_the_estimators():
    stated = re.findall(r"\b(\d+) estimators", (TREE / "README.md").read_text("utf-8"))
    assert stated and set(stated) == {str(len(listed()["estimators"]))}


def test_no_manual_counts_all_entries():
    """A count would be wrong after the next entry. Small sets, and the measurements of tests and results, may be counted."""
    count = re.compile(r"\b(?:[2-9]\d|[Ss]ixty-\w+) (?:estimators|networks|tasks)\b|\b[Oo]f the \d+\b")
    assert (
        count.search("68 estimators")
        and count.search("Of the 67, six need bits")
        and not count.search("8 estimators on 3 tasks")
    )
    manuals = [page for page in pages() if page.relative_to(TREE).parts[0] in ("core", "estimators", "experiments")]
    assert len(manuals) > 8
    assert [
        f"{page.relative_to(TREE)}: {found[0]}" for page in manuals if (found := count.search(page.read_text("utf-8")))
    ] == []


def test_the_sweep_of_every_estimator_has_every_estimator():
    sweep = tomllib.loads((TREE / "experiments/configs/every_estimator.toml").read_text("utf-8"))
    grid = {spec.split("[")[0] for spec in sweep["grid"]["estimator"]}
    networks = {model.split("[")[0] for zipped in sweep["zip"] for model in zipped["model"]}
    rows = [row for row in listed("matrix") if row["network"] in networks]
    estimators = {entry["name"] for entry in listed()["estimators"]}
    assert {row["estimator"] for row in rows} == estimators and len(networks) == 3
    works = {name for name in estimators if all(row["works"] for row in rows if row["estimator"] == name)}
    assert grid == works - {"path_only"} and len(grid) > 50  # its head says why path_only is left out


def test_the_studies_of_policy_gradients_have_every_preset():
    """policies_cards has rewards of 0 and 1, too, which maxrl needs."""
    presets = {preset["name"] for preset in listed("policy_gradient", verb="describe")["presets"]}
    for study, missing in (("policies_presets", {"maxrl"}), ("policies_cards", set())):
        specs = tomllib.loads((TREE / f"experiments/configs/{study}.toml").read_text("utf-8"))["grid"]["estimator"]
        found = {name for spec in specs for name in re.findall(r"preset=(\w+)", spec)}
        assert found == presets - missing and len(found) > 20, study
