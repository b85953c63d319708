"""Sample files, written by the storage library's `write_storage_sample` into the folder HARDGRAD_SAMPLE."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def sample() -> Path:
    folder = os.environ.get("HARDGRAD_SAMPLE")
    if not folder:
        pytest.skip("HARDGRAD_SAMPLE is not set: run with CTest, which writes the sample files first")
    return Path(folder)


@pytest.fixture()
def result(sample, tmp_path) -> Path:
    """A copy of the sample result that a test may modify."""
    return Path(shutil.copy(sample / "result.h5", tmp_path / "result.h5"))
