"""Calls of the program, and the runs of a merged result."""
import json
import subprocess

import h5py


def run(binary, *arguments):
    """The JSON output of a verb; exits with its error message if there is none."""
    done = subprocess.run([binary, *arguments, "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def columns(result, *names):
    """The labels of these names for each run, as text."""
    with h5py.File(result) as f:
        return list(zip(*([x.decode() if isinstance(x, bytes) else str(x) for x in f[name][()]] for name in names)))
