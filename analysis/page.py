"""Parts of a self-contained HTML page: style, script, tables and pictures. All text is escaped
here."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape, unescape
from typing import Any

from matplotlib.figure import Figure

from .saving import saved, small_svg

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --clear: #fff0; --ink: #1a1a1a; --quiet: #555; --line: #ddd; --edge: #888; --code: #f5f5f5;
  --link: #0059a0; --warn: #d55e00; --shade: #0003; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --clear: #16181c00; --ink: #e4e4e4; --quiet: #aaa; --line: #3a3d42; --edge: #777;
    --code: #22252a; --link: #7cb7f0; --warn: #e8853a; --shade: #0009; }
  img { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen !important; } } /* drawn on white: turned dark, with the same hues */
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 84rem; padding: 1rem; color: var(--ink); background: var(--paper);
  overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.8rem 0 0; } nav { line-height: 1.9; } nav a { margin-right: 1rem; } a { color: var(--link); }
.scroll { overflow-x: auto; max-width: 100%; } .tall { max-height: 70vh; overflow-y: auto; border-bottom: 2px solid var(--edge); }
figure { margin: .5rem 0 1.5rem; overflow-x: auto; }
.scroll, figure { background: linear-gradient(90deg, var(--paper) 40%, var(--clear)) left / 3rem 100% local no-repeat,
  linear-gradient(270deg, var(--paper) 40%, var(--clear)) right / 3rem 100% local no-repeat, linear-gradient(90deg, var(--shade), #0000) left / .8rem 100% no-repeat,
  linear-gradient(270deg, var(--shade), #0000) right / .8rem 100% no-repeat; } /* a shadow where the content continues */
img { mix-blend-mode: multiply; width: 100%; max-width: max-content; min-width: 44rem; height: auto; }
table { border-collapse: collapse; font-size: .875rem; overflow-wrap: normal; }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
thead th { border-bottom: 2px solid var(--edge); position: sticky; top: 0; background: var(--paper); }
td { font-variant-numeric: tabular-nums; } td.wrap { white-space: normal; min-width: min(14rem, 45vw); overflow-wrap: anywhere; }
th button { font: inherit; font-weight: bold; background: none; border: 0; padding: .2rem 0; cursor: pointer; color: inherit; }
th button:focus-visible, input:focus-visible, select:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: " \\25B2"; } th[aria-sort=descending] button::after { content: " \\25BC"; }
input, select { font: inherit; color: inherit; background: var(--paper); padding: .4rem .6rem; width: min(26rem, 100%); border: 1px solid var(--edge); border-radius: 4px; }
select { width: auto; max-width: 100%; } .filters { display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: center; } .filters label { max-width: 100%; min-width: 0; }
details { margin: .3rem 0; } details details { margin-left: 1rem; } summary { cursor: pointer; padding: .2rem 0; }
pre { background: var(--code); padding: .8rem; overflow-x: auto; font-size: .8rem; overflow-wrap: normal; }
.kept { --first: 15rem; border-collapse: separate; border-spacing: 0; } /* the name and the ranking value of a row stay visible */
.kept th:first-child, .kept td:first-child { min-width: var(--first); max-width: var(--first); left: 0; white-space: normal; overflow-wrap: anywhere; }
.kept th:nth-child(2), .kept td:nth-child(2) { left: var(--first); border-right: 1px solid var(--edge); }
.kept th:nth-child(-n+2), .kept td:nth-child(-n+2) { position: sticky; background: var(--paper); z-index: 1; }
.kept thead th { z-index: 2; } .kept thead th:nth-child(-n+2) { z-index: 3; }
@media (max-width: 40rem) { .kept { --first: 6.5rem; } .kept th:nth-child(2), .kept td:nth-child(2) { white-space: normal; min-width: 6rem;
    max-width: 6rem; overflow-wrap: anywhere; }
  .kept th, .kept td { padding: .25rem .4rem; } }
.block th { color: var(--quiet); font-weight: normal; font-style: italic; border-bottom: 1px solid var(--edge); padding-top: .6rem; }
.ranks td:nth-child(2), .ranks td:nth-child(4) { font-weight: bold; } .found li { margin: .4rem 0; max-width: 56rem; }
@media (max-width: 40rem) { .ranks th, .ranks td { padding: .25rem .35rem; } .ranks td:nth-child(2) { white-space: normal; overflow-wrap: anywhere;
  min-width: 7rem; } }
.warn { border-left: 4px solid var(--warn); padding-left: .8rem; }
@media print { img { min-width: 0; } .scroll, .tall { overflow: visible; max-height: none; background: none; } input { display: none; }
  p:has(input) { display: none; } table { font-size: .6rem; } th, td { white-space: normal; padding: .15rem .3rem; overflow-wrap: anywhere; }
  .kept { --first: 6rem; } .kept th, .kept td { position: static !important; } td.wrap { min-width: 6rem; } tr, img { break-inside: avoid; } }
"""  # noqa: E501

