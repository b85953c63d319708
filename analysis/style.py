"""Looks of estimators: the same colour and marker in every figure, legible to colour-blind readers and in print."""

from __future__ import annotations

import zlib
from typing import NamedTuple

# Okabe and Ito's palette without its yellow, which is invisible on white paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
LINES = ("-", "--", "-.", ":")
# Each has a fixed look, in every figure of every file.
KNOWN = ("rloo", "reinforce", "exact", "nvil", "moving_baseline", "soft", "exact_marginal", "entropy_regularised",
         "variational_bound", "rebar", "disarm", "relax", "arm", "arms", "unordered_set", "sum_and_sample", "stratified", "vimco",
         "iwae_reinforce", "ovis", "wake_wake", "gumbel_softmax", "st_gumbel", "straight_through", "gumbel_rao", "gapped_st",
         "reinmax", "muprop", "double_cv", "rodeo", "self_critic", "soft_baseline", "optimal_baseline", "systematic",
         "wor_importance", "local_expectation", "mvd", "ars", "arsm", "carms", "disarm_tree", "disarm_stick", "tvo", "wake_sleep",
         "wsram", "sparsemax", "kmax_marginal", "group_normalised", "maxrl",
         "bitflip", "ugc", "vargrad", "stochastic_ad",
         "implicit_mle", "local_disarm", "reinmax_rao", "disarm_iw",
         "reinmax_cv", "james_stein")


class Look(NamedTuple):
    colour: str
    marker: str
    line: str


def looks(labels: list[str]) -> dict[str, Look]:
    """A look per label (an estimator's spec). Known estimators keep theirs across files. Combinations of colour and marker repeat only
    after 70 labels."""
    places = len(COLOURS) * len(MARKERS)
    taken: set[int] = set()
    result: dict[str, Look] = {}

    def wanted(label: str) -> int:
        name = label.split("[")[0].split()[0] if label else ""
        return KNOWN.index(name) if name in KNOWN else zlib.crc32(name.encode()) % places

    def is_known(label: str) -> bool:
        return label.split("[")[0] in KNOWN

    for label in sorted(set(labels), key=lambda text: (not is_known(text), text)):
        place = wanted(label)
        for _ in range(places):
            if place not in taken:
                break
            place = (place + 11) % places  # another colour and another marker
        taken.add(place)
        result[label] = Look(COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)],
                             LINES[place // len(COLOURS) % len(LINES)])
    return result
