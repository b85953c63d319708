"""The pictures of the pages (experiments/docs/pictures): each SVG is what its Graphviz source says, and the sources are true."""

import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from test_links import TREE, git_files, pages

PICTURES = TREE / "experiments" / "docs" / "pictures"
SOURCES = sorted(PICTURES.glob("*.dot"))
SVG = "{http://www.w3.org/2000/svg}"


class Picture(NamedTuple):
    nodes: dict[str, tuple[str, str]]  # words and class by name
    arrows: dict[tuple[str, str], list[tuple[str, str]]]  # words and class of each arrow from one node to another


def words(label: str) -> str:
    return " ".join(re.sub(r"\\[nlr]", " ", label).split())


def in_source(text: str) -> Picture:
    text = re.sub(r"^ *//.*$", "", text, flags=re.M)
    nodes: dict[str, tuple[str, str]] = {}
    arrows: dict[tuple[str, str], list[tuple[str, str]]] = {}
    quoted = r'"([^"]*)"'
    for name, to, attributes in re.findall(
        rf'(?<!=){quoted}(?: -> ({quoted[0]}[^"]*"|\{{[^}}]*\}}))?(?: \[((?:[^]"]|"[^"]*")*)\])?;', text
    ):
        has = dict(re.findall(rf"(\w+)={quoted}", attributes))
        if not to:
            nodes[name] = words(has.get("label", name)), has.get("class", "")
        for end in re.findall(quoted, to):
            arrows.setdefault((name, end), []).append((words(has.get("label", "")), has.get("class", "")))
    return Picture(nodes, arrows)


def in_svg(text: str) -> Picture:
    nodes: dict[str, tuple[str, str]] = {}
    arrows: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for group in ElementTree.fromstring(text).iter(f"{SVG}g"):
        kind, _, own = group.get("class", "").partition(" ")
        title = group.findtext(f"{SVG}title", "")
        said = " ".join(" ".join("".join(line.itertext()) for line in group.findall(f"{SVG}text")).split()), own
        if kind == "node":
            nodes[title] = said
        elif kind == "edge":
            start, end = title.split("->")
            arrows.setdefault((start, end), []).append(said)
    return Picture(nodes, arrows)


def folders() -> dict[tuple[str, str], str]:
    """A file for each pair of folders one of whose sources includes the other's."""

    def of(path: str) -> str:
        top, *rest = path.split("/")
        return top if top == "estimators" else "/".join([top, *rest[:1]]) if len(rest) > 1 else ""  # "" of core/plugin.hpp

    listed = git_files("--", "*.cpp", "*.hpp")
    found = listed if listed is not None else [*TREE.glob("**/*.cpp"), *TREE.glob("**/*.hpp")]
    pairs = {}
    for path in (path.relative_to(TREE).as_posix() for path in found if path.exists()):
        if path.startswith(("core/", "estimators/", "experiments/")):
            for included in re.findall(r'^#include "([^"]+/[^"]+)"', (TREE / path).read_text("utf-8"), re.M):
                if of(path) and of(included) and of(path) != of(included):
                    pairs[of(path), of(included)] = f"{path} includes {included}"
    return pairs


def reached(start: str, arrows: set[tuple[str, str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        ends = {end for begin, end in arrows if begin == waiting[-1]} - found
        waiting.pop()
        found |= ends
        waiting += ends
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_picture_is_what_its_source_says(source):
    """Names, words, arrows and classes: places depend on the version of Graphviz and on fonts. Else draw.py draws it again."""
    drawn, said = in_svg(source.with_suffix(".svg").read_text("utf-8")), in_source(source.read_text("utf-8"))
    assert len(said.nodes) > 5 and drawn.nodes == said.nodes
    assert {pair: sorted(arrows) for pair, arrows in drawn.arrows.items()} == {
        pair: sorted(arrows) for pair, arrows in said.arrows.items()
    }


def test_a_changed_source_is_noticed():
    source = 'digraph x {\n  // "no" -> "node";\n  "a" [label="A\\nb", class="c"]; "b";\n  "a" -> {"b" "a"} [label="to"];\n}\n'
    assert in_source(source) == Picture(
        {"a": ("A b", "c"), "b": ("b", "")}, {("a", "b"): [("to", "")], ("a", "a"): [("to", "")]}
    )


def test_the_arrows_are_the_includes_of_the_tree():
    """A folder includes others along the arrows: no include without a way, and no arrow without an include."""
    picture = in_source((PICTURES / "architecture.dot").read_text("utf-8"))
    arrows = {pair for pair, said in picture.arrows.items() if ("", "file") not in said}
    includes = folders()
    assert len(includes) > 60
    assert {name for name, (_, kind) in picture.nodes.items() if "/" in name or kind == "own"} == {
        name for pair in includes for name in pair
    }
    assert [text for (begin, end), text in includes.items() if end not in reached(begin, arrows)] == []
    assert arrows - set(includes) == set(), "no file includes this"
    assert [begin for begin, _ in arrows if begin in reached(begin, arrows)] == [], "folders include each other"
    assert {name for name, (_, kind) in picture.nodes.items() if kind == "reach"} == reached("estimators", arrows)
    assert not [
        path
        for path in (TREE / "analysis").rglob("*.py")
        if re.search(r"^\s*(import|from) hardgrad", path.read_text("utf-8"), re.M)
    ]


def test_the_files_of_a_sweep_have_these_names():
    picture = in_source((PICTURES / "sweep.dot").read_text("utf-8"))
    sources = "\n".join(path.read_text("utf-8") for path in (TREE / "experiments").rglob("*.?pp"))
    names = [said.split()[0] for said, kind in picture.nodes.values() if kind == "file"]
    endings = [re.sub(r"^[A-Z]+(?=\.)", "", name) for name in names]
    assert len(endings) == 8 and [name for name in endings if name not in sources] == []


def test_every_picture_has_its_text_on_a_page():
    shown = {
        (page.parent / path).resolve(): text
        for page in pages()
        for text, path in re.findall(r"!\[([^\]]*)\]\(([^)]*\.svg)\)", page.read_text("utf-8"))
    }
    assert set(shown) == {source.with_suffix(".svg") for source in SOURCES} and len(SOURCES) == 3
    assert all(len(text) > 80 for text in shown.values())
