"""Without PyTorch the benchmark ends with a clear message."""
import os
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).with_name("benchmark.py")


def test_without_pytorch_it_says_what_to_install(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    done = subprocess.run([sys.executable, BENCHMARK, "--quick"], capture_output=True, text=True, 
                          env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines() == [
        f"benchmark: no PyTorch in {sys.executable}; on Debian: apt-get install python3-torch, and run this with /usr/bin/python3; "
        "or --venv FOLDER makes an environment with PyTorch 2 and JAX"]
