#!/usr/bin/python3
"""A table of a page as a figure: of each row a mark for every seed, and their mean. `python3 -m analysis remake` calls it.

    results/reference/seeds_figure.py FILE.h5.gz --figure PICTURE.png --table NAME [--column N]
"""
import argparse
import io
import sys
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))
from analysis.site.studies import opened  # noqa: E402
from analysis.site.tables import numbers_of, specified  # noqa: E402
from analysis.style import COLOURS, MARKERS  # noqa: E402


def labels(rows):
    """The words of each row, an estimator without its settings if it has other words; an empty cell is as the one above it."""
    found, above = [], ""
    for words, _ in rows:
        words = [word.replace("`", "") for word in words]
        above = words[0] = words[0] or above
        words = [*words[:-1], words[-1].split("[")[0]] if len(words) > 1 else words
        found.append("\n".join(textwrap.wrap(", ".join(words), 32, break_long_words=False)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--figure", required=True)
    parser.add_argument("--table", required=True, help="a table of tables.toml")
    parser.add_argument("--column", type=int, default=0, help="place of the column (default: 0, the first one)")
    parser.add_argument("--axis", required=True, help="label of the axis")
    options = parser.parse_args()
    table = specified(Path(__file__).parent / "tables.toml").table[options.table]
    rows = numbers_of(table, opened(options.result), options.column)
    names = labels(rows)[::-1]
    rows = rows[::-1]
    percent = all(0 <= value <= 1 for _, values in rows for value in values)
    figure, axis = plt.subplots(figsize=(6.4, 0.8 + 0.36 * len(rows)), constrained_layout=True)
    for y, (_, values) in enumerate(rows):
        shown = np.asarray(values) * (100 if percent else 1)
        axis.plot(shown, np.full(len(shown), y), linestyle="", marker=MARKERS[0], markersize=5, color=COLOURS[0], alpha=0.6)
        axis.plot([shown.mean()] * 2, [y - 0.3, y + 0.3], color=COLOURS[1], linewidth=2)
    axis.set(xlabel=options.axis + (", %" if percent else ""), yticks=range(len(rows)), yticklabels=names)
    axis.tick_params(axis="y", labelsize=9)
    axis.grid(axis="y", linewidth=0.3)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100)
    Image.open(drawn).convert("RGB").quantize(32).save(options.figure, optimize=True)


if __name__ == "__main__":
    main()
