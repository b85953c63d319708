"""The commands of the guides work. Their fenced blocks marked `guide` run in order, in a folder that looks like a clean checkout:

```bash guide           run by bash, which stops at the first failing command
```python guide         run by Debian's Python
```toml guide=NAME      written to the file NAME
```text shape           part of the output of the block before. It depends on training, so that numbers and verdicts may differ on another
                        machine: its words are compared
"""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

TREE = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+) guide(?:=(\S+))?\n(.*?)^```$", re.M | re.S)
STEP = re.compile(r"^```(\w+) (?:guide(?:=(\S+))?|shape)\n(.*?)^```$", re.M | re.S)
GUIDES = [
    path
    for path in sorted(TREE.glob("**/*.md"))
    if "build" not in path.relative_to(TREE).parts and BLOCK.search(path.read_text("utf-8"))
]


@pytest.fixture
def checkout(tmp_path):
    """Links to the tree's folders, an empty folder `results`, and the build as build/release."""
    for entry in TREE.iterdir():
        if entry.name not in ("build", "results", ".git"):
            (tmp_path / entry.name).symlink_to(entry)
    (tmp_path / "results").mkdir()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "release").symlink_to(os.environ.get("HARDGRAD_BUILD", TREE / "build" / "release"))
    return tmp_path


def run(folder, *command, text):
    env = dict(os.environ)
    if sanitizers := env.get("HARDGRAD_SANITIZE"):
        env["CXXFLAGS"] = f"-fsanitize={sanitizers}"
        if (
            "build/release/python" in text
        ):  # Python is not linked with the sanitizer's runtime, which must intercept C++ exceptions
            libraries = [
                subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
                for name in ("libasan.so", "libstdc++.so")
            ]
            env |= {"LD_PRELOAD": ":".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([*command], input=text, capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, f"{text}\n--- output:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


#: Words of the verdicts of `answer`, which another machine may give to none of the estimators.
_VERDICTS = set(
    "Better Worse beyond noise Not distinguishable No value at equal steps rows it has another loss or no evaluation near this cost "
    "train evaluate_every p points too few seeds".split()
)


def old_words(shown: str, printed: str) -> set[str]:
    """The words of a quotation that the command does not print, but for verdicts."""
    here, there = (set(re.findall(r"[A-Za-z_]\w*", text)) for text in (shown, printed))
    return here - there - _VERDICTS


def test_every_quotation_of_results_is_compared_and_an_old_one_is_noticed():
    pages = {path: len(re.findall(r"^```text shape$", path.read_text("utf-8"), re.M)) for path in GUIDES}
    assert sum(pages.values()) >= 2 and pages[TREE / "results/README.md"] == 2
    assert sum(language == "text" for path in GUIDES for language, _, _ in STEP.findall(path.read_text("utf-8"))) == sum(
        pages.values()
    )
    assert old_words("1 rloo 0.5 a", "2 rloo 0.7 b a") == set() and old_words("squared bias 2", "relative bias 3") == {
        "squared"
    }


def test_heads_leave_defaults_to_the_registry():
    """The head of an estimator's or model's file states no default value. The registry has it, and the two could differ."""
    heads = {
        path: re.match(r"(//.*\n)+", path.read_text())[0]
        for folder in ("estimators", "core/models")
        for path in (TREE / folder).glob("*.cpp")
        if path.read_text().startswith("//")
    }
    assert len(heads) > 50
    stated = re.compile(r"defaults? (?:is )?\w+ ?=? ?-?\d", re.I)
    assert stated.search("// sum to 1. Default k = 4.")
    assert [f"{path.name}: {found[0]}" for path, head in heads.items() if (found := stated.search(head))] == []


def test_all_guides_are_found():
    found = {str(path.relative_to(TREE)) for path in GUIDES}
    assert {
        "README.md",
        "core/models/README.md",
        "estimators/README.md",
        "experiments/configs/README.md",
        "experiments/tasks/README.md",
        "results/README.md",
    } <= found
    for path in TREE.glob("**/*.md"):  # a block with a misspelt marker would not run
        if "build" not in path.relative_to(TREE).parts:
            text = path.read_text("utf-8")
            assert len(re.findall(r"^```.*guide", text, re.M)) == len(BLOCK.findall(text)), path


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.relative_to(TREE)))
def test_commands_work(guide, checkout):
    if guide.parent.name == "python" and not (checkout / "build" / "release" / "python").exists():
        pytest.skip("this build has no Python package")
    if guide.parent.name == "python" and "thread" in os.environ.get("HARDGRAD_SANITIZE", ""):
        pytest.skip("the thread sanitizer does not see the threads of PyTorch")
    printed = ""
    for language, name, text in STEP.findall(guide.read_text("utf-8")):
        if language == "text":
            assert not (old := old_words(text, printed)), f"{guide} shows {sorted(old)}, which is not in\n{printed}"
        elif name:
            (checkout / name).write_text(text)
        elif language == "bash":
            printed = run(checkout, "bash", "-euo", "pipefail", text=text)
            assert printed.strip(), f"{text} prints nothing"
        else:
            assert language == "python", language
            printed = run(checkout, "/usr/bin/python3", "-", text=text)


def test_what_a_guide_shows_fails_when_it_is_wrong(checkout):
    with pytest.raises(AssertionError, match="nothing.toml"):
        run(checkout, "bash", "-euo", "pipefail", text="build/release/hardgrad run nothing.toml\ntrue\n")


def test_the_estimate_by_hand_is_the_programs(checkout):
    """core/README.md works one gradient out; the file that its command writes has the same choices, losses and gradient."""
    import h5py

    page = (TREE / "core/README.md").read_text("utf-8")
    run(checkout, "bash", "-euo", "pipefail", text=BLOCK.search(page)[3])
    rows = [re.findall(r"-?\d+(?:\.\d+)?", line) for line in re.findall(r"^\| (?:\d|mean).*\d \|$", page, re.M)]
    with h5py.File(checkout / "results" / "by_hand.h5") as file:
        losses, choices, gradient = file["loss"][0], file["choices"][0], file["gradient/bits.logits"][:, 0]
    p = 1 / (1 + np.exp(-0.5))
    scores = choices - p
    wanted = [[k + 1, *choices[k], losses[k], *scores[k], *losses[k] * scores[k]] for k in range(2)] + [
        [losses.mean(), *gradient]
    ]
    assert [len(row) for row in rows] == [8, 8, 3]
    for row, numbers in zip(rows, wanted):
        np.testing.assert_allclose([float(x) for x in row], numbers, atol=5e-5)


def test_the_base_classes_that_the_guide_names_exist():
    table = re.findall(
        r"^\| .* \| `?(.+?)`?(?:, and a `Handler`)? \| `(\w[\w/]*\.hpp)` \| `(\w+\.cpp)` \|$",
        (TREE / "estimators/README.md").read_text("utf-8"),
        re.M,
    )
    assert len(table) == 11
    for base, header, example in table:
        assert (TREE / "estimators" / example).is_file()
        text = (TREE / "core/estimator" / header).read_text()
        assert "`" in base or re.search(rf"class {base}\b", text), (base, header)
