"""Every relative link and image of every tracked Markdown file refers to a file of the project, and every `#anchor` to a heading
of that file. Links to other sites are not checked."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest

TREE = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
INLINE = re.compile(r"\]\(\s*(<[^>]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+[\"'(][^)]*)?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*(\S+)", re.M)
HTML = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)\s*=\s*[\"']([^\"']*)", re.I)
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.I)


def git_files(*arguments: str) -> list[Path] | None:
    """The paths listed by `git ls-files`; None outside a checkout (in an unpacked archive)."""
    try:
        done = subprocess.run(["git", "-C", str(TREE), "ls-files", "-z", *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return [TREE / name for name in done.stdout.split("\0") if name] if done.returncode == 0 else None


def pages() -> list[Path]:
    tracked = git_files("--", "*.md")
    if tracked is None:
        tracked = [page for page in TREE.glob("**/*.md") if "build" not in page.relative_to(TREE).parts]
    return sorted(page for page in tracked if page.exists())


def without_code(text: str) -> str:
    """The text without fenced blocks, which may contain text that looks like a link."""
    kept, fence = [], ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = ""
        elif not fence:
            kept.append(line)
    return "\n".join(kept)


def links(text: str) -> list[str]:
    text = without_code(text)
    text = CODE.sub(lambda span: "`" + "x" * (len(span[0]) - 2) + "`", text)
    return [found.strip("<>") for pattern in (INLINE, REFERENCE, HTML) for found in pattern.findall(text)]


def anchors(text: str) -> set[str]:
    """The anchors of all headings: lower case, no punctuation, hyphens for spaces, numbered if repeated."""
    found: set[str] = set()
    for title in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", without_code(text), re.M):
        title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count, unique = 0, name
        while unique in found:
            count += 1
            unique = f"{name}-{count}"
        found.add(unique)
    return found


class Visit(NamedTuple):
    followed: int  # relative links
    broken: list[str]


def visit(page: Path, tree: Path, files: set[Path] | None) -> Visit:
    """Checks a page's relative links. `files`: the files of a fresh checkout; None if unknown."""
    followed, broken = 0, []
    for link in links(page.read_text("utf-8")):
        if SCHEME.match(link):
            continue
        followed += 1
        path, _, anchor = link.partition("#")
        target = (page.parent / unquote(path)).resolve() if path else page
        says = f"{page.relative_to(tree)}: {link}: "
        if link.startswith("/") or not target.is_relative_to(tree):
            broken.append(says + "leads out of the project")
        elif not target.exists():
            broken.append(says + "no such file")
        elif files is not None and target not in files and not any(file.is_relative_to(target) for file in files):
            broken.append(says + "a file that a fresh checkout does not have")
        elif anchor and (target.suffix != ".md" or unquote(anchor) not in anchors(target.read_text("utf-8"))):
            broken.append(says + "no such heading")
    return Visit(followed, broken)


def test_every_link_leads_somewhere():
    listed = git_files("--cached", "--others", "--exclude-standard")
    visits = {page: visit(page, TREE, None if listed is None else set(listed)) for page in pages()}
    assert [problem for seen in visits.values() for problem in seen.broken] == []
    assert len(visits) >= 12, "pages are missing"
    assert sum(seen.followed for seen in visits.values()) >= 100, "links were not found"
    assert visits[TREE / "README.md"].followed >= 10
    assert visits[TREE / "estimators" / "README.md"].followed >= 47


def test_the_front_page_leads_to_every_guide():
    """Every page can be reached from the front page by following links."""
    reached, waiting = set(), [TREE / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in links(page.read_text("utf-8")):
            target = (page.parent / unquote(link.partition("#")[0])).resolve()
            if not SCHEME.match(link) and target.suffix == ".md" and target.is_file():
                waiting.append(target)
    assert len(reached) >= 12 and set(pages()) - reached == set()


def test_the_front_page_is_short():
    assert len((TREE / "README.md").read_bytes()) <= 10_000


LONG = 2_500  # words, counted as `wc -w` does, tables too
#: Pages that are longer, and how long they may be. A page that was made shorter leaves the list.
LONGER = {"estimators/README.md": 4_100, "results/README.md": 2_700}


def too_long(words: dict[str, int]) -> list[str]:
    """Of pages and their words."""
    return [
        f"{page}: {count} words" for page, count in words.items() if count > LONGER.get(page, LONG) and page != "CHANGELOG.md"
    ]


def words_by_page() -> dict[str, int]:
    return {str(page.relative_to(TREE)): len(page.read_text("utf-8").split()) for page in pages()}


def test_no_page_is_long():
    assert too_long(words_by_page()) == []
    assert too_long({"a.md": LONG}) == [] and too_long({"a.md": LONG + 1, "CHANGELOG.md": LONG + 1}) == [
        f"a.md: {LONG + 1} words"
    ]


def test_all_pages_together_are_short():
    assert sum(words_by_page().values()) <= 55_000


def test_measured_results_are_read_in_an_hour():
    """All pages of results/reference together, and a page of one question; the files and the site have every number."""
    words = {page: count for page, count in words_by_page().items() if page.startswith("results/reference/")}
    assert sum(words.values()) <= 16_000
    assert {page for page, count in words.items() if count > 1_500} <= {"results/reference/literature.md"}


@pytest.mark.parametrize(
    "link, problem",
    [
        ("[a](missing.md)", "no such file"),
        ("![a](missing.png)", "no such file"),
        ("[`code`](missing.cpp)", "no such file"),
        ("[![a](missing.png)](other.md)", "no such file"),
        ("[a]\n\n[a]: missing.md", "no such file"),
        ('<img alt="a" src="missing.png">', "no such file"),
        ("[a](other.md#missing)", "no such heading"),
        ("[a](#missing)", "no such heading"),
        ("[a](#in-code)", "no such heading"),
        ("[a](../other.md)", "leads out of the project"),
        ("[a](/etc/hostname)", "leads out of the project"),
        ("[a](ignored.html)", "does not have"),
    ],
)
def test_a_broken_link_is_caught(tmp_path, link, problem):
    (tmp_path / "other.md").write_text("# One\n")
    (tmp_path / "ignored.html").write_text("made by a program\n")
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n```\n# In code\n```\n\nA line with {link} in it.\n" if "]: " not in link else f"{link}\n")
    broken = visit(page, tmp_path, {page, tmp_path / "other.md"}).broken
    assert len(broken) == 1 and problem in broken[0]


def test_good_links_and_code_are_no_problem(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.cpp").write_text("\n")
    (tmp_path / "other.md").write_text("# One thing, `two`\n\n## Again\n\n## Again\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n[a](other.md) [b](other.md#one-thing-two) [c](other.md#again-1) [d](folder) [e](#page)\n"
        '[f](folder/file.cpp "a title") [g](https://example.org/missing.md)\n\n'
        "`[a](missing.md)`, `a[i](x)` and\n\n```\n[a](missing.md)\n```\n"
    )
    files = {page, tmp_path / "other.md", tmp_path / "folder" / "file.cpp"}
    assert visit(page, tmp_path, files) == Visit(6, [])
