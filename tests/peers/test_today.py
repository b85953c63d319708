"""The benchmark with the peers of today, PyTorch 2 and JAX: at small sizes every form has Hardgrad's gradients. The Python that has them
is HARDGRAD_PEERS_PYTHON, or the one that `benchmark.py --venv build/peers` makes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PYTHON = os.environ.get("HARDGRAD_PEERS_PYTHON", str(HERE.parents[1] / "build/peers/bin/python"))
pytestmark = pytest.mark.skipif(
    not os.path.exists(PYTHON), reason="no PyTorch 2 and JAX: tests/peers/benchmark.py --venv build/peers"
)
ROWS = (
    "^(translator tiny|translator ragged|memory reader|glimpse reader|8 of 3 options|transformer) rloo|^8 bits disarm|"
    "^(ponderer|tape|belief, [3tK])|^belief, 6 bits reinforce|^(memory reader|glimpse reader|belief, 6 bits): training"
)


def benchmark(tmp_path, *arguments):
    out = tmp_path / "rows.json"
    done = subprocess.run(
        [sys.executable, HERE / "benchmark.py", "--quick", "--python", PYTHON, "--json", out, *arguments],
        capture_output=True,
        text=True,
    )
    return done, json.loads(out.read_text()) if out.exists() else []


def test_every_form_has_the_same_gradients(tmp_path):
    done, rows = benchmark(tmp_path, "--forms", "plain|tuned|jit|ELBO", "--rows", ROWS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rows) == 16 and not any(row["failed"] for row in rows)
    assert all(
        any(name.startswith("torch 2") for name in row["ms"]) and any(name.startswith("jax") for name in row["ms"])
        for row in rows
    )
    assert all(0 <= row["difference"] < 1e-3 for row in rows)


def test_compiled_code_has_the_same_gradients(tmp_path):
    done, rows = benchmark(tmp_path, "--forms", "compiled", "--rows", "^8 bits disarm")
    assert done.returncode == 0, done.stdout + done.stderr
    (name,) = set(rows[0]["ms"]) - {"hardgrad"}
    assert name.endswith("compiled") and rows[0]["difference"] < 1e-3 and rows[0]["compile_seconds"][name] > 0


def test_a_form_that_does_not_compile_is_a_cell(tmp_path):
    done, rows = benchmark(tmp_path, "--forms", "plain|jit", "--rows", "^ponderer", "--compile-limit", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    (reason,) = rows[0]["failed"].values()
    assert "did not compile in 0 s" in reason and "| fails |" in done.stdout
