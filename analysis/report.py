"""A result as one self-contained HTML page: opens offline, needs no server."""

from __future__ import annotations

import base64
import io
from html import escape

import xarray as xr

from .errors import InputError, NotApplicable
from .figures import FIGURES
from .groups import groups
from .table import caption, panel_rows, readable, table

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 76rem; padding: 1rem; color: #1a1a1a; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
.scroll { overflow-x: auto; } img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .875rem; } caption { text-align: left; color: #444; padding: .3rem 0; }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid #ddd; white-space: nowrap; }
thead th { border-bottom: 2px solid #888; } td { font-variant-numeric: tabular-nums; } td.wrap { white-space: normal; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; font-size: .8rem; }
"""


def _rows(cells: list[list[str]], head: list[str], note: str = "") -> str:
    body = "".join("<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in row) + "</tr>" for row in cells)
    title = f"<caption>{escape(note)}</caption>" if note else ""
    return (f'<div class="scroll"><table>{title}<thead><tr>' + "".join(f"<th>{escape(h)}</th>" for h in head) +
            f"</tr></thead><tbody>{body}</tbody></table></div>")


def report(data: xr.Dataset, at: str | int = "first") -> str:
    """The page: what was run and where, ranking table, figures, failures and skips with reasons, how to redo it."""
    parts = [f"<h1>{escape(str(data.attrs.get('title', 'Results')))}</h1>"]
    counted = [status for group in groups(data) for status in group.status]
    parts.append("<p>" + escape(f"{data.sizes['run']} runs: " + ", ".join(
        f"{counted.count(s)} {s}" for s in ("ok", "failed", "skipped") if counted.count(s))) + ".</p>")
    if data.attrs.get("status") != "complete":
        parts.append("<p><strong>This result is incomplete: not every cell of the plan is in it.</strong></p>")

    frame = table(data, at)
    text = readable(frame)
    parts.append("<h2>Ranking</h2>")
    for task, model, index in panel_rows(frame):
        part = text.loc[index]
        loss = next((name for name in frame.loc[index, "loss_name"] if name), "")
        parts.append(f"<h3>{escape(task)} · {escape(model)}</h3>")
        parts.append(_rows(part.astype(str).values.tolist(), list(part.columns),
                           f"Final loss: held-out {loss}" if loss else ""))
    parts.append(f"<p>{escape(caption(frame))}</p>")

    parts.append("<h2>Figures</h2>")
    for name, draw in FIGURES.items():
        try:
            figure = draw(data, at) if name == "bias_variance" else draw(data)
        except NotApplicable:
            continue
        except InputError as error:
            parts.append(f"<p>{escape(name)}: not drawn: {escape(str(error))}</p>")
            continue
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        picture = base64.b64encode(buffer.getvalue()).decode()
        parts.append(f'<p><img alt="{escape(name.replace("_", " "))}" src="data:image/svg+xml;base64,{picture}"></p>')

    missing = [(g, i) for g in groups(data) for i in range(len(g.runs)) if g.status[i] != "ok"]
    if missing:
        parts.append("<h2>Failed and skipped runs</h2>")
        parts.append(_rows([[g.status[i], g.task, g.model, g.label, str(data["seed"].values[g.runs[i]]) if "seed" in data
                             else "", str(data["reason"].values[g.runs[i]])] for g, i in missing],
                           ["status", "task", "model", "estimator", "seed", "reason"]))

    parts.append("<h2>Where this comes from</h2>")
    skip = {"path", "coordinates", "title", "Conventions"}
    parts.append(_rows([[key, str(value)] for key, value in data.attrs.items() if key not in skip], ["attribute", "value"]))
    if "configuration" in data and str(data["configuration"].values):
        parts.append("<h2>How to redo it</h2><p>Save this as <code>sweep.toml</code>, then "
                     "<code>hardgrad run sweep.toml --out DIR &amp;&amp; hardgrad merge DIR --out RESULT.h5</code>.</p>"
                     f"<pre>{escape(str(data['configuration'].values))}</pre>")
    return ('<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(str(data.attrs.get('title', 'Results')))}</title><style>{_STYLE}</style></head><body>"
            + "\n".join(parts) + "</body></html>\n")
