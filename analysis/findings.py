"""The findings of a result, in at most five plain sentences made from its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from .answer import Pairs, answer_and_pairs
from .drawing import titles
from .errors import InputError
from .groups import page, panels
from .numbers_in_words import number, p_value, quantity_name, score
from .quantities import is_share, lower_is_better
from .table import table

MOST = 5
_NETWORKS = 6  # the first ones; more would not fit five sentences
_SOLVED, _UNSOLVED = 0.9, 0.6  # shares: an estimator solves a task, or does not

#: What estimators are called in sentences; others by their names.
_NAMES = {"reinforce": "REINFORCE", "rloo": "leave-one-out",
          "moving_baseline": "a moving baseline", "straight_through": "straight-through", "gumbel_softmax": "Gumbel-softmax",
          "st_gumbel": "straight-through Gumbel-softmax", "entropy_regularised": "the entropy bonus", "nvil": "NVIL", "vimco": "VIMCO",
          "rebar": "REBAR", "relax": "RELAX", "arm": "ARM", "disarm": "DisARM", "reinmax": "ReinMax", "soft": "soft attention"}


class _Finding(NamedTuple):
    kind: str
    network: str
    words: str
    sampled: bool = False  # the size of a ratio is sampled; one that is known comes first


def _name(estimator: str) -> str:
    """"leave-one-out (rloo[samples=4])"; the name in the sweep alone if there is no other."""
    bare = estimator.split("[")[0]
    name = _NAMES.get(bare, "")
    told = all(word in name.lower() for word in bare.split("_")) and "[" not in estimator
    return name if name and told else f"{name} ({estimator})" if name else estimator


def findings(data: xr.Dataset, at: str | int = "half") -> list[str]:
    """At most five sentences: of each network which estimators differ beyond noise (of many estimators: from leave-one-out); whether another objective does better than the exact
    gradient; the score of a biased estimator; how far variances differ. Each names its numbers and its p-value (corrected as in
    `answer`). Without a difference beyond noise, that is the finding. Empty if nothing was trained and nothing measured."""
    data, _ = page(data, 1, _NETWORKS)
    frame = table(data, at)
    names = dict(zip(panels(data), titles(list(panels(data)))))
    networks = {panel: name.split(" · ")[0] for panel, name in names.items()}
    if len(set(networks.values())) < len(networks):
        networks = names
    try:
        found, pairs = answer_and_pairs(data)
    except InputError:
        found, pairs = pd.DataFrame(), {}
    every: list[_Finding] = []
    for panel, name in networks.items():
        measured = frame[(frame["task"] == panel[0]) & (frame["model"] == panel[1])]
        if len(found):
            part = found[(found["task"] == panel[0]) & (found["model"] == panel[1])]
            part = part[(part["budget"] == "steps") & np.isfinite(part["score"])]
            if len(part) > 1 and part["seeds"].max() > 1:
                part = part.reset_index(drop=True)
                every += [_against(name, part)] if "baseline" in set(part["verdict"]) else _of_training(pairs[panel], name, part, measured)
        every += _of_moments(name, measured)
    return [one.words for one in _chosen(every)]


def _chosen(every: list[_Finding]) -> list[_Finding]:
    """One of each kind first, then the others, in the order of the networks; networks that were not named yet come first."""
    kept: list[_Finding] = []
    kinds, left = ("differ", "objective", "biased", "variance", "same"), sorted(every, key=lambda one: one.sampled)
    while left and len(kept) < MOST:
        best = min(left, key=lambda one: (one.kind in {k.kind for k in kept}, one.network in {k.network for k in kept}, kinds.index(one.kind)))
        kept.append(best)
        left.remove(best)
    return sorted(kept, key=lambda one: kinds.index(one.kind))


def _shown(row: pd.Series) -> str:
    """"97.6%", "0.680"."""
    return score(row["quantity"], row["score"]) if is_share(row["quantity"]) else f"{row['score']:#.3g}".rstrip(".")


def _of_training(pairs: Pairs, network: str, part: pd.DataFrame, measured: pd.DataFrame) -> Iterator[_Finding]:
    """Findings about the scores of one network at equal steps; `part`: its rows of the answer, the best first."""
    quantity = str(part["quantity"].iloc[0])
    what, seeds = quantity_name(quantity), int(part["seeds"].max())
    if (part["verdict"] == "worse").sum() == 0:
        first, last_one = part.iloc[0], part.iloc[-1]
        yield _Finding("same", network, f"On {network} no estimator differs from the best beyond noise: {what} from {_shown(first)} "
                       f"for {_name(first['estimator'])} to {_shown(last_one)} for {_name(last_one['estimator'])}, {len(part)} estimators, {seeds} seeds.")
        return
    unbiased = set(measured.loc[measured["unbiased"], "estimator"])
    noise_free = set(measured.loc[(measured["variance"] == 0) & measured["unbiased"], "estimator"])
    targets = {row["estimator"]: row["target"] for _, row in part.iterrows()}
    main = part["target"].value_counts().index[0]
    own = part[part["target"] == main]

    # The best and the worst estimator of one target: sampled and unbiased ones if there are two, since their objective is the same.
    sampled = own[own["estimator"].isin(unbiased - noise_free)]
    for several in (sampled, own[~own["estimator"].isin(noise_free)], own, part):
        if len(several) < 2:
            continue
        best, worse = several.iloc[0], pairs.worse_than(several.iloc[0]["estimator"])
        rest = several[several["estimator"].isin(worse)]
        if len(rest):
            worst = rest.iloc[-1]
            yield _Finding("differ", network, _differ(network, what, best, worst, worse[worst["estimator"]], measured))
            break

    # Another objective against the expected loss without noise.
    exact = own[own["estimator"].isin(noise_free)]
    others = part[(part["target"] != main) & (part["target"] != "")]
    if len(exact) and len(others):
        best, plain = others.iloc[0], exact.iloc[0]
        p = pairs.worse_than(best["estimator"]).get(plain["estimator"])
        if p is not None:
            yield _Finding("objective", network, f"On {network} the objective matters more than the noise: {_name(best['estimator'])} (of the "
                           f"{_target(targets[best['estimator']])}) reaches {_shown(best)} {what}, {_name(plain['estimator'])} (of the "
                           f"{_target(main)}, without noise) {_shown(plain)} ({p_value(p)}).")

    # A biased estimator against the best sampled unbiased one of its target.
    biased = {row["estimator"]: row["relative_bias"] for _, row in measured.iterrows()
              if not row["unbiased"] and row["relative_bias_low"] > 0 and row["relative_bias"] > 0}
    rows = own[own["estimator"].isin(biased)]
    for _, one in rows.iterrows() if len(sampled) else ():
        best = sampled.iloc[0]
        first, second = (one, best) if _better(one, best) else (best, one)
        p = pairs.worse_than(first["estimator"]).get(second["estimator"])
        if p is not None:
            yield _Finding("biased", network, f"On {network} a bias {'pays' if first is one else 'costs'}: {_name(one['estimator'])}, whose mean is off "
                           f"by {100 * biased[one['estimator']]:.0f}% of the gradient, ends at {_shown(one)} {what}, {_name(best['estimator'])}, the best "
                           f"unbiased sample, at {_shown(best)} ({p_value(p)}).")
            break


def _against(network: str, part: pd.DataFrame) -> _Finding:
    """Of many estimators: how many are better and worse than the baseline beyond noise, with the most extreme ones."""
    base, words = part[part["verdict"] == "baseline"].iloc[0], []
    for verdict, rows in (("better", part[part["verdict"] == "better"]), ("worse", part[part["verdict"] == "worse"].iloc[::-1])):
        most = ", ".join(f"{_name(row['estimator'])} with {_shown(row)} ({p_value(row['p_corrected'])})" for _, row in rows.head(2).iterrows())
        words.append(f"{len(rows)} {verdict}" + (f", such as {most}" if most else ""))
    return _Finding("differ", network, f"On {network} {_name(base['estimator'])} ends at {_shown(base)} {quantity_name(base['quantity'])}; of {len(part) - 1} "
                    f"others, beyond noise, {'; '.join(words)}.")


def _better(first: pd.Series, second: pd.Series) -> bool:
    return bool((first["score"] < second["score"]) == lower_is_better(str(first["quantity"])))


def _target(name: str) -> str:
    return name.replace("_", " ")


def _differ(network: str, what: str, best: pd.Series, worst: pd.Series, p: float, measured: pd.DataFrame) -> str:
    of = measured.drop_duplicates("estimator").set_index("estimator")
    why = ""
    if {best["estimator"], worst["estimator"]} <= set(of.index) and _apart(of.loc[worst["estimator"]], of.loc[best["estimator"]]):
        why = f", with {_times(of.loc[worst['estimator']], of.loc[best['estimator']])} the variance,"
    if is_share(str(best["quantity"])) and not lower_is_better(str(best["quantity"])) and best["score"] >= _SOLVED and worst["score"] < _UNSOLVED:
        return (f"On {network} {_name(best['estimator'])} solves the task, {_name(worst['estimator'])}{why} does not: {_shown(best)} against {_shown(worst)} "
                f"{what} ({p_value(p)}).")
    return f"On {network} {_name(best['estimator'])} ends at {_shown(best)} {what}, {_name(worst['estimator'])}{why} at {_shown(worst)} ({p_value(p)})."


def _of_moments(network: str, measured: pd.DataFrame) -> Iterator[_Finding]:
    """A finding about bias and variance of one network, without training: the noisiest and the quietest unbiased estimator of one target,
    and the largest bias."""
    sampled = measured[measured["unbiased"] & (measured["variance"] > 0)]
    main = sampled["target"].value_counts().index[0] if len(sampled) else ""
    sampled = sampled[sampled["target"] == main].sort_values("variance")
    if len(sampled) < 2:
        return
    least, most = sampled.iloc[0], sampled.iloc[-1]
    biased = measured[~measured["unbiased"] & (measured["relative_bias_low"] > 0)].sort_values("relative_bias")
    if not _apart(most, least):
        return
    words = (f"On {network}, at step {most['measured_at']}, {_name(most['estimator'])} has {_times(most, least)} the variance of "
             f"{_name(least['estimator'])}")
    if len(biased):
        one = biased.iloc[-1]
        words += f"; the mean of {_name(one['estimator'])} is off by {100 * one['relative_bias']:.0f}% of the gradient"
    yield _Finding("variance", network, words + ".", "about" in _times(most, least))


def _apart(more: pd.Series, less: pd.Series) -> bool:
    """Whether the intervals of two variances do not overlap, and both are known to be positive."""
    return bool(less["variance_low"] > 0 and more["variance_low"] > less["variance_high"])


def _times(more: pd.Series, less: pd.Series) -> str:
    """"575 times"; of sampled variances only the first digit: "about 60 times"."""
    ratio = more["variance"] / less["variance"]
    exact = (more["variance_high"] - more["variance_low"]) / more["variance"] + (less["variance_high"] - less["variance_low"]) / less["variance"] < 0.2
    return f"{ratio:.3g} times" if exact else f"about {float(f'{ratio:.0e}'):.0f} times"
