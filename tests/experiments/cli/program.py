"""Runs the binary as a user would."""

import json
import os
import re
import subprocess

BINARY = os.environ.get("HARDGRAD_BINARY", "build/release/hardgrad")


def environment(**changes):
    return os.environ | changes


def run(*arguments, status=0, cwd=None, **env):
    """Runs the program and returns the finished process. Its exit status must be `status`; an error message must be one line, unless it is
    a result (of check, status)."""
    done = subprocess.run(
        [BINARY, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=3000, env=environment(**env)
    )
    assert done.returncode == status, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    if status in (2, 3) and not done.stdout:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("hardgrad: warning: ")]
        assert len(lines) == 1 and lines[0].startswith("hardgrad: "), done.stderr
    return done


def refusal(*arguments, status=2, **options):
    return run(*arguments, status=status, **options).stderr.strip().removeprefix("hardgrad: ")


def as_json(*arguments, status=0, **options):
    """The parsed output, which must be strict JSON, without NaN and Infinity."""

    def no_constant(text):
        raise AssertionError(f"{text} is not in JSON")

    return json.loads(run(*arguments, "--json", status=status, **options).stdout, parse_constant=no_constant)


def records(folder):
    """[(file, first byte, the byte after the last)] of the finished cells of a sweep."""
    found = []
    for path in sorted((folder / "cells").glob("*.cells")):
        starts = [match.start() for match in re.finditer(rb"HARDGRAD-CELL version=", path.read_bytes())]
        found += [(path, *ends) for ends in zip(starts, [*starts[1:], path.stat().st_size])]
    return found


def damage(record):
    """Flips a bit in the middle of a record's numbers."""
    path, start, end = record
    with open(path, "r+b") as file:
        file.seek((start + end) // 2)
        byte = file.read(1)[0]
        file.seek((start + end) // 2)
        file.write(bytes([byte ^ 1]))
