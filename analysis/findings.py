"""The findings of a result, in at most five plain sentences made from its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from .answer import Pairs, answer_and_pairs, unranked
from .errors import InputError
from .numbers_in_words import p_value, quantity_name, score
from .result import Result
from .table import table

MOST = 5
_NETWORKS = 6  # the first ones; more would not fit five sentences

#: What estimators are called in sentences; others by their names.
_NAMES = {
    "reinforce": "REINFORCE",
    "rloo": "leave-one-out",
    "moving_baseline": "a moving baseline",
    "straight_through": "straight-through",
    "gumbel_softmax": "Gumbel-softmax",
    "st_gumbel": "straight-through Gumbel-softmax",
    "entropy_regularised": "the entropy bonus",
    "nvil": "NVIL",
    "vimco": "VIMCO",
    "rebar": "REBAR",
    "relax": "RELAX",
    "arm": "ARM",
    "disarm": "DisARM",
    "reinmax": "ReinMax",
    "soft": "soft attention",
}


class _Finding(NamedTuple):
    kind: str
    network: str
    words: str
    sampled: bool = False  # the size of a ratio is sampled; one that is known comes first


def _name(estimator: str) -> str:
    """ "leave-one-out (rloo[samples=4])"; the name in the sweep alone if there is no other."""
    bare = estimator.split("[")[0]
    name = _NAMES.get(bare, "")
    told = all(word in name.lower() for word in bare.split("_")) and "[" not in estimator
    return name if name and told else f"{name} ({estimator})" if name else estimator


def findings(result: Result, at: str | int = "half") -> list[str]:
    """At most five sentences: failed runs; of each network which estimators differ beyond noise (of
    many estimators: from leave-one-out); whether another objective does better than the exact
    gradient; the score of a biased estimator; how far variances differ. A comparison of scores is
    made after equal steps, and gives the costs, the number of seeds, and the scores at equal rows;
    of several, the first one that holds at equal rows, too (`_Network.first`).
    Each p-value is corrected as in `answer`. A sentence names a cause only if it alone differs.
    Without a difference beyond noise, that is the finding. Empty if nothing was trained and nothing
    measured."""
    result, _ = result.page(1, _NETWORKS)
    frame = table(result, at)
    networks = {panel: name.split(" · ")[0] for panel, name in result.titles.items()}
    if len(set(networks.values())) < len(networks):
        networks = result.titles
    try:
        found, pairs = answer_and_pairs(result)
    except InputError:
        found, pairs = pd.DataFrame(), {}
    every = [_Finding("failed", line, f"{line}.") for line in unranked(result, found)]
    for panel, name in networks.items():
        measured = frame[(frame["task"] == panel[0]) & (frame["model"] == panel[1])]
        if len(found):
            own = found[
                (found["task"] == panel[0])
                & (found["model"] == panel[1])
                & np.isfinite(found["score"])
            ]
            part, by_rows = (
                own[own["budget"] == budget].reset_index(drop=True) for budget in ("steps", "rows")
            )
            every += _failures(name, part)
            if len(part) > 1 and part["seeds"].max() > 1:
                network = _Network(
                    name, part, by_rows, pairs[(*panel, "steps")], pairs.get((*panel, "rows"))
                )
                every += (
                    [network.against()]
                    if "baseline" in set(part["verdict"])
                    else _of_training(network, measured)
                )
        every += _of_moments(name, measured)
    return [one.words for one in _chosen(every)]


def _chosen(every: list[_Finding]) -> list[_Finding]:
    """One of each kind first, then the others, in the order of the networks; networks that were not
    named yet come first."""
    kept: list[_Finding] = []
    kinds = ("failed", "differ", "objective", "biased", "variance", "same")
    left = sorted(every, key=lambda one: one.sampled)
    while left and len(kept) < MOST:
        best = min(
            left,
            key=lambda one: (
                one.kind in {k.kind for k in kept},
                one.network in {k.network for k in kept},
                kinds.index(one.kind),
            ),
        )
        kept.append(best)
        left.remove(best)
    return sorted(kept, key=lambda one: kinds.index(one.kind))


def _shown(row: pd.Series) -> str:
    """ "97.6%", "0.680"."""
    return score(True, row["score"]) if row["share"] else f"{row['score']:#.3g}".rstrip(".")


def _failures(network: str, part: pd.DataFrame) -> list[_Finding]:
    failed = part[part["failed"] > 0]
    each = ", ".join(
        f"{row.failed} of {row.runs} of {_name(str(row.estimator))}" for row in failed.itertuples()
    )
    return (
        [
            _Finding(
                "failed",
                network,
                f"On {network} runs failed or had an infinite loss, and count as the worst "
                f"score: {each}.",
            )
        ]
        if each
        else []
    )


def _rounded(rows: float) -> str:
    """Three digits: "241,000"."""
    return f"{float(f'{rows:.3g}'):,.0f}"


_Compared = tuple[pd.Series, pd.Series, float]


class _Network(NamedTuple):
    """The answer for one network."""

    name: str
    part: pd.DataFrame  # at equal steps, the best first
    by_rows: pd.DataFrame  # at equal rows
    pairs: Pairs
    row_pairs: Pairs | None

    def compared(
        self, first: pd.Series, second: pd.Series, p: float, of: tuple[str, str] = ("", "")
    ) -> str:
        """ "after 600 steps rloo (241,000 rows) ends at 88.0% exact match, reinforce (60,300 rows)
        at 20.2% (p = .02, 8 seeds); at equal rows (60,300) at 36.0% and 20.2% (p = .3)". `of`: a
        clause for each."""
        ends = [self._costed(row) + words for row, words in zip((first, second), of)]
        return (
            f"after {first['at']:,.0f} steps {ends[0]} ends at {_shown(first)} "
            f"{quantity_name(str(first['quantity']))}, {ends[1]} at {_shown(second)} "
            f"({p_value(p)}, {self.pairs.seeds(first['estimator'], second['estimator'])} "
            f"seeds){self._at_equal_rows(first, second)}"
        )

    def _costed(self, row: pd.Series) -> str:
        """The name, and the rows if they differ between estimators: "leave-one-out (rloo, 241,000
        rows)"."""
        name = _name(row["estimator"])
        if not np.isfinite(row["rows"]) or self.part["rows"].nunique() < 2:
            return name
        rows = f"{_rounded(row['rows'])} rows"
        return f"{name[:-1]}, {rows})" if name.endswith(")") else f"{name} ({rows})"

    def _at_equal_rows(self, first: pd.Series, second: pd.Series) -> str:
        """How the comparison ends at equal rows; "" if rows were not recorded or are equal."""
        if (
            not np.isfinite([first["rows"], second["rows"]]).all()
            or first["rows"] == second["rows"]
        ):
            return ""
        scores = self.by_rows.set_index("estimator") if len(self.by_rows) else self.by_rows
        names = [first["estimator"], second["estimator"]]
        seeds = self.row_pairs.seeds(*names) if self.row_pairs else 0
        if seeds < 2 or not set(names) <= set(scores.index):
            return "; no comparison at equal rows, for lack of evaluations (train.evaluate_every)"
        one, other = (scores.loc[name] for name in names)
        p = self.row_pairs.p_value(*names) if self.row_pairs else np.nan
        few = f", {seeds} seeds" if seeds < self.pairs.seeds(*names) else ""
        return (
            f"; at equal rows ({_rounded(one['at'])}) at {_shown(one)} and {_shown(other)} "
            f"({p_value(p)}{few})"
        )

    def holds(self, best: pd.Series, worse: pd.Series) -> bool:
        """Whether a difference at equal steps is one at equal rows, too; also if rows are equal, or
        were not recorded."""
        rows = np.array([best["rows"], worse["rows"]])
        if not np.isfinite(rows).all() or rows[0] == rows[1]:
            return True
        names = best["estimator"], worse["estimator"]
        return (
            self.row_pairs is not None
            and set(names) <= set(self.row_pairs.estimators)
            and names[1] in self.row_pairs.worse_than(names[0])
        )

    def first(self, compared: Iterable[tuple[pd.Series, pd.Series]]) -> _Compared | None:
        """Of pairs, the better one first, the first that differs beyond noise at equal steps and at
        equal rows, else the first that differs at equal steps, with its p-value."""
        found: _Compared | None = None
        for best, worse in compared:
            p = self.pairs.worse_than(best["estimator"]).get(worse["estimator"])
            if p is not None and self.holds(best, worse):
                return best, worse, p
            if p is not None and found is None:
                found = best, worse, p
        return found

    def against(self) -> _Finding:
        """Of many estimators: how many are better and worse than the baseline beyond noise, with
        the most extreme ones."""
        base, words = self.part[self.part["verdict"] == "baseline"].iloc[0], []
        for budget, part in (("", self.part), ("at equal rows", self.by_rows)):
            counts = []
            for verdict in ("better", "worse"):
                rows = part[part["verdict"] == verdict]
                rows = rows.iloc[::-1] if verdict == "worse" else rows
                most = ", ".join(
                    f"{self._costed(row)} with {_shown(row)} ({p_value(row['p_corrected'])})"
                    for _, row in rows.head(2).iterrows()
                )
                counts.append(
                    f"{len(rows)} {verdict}" + (f", such as {most}" if most and not budget else "")
                )
            if len(part) > 1:
                words.append(
                    (f"{budget} " if budget else "") + (", " if budget else "; ").join(counts)
                )
        return _Finding(
            "differ",
            self.name,
            f"On {self.name} after {base['at']:,.0f} steps {self._costed(base)} ends at "
            f"{_shown(base)} "
            f"{quantity_name(base['quantity'])} ({base['seeds']} seeds); of "
            f"{len(self.part) - 1} others, beyond noise, {'; '.join(words)}.",
        )


