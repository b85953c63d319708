"""Other processors, emulated by qemu: a portable build runs on them, a native build reports an error."""

import json
import os
import shutil
import subprocess

import pytest
from program import BINARY, run
from rounding import close

PORTABLE = os.environ["HARDGRAD_PORTABLE"] == "1"
QEMU = shutil.which("qemu-x86_64")
# {processor: vector extension of the best supported level of x86-64}
PROCESSORS = {"Nehalem": "sse2", "Haswell": "fma3+avx2"}

emulation = pytest.mark.skipif(QEMU is None, reason="qemu-x86_64 (package qemu-user) is not installed")
portable = pytest.mark.skipif(not PORTABLE, reason="a native build")
native = pytest.mark.skipif(PORTABLE, reason="a portable build")


def emulated(processor, *arguments, status=0):
    done = subprocess.run([QEMU, "-cpu", processor, BINARY, *arguments], capture_output=True, text=True, timeout=3000)
    assert done.returncode == status, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    # qemu warns of features that it cannot emulate.
    return done.stdout, [line for line in done.stderr.splitlines() if not line.startswith("qemu-x86_64: warning: ")]


@emulation
@portable
@pytest.mark.parametrize("processor", PROCESSORS)
def test_every_level_gives_the_same_numbers(processor):
    assert emulated(processor, "--version")[0].endswith(f"vectors of {PROCESSORS[processor]}\n")
    measure = ("measure", "--task", "bits", "--estimator", "rloo", "--estimator", "arm", "--exact", "--json")
    assert close(json.loads(emulated(processor, *measure)[0]), json.loads(run(*measure).stdout), 1e-9)
    gradient = (
        "gradient",
        "--task",
        "translation[examples=40,max_length=6]",
        "--model",
        "translator[embedding=8,hidden=24]",
        "--estimator",
        "rloo[samples=2]",
        "--batch",
        "2",
        "--precision",
        "double",
        "--repeat",
        "1",
        "--json",
    )
    there, here = (json.loads(text) for text in (emulated(processor, *gradient)[0], run(*gradient).stdout))
    assert there["timing"]["instruction_set"] == PROCESSORS[processor]
    assert close(there, here, 1e-9)


@portable
def test_the_best_level_of_this_processor_is_taken():
    flags = set(next(line for line in open("/proc/cpuinfo") if line.startswith("flags")).split())
    best = (
        "avx512bw"
        if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags
        else "fma3+avx2"
        if {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"} <= flags
        else "sse2"
    )
    assert run("--version").stdout.endswith(f"vectors of {best}\n")


@emulation
@native
def test_a_native_build_refuses_an_older_processor():
    if run("--version").stdout.endswith("vectors of sse2\n"):
        pytest.skip("Nehalem supports all instructions of this build")
    out, errors = emulated("Nehalem", "list", status=2)
    assert not out and len(errors) == 1
    assert errors[0].startswith("hardgrad: error: built for a processor with avx, which this one lacks")
