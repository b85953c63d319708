"""Every number in a table of results/reference comes from a committed file; every picture has a command and words."""

import copy
import importlib.util
import json
import re
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from made_up import sweep
from PIL import Image

from analysis.errors import InputError
from analysis.result import Result
from analysis.site import REFERENCE, committed, rewritten, specified
from analysis.site.remake import declared
from analysis.site.studies import Study
from analysis.site.tables import markdown, number

PAGES = sorted(REFERENCE.glob("*.md"))
SCRIPTS = {"coverage": "data/coverage.json", "own_network": "data/own_network.json"}  # pages that a script prints from a file


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


QUOTED = ("claim", "published", "earlier", "verdict")  # columns of literature.md: numbers of papers, and of files that are gone


def tables_of(text):
    """The rows of every table, without its head."""
    found = re.findall(r"^\|.*\n\| ?---.*\n((?:\|.*\n?)*)", text, re.M)
    return [[[cell.strip() for cell in row.strip().strip("|").split("|")] for row in body.splitlines()] for body in found]


def numbers_in(rows):
    """Cells with a digit that is not part of a name in code."""
    return [cell for row in rows for cell in row if re.search(r"\d", re.sub(r"`[^`]*`|\]\([^)]*\)", "", cell))]


def without_a_file(text):
    """The tables with numbers that `analysis tables` does not write."""
    text = re.sub(r"<!-- table \w+ -->.*?<!-- end -->", "", text, flags=re.S)
    return [rows for rows in tables_of(text) if numbers_in(rows)]


def quoting(text):
    """The page without the columns that quote papers and earlier commits."""
    kept, left = [], ()
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        left = () if not cells else left or tuple(i for i, cell in enumerate(cells) if cell in QUOTED)
        kept.append("| " + " | ".join(cell for i, cell in enumerate(cells) if i not in left) + " |" if cells else line)
    return "\n".join(kept) + "\n"


def test_no_table_is_without_a_file():
    found = {page.name: without_a_file(quoting(page.read_text("utf-8"))) for page in PAGES if page.stem not in SCRIPTS}
    assert {name: rows for name, rows in found.items() if rows} == {} and len(found) > 15


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_page_is_what_its_script_prints(name):
    printed = subprocess.run([sys.executable, REFERENCE / f"{name}.py"], capture_output=True, text=True, check=True).stdout
    assert (REFERENCE / SCRIPTS[name]).exists() and printed == (REFERENCE / f"{name}.md").read_text("utf-8")


def test_the_finding_of_an_own_network_is_made_of_the_records():
    spec = importlib.util.spec_from_file_location("own_network", REFERENCE / "own_network.py")
    own = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    records = json.loads(own.FILE.read_text())
    for place, name, key, value, says in (
        (0, "rebar", "rank", 8, "from rank 13 to 8 with"), (0, "straight_through", "bias", 0.317, "bias of 0.32 of"),
        (0, "nvil", "work", 9.22049e5, "has 10 times"), (0, "group_normalised[samples=4]", "bias", 0.123, "a bias of 0.12 after"),
        (1, "rloo[samples=8]", "rank", 2, "`disarm` and `unordered_set[samples=4]` do not differ"),
        (1, "st_gumbel", "interval", [0.0, 0.3], "but for `reinmax` with 50 bits and `st_gumbel` with 8 bits"),
    ):  # fmt: skip
        changed = copy.deepcopy(records)
        next(each for each in changed[place]["steps"]["600"]["estimators"] if each["name"] == name)[key] = value
        before, after = (" ".join(own.page(of).split()) for of in (records, changed))
        assert says in after and says not in before


def test_every_picture_has_words_and_a_command():
    """Its alternative text says more than its name; a picture is drawn by `remake`, a script that the page names, or pictures.py."""
    drawn = {picture for one in declared(REFERENCE) for _, picture in one.figures}
    networks = {f"{one['name']}.png" for one in tomllib.loads((REFERENCE / "pictures.toml").read_text())["picture"]}
    used = set()
    for page in PAGES:
        text = page.read_text("utf-8")
        for words, file in re.findall(r"!\[([^\]]*)\]\(([^)]*\.png)\)", text):
            name = file.removesuffix(".png")
            ways = file in drawn, f"pictures.py {name}`" in text and file in networks, re.search(rf"{name}(_figure)?\.py", text)
            assert len(words.split()) >= 3 and any(ways) and (REFERENCE / file).exists(), f"{page.name}: {file}"
        used |= set(re.findall(r"\]\(([^)/]*\.png)\)", text))
    pictures = {path.name for path in REFERENCE.glob("*.png")}
    assert pictures - used <= {"report.png"} and networks <= used and len(used) > 20


