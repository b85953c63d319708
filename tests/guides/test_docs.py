"""The site of all pages and the API reference builds without a warning, and contains every page, estimator and model."""
import json
import os
import re
import subprocess
from pathlib import Path

from test_links import TREE, pages

BUILD = Path(os.environ["HARDGRAD_BUILD"])


def names(noun: str) -> set[str]:
    listed = subprocess.run([os.environ["HARDGRAD_BINARY"], "list", "--json"], capture_output=True, text=True, check=True)
    return {entry["name"] for entry in json.loads(listed.stdout)[noun]}


def test_the_site_is_whole():
    built = subprocess.run(["ninja", "-C", BUILD, "docs"], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    html = BUILD / "docs" / "html"
    written = {path.relative_to(html).with_suffix(".md") for path in html.rglob("*.html")}
    assert {page.relative_to(TREE) for page in pages()} <= written
    equations = (html / "experiments" / "docs" / "equations.html").read_text("utf-8")
    headings = {re.sub("<.*?>", "", title) for title in re.findall(r"<h3>(.*?)<a", equations)}
    assert len(names("estimators")) >= 61 and names("estimators") | names("models") <= headings
    interface = (html / "experiments" / "docs" / "cpp.html").read_text("utf-8")
    assert all(name in interface for name in ("RowsPtr", "EstimatorEntry", "CostWeights", "exact_moments"))
    assert "hardgrad.moments" in (html / "experiments" / "docs" / "python.html").read_text("utf-8")
