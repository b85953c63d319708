"""Plain words: comments, docstrings, messages and pages avoid phrases that readers stumbled over.

Each entry is a pattern and what to write instead. Names of functions and variables are not read, nor are code blocks of pages.
"""

import io
import re
import tokenize
from collections import Counter
from pathlib import Path

from test_links import TREE, git_files

BANNED = {
    r"whoever|nobody|no one\b": "name the subject: the caller, the user, no estimator",
    r"\bof (which|what|whom)\b": "a sentence of its own, or `whose`",
    r"\bwhat (is|was|are|were|it|they|he|one|each|an?|the|all|both|no|has|had|does|do|did|can|cannot|could|must|may|says|comes|"
    r"came|makes|made|follows|stands|takes|needs|would|will)\b(?![^.]*\?)": "the noun that is meant: the value, the part, the rows",
    r"\b(that|which|who|what) (is|are) no\b(?! (longer|more|less|larger|smaller|better|worse|wider|greater|later))": "is not a ...",
    r"for want of": "without, for lack of",
    r"\b(go|goes|going|gone|went) (down|up)\b": "decreases, minimises, is minimised",
    r"\b(hand|hands|handed|handing) (it |them |this )?(over|down|on|back)\b": "passes, returns",
    r"\b(is|are|was|were|be|been|being|cannot be) (looked at|said|told)\b": "is read, is reported, the message says",
    r"\bsays? so\b|\bsaid so\b": "reports it, raises an error",
    r"without a word": "silently",
    r"\bby heart\b": "memorised, kept",
    r"\b(is|are|was|were|be|been) (worth|nothing but)\b": "state the fact",
    r"\b(its|their|his|her) own (part|right|sake)\b": "",
    r"\bthe turn of\b": "waits for",
    r"\bat (one|a) go\b": "at once",
    r"\bcosts? (time|memory), never\b": "affects speed only",
    r"\bnot the least\b|\bto the letter\b": "exactly",
}


def spoken(path: Path) -> list[tuple[int, str]]:
    """The comments and strings of a source, or the text of a page: (line, text)."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        blank = lambda found: re.sub(r"[^\n]", " ", found[0])
        text = re.sub(r"^ *```.*?^ *```", blank, text, flags=re.S | re.M)
        text = re.sub(r"`[^`\n]*`", blank, text)
        return list(enumerate(text.splitlines(), 1))
    if path.suffix == ".py":
        kinds = (tokenize.COMMENT, tokenize.STRING)
        return [
            (token.start[0] + number, line)
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type in kinds
            for number, line in enumerate(token.string.splitlines())
        ]
    if path.suffix in (".cpp", ".hpp", ".c"):
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            found += [(number, part) for part in re.findall(r'//.*|"(?:[^"\\]|\\.)*"', line)]
        return found
    return [(number, line[line.index("#") :]) for number, line in enumerate(text.splitlines(), 1) if "#" in line]


def sources() -> list[Path]:
    kinds = ["*.md", "*.py", "*.cpp", "*.hpp", "*.c", "*.toml", "*.sh", "CMakeLists.txt", "**/CMakeLists.txt"]
    listed = git_files("--", *kinds)
    if listed is None:
        listed = [path for kind in kinds for path in TREE.rglob(kind) if "build" not in path.relative_to(TREE).parts]
    return [path for path in listed if path.exists() and path != Path(__file__).resolve()]


def stumbles(path: Path) -> list[str]:
    return [
        f"{path.relative_to(TREE)}:{number}: '{found[0]}': {instead or 'say it plainly'}"
        for number, line in spoken(path)
        for pattern, instead in BANNED.items()
        for found in re.finditer(pattern, line, re.I)
    ]


def test_no_banned_phrases():
    read = sources()
    found = [stumble for path in read for stumble in stumbles(path)]
    assert not found, "\n".join([f"{len(found)} phrases", *found])
    assert Counter(path.suffix for path in read)[".cpp"] >= 400 and len(read) >= 800


def test_lines_of_pages_are_at_most_120_columns():
    """Except in tables and in code. Inline code is blanked, not removed, so that columns count."""
    read = [path for path in sources() if path.suffix == ".md"]
    wide = [
        f"{path.relative_to(TREE)}:{number}"
        for path in read
        for number, line in spoken(path)
        if len(line.rstrip()) > 120 and not line.startswith(("|", "!["))
    ]
    assert not wide and len(read) >= 19


def test_they_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "TREE", tmp_path)
    (tmp_path / "a.cpp").write_text('int nobody = 1;  // nobody knows\nf("what is left");  // of which\n')
    (tmp_path / "a.py").write_text('"""Whoever calls."""\nnobody = 1  # for want of a name\n')
    (tmp_path / "a.md").write_text("`nobody`\n```\nnobody\n```\nWhat is in the file? What is no number is no result.\n")
    assert [len(stumbles(tmp_path / name)) for name in ("a.cpp", "a.py", "a.md")] == [3, 2, 2]
