"""Word alignments: error rates by hand, IBM's models against sums over every alignment, and invalid files."""

import itertools
import math

import numpy as np
import pytest

from analysis.alignments import align, alignment_errors, diagonal, read_links
from analysis.errors import InputError
from analysis.ibm import ibm_models
from test_command import complaint, run

PAIRS = [
    ("la casa".split(), "the house".split()),
    ("la flor roja".split(), "the red flower".split()),
    (["casa"], ["house"]),
    ("flor la".split(), "flower".split()),
]


def test_error_rate_by_hand():
    found = [{(0, 0), (1, 1), (2, 1)}, {(0, 0)}]
    sure, possible = [{(0, 0), (1, 2)}, set()], [{(2, 1)}, set()]
    errors = alignment_errors(found, sure, possible)  # the second pair has no gold links
    assert errors == {"error_rate": pytest.approx(1 - (1 + 2) / (3 + 2)), "precision": 2 / 3, "recall": 1 / 2, "links": 3}
    assert alignment_errors([{(0, 0)}], [{(0, 0)}], [set()])["error_rate"] == 0
    assert math.isnan(alignment_errors([{(0, 0)}], [set()], [set()])["error_rate"])


def test_the_diagonal():
    assert diagonal((list("abcd"), list("xy"))) == {(1, 0), (3, 1)}
    assert diagonal((list("ab"), list("wxyz"))) == {(0, 0), (0, 1), (1, 2), (1, 3)}


def by_every_alignment(iterations: int):
    """Model 1, then 2, with expectations as sums over every alignment of each pair, by definition."""
    sources = {word for source, _ in PAIRS for word in source} | {None}
    together = {s: {t for source, target in PAIRS if s is None or s in source for t in target} for s in sources}
    translate = {(s, t): 1 / len(together[s]) for s in sources for t in together[s]}
    place = {(i, j, len(a), len(b)): 1 / (len(a) + 1) for a, b in PAIRS for i in range(len(a) + 1) for j in range(len(b))}
    likelihoods = []
    for second in (False, True):
        for _ in range(iterations):
            total, words, places = 0.0, {}, {}
            for source, target in PAIRS:
                L, T, known = len(source), len(target), [None, *source]
                ways = []
                for a in itertools.product(range(L + 1), repeat=T):
                    ways.append(
                        (a, math.prod(translate[known[i], t] * place[i, j, L, T] for j, (i, t) in enumerate(zip(a, target))))
                    )
                mass = sum(p for _, p in ways)
                total += math.log(mass)
                for a, p in ways:
                    for j, (i, t) in enumerate(zip(a, target)):
                        words[known[i], t] = words.get((known[i], t), 0) + p / mass
                        places[i, j, L, T] = places.get((i, j, L, T), 0) + p / mass
            likelihoods.append(total)
            translate = {(s, t): n / sum(m for (r, _), m in words.items() if r == s) for (s, t), n in words.items()}
            if second:
                place = {key: n / sum(m for other, m in places.items() if other[1:] == key[1:]) for key, n in places.items()}
    return likelihoods


def test_ibm_models_are_their_definition():
    first, second = ibm_models(PAIRS, iterations=4)
    assert np.allclose(first.log_likelihood + second.log_likelihood, by_every_alignment(4), rtol=1e-12)
    assert np.all(np.diff(first.log_likelihood) > 0) and np.all(np.diff(second.log_likelihood) > 0)
    assert first.links[0] >= {(1, 1)} and first.links[2] == {(0, 0)}


def write(folder, source, target, links, gold):
    folder.mkdir(exist_ok=True)
    for name, text in {"source": source, "target": target, "links": links, "gold": gold}.items():
        (folder / f"{name}.txt").write_text(text, "utf-8")
    return folder


