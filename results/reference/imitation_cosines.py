#!/usr/bin/python3
"""What imitation follows, at the networks that recall_imitation.toml has saved: cosines at the parameters of the indexer of the
gradient of the imitation to the exact gradient of the expected loss of two keys. `python3 -m analysis remake` calls it and keeps
the numbers in the study's file.

    results/reference/imitation_cosines.py results/recall_imitation-run results/recall_imitation.h5 [--hardgrad PROGRAM]

Prints for each of `cosine_all` (imitation of all keys) and `cosine_picked` (of the two that the indexer ranks highest) a number a run.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from program import columns

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.errors import InputError  # noqa: E402
from analysis.program import asked  # noqa: E402

READS = "transformer[layers=1,picks=2,share=true,scorer=indexer"
LOSS = (READS + "]", "exact")
IMITATION = {
    "cosine_all": (READS + ",law=top,imitation=1]", "soft"),
    "cosine_picked": (READS + ",law=top,imitation=1,over=picked]", "soft"),
}
EXAMPLES = 64


def gradient(hardgrad, checkpoint, model, estimator):
    """At the indexer, as one vector. InputError if the program fails."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gradient.h5"
        words = ["--checkpoint", str(checkpoint), "--model", model, "--estimator", estimator, "--batch", str(EXAMPLES)]
        asked(hardgrad, "gradient", *words, "--precision", "double", "--out", str(file))
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
    for file, reason, *labels in columns(options.result, "checkpoint", "reason", "model", "estimator", "train.steps", "seed"):
        run = "{}, {}, {} steps, seed {}".format(*labels)
        checkpoint = options.folder / "cells" / file
        if not checkpoint.is_file():
            raise SystemExit(f"{run}: the run has no checkpoint: {reason or 'it was not saved'}")
        try:
            loss = gradient(options.hardgrad, checkpoint, *LOSS)
            others = {name: gradient(options.hardgrad, checkpoint, *of) for name, of in IMITATION.items()}
        except InputError as error:
            raise SystemExit(f"{run}: {error}") from error
        for name, other in others.items():
            found[name].append(float(loss @ other / np.linalg.norm(loss) / np.linalg.norm(other)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
