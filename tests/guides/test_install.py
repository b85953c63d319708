"""The files of experiments/install agree with the build's list of libraries, with the set-up, and with each other. The array scripts
are run by tests/slurm, the recipes by tests/build."""

import re
import subprocess

import recipes
from libraries import LIBRARIES
from test_links import TREE, git_files, links

PAGE = recipes.INSTALL / "README.md"
#: Packages of Debian that are neither a library nor python3-NAME, by their names in conda-forge.
OTHERS = {
    "cmake": "cmake",
    "ninja-build": "ninja",
    "g++": "cxx-compiler",
    "ccache": "ccache",
    "git": "git",
    "hdf5-tools": "hdf5",
    "python3": "python",
    "python3-dev": "python",
    "clang-format": "clang-format",
}


def debian() -> set[str]:
    """The packages that the set-up installs for the build and the default tests."""
    asked = '. experiments/setup.sh; printf "%s\\n" "${hardgrad_packages[@]}" "${hardgrad_test_packages[@]}"'
    return set(subprocess.run(["bash", "-c", asked], cwd=TREE, capture_output=True, text=True, check=True).stdout.split())


def conda() -> dict[str, str]:
    """{package: constraint} of environment.yml."""
    text = (recipes.INSTALL / "environment.yml").read_text()
    packages = re.findall(r"^  - ([\w-]+)(\S*)$", text, re.M)
    assert len(packages) == len(re.findall(r"^ +- ", text, re.M)) == len(dict(packages))
    return dict(packages)


def test_the_environment_has_every_package_and_no_other():
    wanted, constraints = debian(), conda()
    assert len(wanted) >= 30
    names = {library.debian: library.conda for library in LIBRARIES} | OTHERS
    translated = {names.get(package, package.removeprefix("python3-")) for package in wanted}
    assert translated - {"none"} == constraints.keys()
    least = {library.conda: f">={library.least}" for library in LIBRARIES if library.conda != "none"}
    assert {name: constraints[name].split(",")[0] for name in least} == least
    unavailable = [library.name for library in LIBRARIES if library.conda == "none"]
    assert len(least) + len(unavailable) == len(LIBRARIES)
    comment = (recipes.INSTALL / "environment.yml").read_text().splitlines()[0]
    assert unavailable and all(name in comment for name in unavailable)


def test_both_recipes_run_the_same_commands():
    docker, apptainer = recipes.docker(), recipes.apptainer()
    assert docker == apptainer
    assert re.fullmatch(r"debian:\d+", docker.base) and len(docker.commands) >= 4
    scripts = [word for command in docker.commands for word in command.split() if word.endswith(".sh")]
    assert "experiments/quickstart.sh" in scripts and all((TREE / script).is_file() for script in scripts)
    for command in docker.commands:
        subprocess.run(["bash", "-n"], input=command, text=True, check=True)


def test_the_page_is_short_and_names_every_file():
    text = PAGE.read_text("utf-8")
    assert len(text.split()) <= 900
    files = git_files("--", "experiments/install") or [path for path in recipes.INSTALL.rglob("*") if path.is_file()]
    linked = {(PAGE.parent / link.partition("#")[0]).resolve() for link in links(text)}
    others = [path for path in files if path != PAGE]
    assert len(others) >= 7 and [path for path in others if path not in linked] == []


def test_versions_agree():
    """A release names its version in three files."""
    (version,) = re.findall(r"^project\(hardgrad VERSION (\S+)", (TREE / "CMakeLists.txt").read_text(), re.M)
    assert re.findall(r"^version: (\S+)$", (TREE / "CITATION.cff").read_text(), re.M) == [version]
    assert re.findall(r"^## (\d\S+),", (TREE / "CHANGELOG.md").read_text("utf-8"), re.M)[0] == version
