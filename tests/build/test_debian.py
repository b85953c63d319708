"""The two commands and the container recipes on a new Debian 13. debootstrap makes it in the build folder; it is entered by chroot, with its
own processes and mounts."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import recipes

TREE = Path(__file__).resolve().parents[2]
SYSTEM = Path(os.environ["HARDGRAD_BUILD"]) / "debian-13"
#: Tests that need no repository and little time: about half of the default suite.
QUICK = "^(autodiff|choice|random|settings|support|storage|sweeps|tasks|training|cli: limits)"

pytestmark = pytest.mark.skipif(os.getuid() != 0 or not shutil.which("debootstrap"), reason="needs root and debootstrap")


@pytest.fixture(scope="module")
def system():
    ready = SYSTEM / "ready"
    if not ready.exists():
        shutil.rmtree(SYSTEM, ignore_errors=True)
        made = subprocess.run(["debootstrap", "--variant=minbase", "trixie", SYSTEM], capture_output=True, text=True)
        if made.returncode != 0:
            pytest.skip(f"debootstrap cannot make a Debian 13: {made.stdout[-300:]}")
        ready.touch()
    for name in "resolv.conf", "hosts":
        shutil.copy(f"/etc/{name}", SYSTEM / "etc" / name)
    return SYSTEM


def copy_tree(system, folder):
    """The files of this tree, but no build, to a folder of the system."""
    place = system / folder[1:]
    shutil.rmtree(place, ignore_errors=True)
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TREE,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for file in filter(None, files.split("\0")):
        if (TREE / file).exists():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / file, place / file)


def inside(system, folder, command, environment={}):
    """The output of a command of the shell in a folder of the system. It and its children end with this process."""
    script = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" env -i "$@"'
    variables = {"HOME": "/root", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"} | environment
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--fork",
            "--kill-child",
            "bash",
            "-c",
            script,
            system,
            *(f"{name}={value}" for name, value in variables.items()),
            "bash",
            "-ec",
            f"cd {folder}\n{command}",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, (command, done.stdout[-5000:])
    return done.stdout


def test_both_commands(system):
    copy_tree(system, "/hardgrad")
    printed = inside(system, "/hardgrad", "bash experiments/quickstart.sh")
    assert "report:  results/quickstart.html" in printed and "warning:" not in printed
    assert (system / "hardgrad/results/quickstart.html").stat().st_size > 100_000
    printed = inside(system, "/hardgrad", f"bash tests/run.sh -R '{QUICK}'")
    passed = re.search(r"100% tests passed, 0 tests failed out of (\d+)", printed)
    assert passed and int(passed[1]) > 300 and "warning:" not in printed, printed[-2000:]
    printed = inside(system, "/hardgrad", "/usr/bin/ctest --preset release -R '^plugin: out of tree$'")
    assert "100% tests passed, 0 tests failed out of 1" in printed, printed[-2000:]


def test_the_container_recipes(system):
    docker, apptainer = recipes.docker(), recipes.apptainer()
    assert docker == apptainer and docker.base == "debian:13"
    copy_tree(system, docker.folder)
    printed = [inside(system, docker.folder, command, docker.environment) for command in docker.commands]
    assert any("report:  results/quickstart.html" in text for text in printed)
    for command in (
        "hardgrad measure --task bits --exact",
        "hardgrad run experiments/configs/quickstart.toml --out /tmp/sweep --shard 1/60",
    ):
        inside(system, docker.folder, command, docker.environment)
    assert "usage: " in inside(system, "/tmp", "/usr/bin/python3 -m analysis --help", docker.environment)
