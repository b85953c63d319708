"""The benchmark without PyTorch: its rows, and a clear message."""
import os
import subprocess
import sys
from pathlib import Path

from rows import rows

HERE = Path(__file__).resolve().parent


def test_without_pytorch_it_says_what_to_install(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    done = subprocess.run([sys.executable, HERE / "benchmark.py", "--quick"], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines() == [
        f"benchmark: no PyTorch in {sys.executable}; on Debian: apt-get install python3-torch, and run this with /usr/bin/python3; "
        "or --venv FOLDER makes an environment with PyTorch 2 and JAX"]


def test_every_network_with_a_twin_has_a_row(tmp_path):
    references = {path.stem for path in (HERE / "references").glob("*.py")} - {"__init__", "layers"}
    for quick in (True, False):
        assert references <= {row.model.split("[")[0] for row in rows(tmp_path, quick)}
