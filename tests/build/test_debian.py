"""The two commands on a new Debian 13. debootstrap makes it in the build folder; it is entered by chroot, with its own processes and mounts."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
SYSTEM = Path(os.environ["HARDGRAD_BUILD"]) / "debian-13"
HERE = "/hardgrad"  # the tree in that system
#: Tests that need no repository and little time: about half of the default suite.
QUICK = "^(autodiff|choice|random|settings|support|storage|sweeps|tasks|training|measurement|plugin|cli: limits)"

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
    place = SYSTEM / HERE[1:]
    for old in place.glob("*"):  # but its build, and with it ccache's work
        if old.name != "build":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TREE, capture_output=True, text=True, check=True).stdout
    for file in filter(None, files.split("\0")):
        if (TREE / file).exists():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / file, place / file)
    return SYSTEM


def inside(system, *command):
    """The output of a command in the system; it and its children end with this process."""
    script = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "${@}"'
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "bash", "-c", script, system,
                           "bash", "-c", f'cd {HERE} && "$@"', "bash", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, (command, done.stdout[-5000:])
    return done.stdout


def test_the_first_command_ends_in_a_report(system):
    printed = inside(system, "bash", "experiments/quickstart.sh")
    assert "report:  results/quickstart.html" in printed
    assert "warning:" not in printed
    assert (system / HERE[1:] / "results/quickstart.html").stat().st_size > 100_000


def test_the_second_command_passes_the_tests(system):
    printed = inside(system, "bash", "tests/run.sh", "-R", QUICK)
    assert "warning:" not in printed
    passed = re.search(r"100% tests passed, 0 tests failed out of (\d+)", printed)
    assert passed and int(passed[1]) > 300, printed[-2000:]