def test_reordered_words_are_aligned_by_model_1_and_not_by_the_diagonal(tmp_path):
    rng = np.random.default_rng(1)
    lines = {"source": [], "target": [], "links": [], "gold": []}
    for _ in range(60):
        words = rng.choice(9, size=rng.integers(2, 6), replace=False)
        lines["source"].append(" ".join(f"s{w}" for w in words))
        lines["target"].append(" ".join(f"t{w}" for w in words[::-1]))
        lines["gold"].append(" ".join(f"{i}-{len(words) - 1 - i}" for i in range(len(words))))
        lines["links"].append(" ".join(f"0-{j}" for j in range(len(words))))
    folder = write(tmp_path / "a", *("\n".join(lines[name]) + "\n" for name in ("source", "target", "links", "gold")))
    found = align(folder).set_index("aligner").error_rate
    assert found["ibm1"] == 0 and found["ibm2"] == 0 and found["diagonal"] > 0.5 and found["network"] > 0.5
    few = write(tmp_path / "b", "s1 s2\n", "t2 t1\n", "\n", "0-1 1-0\n")  # one pair is too little to learn from
    assert align(few).set_index("aligner").error_rate["ibm1"] > 0
    assert align(few, training=folder).set_index("aligner").error_rate["ibm1"] == 0
    printed = run("align", few, "--train", folder, "--json")
    assert printed.returncode == 0 and '"ibm2"' in printed.stdout


def test_both_directions_agree_on_links_or_have_them_together(tmp_path):
    forth = write(tmp_path / "forth", "a b c\nd\n", "x y\nz\n", "0-0 2-1\n0-0\n", "0-0 1-1\n0-0\n")
    back = write(tmp_path / "back", "x y\nz\n", "a b c\nd\n", "0-0 1-1\n\n", "")  # x-a y-b; as links of the first: 0-0 1-1
    found = align(forth, reverse=back).set_index("aligner")
    for name, links, error in (
        ("network", 3, 1 - 4 / 6),
        ("network reverse", 2, 1 - 4 / 5),
        ("network both", 1, 1 - 2 / 4),
        ("network either", 4, 1 - 6 / 7),
    ):
        assert found.links[name] == links and found.error_rate[name] == pytest.approx(error), name
    assert {f"{model} {way}" for model in ("ibm1", "ibm2") for way in ("reverse", "both", "either")} <= set(found.index)
    assert found.links["ibm1 both"] <= min(found.links["ibm1"], found.links["ibm1 reverse"])
    assert "network both" in run("align", forth, "--reverse", back).stdout
    assert "ibm1 both" not in set(align(forth, agreed=True, reverse=back)["aligner"])
    # other pairs, in another order: those in both folders are evaluated
    other = write(tmp_path / "other", "v\nz\nx y\nx y\n", "w\nd\na b\na b c\n", "0-0\n\n\n0-0 1-1\n", "")
    same = align(forth, reverse=other)
    networks = same.aligner.str.startswith(("network", "diagonal"))
    assert same.attrs["pairs"] == 2 and same[networks].equals(align(forth, reverse=back)[networks])
    write(other, "z\n", "d\n", "0-0\n", "")
    assert align(forth, reverse=other).attrs["pairs"] == 1
    assert "1 of 2 pairs are in both folders" in run("align", forth, "--reverse", other).stderr
    write(other, "z\n", "e\n", "0-0\n", "")
    assert "source.txt: no pair is one of the others with source and target exchanged" in complaint(
        3, "align", forth, "--reverse", other
    )


def test_bad_files_are_one_line(tmp_path):
    folder = write(tmp_path / "a", "a b\n\n", "x y z\nu\n", "0-0\n\n", "0-0 1?2\n0-0\n")
    said = lambda: complaint(3, "align", folder)
    assert "gold.txt:2: link 0-0, but the pair has 0 and 1 words" in said()
    for gold, message in (
        ("0-0 1-3\n\n", "gold.txt:1: link 1-3, but the pair has 2 and 3 words"),
        ("0-0\n1\n", 'gold.txt:2: "1" is not a link'),
        ("0-0\n", "gold.txt: has 1 lines for 2 sentence pairs"),
        ("", "gold.txt: has 0 lines for 2"),
        ("0-0 99999999999-1\n\n", "is not a link"),
    ):
        (folder / "gold.txt").write_text(gold)
        assert message in said()
    (folder / "gold.txt").write_bytes(b"0-0\n\xff\n")
    assert "gold.txt:2: is not UTF-8" in said()
    (folder / "gold.txt").unlink()
    assert "gold.txt: cannot be read: No such file" in said()
    assert list(align(folder, agreed=True)["aligner"]) == ["network", "diagonal"]
    (folder / "source.txt").write_text("a b\n")
    assert "target.txt: has 2 lines, but source.txt has 1" in said()
    with pytest.raises(InputError):
        read_links(folder / "links.txt", [])
