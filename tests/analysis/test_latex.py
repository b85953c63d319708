"""The table in LaTeX: every special character is escaped, braces and columns match, and it compiles where LaTeX is installed."""

import re
import shutil
import subprocess

import pytest
from made_up import sweep

from analysis import table
from analysis.latex import escaped, latex_table


@pytest.mark.parametrize(
    "text, expected",
    [
        ("st_gumbel[a=1]", r"st\_gumbel[a=1]"),
        ("97.6% ± 4.1%", r"97.6\% $\pm$ 4.1\%"),
        ("(0.2 ± 1.6)e-05", r"$(0.2 \pm 1.6) \times 10^{-5}$"),
        ("1.2e+07", r"$1.2 \times 10^{7}$"),
        ("< 0.1", "$<$ 0.1"),
        ("a\\b{c}~^#$&", r"a\textbackslash{}b\{c\}\textasciitilde{}\textasciicircum{}\#\$\&"),
        ("–", "--"),
    ],
)
def test_escapes(text, expected):
    assert escaped(text) == expected


def test_columns_and_braces_match():
    text = latex_table(table(sweep(2, ["st_gumbel", "rloo"], 3)))
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    for columns, body in re.findall(r"\\begin\{tabular\}\{(l+)\}\n(.*?)\\end\{tabular\}", text, re.S):
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(rows) == 3 and all(len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1 for row in rows)
    assert "st_gumbel" not in text


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_compiles(tmp_path):
    body = latex_table(table(sweep(1, ["st_gumbel", "rloo"], 3)))
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}" + body + "\\end{document}"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stdout[-500:]
