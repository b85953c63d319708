"""Parts of a self-contained HTML page: style, script, tables and pictures. All text is escaped here."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape

from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 84rem; padding: 1rem; color: #1a1a1a;
  overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.8rem 0 0; } nav { line-height: 1.9; } nav a { margin-right: 1rem; } a { color: #0059a0; }
.scroll { overflow-x: auto; max-width: 100%; } .tall { max-height: 70vh; overflow-y: auto; border-bottom: 2px solid #888; }
figure { margin: .5rem 0 1.5rem; overflow-x: auto; }
.scroll, figure { background: linear-gradient(90deg, #fff 40%, #fff0) left / 3rem 100% local no-repeat,
  linear-gradient(270deg, #fff 40%, #fff0) right / 3rem 100% local no-repeat, linear-gradient(90deg, #0003, #0000) left / .8rem 100% no-repeat,
  linear-gradient(270deg, #0003, #0000) right / .8rem 100% no-repeat; } /* a shadow where the content continues */
img { mix-blend-mode: multiply; width: 100%; max-width: max-content; min-width: 44rem; height: auto; }
table { border-collapse: collapse; font-size: .875rem; overflow-wrap: normal; }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid #ddd; white-space: nowrap; }
thead th { border-bottom: 2px solid #888; position: sticky; top: 0; background: #fff; }
td { font-variant-numeric: tabular-nums; } td.wrap { white-space: normal; min-width: 14rem; overflow-wrap: anywhere; }
th button { font: inherit; font-weight: bold; background: none; border: 0; padding: .2rem 0; cursor: pointer; color: inherit; }
th button:focus-visible, input:focus-visible, summary:focus-visible { outline: 2px solid #0072b2; outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: " \\25B2"; } th[aria-sort=descending] button::after { content: " \\25BC"; }
input { font: inherit; padding: .4rem .6rem; width: min(26rem, 100%); border: 1px solid #888; border-radius: 4px; }
details { margin: .3rem 0; } details details { margin-left: 1rem; } summary { cursor: pointer; padding: .2rem 0; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; font-size: .8rem; overflow-wrap: normal; }
.kept { --first: 15rem; border-collapse: separate; border-spacing: 0; } /* the name and the ranking value of a row stay visible */
.kept th:first-child, .kept td:first-child { min-width: var(--first); max-width: var(--first); left: 0; white-space: normal; overflow-wrap: anywhere; }
.kept th:nth-child(2), .kept td:nth-child(2) { left: var(--first); border-right: 1px solid #888; }
.kept th:nth-child(-n+2), .kept td:nth-child(-n+2) { position: sticky; background: #fff; z-index: 1; }
.kept thead th { z-index: 2; } .kept thead th:nth-child(-n+2) { z-index: 3; }
@media (max-width: 40rem) { .kept { --first: 7.5rem; } .kept th:nth-child(2), .kept td:nth-child(2) { white-space: normal; min-width: 5.5rem; }
  .kept th, .kept td { padding: .25rem .4rem; } }
.block th { color: #555; font-weight: normal; font-style: italic; border-bottom: 1px solid #888; padding-top: .6rem; }
.ranks td:nth-child(2), .ranks td:nth-child(4) { font-weight: bold; } .found li { margin: .4rem 0; max-width: 56rem; }
@media (max-width: 40rem) { .ranks th, .ranks td { padding: .25rem .35rem; } .ranks td:nth-child(2) { white-space: normal; overflow-wrap: anywhere;
  min-width: 7rem; } }
.warn { border-left: 4px solid #d55e00; padding-left: .8rem; }
@media print { img { min-width: 0; } .scroll, .tall { overflow: visible; max-height: none; background: none; } input { display: none; }
  p:has(input) { display: none; } table { font-size: .6rem; } th, td { white-space: normal; padding: .15rem .3rem; overflow-wrap: anywhere; }
  .kept { --first: 6rem; } .kept th, .kept td { position: static !important; } td.wrap { min-width: 6rem; } tr, img { break-inside: avoid; } }
"""

