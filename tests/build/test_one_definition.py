"""The preset `one-definition`: neither the compiler (within a unit) nor the linker (between units) finds a type with two definitions.
The program runs with the standard library's assertions."""

import json
import os
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
FLAGS = next(
    preset
    for preset in json.loads((TREE / "CMakePresets.json").read_text())["configurePresets"]
    if preset["name"] == "one-definition"
)["cacheVariables"]["CMAKE_CXX_FLAGS"].split()
CMAKE = os.environ["HARDGRAD_CMAKE"]


def run(*command, cwd=TREE):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


@pytest.mark.parametrize("second,links", [("int", True), ("double", False)])
def test_a_type_defined_in_two_ways_is_refused(tmp_path, second, links):
    for name, member in ("one", "int"), ("two", second):
        (tmp_path / f"{name}.cpp").write_text(
            f"struct Twice {{ {member} value; virtual {member} get() {{ return value; }} }};\n"
            f"{member} {name}() {{ return Twice().get(); }}\n"
        )
    (tmp_path / "main.cpp").write_text("int one(); void two(); int main() { one(); }\n")
    done = subprocess.run(
        ["g++", *FLAGS, *sorted(map(str, tmp_path.glob("*.cpp"))), "-o", str(tmp_path / "program")],
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0) == links, done.stderr
    assert links or "violates the C++ One Definition Rule" in done.stderr


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    build = tmp_path_factory.mktemp("one_definition")
    run(CMAKE, "--preset", "one-definition", "-B", build)
    run(CMAKE, "--build", build, "--target", "hardgrad", "--parallel", len(os.sched_getaffinity(0)))
    return build / "hardgrad"


def test_the_program_links_and_runs(program, tmp_path):
    measured = json.loads(run(program, "measure", "--task", "bits", "--estimator", "vimco[samples=2]", "--exact", "--json"))[
        "results"
    ]
    assert measured[0]["variance"] > 0
    (tmp_path / "sweep.toml").write_text(
        '[grid]\ntask = "bits"\nestimator = ["rloo", "exact"]\n[train]\nsteps = 4\nevaluate_split = "test"\n'
        "[tune]\ntrain.learning_rate = [0.1, 0.01]\nseeds = [11]\n"
    )
    run(program, "run", tmp_path / "sweep.toml", "--out", tmp_path / "run")
    assert "passed" in run(program, "test", "straight_through")
