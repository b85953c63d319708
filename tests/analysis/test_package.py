"""The package runs in place, installs in place, and its type hints are consistent."""

import os
import shutil
import subprocess

import pytest

from conftest import ROOT

PYTHON = "/usr/bin/python3"


def run(*command, cwd, **env):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=3000, env={**os.environ, **env})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_runs_from_the_projects_folder():
    assert "report" in run(PYTHON, "-m", "analysis", "--help", cwd=ROOT)


def test_a_notebooks_backend_stays_its_own():
    code = "import matplotlib; matplotlib.use('svg'); import analysis.report; print(matplotlib.get_backend())"
    assert run(PYTHON, "-c", code, cwd=ROOT).strip() == "svg"


def test_installs_in_place(tmp_path):
    """Installs from a copy into a temporary folder, because pip writes metadata beside the sources."""
    if subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode:
        pytest.skip("pip is not installed")
    shutil.copytree(ROOT / "analysis", tmp_path / "analysis", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    run(
        PYTHON,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--user",
        "--break-system-packages",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
        "--editable",
        str(tmp_path / "analysis"),
        cwd=tmp_path,
        PYTHONUSERBASE=str(tmp_path / "base"),
    )
    code = "import analysis.views, analysis.statistics; print(analysis.__file__)"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    where = run(PYTHON, "-c", code, cwd=elsewhere, PYTHONUSERBASE=str(tmp_path / "base"), PYTHONPATH="")
    assert where.strip() == str(tmp_path / "analysis" / "__init__.py")  # in place, so changes take effect at once


def test_type_hints_hold(tmp_path):
    if not shutil.which("mypy"):
        pytest.skip("mypy is not installed")
    said = run("mypy", "--config-file", "analysis/pyproject.toml", "--cache-dir", str(tmp_path), "analysis", cwd=ROOT)
    assert "Success" in said
