"""The packages `hardgrad` and `analysis` and the tests are formatted by `ruff format`; `ruff check` finds nothing in the
packages (settings: pyproject.toml, tests/ruff.toml). Nothing is installed here: tests/run.sh installs ruff for the long tests."""

import shutil
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
PACKAGES = ("analysis", "experiments/python/src")


@pytest.mark.parametrize(
    "command",
    [("format", "--diff", *PACKAGES, "tests"), ("check", "--output-format", "concise", *PACKAGES)],
    ids=["format", "check"],
)
def test_sources(command):
    ours = TREE / "build" / "ruff" / "bin" / "ruff"
    ruff = ours if ours.exists() else shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed: `bash tests/run.sh --all` installs it in build/ruff")
    said = subprocess.run([ruff, *command, "--no-cache"], cwd=TREE, capture_output=True, text=True)
    if "Required version" in said.stderr:
        pytest.skip(" ".join(said.stderr.split()))
    assert said.returncode == 0, said.stdout + said.stderr
