"""results/README.md names variables as the table of quantities does, with its axes and units."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(
    r'^    (measured|measured_by|logged|number|words|loss)\(\s*"([\w*]+)",?\s*(?:&\w+::\w+,\s*)?(?:"(\w*)",)?(.*?)\),$',
    re.M | re.S,
)
_AXES = {"measured": "measurement_step", "logged": "step", "loss": "evaluation_step"}
_LABELS = {
    "*_interval": "bound",
    **{f"{name}_by_group": "parameter_group" for name in ("variance", "squared_bias", "relative_bias", "bias_p_value_plain")},
    "attention_entropy_by_site": "site",
    "bias_against": "target",
}


def quantities() -> dict[str, tuple[str, str]]:
    """By name: the axes and the units of all rows of the table."""
    source = (ROOT / "experiments/measurement/quantities.hpp").read_text("utf-8")
    source = source.split("inline constexpr Quantity all[] = {")[1].split("\n};")[0]
    found = {}
    for kind, name, axis, rest in _ROW.findall(source):
        axis = "measurement_step" if kind == "measured_by" else _AXES.get(kind, axis)
        axes = ", ".join(part for part in ("run", axis, _LABELS.get(name, "")) if part)
        units = re.search(r'\.units = "(\w*)"', rest)
        found[name] = ("–" if name == "configuration" else axes, units[1] if units else "")
    assert len(found) == len(re.findall(r"^    [a-z_]+\(", source, re.M))
    return found


def named() -> list[tuple[str, str, str]]:
    """Name, axes and units of every variable in the page's tables."""
    page = (ROOT / "results/README.md").read_text("utf-8")
    found = []
    for block in re.split(r"^\| variable.*\n\|---.*\n", page, flags=re.M)[1:]:
        for row in re.match(r"(\|.*\n)*", block)[0].splitlines():
            names, axes = row.split(" | ")[:2]
            found += [
                (re.sub(r"<\w+>", "*", name), axes, units) for name, units in re.findall(r"`([\w<>]+)`(?: \((\w+)\))?", names)
            ]
    return found


def test_every_variable_on_the_page_is_in_the_table():
    table, page = quantities(), named()
    assert len(table) > 70 and len(page) > 70
    grid = {"task", "model", "estimator"}
    wrong = [
        entry
        for entry in page
        if entry[0] not in grid and (entry[0] if entry[0] != "heldout_*" else "heldout_elbo") not in table
    ]
    assert not wrong
    for name, axes, units in page:
        if name not in grid | {"heldout_*"}:
            assert axes == table[name][0], name
            assert units in ("", table[name][1]) or table[name][1] == "", name
