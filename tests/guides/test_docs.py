"""The site of all pages and the API reference builds without a warning, and contains every page, estimator, model and public name."""

import ast
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


def public(module: str) -> list[str]:
    """`__all__` of hardgrad's module, read from its source: JAX may be missing."""
    package = BUILD / "python" / "hardgrad"
    source = next(path for path in (package / module / "__init__.py", package / f"{module}.py") if path.exists())
    return next(
        ast.literal_eval(line.value)
        for line in ast.parse(source.read_text("utf-8")).body
        if isinstance(line, ast.Assign) and getattr(line.targets[0], "id", "") == "__all__"
    )


def described(page: Path) -> set[str]:
    """The full names that an API page describes."""
    return {
        re.sub(r"<.*?>|\s", "", "".join(found))
        for found in re.findall(
            r'<span class="sig-prename[^"]*">(.*?)</span>(?=<span class="sig-name)(<span class="sig-name[^"]*">.*?</span>)<',
            page.read_text("utf-8"),
        )
    }


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
    for module, least in ("", 20), ("torch", 12), ("jax", 4):
        page, package = html / "experiments" / "docs" / f"{module or 'python'}.html", f"hardgrad.{module}".rstrip(".")
        wanted = {f"{package}.{name}" for name in public(module)}
        assert len(wanted) >= least and wanted - described(page) == set()
    assert (html / "index.html").read_bytes() == (html / "README.html").read_bytes()
    assert f"The site: {html / 'index.html'}" in built.stdout
