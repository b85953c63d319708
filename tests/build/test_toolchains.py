"""Other toolchains build the program and C++ tests without a warning: clang, and a cross compiler for AArch64, whose programs qemu runs.
Their exact moments are those of this build up to rounding."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from libraries import COMPILERS
from rounding import close

TREE = Path(__file__).resolve().parents[2]
CMAKE = os.environ["HARDGRAD_CMAKE"]
LEAST = COMPILERS["Clang"]
TESTS = ("autodiff", "nn", "choice", "random", "settings", "support")
TARGETS = ["hardgrad", *(f"test_{name}" for name in TESTS)]
EXACT = ("measure", "--task", "bits", "--exact", "--json")


def run(*command, **environment):
    done = subprocess.run(
        [str(word) for word in command], cwd=TREE, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def agrees(build, targets, *emulator):
    for target in targets:
        if target != "hardgrad":
            counts = re.search(r"test cases: +(\d+) \| +(\d+) passed", run(*emulator, build / "tests/core" / target))
            assert int(counts[1]) == int(counts[2]) > 0, target
    there, here = (
        json.loads(run(*program, *EXACT)) for program in ((*emulator, build / "hardgrad"), (os.environ["HARDGRAD_BINARY"],))
    )
    assert len(here["results"]) > 40
    assert close(there, here, 1e-9)


def least_clang():
    """The oldest clang here that is new enough: (version, path), or None."""
    found = []
    for name in ("clang++", *(f"clang++-{version}" for version in range(LEAST, LEAST + 20))):
        if path := shutil.which(name):
            version = int(run(path, "-dumpversion").split(".")[0])
            found += [(version, path)] if version >= LEAST else []
    return min(found, default=None)


def test_clang(tmp_path):
    if not (clang := least_clang()):
        pytest.skip(f"clang {LEAST} or later is not installed")
    run(
        CMAKE,
        "--preset",
        "release",
        "-B",
        tmp_path,
        "-D",
        f"CMAKE_CXX_COMPILER={clang[1]}",
        "-D",
        "CMAKE_BUILD_TYPE=RelWithDebInfo",
        "-D",
        "CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -Werror",
        "-D",
        "HARDGRAD_PYTHON_PACKAGE=OFF",
        "-D",
        "HARDGRAD_BENCHMARKS=OFF",
        "-D",
        "CMAKE_DISABLE_PRECOMPILE_HEADERS=ON",  # an #include that is missing shows
    )
    run(CMAKE, "--build", tmp_path, "--parallel", len(os.sched_getaffinity(0)), "--target", *TARGETS)
    agrees(tmp_path, TARGETS)


def test_aarch64():
    said = run("bash", "experiments/install/aarch64.sh", *TARGETS, CXXFLAGS="-Werror")
    if skipped := re.search("SKIPPED: (.*)", said):
        pytest.skip(skipped[1])
    assert said.endswith("vectors of arm64+neon\n"), said
    agrees(TREE / "build/aarch64/build", TARGETS, "qemu-aarch64", "-L", TREE / "build/aarch64/system")
