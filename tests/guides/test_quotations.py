"""Output quoted on a page equals the output of the commands before it. A fenced block

```text output

follows a block ```bash guide (see test_guides.py), which runs after the page's blocks before it. Each of its lines is the beginning of a line that the commands print, with numbers
equal within rounding. Outputs that depend on training, on times or on the analysis are quoted without this mark.
"""

import re
from decimal import Decimal, InvalidOperation

import pytest

from test_guides import BLOCK, GUIDES, TREE, checkout, run  # noqa: F401 (a fixture)

QUOTED = re.compile(r"^```bash guide\n((?:(?!^```).)*)^```$(?:(?!^```).)*?^```text output\n(.*?)^```$", re.M | re.S)
QUOTING = [path for path in GUIDES if QUOTED.search(path.read_text("utf-8"))]


def same(quoted: str, printed: str) -> bool:
    """The same word, or the same number up to one unit of the last quoted digit."""
    if quoted == printed:
        return True
    try:
        shown, got = Decimal(quoted), Decimal(printed)
    except InvalidOperation:
        return False
    exponent = shown.as_tuple().exponent
    return "." in quoted and isinstance(exponent, int) and abs(shown - got) <= Decimal(10) ** exponent


def misquoted(quoted: str, printed: str) -> list[str]:
    """The quoted lines with which no printed line begins."""
    lines = [line.split() for line in printed.splitlines()]
    return [
        line
        for line in quoted.splitlines()
        if not any(len(found) >= len(line.split()) and all(map(same, line.split(), found)) for found in lines)
    ]


def steps(page: str) -> list[tuple[str, str, str, str]]:
    """The marked blocks up to the last quotation, in order: (language, file to write, text, output quoted after it)."""
    quoted = {found.start(): found[2] for found in QUOTED.finditer(page)}
    return [
        (found[1], found[2] or "", found[3], quoted.get(found.start(), ""))
        for found in BLOCK.finditer(page)
        if found.start() <= max(quoted)
    ]


def test_quotations_are_found():
    assert {"README.md", "experiments/tutorial.md"} <= {path.relative_to(TREE).as_posix() for path in QUOTING}
    marked = sum(
        len(re.findall(r"^```text output$", path.read_text("utf-8"), re.M))
        for path in TREE.glob("**/*.md")
        if "build" not in path.relative_to(TREE).parts
    )
    assert marked == sum(bool(output) for path in QUOTING for _, _, _, output in steps(path.read_text("utf-8"))), (
        "a quotation without commands before it is not compared"
    )


@pytest.mark.parametrize("path", QUOTING, ids=lambda path: str(path.relative_to(TREE)))
def test_quotations_are_current(path, checkout):  # noqa: F811
    for language, name, text, output in steps(path.read_text("utf-8")):
        if name:
            (checkout / name).write_text(text)
            continue
        command = ["bash", "-euo", "pipefail"] if language == "bash" else ["/usr/bin/python3", "-"]
        printed = run(checkout, *command, text=text)
        assert not (wrong := misquoted(output, printed)), f"{path}: {wrong} not in\n{printed}"


def test_a_wrong_quotation_is_noticed():
    printed = "NAME  VARIANCE  ROWS  MS\nrloo     0.0549    96   2\n"
    assert misquoted("NAME  VARIANCE  ROWS\nrloo  0.0549  96\n", printed) == []
    assert misquoted("rloo 0.0548 96\n", printed) == []  # the last digit may be rounded
    wrong = ["rloo 0.0561 96", "rloo 0.0549 97", "nvil 0.0549 96", "rloo 0.0549 96 2 3"]
    assert misquoted("\n".join(wrong), printed) == wrong
