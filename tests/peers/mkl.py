"""MKL takes its slow path on processors that are not Intel's. It asks the function `mkl_serv_intel_cpu_true`, which a preloaded library
can answer."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

SOURCE = "int mkl_serv_intel_cpu_true(void)\n{ return 1; }\n"


def needed(about: dict, cpuinfo: str) -> bool:
    """Whether the library of `about` (its version and kernels) has MKL on a processor that is not Intel's."""
    vendor = re.search(r"^vendor_id\s*: (\w+)", cpuinfo, re.M)  # x86 only
    return bool(about.get("mkl") and vendor and vendor[1] != "GenuineIntel")


def build(folder: Path, compiler: str = "cc") -> Path | None:
    """-> the library to preload; None if there is no compiler."""
    source, library = folder / "mkl_serv_intel_cpu_true.c", folder / "mkl_serv_intel_cpu_true.so"
    source.write_text(SOURCE)
    try:
        made = subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], capture_output=True)
    except OSError:
        return None
    return None if made.returncode else library


def told(name: str, before: dict, after: dict | None) -> str:
    """A line for the head of the table."""
    if after is None:
        return f"{name}: MKL has its slow path here, {before['sgemm'] / 1e9:.0f} GFLOP/s, since there is no C compiler"
    return (
        f"{name}: MKL was given its fast path (mkl_serv_intel_cpu_true preloaded): sgemm "
        f"{before['sgemm'] / 1e9:.0f} to {after['sgemm'] / 1e9:.0f} GFLOP/s"
    )