def _of_training(network: _Network, measured: pd.DataFrame) -> Iterator[_Finding]:
    """Findings about the scores of one network."""
    part = network.part
    if (part["verdict"] == "worse").sum() == 0:
        first, last_one = part.iloc[0], part.iloc[-1]
        seeds = sorted({int(part["seeds"].min()), int(part["seeds"].max())})
        yield _Finding(
            "same",
            network.name,
            f"On {network.name} after {first['at']:,.0f} steps no estimator differs from the "
            "best beyond noise: "
            f"{quantity_name(str(first['quantity']))} from {_shown(first)} for "
            f"{_name(first['estimator'])} to {_shown(last_one)} for "
            f"{_name(last_one['estimator'])}, {len(part)} estimators, "
            f"{' to '.join(map(str, seeds))} seeds.",
        )
        return
    unbiased = set(measured.loc[measured["unbiased"], "estimator"])
    noise_free = set(measured.loc[(measured["variance"] == 0) & measured["unbiased"], "estimator"])
    targets = {row["estimator"]: row["target"] for _, row in part.iterrows()}
    main = part["target"].value_counts().index[0]
    own = part[part["target"] == main]

    # The best and the worst estimator of one target: sampled and unbiased ones if there are two,
    # since their objective is the same.
    sampled = own[own["estimator"].isin(unbiased - noise_free)]
    for several in (sampled, own[~own["estimator"].isin(noise_free)], own, part):
        each = [row for _, row in several.iterrows()]
        extremes = (
            (best, worst) for i, best in enumerate(each) for worst in reversed(each[i + 1 :])
        )
        if found := network.first(extremes):
            best, worst, p = found
            noisier = ("", _noisier(best, worst, measured))
            said = network.compared(best, worst, p, noisier)
            yield _Finding("differ", network.name, f"On {network.name} {said}.")
            break

    # Another objective against the expected loss, both without noise and without bias: the
    # objective alone differs.
    exact = own[own["estimator"].isin(noise_free)]
    others = part[
        (part["target"] != main) & (part["target"] != "") & part["estimator"].isin(noise_free)
    ]
    both = ((one, plain) for _, one in others.iterrows() for _, plain in exact.iterrows())
    if found := network.first(both):
        best, plain, p = found
        of = [f", the {_target(targets[row['estimator']])} without noise," for row in (best, plain)]
        said = network.compared(best, plain, p, (of[0], of[1]))
        yield _Finding(
            "objective", network.name, f"On {network.name} the objective matters: {said}."
        )

    # A biased estimator beside the best sampled unbiased one of its target. They differ in their
    # variance, too, so that the bias is no known cause.
    biased = {
        row["estimator"]: row["relative_bias"]
        for _, row in measured.iterrows()
        if not row["unbiased"]
        and row["relative_bias_low"] > 0
        and row["relative_bias"] > 0
        and not row["relative_bias_unsupported"]
    }
    rows = own[own["estimator"].isin(biased)]
    best_sampled = [row for _, row in sampled.head(1).iterrows()]
    ordered = (
        (one, best) if _better(one, best) else (best, one)
        for _, one in rows.iterrows()
        for best in best_sampled
    )
    if found := network.first(ordered):
        words = [
            f", biased by {100 * biased[row['estimator']]:.0f}% of the gradient,"
            if row["estimator"] in biased
            else ", the best unbiased sample,"
            for row in found[:2]
        ]
        said = network.compared(*found, (words[0], words[1]))
        yield _Finding("biased", network.name, f"On {network.name} {said}.")


