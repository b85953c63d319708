"""The commands that install a wheel, of the Install page and of wheel.sh, run in bash as they are printed: pip understands them."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[3]
PAGE = (TREE / "experiments/install/README.md").read_text()
NAME = "hardgrad-0.0.1-cp311-cp311-manylinux_2_28_x86_64.whl"


def commands():
    """Each as (command, the folder of its wheel)."""
    found = re.findall(r"^(\S*(?:python -m pip|/pip) install .*\[analysis\].*)$", PAGE, re.M)
    script = (TREE / "experiments/python/wheel.sh").read_text()
    echo = re.search(r'^ *echo "install it: (.*)"$', script, re.M)[1]
    wheel = f"build/wheels/{NAME}"
    found.append(
        subprocess.run(["bash", "-c", f'python=python wheel={wheel}; echo "{echo}"'], capture_output=True, text=True).stdout
    )
    return [(command.strip(), "build/wheels" if "build/wheels" in command else ".") for command in found]


def test_what_is_printed():
    assert [where for _, where in commands()] == ["build/wheels", ".", "build/wheels"]
    for command, _ in commands():  # in quotes: bash and zsh take [analysis] for a set of characters
        assert re.search(r' "[^"]*\[analysis\]"$', command), command


@pytest.mark.parametrize("command, where", commands(), ids=["page", "cluster", "wheel.sh"])
def test_pip_finds_the_wheel_and_its_extra(command, where, tmp_path):
    folder = tmp_path / where
    folder.mkdir(parents=True, exist_ok=True)
    tag = f"cp3{sys.version_info[1]}"
    about = "hardgrad-0.0.1.dist-info"
    with zipfile.ZipFile(folder / NAME.replace("cp311", tag), "w") as wheel:
        wheel.writestr("hardgrad/__init__.py", "")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: hardgrad\nVersion: 0.0.1\nProvides-Extra: analysis\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\n")
        wheel.writestr(f"{about}/RECORD", "")
    asked = re.sub(r"^\S*(python -m pip|/pip) ", f"{sys.executable} -m pip ", command.replace("cp311", tag))
    quiet = {"DRY_RUN": "1", "NO_DEPS": "1", "NO_INDEX": "1", "BREAK_SYSTEM_PACKAGES": "1", "DISABLE_PIP_VERSION_CHECK": "1"}
    env = {**os.environ, **{f"PIP_{name}": value for name, value in quiet.items()}}
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, cwd=tmp_path, env=env)
    if "No module named pip" in done.stderr:
        pytest.skip("this Python has no pip")
    assert done.returncode == 0 and "Would install hardgrad-0.0.1" in done.stdout, done.stdout + done.stderr
    assert "does not provide the extra" not in done.stderr
