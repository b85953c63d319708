"""Word alignments in folders of `hardgrad evaluate --alignments`, evaluated against gold links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from .errors import InputError
from .ibm import Links, Pair, ibm_models


def alignment_errors(
    found: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links]
) -> dict[str, float]:
    """Och & Ney (2003), sec. 6, over all sentences with gold links. With A the links found, S the
    sure links and P the possible links (which include S): `error_rate` 1 - (|A & S| + |A & P|) /
    (|A| + |S|), `precision` |A & P| / |A|, `recall` |A & S| / |S|, `links` |A|."""
    judged = [(a, s, p | s) for a, s, p in zip(found, sure, possible, strict=True) if p | s]
    links, wanted = sum(len(a) for a, _, _ in judged), sum(len(s) for _, s, _ in judged)
    right_sure, right = sum(len(a & s) for a, s, _ in judged), sum(len(a & p) for a, _, p in judged)

    def share(part: float, whole: float) -> float:
        return part / whole if whole else float("nan")

    return {
        "error_rate": 1 - share(right_sure + right, links + wanted),
        "precision": share(right, links),
        "recall": share(right_sure, wanted),
        "links": links,
    }


def diagonal(pair: Pair) -> Links:
    """Links every target word to the source word at the same relative position."""
    source, target = pair
    return {((2 * j + 1) * len(source) // (2 * len(target)), j) for j in range(len(target))}


def align(
    folder: str | Path,
    training: str | Path | None = None,
    iterations: int = 5,
    agreed: bool = False,
    reverse: str | Path | None = None,
) -> pd.DataFrame:
    """A row for each aligner, the best first: the network (`links.txt`), the diagonal, and IBM
    Models 1 and 2. The IBM models are trained on the folder's pairs and those of a `training`
    folder. Columns are those of `alignment_errors`. Sentences without gold links are not evaluated;
    pairs with an empty side are not trained on. If `agreed`, the links on which the IBM models
    agree replace those of `gold.txt`; the IBM models then have no rows.

    `reverse`: a folder with pairs in the other direction, source and target exchanged, from a
    network trained in that direction; in any order. Only pairs that are in both folders are then
    evaluated (`attrs`: their number `pairs`, of `all_pairs`). The network and the IBM models have
    three further rows: the reverse links, the links that both directions have (`both`), and those
    that at least one has (`either`); the symmetrization of Och & Ney 2003."""
    folder = Path(folder)
    pairs = read_pairs(folder)
    if not agreed:
        sure, possible = read_links(folder / "gold.txt", pairs)
    more = read_pairs(Path(training)) if training else []
    network, ibm = _all_links(folder, pairs), _ibm_links(pairs, more, iterations)
    if agreed:
        sure = possible = [a & b for a, b in zip(*ibm.values(), strict=True)]
    aligners = {"network": network, "diagonal": [diagonal(pair) for pair in pairs]} | (
        {} if agreed else ibm
    )
    if reverse is not None:
        turned = read_pairs(Path(reverse))
        places = _in_both(pairs, turned, Path(reverse))
        aligners = {name: [links[b] for b, _ in places] for name, links in aligners.items()}
        sure, possible = ([links[b] for b, _ in places] for links in (sure, possible))
        others = {"network": _all_links(Path(reverse), turned)}
        if not agreed:
            others |= _ibm_links(turned, [(target, source) for source, target in more], iterations)
        for name, links in others.items():
            back = [{(i, j) for j, i in links[c]} for _, c in places]
            aligners |= {
                f"{name} reverse": back,
                f"{name} both": [a & b for a, b in zip(aligners[name], back, strict=True)],
                f"{name} either": [a | b for a, b in zip(aligners[name], back, strict=True)],
            }
    rows: list[dict[str, object]] = [
        {"aligner": name} | dict(alignment_errors(found, sure, possible))
        for name, found in aligners.items()
    ]
    table = pd.DataFrame(rows).sort_values("error_rate", kind="stable", ignore_index=True)
    table.attrs |= {"pairs": len(sure), "all_pairs": len(pairs)}
    return table


def _all_links(folder: Path, pairs: Sequence[Pair]) -> list[Links]:
    return [a | b for a, b in zip(*read_links(folder / "links.txt", pairs), strict=True)]


def _ibm_links(
    pairs: Sequence[Pair], more: Sequence[Pair], iterations: int
) -> dict[str, list[Links]]:
    """Links of the pairs by IBM Models 1 and 2 trained on these and on `more`; none of pairs with
    an empty side."""
    whole = [b for b, (source, target) in enumerate(pairs) if source and target]
    models = ibm_models(
        [pairs[b] for b in whole] + [pair for pair in more if pair[0] and pair[1]], iterations
    )
    found: dict[str, list[Links]] = {}
    for name, model in zip(("ibm1", "ibm2"), models, strict=True):
        found[name] = [set() for _ in pairs]
        for b, of_pair in zip(whole, model.links, strict=False):
            found[name][b] = of_pair
    return found


def _in_both(pairs: Sequence[Pair], turned: Sequence[Pair], folder: Path) -> list[tuple[int, int]]:
    """The places in `pairs` and in `turned`, the pairs of `folder`, of those that are in both with
    source and target exchanged."""
    place = {
        (tuple(target), tuple(source)): c
        for c, (source, target) in reversed(list(enumerate(turned)))
    }
    both = [
        (b, place[key])
        for b, (source, target) in enumerate(pairs)
        if (key := (tuple(source), tuple(target))) in place
    ]
    if not both:
        raise InputError(
            f"{folder / 'source.txt'}: no pair is one of the others with source and target "
            "exchanged; "
            "--reverse takes the same sentences, translated in the other direction"
        )
    return both


def _lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}:{data[: error.start].count(10) + 1}: is not UTF-8") from error
    return text.removesuffix("\n").split("\n") if text else []


def read_pairs(folder: Path) -> list[Pair]:
    """The words of `source.txt` and `target.txt`, line by line."""
    source, target = (_lines(folder / name) for name in ("source.txt", "target.txt"))
    if len(source) != len(target):
        raise InputError(
            f"{folder / 'target.txt'}: has {len(target)} lines, but source.txt has {len(source)}"
        )
    pairs: list[Pair] = [(s.split(), t.split()) for s, t in zip(source, target, strict=True)]
    if not any(s and t for s, t in pairs):
        raise InputError(f"{folder / 'source.txt'}: has no sentence pair")
    return pairs


def read_links(path: Path, pairs: Sequence[Pair]) -> tuple[list[Links], list[Links]]:
    """Sure links (0-0) and possible links (1?2) of every pair, one line each."""
    lines = _lines(path)
    if len(lines) != len(pairs):
        raise InputError(f"{path}: has {len(lines)} lines for {len(pairs)} sentence pairs")
    kinds: dict[str, list[Links]] = {"-": [], "?": []}
    for number, (line, (source, target)) in enumerate(zip(lines, pairs, strict=True), start=1):
        for links in kinds.values():
            links.append(set())
        for text in line.split():
            match = re.fullmatch(r"([0-9]{1,9})([-?])([0-9]{1,9})", text)
            if not match:
                raise InputError(
                    f'{path}:{number}: "{text[:40]}" is not a link; expected "0-0 1-2 2?3"'
                )
            i, j = int(match[1]), int(match[3])
            if i >= len(source) or j >= len(target):
                raise InputError(
                    f"{path}:{number}: link {text}, but the pair has {len(source)} and "
                    f"{len(target)} words (numbered from 0)"
                )
            kinds[match[2]][-1].add((i, j))
    return kinds["-"], kinds["?"]
