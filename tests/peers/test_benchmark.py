"""The benchmark without PyTorch: its rows, and a clear message."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import mkl
import pytest

from bounds import CAUSES, cells, goal_of, measured, plain_name
from rows import rows

HERE = Path(__file__).resolve().parent


def test_without_pytorch_it_says_what_to_install(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    done = subprocess.run(
        [sys.executable, HERE / "benchmark.py", "--quick"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines() == [
        f"benchmark: no PyTorch in {sys.executable}; on Debian: apt-get install python3-torch, and run this with /usr/bin/python3; "
        "or --venv FOLDER makes an environment with PyTorch 2 and JAX"
    ]


def test_every_network_with_a_twin_has_a_row(tmp_path):
    references = {path.stem for path in (HERE / "references").glob("*.py")} - {"__init__", "layers"}
    for quick in (True, False):
        assert references <= {row.model.split("[")[0] for row in rows(tmp_path, quick)}


def test_every_row_that_misses_its_goal_has_its_bound(tmp_path):
    missed = [(line.name, line.estimator) for line in measured() if line.missed]
    listed = [(name, plain_name(estimator)) for name, estimator, *_ in cells("## Rows that miss their goal", CAUSES)]
    assert listed == missed
    assert set(missed) <= {(row.name, row.estimator) for row in rows(tmp_path, False)}


def test_goals_and_bounds_of_the_pages_agree():
    lines = {(line.name, line.estimator): line for line in measured()}
    for name, estimator, goal, _, _, ms, most, _ in cells("## Rows that miss their goal", CAUSES):
        line = lines[name, plain_name(estimator)]
        if most == "-":  # its products are not counted
            assert float(goal) == goal_of(None)
            continue
        figures = [float(figure) for figure in most.split(", ")]
        assert float(goal) == pytest.approx(goal_of(figures[1]), rel=0.01), (name, estimator)
        assert figures == pytest.approx([line.peer_ms() / float(one) for one in ms.split(", ")], rel=0.01), (name, estimator)


def test_mkl_is_told_that_the_processor_is_its_own(tmp_path):
    amd, intel = "vendor_id\t: AuthenticAMD\n", "vendor_id\t: GenuineIntel\n"
    with_mkl, without = {"mkl": True, "sgemm": 1e11}, {"mkl": False, "sgemm": 1e11}
    assert mkl.needed(with_mkl, amd)
    assert not any(mkl.needed(*pair) for pair in [(with_mkl, intel), (without, amd), ({}, amd), (with_mkl, "")])
    assert mkl.build(tmp_path, "no-such-compiler") is None
    if shutil.which("cc"):
        assert ctypes.CDLL(str(mkl.build(tmp_path))).mkl_serv_intel_cpu_true() == 1
    assert "100 to 250 GFLOP/s" in mkl.told("torch 2.13.0", with_mkl, with_mkl | {"sgemm": 2.5e11})
    assert "no C compiler" in mkl.told("torch 2.13.0", with_mkl, None)


def test_a_goal_is_no_higher_than_arithmetic_allows():
    assert goal_of(None) == goal_of(5.0) == 1.3
    assert goal_of(1.28) == pytest.approx(0.85 * 1.28)
