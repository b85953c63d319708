#!/usr/bin/python3
"""What imitation follows, at the networks that recall_imitation.toml has saved: cosines at the parameters of the indexer of the
gradient of the imitation to the exact gradient of the expected loss of two keys. `python3 -m analysis remake` calls it and keeps
the numbers in the study's file.

    results/reference/imitation_cosines.py results/recall_imitation-run results/recall_imitation.h5 [--hardgrad PROGRAM]

Prints for each of `cosine_all` (imitation of all keys) and `cosine_picked` (of the two that the indexer ranks highest) a number a run.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import h5py
import numpy as np
from program import columns

READS = "transformer[layers=1,picks=2,share=true,scorer=indexer"
LOSS = (READS + "]", "exact")
IMITATION = {
    "cosine_all": (READS + ",law=top,imitation=1]", "soft"),
    "cosine_picked": (READS + ",law=top,imitation=1,over=picked]", "soft"),
}
EXAMPLES = 64


def gradient(hardgrad, checkpoint, model, estimator):
    """At the indexer, as one vector."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gradient.h5"
        command = [
            hardgrad,
            "gradient",
            "--checkpoint",
            str(checkpoint),
            "--model",
            model,
            "--estimator",
            estimator,
            "--batch",
            str(EXAMPLES),
        ]
        subprocess.run([*command, "--precision", "double", "--out", str(file)], check=True, capture_output=True)
        with h5py.File(file) as found:
            return np.concatenate(
                [found["gradient"][name][()].ravel() for name in sorted(found["gradient"]) if name.startswith("index.")]
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the sweep, with its checkpoints")
    parser.add_argument("result", type=Path, help="its merged file")
    parser.add_argument("--hardgrad", default="build/release/hardgrad")
    options = parser.parse_args()
    found = {name: [] for name in IMITATION}
    for (file,) in columns(options.result, "checkpoint"):
        checkpoint = options.folder / "cells" / file
        loss = gradient(options.hardgrad, checkpoint, *LOSS)
        for name, of in IMITATION.items():
            other = gradient(options.hardgrad, checkpoint, *of)
            found[name].append(float(loss @ other / np.linalg.norm(loss) / np.linalg.norm(other)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