def _better(first: pd.Series, second: pd.Series) -> bool:
    return bool((first["score"] < second["score"]) == first["lower_is_better"])


def _target(name: str) -> str:
    return name.replace("_", " ")


def _noisier(best: pd.Series, worst: pd.Series, measured: pd.DataFrame) -> str:
    """ ", with 40 times the variance," of the worst; "" if the variances are not known to differ
    so."""
    of = measured.drop_duplicates("estimator").set_index("estimator")
    if {best["estimator"], worst["estimator"]} <= set(of.index) and _apart(
        of.loc[worst["estimator"]], of.loc[best["estimator"]]
    ):
        return (
            f", with {_times(of.loc[worst['estimator']], of.loc[best['estimator']])} the "
            "variance of one gradient,"
        )
    return ""


def _of_moments(network: str, measured: pd.DataFrame) -> Iterator[_Finding]:
    """A finding about bias and variance of one network, without training: the noisiest and the
    quietest unbiased estimator of one target, and the largest bias."""
    sampled = measured[measured["unbiased"] & (measured["variance"] > 0)]
    main = sampled["target"].value_counts().index[0] if len(sampled) else ""
    sampled = sampled[sampled["target"] == main].sort_values("variance")
    if len(sampled) < 2:
        return
    least, most = sampled.iloc[0], sampled.iloc[-1]
    biased = measured[
        ~measured["unbiased"]
        & (measured["relative_bias_low"] > 0)
        & ~measured["relative_bias_unsupported"]
    ].sort_values("relative_bias")
    if not _apart(most, least):
        return
    words = (
        f"On {network}, at step {most['measured_at']}, {_name(most['estimator'])} has "
        f"{_times(most, least)} the variance of "
        f"{_name(least['estimator'])}{_per_row(most, least)}"
    )
    if len(biased):
        one = biased.iloc[-1]
        words += (
            f"; the mean of {_name(one['estimator'])} is off by "
            f"{100 * one['relative_bias']:.0f}% of the gradient"
        )
    yield _Finding("variance", network, words + ".", "about" in _times(most, least))


def _per_row(more: pd.Series, less: pd.Series) -> str:
    """ " for one gradient, 10 times at equal rows", if their costs differ."""
    ratios = [
        more[name] / less[name] if less[name] > 0 else np.nan
        for name in ("variance", "work_normalised_variance")
    ]
    return (
        f" for one gradient, {ratios[1]:.2g} times at equal rows"
        if np.isfinite(ratios).all() and not np.isclose(ratios[0], ratios[1])
        else ""
    )


def _apart(more: pd.Series, less: pd.Series) -> bool:
    """Whether the intervals of two variances do not overlap, and both are known to be positive."""
    return bool(less["variance_low"] > 0 and more["variance_low"] > less["variance_high"])


def _times(more: pd.Series, less: pd.Series) -> str:
    """ "575 times"; of sampled variances only the first digit: "about 60 times"."""
    ratio = more["variance"] / less["variance"]
    exact = (more["variance_high"] - more["variance_low"]) / more["variance"] + (
        less["variance_high"] - less["variance_low"]
    ) / less["variance"] < 0.2
    return f"{ratio:.3g} times" if exact else f"about {float(f'{ratio:.0e}'):.0f} times"
