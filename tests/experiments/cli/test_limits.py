"""Memory limits of the shell. A low limit is reported before any library starts: OpenBLAS 0.3.29 loops for ever with too little."""

import resource
import subprocess

import pytest

from program import BINARY

pytestmark = pytest.mark.skipif("sanitize" in BINARY, reason="sanitizers reserve terabytes of address space")


def limited(which, size, *arguments):
    return subprocess.run(
        [BINARY, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(which, (size, size)),
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("measure", "--task", "bits", "--exact"),
        ("gradient", "--task", "bits", "--estimator", "exact", "--repeat", "1"),
        ("test", "not_gate"),
        ("run", "experiments/configs/quickstart.toml"),
        ("plan", "experiments/configs/quickstart.toml"),
        ("evaluate", "--checkpoint", "a.ckpt"),
        ("describe", "rloo"),
    ],
)
@pytest.mark.parametrize("megabytes", [120, 150, 250, 400])
def test_too_little_address_space_is_said(arguments, megabytes):
    done = limited(resource.RLIMIT_AS, megabytes << 20, *arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("hardgrad: the address space is limited to ") and "`ulimit -v unlimited`" in done.stderr


def test_a_small_stack_is_said():
    done = limited(resource.RLIMIT_STACK, 512 << 10, "measure", "--task", "bits", "--exact")
    assert done.returncode == 2 and "the stack of a thread is limited to " in done.stderr


def test_a_gigabyte_or_two_are_enough():
    assert limited(resource.RLIMIT_AS, 2 << 30, "measure", "--task", "bits", "--estimator", "rloo", "--exact").returncode == 0
