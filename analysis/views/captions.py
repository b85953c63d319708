"""Captioners: the words of a caption over the attended cells."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..drawing import FONT, broken
from ..style import COLOURS
from .attention import Attention
from .maps import COLOURS as SHADES
from .maps import outline, row_names
from .registry import VIEWS_OF_SEVERAL, view
from .sentences import words

_ACROSS = 8  # words of a caption per row
_CELL = 0.68  # inches of a picture
_DARKEST = 0.6  # of the shades, so that objects stand out from a cell of probability 1
_DARK_GROUND = 0.25  # brightness of the median pixel below which a picture is drawn on light ground


def grid_of(cells: int, height: int, width: int) -> tuple[int, int]:
    """Rows and columns of `cells` square cells in a picture; for features alone, as square as
    possible."""
    divisors = [r for r in range(1, cells + 1) if cells % r == 0]
    square = [r for r in divisors if width and r * r * width == cells * height]
    rows = square[0] if square else max(r for r in divisors if r * r <= cells)
    return rows, cells // rows


def on_light_ground(image: np.ndarray) -> np.ndarray | None:
    """[height, width, 4] the objects of a picture [height, width, 3] with a dark ground, which is
    transparent; None if its ground is not dark."""
    bright = image.max(axis=2)
    if np.median(bright) > _DARK_GROUND:
        return None
    ink = np.clip((bright - 0.3) / 0.3, 0, 1)
    colour = image / np.maximum(bright, 1e-9)[..., None]
    return np.concatenate([0.9 * colour, ink[..., None]], axis=2)


@view("captioner")
def words_over_cells(*networks: Attention) -> Figure:
    """A picture below each word, and a row of them for each network, as in Xu et al. 2015, Fig. 2.
    The darker the blue ground of a cell, the more probable (photographs fade where improbable);
    outlined: cells that were chosen (thicker: by more rows); dotted: the true cell of the word, if
    it is known."""
    attention = networks[0]
    images, gold, shown = attention.field("image"), attention.field("gold"), list(attention.shown)
    said = {b: words(attention, "target", b) for b in shown}
    lines = [
        (b, start, network, name)
        for b in shown
        for start in range(0, len(said[b]), _ACROSS)
        for network, name in zip(networks, row_names(networks))
    ]
    across = max(min(_ACROSS, len(text)) for text in said.values())
    heights = [_CELL + (0.3 if network is networks[0] else 0.06) for _, _, network, _ in lines]
    left, head = 0.75, 0.3
    wide, tall = left + across * (_CELL + 0.04) + 0.05, sum(heights) + head + 0.05
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(wide, tall))
        top = tall - head
        for (b, start, network, name), height in zip(lines, heights):
            top -= height
            figure.text(
                (left - 0.08) / wide,
                (top + _CELL / 2) / tall,
                broken(name, left - 0.1, 9),
                ha="right",
                va="center",
                fontsize=9,
            )
            for n in range(start, min(start + across, len(said[b]))):
                ax = figure.add_axes(
                    (
                        (left + (n - start) * (_CELL + 0.04)) / wide,
                        top / tall,
                        _CELL / wide,
                        _CELL / tall,
                    )
                )
                if network is networks[0]:
                    ax.set_title(said[b][n], fontsize=9.5, pad=3)
                _word(
                    ax,
                    network,
                    b,
                    n,
                    images[b] if images is not None else None,
                    gold[b, n] if gold is not None else -1,
                )
        drawn = max(
            (len(one.rows(shown[0])) for one in networks if one.choices is not None), default=0
        )
        samples = "" if not drawn else "one sample" if drawn == 1 else f"{drawn} samples"
        marks = [
            "darker: more probable",
            *([f"outlined: chosen by {samples}"] if samples else []),
            *(["dotted: true cell"] if gold is not None else []),
        ]
        figure.text(0.01, 1 - 0.09 / tall, "; ".join(marks), va="top", fontsize=10)
    return figure


VIEWS_OF_SEVERAL["captioner"] = words_over_cells


def _word(
    ax: Axes, attention: Attention, b: int, t: int, image: np.ndarray | None, gold: int
) -> None:
    p = np.nan_to_num(attention.soft[b, t])
    height, width = image.shape[:2] if image is not None else (0, 0)
    rows, columns = grid_of(len(p), height, width)
    extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)  # in units of cells
    ink = on_light_ground(image) if image is not None else None
    if image is not None and ink is None:
        ax.imshow(image, vmin=0, vmax=1, extent=extent, interpolation="nearest")
        ground = np.ones((rows, columns, 4))
        ground[..., 3] = 0.8 * (1 - p.reshape(rows, columns) / max(p.max(), 1e-300))
    else:
        ground = matplotlib.colormaps[SHADES](_DARKEST * p.reshape(rows, columns))
    ax.imshow(ground, extent=extent, interpolation="nearest")
    if ink is not None:
        ax.imshow(ink, extent=extent, interpolation="nearest")
        across = (np.arange(width) + 0.5) / width * columns - 0.5
        down = (np.arange(height) + 0.5) / height * rows - 0.5
        if ink[..., 3].max() > 0.5:
            ax.contour(across, down, ink[..., 3], [0.5], colors="#333333", linewidths=0.6)
    ax.set_xlim(extent[:2]), ax.set_ylim(extent[2:])
    ax.set_xticks([]), ax.set_yticks([])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set(visible=True, color="#aaaaaa", linewidth=0.6)
    if gold >= 0:
        _frame(ax, gold, columns, 0.84, color="black", linestyle=":", linewidth=1.1)
    if attention.hard is not None and attention.choices is not None:
        for cell in np.flatnonzero(np.nan_to_num(attention.hard[b, t]) > 0.05):
            share = attention.hard[b, t, cell]
            _frame(ax, cell, columns, 1, color=COLOURS[1], linewidth=0.5 + 1.5 * share)


def _frame(ax: Axes, cell: int, columns: int, side: float, **look: object) -> None:
    left, top = cell % columns - side / 2, cell // columns - side / 2
    outline(ax, left, top, side, clip_on=False, **look)
