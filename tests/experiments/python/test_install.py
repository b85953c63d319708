"""The wheel in HARDGRAD_WHEEL (experiments/python/wheel.sh, called by today.sh) needs nothing but Python, NumPy and glibc."""
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[3]
WHEEL = os.environ.get("HARDGRAD_WHEEL")
pytestmark = pytest.mark.skipif(not WHEEL, reason="no HARDGRAD_WHEEL: tests/experiments/python/today.sh builds one")
#: The libraries of the platform manylinux_2_36 (PEP 600); everything else must be within the wheel.
PLATFORM = r"ld-linux-x86-64|libc|libdl|libgcc_s|libm|libpthread|librt|libstdc\+\+|libutil|libz"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed") / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(folder), WHEEL], check=True,
                   capture_output=True)
    return folder


@pytest.fixture
def ran(place, tmp_path):
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")} | {"PYTHONPATH": str(place)}

    def run(*command):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, check=True).stdout
    return run


def test_the_wheel_holds_the_package():
    assert re.search(rf"hardgrad-[0-9.]+-cp3{sys.version_info[1]}-cp3{sys.version_info[1]}-manylinux_2_\d\d_", Path(WHEEL).name)
    held = set(zipfile.ZipFile(WHEEL).namelist())
    ours = {f"hardgrad/{path.name}" for path in (TREE / "experiments/python/src/hardgrad").glob("*.py*")}
    ours |= {f"hardgrad/{path.relative_to(TREE)}" for path in (TREE / "analysis").rglob("*.py")}
    assert len(ours) > 50 and ours | {"hardgrad/py.typed", "hardgrad/bin/hardgrad"} <= held
    cores = {name for name in held if "/libhardgrad_core" in name}
    assert {re.search(r"x86-64-v\d|$", name)[0] for name in cores} == {"", "x86-64-v3", "x86-64-v4"}, cores
    assert Path(WHEEL).stat().st_size < 40e6


def test_an_installed_package_works_elsewhere(place, ran):
    where, rows = ran(sys.executable, "-c", "import hardgrad; print(hardgrad.__file__, hardgrad.moments([0.0, 1.0], [1, 2], 'rloo').rows)").split()
    assert where == str(place / "hardgrad" / "__init__.py") and float(rows) == pytest.approx(4)
    sweep = "import hardgrad; print(hardgrad.run({'name': 'two', 'grid': {'task': 'bits', 'estimator': ['rloo', 'exact']}}, out='cells').sizes['run'])"
    assert ran(sys.executable, "-c", sweep) == "2\n"
    assert "rloo" in ran(sys.executable, "-m", "hardgrad.analysis", "answer", "two.h5")
    assert "done now" in ran(str(place / "bin" / "hardgrad"), "run", str(TREE / "experiments/configs/quickstart.toml"), "--only", "task=not_gate",
                             "--only", "seed=1", "--only", "estimator=rloo*", "--set", "train.steps=1", "--out", "quick")


def test_every_library_comes_with_the_wheel(place, ran):
    """`ldd` of the module and of the program: from the wheel, or of the platform."""
    (module,) = (place / "hardgrad").glob("_core.*.so")
    for binary in (module, place / "hardgrad" / "bin" / "hardgrad"):
        needed = re.findall(r"(?:=>|^\s+) ?(/\S+|not found)", ran("ldd", str(binary)), re.MULTILINE)
        outside = [path for path in needed if not path.startswith(str(place))]
        assert len(needed) - len(outside) >= 5
        assert all(re.match(rf"({PLATFORM})\.so", Path(path).name) for path in outside), outside
