"""The wheel in HARDGRAD_WHEEL (experiments/python/wheel.sh, called by today.sh) needs nothing but Python, NumPy and an old glibc, and has
all that a plugin needs."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "support"))
import plugin_headers

TREE = Path(__file__).resolve().parents[3]
WHEEL = os.environ.get("HARDGRAD_WHEEL")
pytestmark = pytest.mark.skipif(not WHEEL, reason="no HARDGRAD_WHEEL: tests/experiments/python/today.sh builds one")
#: The libraries of the platform manylinux_2_28 (PEP 600), and their newest symbols; everything else must be within the wheel.
PLATFORM = r"ld-linux-x86-64|libc|libdl|libgcc_s|libm|libpthread|librt|libstdc\+\+|libutil|libz"
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0), "ZLIB": (1, 2, 9)}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed") / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(folder), WHEEL],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def ran(place, tmp_path):
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")} | {
        "PYTHONPATH": str(place)
    }

    def run(*command):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, check=True).stdout

    return run


def test_the_wheel_holds_the_package():
    assert re.search(
        rf"hardgrad-[0-9.]+-cp3{sys.version_info[1]}-cp3{sys.version_info[1]}-(manylinux_2_\d\d_x86_64\.)*manylinux_2_28_x86_64\.whl$",
        Path(WHEEL).name,
    )
    held = set(zipfile.ZipFile(WHEEL).namelist())
    source = TREE / "experiments/python/src"
    ours = {str(path.relative_to(source)) for path in source.rglob("*.py*") if "__pycache__" not in path.parts}
    ours |= {f"hardgrad/{path.relative_to(TREE)}" for path in (TREE / "analysis").rglob("*.py")}
    ours |= {f"hardgrad/include/hardgrad/{header}" for header in plugin_headers.closure()}
    assert len(ours) > 150 and ours | {"hardgrad/py.typed", "hardgrad/_core.pyi", "hardgrad/bin/hardgrad"} <= held
    assert {
        f"hardgrad/{name}"
        for name in (
            "include/hardgrad/plugin.hpp",
            "include/hardgrad/core/abi.hpp",
            "include/hardgrad/experiments/tasks/task.hpp",
            "lib/cmake/hardgrad/hardgrad-config.cmake",
        )
    } <= held
    cores = [name for name in held if "/libhardgrad_core" in name]
    assert sorted(re.search(r"x86-64-v\d|$", name)[0] for name in cores) == ["", "x86-64-v3", "x86-64-v4"], cores
    assert Path(WHEEL).stat().st_size < 40e6


def test_an_installed_package_works_elsewhere(place, ran):
    where, rows = ran(
        sys.executable, "-c", "import hardgrad; print(hardgrad.__file__, hardgrad.moments([0.0, 1.0], [1, 2], 'rloo').rows)"
    ).split()
    assert where == str(place / "hardgrad" / "__init__.py") and float(rows) == pytest.approx(4)
    sweep = "import hardgrad; print(hardgrad.run({'name': 'two', 'grid': {'task': 'bits', 'estimator': ['rloo', 'exact']}}, out='cells').sizes['run'])"
    assert ran(sys.executable, "-c", sweep) == "2\n"
    assert "rloo" in ran(sys.executable, "-m", "hardgrad.analysis", "answer", "two.h5")
    assert "done now" in ran(
        str(place / "bin" / "hardgrad"),
        "run",
        str(TREE / "experiments/configs/quickstart.toml"),
        "--only",
        "task=not_gate",
        "--only",
        "seed=1",
        "--only",
        "estimator=rloo*",
        "--set",
        "train.steps=1",
        "--out",
        "quick",
    )


def test_every_library_comes_with_the_wheel(place, ran):
    """`ldd` of the module and of the program: from the wheel, or of the platform."""
    (module,) = (place / "hardgrad").glob("_core.*.so")
    for binary in (module, place / "hardgrad" / "bin" / "hardgrad"):
        needed = re.findall(r"(?:=>|^\s+) ?(/\S+|not found)", ran("ldd", str(binary)), re.MULTILINE)
        outside = [path for path in needed if not path.startswith(str(place))]
        assert len(needed) - len(outside) >= 4
        assert all(re.match(rf"({PLATFORM})\.so", Path(path).name) for path in outside), outside


def test_every_library_runs_on_an_old_system(place):
    """The versions of symbols that each library, the module and the program ask for (`readelf`)."""
    binaries = [path for path in place.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    newest = {}
    for path in binaries:
        needed = subprocess.run(
            ["readelf", "--version-info", "--wide", path], check=True, capture_output=True, text=True
        ).stdout
        for family, version in re.findall(
            r"Name: ([A-Z]+)_([0-9.]+)  Flags: \S+  Version: ", needed.partition(".gnu.version_r")[2]
        ):
            number = tuple(map(int, version.split(".")))
            newest[family] = max(newest.get(family, (0,)), number)
            assert number <= NEWEST[family], f"{path.name} needs {family}_{version}"
    assert len(binaries) >= 8 and newest.keys() == NEWEST.keys(), newest


def test_a_plugin_needs_only_the_wheel_and_a_compiler(place, ran, tmp_path):
    """By flags, and by CMake: the example of an estimator, built against the wheel's headers and loaded by its program."""
    program = str(place / "hardgrad/bin/hardgrad")
    source = shutil.copy(TREE / "tests/plugin/example/median_baseline.cpp", tmp_path)
    flags = ran(program, "plugin-flags").split()
    assert flags[-2:] == [f"-I{place}/hardgrad/include", f"-I{place}/hardgrad/include/hardgrad"]
    ran(os.environ.get("CXX", "c++"), *flags, source, "-o", "mine.so")
    ran(program, "seal", "mine.so")
    assert "median_baseline: passed" in ran(program, "test", "--plugin", "mine.so")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES CXX)\n"
        "find_package(hardgrad REQUIRED)\nhardgrad_add_plugin(mine median_baseline.cpp)\n"
    )
    cmake = os.environ.get("HARDGRAD_CMAKE", "cmake")
    ran(cmake, "-S", ".", "-B", "built", f"-DCMAKE_PREFIX_PATH={ran(program, 'plugin-flags', '--prefix').strip()}")
    ran(cmake, "--build", "built")
    assert "median_baseline" in ran(program, "list", "estimators", "--plugin", "built/mine.so")
