#!/usr/bin/python3
"""Draws the pictures of the pages: each NAME.dot of this folder becomes NAME.svg, by Graphviz (Debian: graphviz).

    experiments/docs/pictures/draw.py

A source has nodes, arrows, labels and classes; the looks are here, for light and dark pages.
"""
import re
import subprocess
from pathlib import Path

LOOKS = ["-Gbgcolor=transparent", "-Gpad=0.08", "-Gfontsize=10", "-Gstyle=rounded", "-Gnodesep=0.12", "-Granksep=0.22", "-Nshape=box", "-Nstyle=rounded", "-Nfontsize=10",
         "-Nheight=0.1", "-Nwidth=0.1", "-Nmargin=0.07,0.05", "-Efontsize=9", "-Earrowsize=0.6"]
LOOKS += [f"-{of}fontname=DejaVu Sans" for of in "GNE"]
# Colours of Okabe & Ito, which the colour-blind can tell apart. Classes differ in border or dashes, too.
STYLE = """<style>
  svg { background: #ffffff }
  text { fill: #1a1a1a; font-family: "DejaVu Sans", Verdana, sans-serif }
  .node path, .node polygon { fill: #ffffff; stroke: #555555 } .cluster path, .cluster polygon { fill: #f0f0f0; stroke: #c8c8c8 }
  .node.reach path { fill: #d6ecfa; stroke: #0072b2; stroke-width: 1.5 }
  .node.own path { fill: #0072b2; stroke: #0072b2 } .own text { fill: #ffffff }
  .node.file path, .node.file polygon { fill: #fdf0d5; stroke: #b37700 }
  .edge path { fill: none; stroke: #555555 } .edge polygon { fill: #555555; stroke: #555555 }
  .edge.file path { stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) {
    svg { background: #1c1e21 }
    text { fill: #eeeeee }
    .node path, .node polygon { fill: #2c2f33; stroke: #9a9a9a } .cluster path, .cluster polygon { fill: #25272b; stroke: #55585c }
    .node.reach path { fill: #123a55; stroke: #56b4e9 }
    .node.own path { fill: #56b4e9; stroke: #56b4e9 } .own text { fill: #10151a }
    .node.file path, .node.file polygon { fill: #45351a; stroke: #e69f00 }
    .edge path { stroke: #b5b5b5 } .edge polygon { fill: #b5b5b5; stroke: #b5b5b5 }
  }
</style>
"""


def draw(source: Path) -> str:
    """The picture's SVG. Alternative text belongs to the page."""
    drawn = subprocess.run(["dot", "-Tsvg", *LOOKS, source], capture_output=True, text=True, check=True).stdout
    drawn = re.sub(r"<!--.*?-->\n?|<\?xml.*?\?>\n|<!DOCTYPE.*?>\n", "", drawn, flags=re.S)
    return re.sub(r"(<svg.*?>\n)", lambda head: head[1] + STYLE, drawn, count=1, flags=re.S)


if __name__ == "__main__":
    for path in sorted(Path(__file__).parent.glob("*.dot")):
        path.with_suffix(".svg").write_text(draw(path), "utf-8")
