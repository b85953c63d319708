"""The benchmark without PyTorch: its rows, and a clear message."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bounds import CAUSES, cells, measured, plain_name
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


def test_a_bound_is_below_the_goal_where_the_page_says_so():
    lines = {(line.name, line.estimator): line for line in measured()}
    for name, estimator, goal, _, _, ms, most, _ in cells("## Rows that miss their goal", CAUSES):
        line = lines[name, plain_name(estimator)]
        figures = [float(figure) for figure in most.split(", ")[:2]]
        assert (min(figures) < float(goal)) == ("below" in most), (name, estimator)
        assert figures == pytest.approx([line.peer_ms() / float(one) for one in ms.split(", ")], rel=0.01), (name, estimator)
