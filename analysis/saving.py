"""Figures as the bytes of a picture: equal figures give equal bytes."""

from __future__ import annotations

import html
import io
import re
from collections import Counter

import matplotlib
from matplotlib.figure import Figure

from .drawing import FONT

#: Formats of pictures, with metadata that omits the date.
FORMATS = {"png": None, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def saved(figure: Figure, kind: str, dpi: int = 150) -> bytes:
    """The figure in one of FORMATS."""
    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": FONT["svg.hashsalt"]}):
        figure.savefig(content, format=kind, dpi=dpi, metadata=FORMATS[kind])
    return content.getvalue()


def small_svg(figure: Figure) -> bytes:
    """The figure, its text as text and its places to a hundredth of a point, without metadata;
    styles of several elements are classes: a tenth of the size, and searchable."""
    with matplotlib.rc_context(
        {"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
    ):
        content = saved(figure, "svg")
    text = re.sub(
        r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), content.decode()
    )  # not in labels
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    text = re.sub(r" transform=\"rotate\(-0 [^\"]*\"", "", text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    styles = {
        style: f"s{i}"
        for i, style in enumerate(
            one
            for one, times in Counter(re.findall(r' style="([^"]*)"', text)).items()
            if times > 1
        )
    }
    text = re.sub(
        r' style="([^"]*)"',
        lambda found: f' class="{styles[found[1]]}"' if found[1] in styles else found[0],
        text,
    )
    rules = "".join(f".{name}{{{style}}}" for style, name in styles.items())
    return text.replace("</style>", f"{html.unescape(rules)}</style>", 1).encode()
