"""The program as a script asks it, and the runs of a merged result."""
import json
import subprocess

import h5py


def run(binary, *arguments):
    """What a verb says with --json; ends with its message where it says nothing."""
    done = subprocess.run([binary, *arguments, "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def columns(result, *names):
    """Of each run its labels of these names."""
    with h5py.File(result) as f:
        return list(zip(*([x.decode() for x in f[name][()]] for name in names)))
