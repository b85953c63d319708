"""IBM Models 1 and 2 (Brown, Della Pietra, Della Pietra & Mercer 1993): word alignment without a
network, as a baseline for attention.

Each word of a target sentence is translated from one word of its source sentence or from none
(NULL). Model 1: all are equally likely, p(t | s) = sum_i p(t | s_i) / (L + 1). Model 2: position i
has a probability that depends on the target position j and on both lengths, a(i | j, L, T). Both
are learned by expectation-maximisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: A sentence pair; links (source position, target position), from 0.
Pair = tuple[Sequence[str], Sequence[str]]
Links = set[tuple[int, int]]


@dataclass
class _Cells:
    """Every (source word or NULL, target word) of every pair, concatenated; NULL is position 0."""

    pair: np.ndarray  # [cells] index of the pair
    i: np.ndarray  # [cells] source position, from 1; 0: NULL
    j: np.ndarray  # [cells] target position, from 0
    word: np.ndarray  # [cells] index of the target word among all pairs
    translation: np.ndarray  # [cells] index of (source word, target word)
    source_of: np.ndarray  # [translations] source word of each
    position: np.ndarray  # [cells] index of (i, j, L, T)
    group_of: np.ndarray  # [positions] index of (j, L, T)


def _numbers(words: list[str]) -> np.ndarray:
    return np.unique(words, return_inverse=True)[1]


def _cells(pairs: Sequence[Pair]) -> _Cells:
    sources = _numbers(
        ["" for _ in pairs] + [word for source, _ in pairs for word in source]
    )  # "" is NULL, no word is empty
    null, sources = int(sources[0]), sources[len(pairs) :]
    targets = _numbers([word for _, target in pairs for word in target])
    lengths = np.array([(len(source), len(target)) for source, target in pairs])
    first = np.concatenate([[[0, 0]], np.cumsum(lengths, axis=0)])
    parts = []
    for b, (L, T) in enumerate(lengths):
        i, j = (grid.ravel() for grid in np.meshgrid(np.arange(L + 1), np.arange(T), indexing="ij"))
        s = np.concatenate([[null], sources[first[b, 0] : first[b + 1, 0]]])[i]
        word = first[b, 1] + j
        parts.append(
            np.stack(
                [
                    np.full(len(i), b),
                    i,
                    j,
                    word,
                    s,
                    targets[word],
                    np.full(len(i), L),
                    np.full(len(i), T),
                ]
            )
        )
    pair, i, j, word, s, t, L, T = np.concatenate(parts, axis=1)
    translations, translation = np.unique(s * (targets.max() + 1) + t, return_inverse=True)
    most = lengths.max() + 1
    group = (j * most + L) * most + T
    positions, position = np.unique(group * most + i, return_inverse=True)
    return _Cells(
        pair,
        i,
        j,
        word,
        translation,
        translations // (targets.max() + 1),
        position,
        np.unique(positions // most, return_inverse=True)[1],
    )


def _shares(weight: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Each weight divided by the sum of its group."""
    return weight / np.bincount(of, weight)[of]


@dataclass
class Alignment:
    """Links of each pair, and the log likelihood of the target words after the E step of each
    iteration."""

    links: list[Links]
    log_likelihood: list[float]


def ibm_models(pairs: Sequence[Pair], iterations: int = 5) -> tuple[Alignment, Alignment]:
    """Models 1 and 2, trained on the pairs (none may be empty). Every target word is aligned with
    its most likely source word, or with none. Model 2 starts from the translations of Model 1. Each
    runs `iterations` of expectation-maximisation, from uniform probabilities."""
    cells = _cells(pairs)
    translation = np.ones(len(cells.source_of))
    translation = _shares(translation, cells.source_of)
    place = _shares(np.ones(len(cells.group_of)), cells.group_of)
    found = []
    for second in (False, True):
        likelihood = []
        for _ in range(iterations):
            joint = translation[cells.translation] * place[cells.position]
            likelihood.append(float(np.log(np.bincount(cells.word, joint)).sum()))
            expected = _shares(joint, cells.word)
            translation = _shares(np.bincount(cells.translation, expected), cells.source_of)
            if second:
                place = _shares(np.bincount(cells.position, expected), cells.group_of)
        found.append(
            Alignment(
                _likeliest(
                    cells, translation[cells.translation] * place[cells.position], len(pairs)
                ),
                likelihood,
            )
        )
    return found[0], found[1]


def _likeliest(cells: _Cells, joint: np.ndarray, pairs: int) -> list[Links]:
    """The links of every target word's largest cell. Ties: the first, and a source word before
    NULL."""
    order = np.lexsort((np.where(cells.i == 0, cells.i.max() + 1, cells.i), -joint, cells.word))
    best = order[np.unique(cells.word[order], return_index=True)[1]]
    links: list[Links] = [set() for _ in range(pairs)]
    for cell in best[cells.i[best] > 0]:
        links[cells.pair[cell]].add((int(cells.i[cell]) - 1, int(cells.j[cell])))
    return links
