"""The package itself: its registry is the program's, its stub is complete, its help is complete, and PyTorch is optional."""

import inspect
import json
import os
import pydoc
import re
import subprocess
import sys

import pytest

import hardgrad
from problem import program

FOLDER = os.path.dirname(os.path.realpath(hardgrad.__file__))


def test_the_registry_is_the_programs():
    listed = json.loads(program("list", "estimators", "--json"))
    assert hardgrad.estimators() == [entry["name"] for entry in listed] and len(listed) >= 59
    for entry in listed:
        assert hardgrad.describe(entry["name"] if entry["name"] != "soft" else "estimator:soft") == entry
    assert hardgrad.describe("LOORF")["name"] == "rloo"
    assert hardgrad.describe("model:bits") == json.loads(program("describe", "model:bits", "--json"))
    assert hardgrad.describe("elbo")["kind"] == "target"


def test_the_version_is_the_programs():
    assert program("--version").startswith(f"hardgrad {hardgrad.__version__},")


def test_help_suffices():
    text = pydoc.plain(pydoc.render_doc(hardgrad))
    described = 0
    for name in hardgrad.__all__:
        thing = getattr(hardgrad, name)
        assert name in text
        if not (isinstance(thing, type) and issubclass(thing, BaseException)):
            assert thing.__doc__ and len(thing.__doc__) > 40, name
            described += 1
        elif thing is not hardgrad.Error:
            assert issubclass(thing, hardgrad.Error)
        assert thing.__module__.startswith("hardgrad")
    assert described >= 8
    for function in (hardgrad.moments, hardgrad.gradient, hardgrad.measure, hardgrad.run):
        for parameter in inspect.signature(function).parameters:
            assert parameter in function.__doc__, (function, parameter)


def test_the_stub_of_the_core_is_the_core():
    from hardgrad import _core

    with open(os.path.join(FOLDER, "_core.pyi")) as stub:
        text = stub.read()
    public = [name for name in dir(_core) if not name.startswith("_")]
    assert len(public) >= 12
    for name in public:
        written = f"class {name}" in text or f"def {name}(" in text or f"\n{name} = " in text
        assert written, name


def test_without_pytorch():
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.modules['torch'] = None; import hardgrad\n"
            "print(hardgrad.moments([0.0, 0.5], [1.0, 2.0], 'rloo').bias.tolist())\n"
            "assert not any(name == 'torch' or name.startswith('torch.') for name in sys.modules if sys.modules[name])\n"
            "import hardgrad.torch",
        ],
        capture_output=True,
        text=True,
    )
    assert eval(said.stdout) == pytest.approx([0, 0], abs=1e-12)
    assert said.returncode == 1 and "ModuleNotFoundError" in said.stderr and "torch" in said.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "there, said",
    [([], "not built for this Python: "), (["_core.cpython-399-x86_64-linux-gnu.so"], "found _core.cpython-399-.*, which")],
)
def test_without_the_module_a_sentence_says_what_to_build(there, said, tmp_path):
    """As after the quick start, which builds only the program; or with a module of another Python."""
    (tmp_path / "hardgrad").mkdir()
    for entry in os.scandir(FOLDER):
        if entry.name.endswith(".py"):
            (tmp_path / "hardgrad" / entry.name).symlink_to(entry.path)
    for name in there:
        (tmp_path / "hardgrad" / name).touch()
    done = subprocess.run(
        [sys.executable, "-c", "import hardgrad"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    last = done.stderr.splitlines()[-1]
    assert (
        done.returncode == 1 and re.search(f"^ImportError: hardgrad is .*{said}", last) and "--target hardgrad_python" in last
    ), done.stderr
    assert "another exception" not in done.stderr and "direct cause" not in done.stderr
