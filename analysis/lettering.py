"""Text widths, and line breaks that keep text within a figure."""

from __future__ import annotations

import re

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path


def width_of(text: str, size: float, weight: str = "normal") -> float:
    """Width of a line in inches, at a font size in points."""
    points, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size, weight=weight), False)
    return float(points) / 72


def broken(text: str, inches: float, size: float, weight: str = "normal") -> str:
    """The text on as many lines as needed. Breaks are at spaces, after commas, and within words longer than a line."""
    lines, line = [], ""
    for piece in re.findall(r"[^ ,;\[]*[ ,;\[]*", text):
        if line and width_of((line + piece).rstrip(), size, weight) > inches:
            lines.append(line.rstrip())
            line = ""
        line += piece
        while width_of(line.rstrip(), size, weight) > inches and len(line) > 1:
            fits = next(n for n in range(len(line) - 1, 0, -1) if n == 1 or width_of(line[:n], size, weight) <= inches)
            lines.append(line[:fits])
            line = line[fits:]
    return "\n".join([*lines, line.rstrip()] if line.strip() else lines)
