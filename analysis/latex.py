"""The ranking table in LaTeX, one per network; needs the package booktabs."""

from __future__ import annotations

import re

import pandas as pd

from .table import caption, panel_rows, readable

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "“": "``",
    "”": "''",
    "±": r"$\pm$",
    "×": r"$\times$",
    "<": "$<$",
    ">": "$>$",
    "·": r"$\cdot$",
}
_POWER = re.compile(r"\((.*?)\)e([+-])0*(\d+)|(\d[\d.]*)e([+-])0*(\d+)")


def escaped(text: str) -> str:
    """The text with LaTeX's characters escaped and powers of ten set as such: "(0.2 ± 1.6)e-05",
    "1e-05"."""

    def power(found: re.Match[str]) -> str:
        body, sign, exponent = (
            (f"({found[1]})", found[2], found[3])
            if found[1] is not None
            else (found[4], found[5], found[6])
        )
        return rf"{body} \times 10^{{{'-' if sign == '-' else ''}{exponent}}}"

    parts, end = [], 0
    for found in _POWER.finditer(text):
        parts += [_plain(text[end : found.start()]), "$" + power(found).replace("±", r"\pm") + "$"]
        end = found.end()
    return "".join([*parts, _plain(text[end:])])


def _plain(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)


def latex_table(frame: pd.DataFrame) -> str:
    """The rows of `table.table` as one `table` environment per network, the best estimators of each
    target first."""
    text = readable(frame)
    blocks = ["% needs \\usepackage{booktabs}"]
    for task, model, index in panel_rows(frame):
        part = text.loc[index]
        part = part[
            [
                column
                for column in part
                if column in ("rank", "estimator") or not part[column].isin(["–", ""]).all()
            ]
        ]
        body = [" & ".join(escaped(str(cell)) for cell in row) + r" \\" for row in part.to_numpy()]
        blocks.append(
            "\n".join(
                [
                    r"\begin{table}",
                    rf"\caption{{\texttt{{{escaped(task)}}}, \texttt{{{escaped(model)}}}. "
                    rf"{escaped(caption(frame.loc[index]))}}}",
                    rf"\begin{{tabular}}{{{'l' * len(part.columns)}}}",
                    r"\toprule",
                    " & ".join(escaped(str(column)) for column in part.columns) + r" \\",
                    r"\midrule",
                    *body,
                    r"\bottomrule",
                    r"\end{tabular}",
                    r"\end{table}",
                ]
            )
        )
    return "\n\n".join(blocks) + "\n"
