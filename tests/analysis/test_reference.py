"""Every number in a table of results/reference comes from a committed file, or its section says that it was not re-made."""

import re

import numpy as np
import pytest
from made_up import sweep

from analysis.errors import InputError
from analysis.result import Result
from analysis.site import REFERENCE, committed, rewritten, specified
from analysis.site.studies import Study
from analysis.site.tables import markdown, number

PAGES = sorted(REFERENCE.glob("*.md"))
NOT_REMADE = "**Not re-made:**"


@pytest.fixture(scope="module")
def files():
    return specified(REFERENCE / "tables.toml"), committed(REFERENCE / "data")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_are_those_of_the_files(page, files):
    text = page.read_text("utf-8")
    assert rewritten(text, *files) == text, f"{page.name}: run python3 -m analysis tables"


def test_every_table_has_a_place(files):
    for kind, known in files[0]._asdict().items():
        places = re.findall(rf"<!-- {kind} (\w+) -->", "".join(page.read_text("utf-8") for page in PAGES))
        assert sorted(places) == sorted(known)


def test_a_changed_digit_on_a_page_is_noticed(files):
    page = next(page for page in PAGES if "<!-- table" in page.read_text("utf-8"))
    text = page.read_text("utf-8")
    for place in re.finditer(r"<!-- (?:table|number) \w+ -->\n?(.*?)<!-- end -->", text, re.S):
        at = place.start(1) + max(match.start() for match in re.finditer(r"\d", place[1]))
        wrong = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
        assert rewritten(wrong, *files) == text


def test_a_changed_number_in_a_file_is_noticed(files):
    found, studies = files
    for make, known in ((markdown, found.table), (number, found.number)):
        for name, one in known.items():
            study = next(each for each in studies if each.name == one["study"])
            quantities = {column["quantity"] for column in one.get("columns", [one]) if isinstance(column, dict)} | (
                {"variance"} if "network" in one else set()
            )
            other = study._replace(
                result=Result(study.result.data.assign({q: study.result.data[q] * 1.5 + 0.01 for q in quantities}))
            )
            assert make(one, [other]) != make(one, [study]), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_other_tables_say_that_they_were_not_remade(page):
    text = re.sub(r"<!-- table \w+ -->.*?<!-- end -->", "", page.read_text("utf-8"), flags=re.S)
    top, *sections = re.split(r"^## ", text, flags=re.M)
    for section in sections or [top]:
        typed = re.search(r"^\|---", section, re.M)
        numbers = typed and re.search(r"^\|.*\d.*\|$", section[typed.end() :], re.M)
        assert not numbers or NOT_REMADE in section or NOT_REMADE in top, f"{page.name}, {section.strip().splitlines()[0]}"


@pytest.mark.parametrize("name", ["coverage", "own_network", "policies", "trained"])
def test_the_words_of_a_page_are_those_of_its_script(name):
    """The files of these pages are not kept, so that only their words can be compared."""
    page, script = (" ".join(path.read_text("utf-8").split()) for path in (REFERENCE / f"{name}.md", REFERENCE / f"{name}.py"))
    texts = [text.replace("{policies}", "20").strip() for text in re.findall(r'(?:^| )[A-Z]+ = """(#.*?)"""', script)]
    assert texts and [text for text in texts if text not in page] == []


def test_a_cell_is_of_one_row_of_runs():
    data = sweep(2, ["a", "b"], 2)
    study = Study("planted", REFERENCE, Result(data), False)
    table = {
        "name": "t",
        "study": "planted",
        "head": ["estimator"],
        "rows": [{"words": ["a"], "estimator": "a"}],
        "columns": [{"title": "v", "quantity": "variance", "show": "mean", "of": {"task": "t1"}}],
    }
    assert markdown(table, [study]) == "| estimator | v |\n| --- | --- |\n| a | 1 |\n"
    several = {"name": "n", "study": "planted", "of": {"estimator": "b"}, "quantity": "variance", "show": "range"}
    assert number(several, [study]) == "2" and number({**several, "of": {}}, [study]) == "1 to 2"
    assert markdown({"name": "t", "study": "planted", "network": "t1", "columns": ["variance"]}, [study]).splitlines()[2:] == [
        "| `a` | 1 |",
        "| `b` | 2 |",
    ]
    some = {"name": "t", "study": "planted", "network": "t1", "estimators": ["b"], "columns": ["variance"]}
    assert markdown(some, [study]).splitlines()[2:] == ["| `b` | 2 |"]
    with pytest.raises(InputError, match="has no c"):
        markdown({**some, "estimators": ["b", "c"]}, [study])
    table["columns"][0]["of"] = {}
    with pytest.raises(InputError, match="matches"):
        markdown(table, [study])
    data["variance"][:] = np.nan
    table["columns"][0]["of"] = {"task": "t0"}
    assert markdown(table, [study]).splitlines()[-1] == "| a | – |"
