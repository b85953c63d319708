"""Looks of estimators: the same colour and marker in every figure of a file, legible to
colour-blind readers and in print."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from typing import NamedTuple

# Okabe and Ito's palette without its yellow, which is invisible on white paper, and five colours of
# Paul Tol's that differ from it in lightness.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#332288",
    "#882255",
    "#999933",
    "#8C8C8C",
    "#6B3F00",
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p")
LINES = ("-", "--", "-.", ":")


class LineStyle(NamedTuple):
    colour: str
    marker: str
    line: str


def line_styles(labels: Collection[str]) -> dict[str, LineStyle]:
    """A look per label (an estimator's spec). A name prefers a colour of its own, in every file;
    where two prefer the same, one takes the next free colour. So the colours of up to twelve labels
    differ; of more, the markers of a colour differ up to 132."""
    result: dict[str, LineStyle] = {}
    used = [0] * len(COLOURS)
    for label in sorted(
        set(labels), key=lambda text: (len(text), text)
    ):  # bare names first: they keep their colours more often
        first = zlib.crc32(label.split("[")[0].split(" ")[0].encode())
        place = min(range(len(COLOURS)), key=lambda k: (used[(first + k) % len(COLOURS)], k))
        colour = (first + place) % len(COLOURS)
        turn = used[colour]
        result[label] = LineStyle(
            COLOURS[colour],
            MARKERS[(colour + turn) % len(MARKERS)],
            LINES[(colour + turn) % len(LINES)],
        )
        used[colour] += 1
    return result