def test_pictures_fit_a_page():
    """At most 6.6 inches wide at 150 dots an inch, so that letters of 9 points are 8 pixels on a screen of 400."""
    for one in tomllib.loads((REFERENCE / "pictures.toml").read_text())["picture"]:
        with Image.open(REFERENCE / f"{one['name']}.png") as picture:
            assert 400 <= picture.width <= 990 and picture.height <= 1.4 * picture.width, one["name"]


def test_the_numbers_are_counted(files):
    """Those of the tables that a file makes."""
    made = [rows for page in PAGES for place in re.findall(r"<!-- table \w+ -->\n(.*?)<!-- end -->", page.read_text("utf-8"), re.S)
            for rows in tables_of(place)]  # fmt: skip
    assert len(made) == len(files[0].table) >= 20 and all(map(numbers_in, made))
    assert sum(len(re.findall(r"\d[\d.,e+-]*", cell)) for rows in made for cell in numbers_in(rows)) > 600


def test_a_typed_number_is_found():
    head = "| a | published |\n|---|---|\n"
    assert without_a_file(head + "| `rloo[samples=4]` | x |\n") == []
    assert len(without_a_file(head + "| b | 12% |\n\n" + head + "| c | .3 |\n")) == 2
    assert without_a_file("<!-- table x -->\n" + head + "| b | 12% |\n<!-- end -->\n") == []
    assert without_a_file(quoting(head + "| b | 12% |\n")) == [] and len(without_a_file(quoting(head + "| 1 | 12% |\n"))) == 1


def test_every_table_is_of_a_study_with_a_file(files):
    found, studies = files
    names = {study.name for study in studies}
    assert names == {one.name for one in declared(REFERENCE)}
    assert [name for known in found for name, one in known.items() if one["study"] not in names] == []


def test_a_broken_mark_takes_no_text(files):
    text = "<!-- number babi_least -->1<!--\nend --> words <!-- number babi_least -->2<!-- end -->"
    assert rewritten(text, *files).startswith("<!-- number babi_least -->1<!--\nend --> words <!-- number babi_least -->9")


@pytest.mark.parametrize(
    "show, said",
    [
        ("each", "0.1, 0.2, 0.9"), ("mean", "0.4"), ("median", "0.2"), ("deviation", "0.4 ± 0.436"), ("spread", "0.1, 0.2, 0.9"),
        ("least", "0.1"), ("most", "0.9"), ("range", "0.1 to 0.9"), ("count", "2 of 3"),
    ],
)  # fmt: skip
def test_numbers_are_shown_as_asked(show, said):
    data = sweep(1, ["a"], 3)
    data["variance"].values[:, 0] = [0.1, 0.2, 0.9]
    column = {"quantity": "variance", "show": show, "least": 0.2}
    assert number({"name": "n", "study": "p", "of": {}, **column}, [Study("p", REFERENCE, Result(data), False)]) == said


def test_labels_match_by_parts_and_as_a_whole():
    data = sweep(2, ["a", "b"], 2)
    study = Study("p", REFERENCE, Result(data), False)
    of = lambda **more: number({"name": "n", "study": "p", "quantity": "variance", "show": "mean", **more}, [study])
    assert of(of={"estimator": "a", "task": "=t1"}, over={"estimator": "b"}) == "0.5"
    assert of(of={"estimator": "b", "task": "t*1"}) == "2"
    for wrong, words in (
        ({"task": "=t"}, "no run has task==t"),
        ({"estimator": "c"}, "no run has"),
        ({"nothing": "c"}, "have no nothing"),
    ):
        with pytest.raises(InputError, match=words):
            of(of=wrong)
    with pytest.raises(InputError, match="use one of least, most, range"):
        of(of={"estimator": "b", "task": "t1"}, show="worst")


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
