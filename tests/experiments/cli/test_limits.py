"""Memory limits of the shell. Verbs that compute report a low limit before they start; verbs that only read work."""
import resource
import subprocess

import pytest

from program import BINARY

pytestmark = pytest.mark.skipif("sanitize" in BINARY, reason="sanitizers reserve terabytes of address space")


def limited(which, size, *arguments):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=300,
                          preexec_fn=lambda: resource.setrlimit(which, (size, size)))


@pytest.mark.parametrize("arguments", [
    ("measure", "--task", "bits", "--exact"), ("gradient", "--task", "bits", "--estimator", "exact", "--repeat", "1"),
    ("test", "not_gate"), ("run", "experiments/configs/quickstart.toml"), ("plan", "experiments/configs/quickstart.toml"),
    ("evaluate", "--checkpoint", "a.ckpt")])
@pytest.mark.parametrize("megabytes", [120, 150, 250, 400])
def test_too_little_address_space_is_said_before_anything_is_computed(arguments, megabytes):
    done = limited(resource.RLIMIT_AS, megabytes << 20, *arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("hardgrad: the address space is limited to ") and "`ulimit -v unlimited`" in done.stderr


def test_a_small_stack_is_said():
    done = limited(resource.RLIMIT_STACK, 512 << 10, "measure", "--task", "bits", "--exact")
    assert done.returncode == 2 and "the stack of a thread is limited to " in done.stderr


def test_what_only_reads_needs_little():
    for megabytes in (150, 250):
        assert limited(resource.RLIMIT_AS, megabytes << 20, "describe", "rloo").returncode == 0
    assert limited(resource.RLIMIT_AS, 2 << 30, "measure", "--task", "bits", "--estimator", "rloo", "--exact").returncode == 0