# Sorts a table by the clicked column, numerically where it holds numbers, missing values last; the filter hides rows without all words.
SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = row => row.cells[column].dataset.value;
    const rows = [...body.rows].sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
      return up ? order : -order;
    });
    body.append(...rows);
  }));
}
for (const input of document.querySelectorAll("input[data-filters]")) {
  const table = document.getElementById(input.dataset.filters), count = document.getElementById(input.dataset.filters + "-count");
  const filter = () => {
    const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
  };
  input.addEventListener("input", filter);
  filter();
}
"""


def rows_table(cells: Sequence[Sequence[object]], head: Sequence[str], wrap: Sequence[str] = (), kept: bool = False) -> str:
    """A plain table; the columns in `wrap` hold prose. `kept`: the first two columns stay fixed while the others scroll."""
    body = "".join("<tr>" + "".join(f'<td class="wrap">{escape(str(c))}</td>' if h in wrap else f"<td>{escape(str(c))}</td>"
                                    for c, h in zip(row, head)) + "</tr>" for row in cells)
    return ('<div class="scroll">' + ('<table class="kept">' if kept else "<table>") + "<thead><tr>" + "".join(f"<th>{escape(h)}</th>" for h in head)
            + f"</tr></thead><tbody>{body}</tbody></table></div>")


def blocks_table(blocks: Sequence[tuple[str, Sequence[Sequence[object]]]], head: Sequence[str]) -> str:
    """A table in blocks of rows, each under its title (none if empty); the first two columns hold the rank and the name."""
    body = "".join((f'<tr class="block"><th scope="colgroup" colspan="{len(head)}">{escape(title)}</th></tr>' if title else "")
                   + "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows) for title, rows in blocks)
    return ('<div class="scroll"><table class="ranks"><thead><tr>' + "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
            + f"</tr></thead><tbody>{body}</tbody></table></div>")


def sortable_table(name: str, cells: Sequence[Sequence[tuple[str, object]]], head: Sequence[str]) -> str:
    """A table that sorts by click and filters by words; its first two columns stay fixed while the others scroll. Each cell is its text
    and its sort key (a number or a text; NaN sorts last)."""
    def cell(text: str, value: object) -> str:
        missing = isinstance(value, float) and value != value
        return f'<td data-value="{"" if missing else escape(str(value))}">{escape(text)}</td>'

    body = "".join("<tr>" + "".join(cell(*one) for one in row) + "</tr>" for row in cells)
    heads = "".join(f'<th scope="col"><button type="button">{escape(h)}</button></th>' for h in head)
    return (f'<p><label>Filter: <input type="search" data-filters="{name}" placeholder="words, e.g. qa rloo"></label> '
            f'<span id="{name}-count"></span></p><div class="scroll tall"><table class="sortable kept" id="{name}">'
            f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>")


def picture(figure: Figure, words: str) -> str:
    """The figure inline: as SVG, or as PNG if the SVG is too large for a page."""
    content, kind = io.BytesIO(), "svg+xml"
    figure.savefig(content, format="svg", metadata={"Date": None})
    if content.tell() > 600_000:
        content, kind = io.BytesIO(), "png"
        figure.savefig(content, format="png", dpi=120)
    data = base64.b64encode(content.getvalue()).decode()
    return f'<figure><img alt="{escape(words)}" src="data:image/{kind};base64,{data}"></figure>'


def page(title: str, parts: Sequence[str], reload: float | None = None) -> str:
    """The whole document; with `reload`, a browser reloads it after this many seconds."""
    return ('<!doctype html><html lang="en"><head><meta charset="utf-8">'
            + (f'<meta http-equiv="refresh" content="{reload:g}">' if reload else "") +
            '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
            + "\n".join(parts) + f"\n<script>{SCRIPT}</script></body></html>\n")
