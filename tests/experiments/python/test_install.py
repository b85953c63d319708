"""pip installs the package, and builds a wheel."""
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[3]
BUILD = str(Path(os.environ["HARDGRAD_BINARY"]).parent)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("pip")
    pytest.importorskip("wheel")
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(folder), str(TREE)],
                          capture_output=True, text=True, env={**os.environ, "HARDGRAD_BUILD": BUILD})
    assert done.returncode == 0, done.stderr
    (file,) = folder.iterdir()
    return file


def test_a_wheel_holds_the_package(wheel):
    assert wheel.name.startswith(f"hardgrad-0.2.0-cp3{sys.version_info[1]}-") and "linux" in wheel.name
    held = {name.split("/")[-1] for name in zipfile.ZipFile(wheel).namelist() if name.startswith("hardgrad/")}
    ours = {path.name for path in (TREE / "experiments/python/src/hardgrad").iterdir() if path.name != "__pycache__"}
    assert ours <= held and {"hardgrad", "report.py"} <= held and any(name.startswith("_core.") and name.endswith(".so") for name in held) and len(ours) >= 8


def test_an_installed_package_works_elsewhere(wheel, tmp_path):
    place = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(place), str(wheel)], check=True, capture_output=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONPATH": str(place)}
    said = subprocess.run([sys.executable, "-c", "import hardgrad; print(hardgrad.__file__, hardgrad.moments([0.0, 1.0], [1, 2], 'rloo').rows)"],
                          cwd=tmp_path, capture_output=True, text=True, env=env, check=True)
    where, rows = said.stdout.split()
    assert where == str(place / "hardgrad" / "__init__.py") and float(rows) == pytest.approx(4)

    def ran(*command):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, check=True).stdout

    sweep = "import hardgrad; print(hardgrad.run({'name': 'two', 'grid': {'task': 'bits', 'estimator': ['rloo', 'exact']}}, out='cells').sizes['run'])"
    assert ran(sys.executable, "-c", sweep) == "2\n"
    assert "done now" in ran(str(place / "bin" / "hardgrad"), "run", str(TREE / "experiments/configs/quickstart.toml"), "--only", "task=not_gate",
                             "--only", "seed=1", "--only", "estimator=rloo*", "--set", "train.steps=1", "--out", str(tmp_path / "quick"))
    assert "rloo" in ran(sys.executable, "-m", "hardgrad.analysis", "answer", "two.h5")


@pytest.mark.parametrize("of, commands", [
    ("this", [["--build", "--preset", "release", "--target", "hardgrad_python_parts"]]),
    ("another", [["--preset", "release", "--fresh"], ["--build", "--preset", "release", "--target", "hardgrad_python_parts"]]),
    (None, [["--preset", "release"], ["--build", "--preset", "release", "--target", "hardgrad_python_parts"]])])
def test_a_build_of_another_tree_is_configured_afresh(of, commands, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TREE / "experiments/python"))
    import backend
    build = tmp_path / "this" / "build" / "release"
    build.mkdir(parents=True)
    (tmp_path / "another").mkdir()
    if of:
        (build / "CMakeCache.txt").write_text(f"CMAKE_GENERATOR:INTERNAL=Ninja\nCMAKE_HOME_DIRECTORY:INTERNAL={tmp_path / of}\n")
        (build / "hardgrad-parts.cmake").touch()
    ran = []
    monkeypatch.setattr(backend, "TREE", tmp_path / "this")
    monkeypatch.setattr(backend.subprocess, "run", lambda command, **named: ran.append(command))
    assert backend.build_core("cmake") == build and ran == [["cmake", *command] for command in commands]
    monkeypatch.undo()  # the patched subprocess module is global
    assert subprocess.run([backend.chosen_cmake(), "--version"], capture_output=True).returncode == 0
