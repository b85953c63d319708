#!/usr/bin/python3
"""Pictures of trained networks on the pages here, as pictures.toml lists them: trains those that are not trained yet, takes one gradient
of each, and draws its attention.

    results/reference/pictures.py captions                 # writes captions.png; without a name: all

Networks are kept in results/pictures, so that the same call goes on where it was stopped.
"""
import argparse
import sys
import tempfile
import tomllib
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from program import run  # noqa: E402

from analysis.output import write  # noqa: E402
from analysis.program import TREE, asked, program  # noqa: E402
from analysis.saving import saved  # noqa: E402
from analysis.views import load_attention, view_of_several, views_of  # noqa: E402

HERE = Path(__file__).parent


def trained(hardgrad, config, cells):
    """The checkpoint and the estimator of the one cell of a configuration with these labels."""
    only = [word for cell in cells for word in ("--only", cell)]
    file, folder = str(TREE / f"experiments/configs/{config}.toml"), TREE / "results/pictures" / config
    found = run(hardgrad, "plan", file, "--quick", "--out", str(folder), *only)["cells"]
    if len(found) != 1:
        raise SystemExit(f"{config}: {len(found)} cells have {', '.join(cells)}; one is needed")
    asked(hardgrad, "run", file, "--out", str(folder), "--jobs", "1", "--progress", "none", "--force", *only)
    return folder / "cells" / f"{found[0]['hash']}.checkpoint.h5", found[0]["axes"]["estimator"]


def drawn(hardgrad, one):
    """The figure of an entry of pictures.toml."""
    networks = []
    for network in one["networks"]:
        checkpoint, trainer = trained(hardgrad, network.get("config", one["config"]), network["cells"])
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "gradient.h5")
            batch = str(one.get("batch", 1 + max(one.get("examples", [3]))))
            estimator = network.get("estimator") or one["estimator"]
            asked(hardgrad, "gradient", "--checkpoint", str(checkpoint), "--estimator", estimator, "--batch", batch, "--seed", "1", "--out", file)
            networks.append(replace(load_attention(file), estimator=trainer).of(one.get("examples", range(int(batch)))))
    views = {view.__name__: view for view in views_of(networks[0].model)}
    draw = view_of_several(*networks) if len(networks) > 1 else views[one["view"]]
    return draw(*networks)


def main():
    with open(HERE / "pictures.toml", "rb") as file:
        known = {one["name"]: one for one in tomllib.load(file)["picture"]}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help=f"of {', '.join(known)}")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the pictures (default: this one)")
    parser.add_argument("--binary", default=program())
    options = parser.parse_args()
    if wrong := [name for name in options.name if name not in known]:
        parser.error(f"there is no picture {', '.join(wrong)}")
    for name in options.name or known:
        write(options.out / f"{name}.png", saved(drawn(options.binary, known[name]), "png"))
        print(options.out / f"{name}.png")


if __name__ == "__main__":
    main()
