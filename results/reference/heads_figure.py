#!/usr/bin/python3
"""Attention of the heads of two trained networks of recall.toml: soft, and of two keys that an indexer picks.

    results/reference/heads_figure.py --figure results/reference/heads.png

Trains both (seed 1, sixteen tokens), reads their logits with `hardgrad gradient`, and draws one sequence: dark is read, the frame is
the pair with the answer. Ten seconds.
"""

import argparse
import io
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.errors import InputError  # noqa: E402
from analysis.program import asked  # noqa: E402
from analysis.style import COLOURS  # noqa: E402
from analysis.views.attention import load_attention  # noqa: E402
from analysis.views.maps import show  # noqa: E402

CONFIG = Path(__file__).parents[2] / "experiments/configs/recall.toml"
# A network, and a model with its parameters whose logits are its attention: with picks=1 those of the soft heads.
NETWORKS = {
    "transformer[layers=1,picks=0]": "transformer[layers=1,picks=1]",
    (HARD := "transformer[layers=1,picks=2,share=true,scorer=indexer,imitation=1]"): HARD,
}
EXAMPLE = 0


def read(hardgrad, folder):
    """The attention of both networks to the same sequences. InputError if the program or a run fails."""
    found = {}
    for model, shown_by in NETWORKS.items():
        place = folder / str(len(found))
        run = ["run", str(CONFIG), "--out", str(place), "--set", "train.checkpoint=true", "--progress", "none"]
        chosen = [word for only in (f"model={model}", "seed=1", "task=*pairs=8*") for word in ("--only", only)]
        asked(hardgrad, *run, *chosen)
        checkpoint = next((place / "cells").glob("*.checkpoint.h5"), None)
        if checkpoint is None:
            raise InputError(f"{model}: the run has no checkpoint: it failed")
        words = ["--checkpoint", str(checkpoint), "--model", shown_by, "--estimator", "reinforce", "--batch", "4"]
        asked(hardgrad, "gradient", *words, "--out", str(place / "g.h5"))
        found[model] = load_attention(place / "g.h5")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", required=True)
    parser.add_argument("--hardgrad", default="build/release/hardgrad")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            soft, hard = read(options.hardgrad, Path(folder)).values()
        except InputError as error:
            raise SystemExit(f"{CONFIG.name}: {error}") from error
    panels = {
        "soft, head 1": (soft, 0),
        "soft, head 2": (soft, 1),
        "hard, both heads: two keys": (hard, 0),
    }
    figure, axes = plt.subplots(1, 3, figsize=(11, 2.6), constrained_layout=True)
    for ax, (title, (network, head)) in zip(axes, panels.items()):
        tokens, labels = ([str(word) for word in network.need(name)[EXAMPLE]] for name in ("token_text", "label_text"))
        questions = [t for t, label in enumerate(labels) if label]
        keys = questions[-1] + 1
        show(ax, network.of_columns()[EXAMPLE, questions, head, :keys])
        for row, t in enumerate(questions):
            wanted = tokens.index(tokens[t] + labels[t])  # the pair that has the answer
            ax.add_patch(plt.Rectangle((wanted - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=COLOURS[1], linewidth=2))
        ax.set(title=title, xticks=range(keys), yticks=range(len(questions)))
        ax.set_xticklabels(tokens[:keys], rotation=60, fontsize=8)
        ax.set_yticklabels([f"{tokens[t]}?" for t in questions])
    figure.colorbar(axes[0].images[0], ax=axes, shrink=0.8, label="weight, or chance to be read")
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100)
    Image.open(drawn).convert("RGB").quantize(128).save(options.figure, optimize=True)


if __name__ == "__main__":
    main()
