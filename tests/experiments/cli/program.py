"""Runs the binary as a user would."""
import json
import os
import subprocess

BINARY = os.environ.get("HARDGRAD_BINARY", "build/release/hardgrad")


def environment(**changes):
    return os.environ | changes


def run(*arguments, status=0, cwd=None, **env):
    """The finished process; its exit status must be `status`, and an error that is no result (of check, status) must be one line."""
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=3000,
                          env=environment(**env))
    assert done.returncode == status, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    if status in (2, 3) and not done.stdout:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("hardgrad: warning: ")]
        assert len(lines) == 1 and lines[0].startswith("hardgrad: "), done.stderr
    return done


def refusal(*arguments, status=2, **options):
    return run(*arguments, status=status, **options).stderr.strip().removeprefix("hardgrad: ")


def as_json(*arguments, status=0, **options):
    """What is printed must be pure JSON, without the NaN and Infinity that JSON lacks."""
    def no_constant(text):
        raise AssertionError(f"{text} is no JSON")
    return json.loads(run(*arguments, "--json", status=status, **options).stdout, parse_constant=no_constant)