# Sorts a table by the clicked column, numerically where it holds numbers, missing values last; the
# filter hides rows without all words.
SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
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
  const name = input.dataset.filters, table = document.getElementById(name), count = document.getElementById(name + "-count");
  const choices = [...document.querySelectorAll(`select[data-filters="${name}"]`)];
  const filter = () => {
    const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word)) || choices.some(one => one.value && row.cells[one.dataset.column].textContent !== one.value);
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
  };
  for (const one of [input, ...choices]) one.addEventListener("input", filter);
  filter();
}
"""  # noqa: E501


class Html(str):
    """Text that is already HTML, such as a link."""


def link(to: str, text: str) -> Html:
    """A link whose text may break after underscores."""
    return Html(f'<a href="{escape(to)}">{escape(text).replace("_", "_<wbr>")}</a>')


def _text(value: object) -> str:
    return value if isinstance(value, Html) else escape(str(value))


def rows_table(
    cells: Sequence[Sequence[object]],
    head: Sequence[str],
    wrap: Sequence[str] = (),
    kept: bool = False,
) -> str:
    """A plain table; the columns in `wrap` hold prose. `kept`: the first two columns stay fixed
    while the others scroll."""
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="wrap">{_text(c)}</td>' if h in wrap else f"<td>{_text(c)}</td>"
            for c, h in zip(row, head)
        )
        + "</tr>"
        for row in cells
    )
    return (
        '<div class="scroll">'
        + ('<table class="kept">' if kept else "<table>")
        + "<thead><tr>"
        + "".join(f"<th>{escape(h)}</th>" for h in head)
        + f"</tr></thead><tbody>{body}</tbody></table></div>"
    )


def blocks_table(
    blocks: Sequence[tuple[str, Sequence[Sequence[object]]]], head: Sequence[str]
) -> str:
    """A table in blocks of rows, each under its title (none if empty); the first two columns hold
    the rank and the name."""
    body = "".join(
        (
            '<tr class="block"><th scope="colgroup" '
            f'colspan="{len(head)}">{escape(title)}</th></tr>'
            if title
            else ""
        )
        + "".join(
            "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        for title, rows in blocks
    )
    return (
        '<div class="scroll"><table class="ranks"><thead><tr>'
        + "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
        + f"</tr></thead><tbody>{body}</tbody></table></div>"
    )


def sortable_table(
    name: str,
    cells: Sequence[Sequence[tuple[str, object]]],
    head: Sequence[str],
    choices: Sequence[str] = (),
) -> str:
    """A table that sorts by click and filters by words; its first two columns stay fixed while the
    others scroll. Each cell is its text and its sort key (a number or a text; NaN sorts last),
    which is written down where it differs from the text. The columns in `choices` also filter by
    one of their texts (of a link: its key)."""

    def cell(text: str, value: object) -> str:
        key = (
            str(value) if not isinstance(value, float) else f"{value:.6g}" if value == value else ""
        )
        own = unescape(re.sub("<[^>]*>", "", text)) if isinstance(text, Html) else text
        return (
            f"<td>{_text(text)}</td>"
            if key == own
            else f'<td data-value="{escape(key)}">{_text(text)}</td>'
        )

    body = "".join("<tr>" + "".join(cell(*one) for one in row) + "</tr>" for row in cells)
    heads = "".join(
        f'<th scope="col"><button type="button">{escape(h)}</button></th>' for h in head
    )

    def chooser(title: str) -> str:
        column = list(head).index(title)
        keys: dict[str, Any] = {
            str(key) if isinstance(text, Html) else text: key
            for text, key in (row[column] for row in cells)
        }
        ordered = sorted(keys, key=lambda text: (keys[text] != keys[text], keys[text]))  # NaN last
        options = "".join(f"<option>{escape(text)}</option>" for text in ordered)
        return (
            f' <label>{escape(title)} <select data-filters="{name}" '
            f'data-column="{column}"><option value="">all</option>{options}</select></label>'
        )

    return (
        f'<p class="filters"><label>Filter: <input type="search" data-filters="{name}" '
        f'placeholder="words, e.g. qa rloo"></label>{"".join(map(chooser, choices))} '
        f'<span id="{name}-count"></span></p><div class="scroll tall"><table class="sortable '
        f'kept" id="{name}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def picture(figure: Figure, words: str) -> str:
    """The figure inline: as SVG, or as PNG if the SVG is too large for a page."""
    content, kind = saved(figure, "svg"), "svg+xml"
    if len(content) > 600_000:
        content, kind = saved(figure, "png", 120), "png"
    return _inline(content, kind, words)


def small_picture(figure: Figure, words: str) -> str:
    """The figure inline, as `small_svg`."""
    return _inline(small_svg(figure), "svg+xml", words)


def _inline(content: bytes, kind: str, words: str) -> str:
    data = base64.b64encode(content).decode()
    return f'<figure><img alt="{escape(words)}" src="data:image/{kind};base64,{data}"></figure>'


def page(title: str, parts: Sequence[str], shared: str | None = None, description: str = "") -> str:
    """The whole document. `shared`: the folder of style.css and script.js, which hold STYLE and
    SCRIPT for several pages; without it they are within the page. `description`: for search
    engines."""
    about = f'<meta name="description" content="{escape(description)}">' if description else ""
    style = (
        f"<style>{STYLE}</style>"
        if shared is None
        else f'<link rel="stylesheet" href="{shared}style.css">'
    )
    script = (
        f"<script>{SCRIPT}</script>"
        if shared is None
        else f'<script src="{shared}script.js"></script>'
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link '
        'rel="icon" href="data:,">'
        f"<title>{escape(title)}</title>{about}{style}</head><body>"
        + "\n".join(parts)
        + f"\n{script}</body></html>\n"
    )
