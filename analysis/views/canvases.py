"""Pixel attention: the distribution over positions on the canvas."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from ..drawing import FONT
from ..style import COLOURS
from .attention import Attention
from .glimpses import picture, window
from .maps import outline
from .registry import view

_WINDOWS = 3  # drawn rows per example


@view("pixel_attention")
def windows_on_canvases(attention: Attention) -> Figure:
    """One canvas per panel. Darker red: more probable positions; outlined: the windows of a few
    rows; dotted: the digit's true window."""
    images, boxes = attention.need("image"), attention.need("box")
    side, grid = images.shape[1], round(attention.soft.shape[2] ** 0.5)
    shown = list(attention.shown)
    with matplotlib.rc_context(FONT):
        figure = Figure(figsize=(2.4 * len(shown) + 0.2, 3), layout="constrained")
        for ax, b in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown):
            picture(ax, images[b])
            p = attention.soft[b, 0].reshape(grid, grid)
            veil = np.zeros((grid, grid, 4))
            veil[..., :3] = matplotlib.colors.to_rgb(COLOURS[1])
            veil[..., 3] = 0.8 * p / p.max()
            ax.imshow(veil, extent=(-0.5, side - 0.5, side - 0.5, -0.5), interpolation="nearest")
            ax.set_title(f"≤ {p.max():.2g}, {attention.entropy[b, 0]:.1f} nat", fontsize=9)
            top, left, below, _ = boxes[b]
            size = below - top
            if attention.choices is not None:
                for row in attention.rows(b)[:_WINDOWS]:
                    y, x = window(int(attention.choices[0, row]), grid, int(size), side, side)
                    outline(ax, x - 0.5, y - 0.5, size, edgecolor=COLOURS[0], linewidth=1.2)
            outline(
                ax, left - 0.5, top - 0.5, size, edgecolor="black", linestyle=":", linewidth=1.6
            )
        figure.suptitle(
            f"Attention to digits: probabilities, windows of up to {_WINDOWS} rows, dotted: "
            f"true window ({attention.estimator})",
            x=0.01,
            ha="left",
            fontsize=11,
        )
    return figure
