"""Published claims, tested on the committed results. `results/reference/claims.toml` states each of
them as an order of numbers or a bound."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ..errors import InputError
from ..frames import matches, per_run
from ..groups import Group, Network
from ..numbers_in_words import bare_p, number, quantity_name, score
from ..output import file_name
from ..page import Html, link, rows_table
from ..result import Result, tomllib
from ..rounding import at_step
from ..statistics import (
    Mean,
    fewest_pairs,
    mean_interval,
    pairwise_differences,
    propagated_difference,
    propagated_mean,
)
from .pages import Site, document
from .studies import Study, command, slug

#: Quantities that are compared by their ratios: they are positive and span orders of magnitude.
_RATIOS = ("variance", "work_normalised_variance")


class Tested(NamedTuple):
    """A claim and its verdict, with the numbers."""

    claim: dict[
        str, Any
    ]  # name, says, source, study, model, quantity, at, order or estimators and at_most or at_least
    study: Study
    network: Network
    verdict: str  # reproduced, not reproduced, undecided
    rows: list[list[str]]  # of each estimator: its name, its mean over the seeds, every seed
    steps: list[
        list[str]
    ]  # of each step of the order: the two, the difference or ratio with its interval, p


def claimed(path: Path) -> list[dict[str, Any]]:
    """The claims of a file. InputError if it cannot be read."""
    try:
        return list(tomllib.loads(path.read_text("utf-8")).get("claim", []))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def stated(claim: dict[str, Any], studies: list[Study]) -> bool:
    """Whether a committed study among these has the claim's network."""
    return any(
        claim.get("network", "") in " ".join(network)
        for one in studies
        if one.name == claim["study"] and not one.own
        for network in one.result.panels
    )


def tested(claim: dict[str, Any], studies: list[Study]) -> Tested:
    """The verdict. An order holds from each estimator to the next: the first is better (of a
    score), or lower (of a variance or bias). It is reproduced if every step is beyond noise in the
    claimed direction (differences paired over seeds, corrected for the number of steps, Dunn 1961;
    of too few seeds, a measured quantity by its own intervals, which is a statement about these
    networks alone), not reproduced if one is beyond noise in the other direction, otherwise
    undecided. A bound holds if the mean of each estimator keeps it. InputError if the study lacks
    an estimator or a quantity of the claim."""
    where = f"claim {claim['name']}"
    study = next((one for one in studies if one.name == claim["study"] and not one.own), None)
    if study is None:
        raise InputError(f"{where}: there is no study {claim['study']}")
    networks = [
        network for network in study.result.panels if claim.get("network", "") in " ".join(network)
    ]
    if len(networks) != 1:
        raise InputError(
            f"{where}: {len(networks)} networks of {study.name} have "
            f"{claim.get('network', '')!r} in their names; one is needed"
        )
    names = claim.get("order") or claim["estimators"]
    groups = [_only(where, name, study.result.panels[networks[0]]) for name in names]
    quantity = claim["quantity"]
    scores, seeds = study.result.by_seed(
        groups, per_run(study.result, quantity, claim.get("at", "first"))
    )
    if not np.isfinite(scores).any(axis=1).all():
        raise InputError(f"{where}: an estimator has no {quantity}")
    means = [
        mean_interval(row, log=quantity in _RATIOS and bool((row > 0).all())) for row in scores
    ]
    rows = [
        [
            name,
            score(study.result.is_share(quantity), *mean[:3]),
            ", ".join(number(one) for one in row),
        ]
        for name, mean, row in zip(names, means, scores)
    ]
    if "order" not in claim:
        kept = all(
            mean.mean <= claim.get("at_most", np.inf)
            and mean.mean >= claim.get("at_least", -np.inf)
            for mean in means
        )
        return Tested(
            claim, study, networks[0], "reproduced" if kept else "not reproduced", rows, []
        )
    ratio = quantity in _RATIOS and bool((scores > 0).all())
    lower = study.result.lower_is_better(quantity)
    signed = np.log(scores) if ratio else scores if lower else -scores
    differences = pairwise_differences(signed, tests=len(names) - 1)
    own = (
        _measured(study.result, groups, quantity, claim.get("at", "first"), ratio)
        if len(seeds) < fewest_pairs()
        else None
    )
    steps, verdicts = [], []
    for i in range(len(names) - 1):
        middle, low, high, _, p = (float(part[i + 1, i]) for part in differences)
        if own is not None:
            middle, low, high, p = _in_these_networks(own[i + 1], own[i], len(names) - 1)
        verdicts.append("reproduced" if low > 0 else "not reproduced" if high < 0 else "undecided")
        ends = sorted((low, high)) if lower else sorted((-low, -high))
        middle = middle if lower else -middle
        words = (
            f"{np.exp(middle):.3g} times [{np.exp(ends[0]):.3g}, {np.exp(ends[1]):.3g}]"
            if ratio
            else f"{middle:+.3g} [{ends[0]:.3g}, {ends[1]:.3g}]"
        )
        steps.append(
            [
                f"{names[i + 1]} against {names[i]}",
                words + (" (in these networks)" if own is not None else ""),
                bare_p(p),
                verdicts[-1],
            ]
        )
    verdict = next(
        (one for one in ("not reproduced", "undecided") if one in verdicts), "reproduced"
    )
    return Tested(claim, study, networks[0], verdict, rows, steps)


def _measured(
    result: Result, groups: list[Group], quantity: str, at: str | int, ratio: bool
) -> list[Mean] | None:
    """Of too few seeds for a test over seeds: the mean (with `ratio` of the logarithm) over the
    networks that were measured, with the error of the measurements alone. None if the quantity has
    no interval of its own."""
    name = f"{quantity}_interval"
    if name not in result:
        return None
    step = result.step(at)
    values, ends = at_step(result, quantity, step), at_step(result, name, step)

    def of(numbers: np.ndarray) -> np.ndarray:
        return np.log(numbers) if ratio else numbers

    with np.errstate(divide="ignore", invalid="ignore"):
        return [
            propagated_mean(
                of(values[group.runs]), of(ends[group.runs, 0]), of(ends[group.runs, 1])
            )
            for group in groups
        ]


def _in_these_networks(first: Mean, second: Mean, tests: int) -> tuple[float, float, float, float]:
    """A difference, its interval and p, corrected for the number of tests."""
    difference = propagated_difference(first, second)
    wider = stats.norm.isf(0.025 / tests) / stats.norm.isf(0.025)
    return (
        difference.difference,
        difference.difference - wider * (difference.difference - difference.low),
        difference.difference + wider * (difference.high - difference.difference),
        min(1.0, difference.p_value * tests),
    )


def _only(where: str, name: str, members: list[Group]) -> Group:
    found = [group for group in members if group.label == name] or [
        group for group in members if matches(name, group.estimator)
    ]
    if len(found) != 1:
        raise InputError(
            f"{where}: {len(found)} settings match {name} (there are: "
            f"{', '.join(group.label for group in members)})"
        )
    return found[0]


def overview(found: list[Tested]) -> str:
    """A table of all claims."""
    rows = [
        [
            link(f"claims/{file_name(one.claim['name'])}.html", one.claim["says"]),
            one.verdict,
            one.claim["source"],
        ]
        for one in found
    ]
    return rows_table(
        rows, ["published claim", "here", "source"], wrap=("published claim", "source")
    )


def claim_page(site: Site, one: Tested) -> str:
    claim = one.claim
    where = link(f"../networks/{slug(one.network)}.html", site.networks[one.network])
    file = link(f"../data/{one.study.path.name}", one.study.path.name)
    parts = [
        f"<p>Claimed by {escape(claim['source'])}. Here, on {where}: "
        f"<strong>{one.verdict}</strong>.</p>"
    ]
    if claim.get("note"):
        parts.append(f"<p>{escape(claim['note'])}</p>")
    if "order" in claim:
        parts += [
            rows_table(
                one.steps,
                [
                    "step of the order",
                    "ratio" if "times" in one.steps[0][1] else "difference",
                    "p",
                    "verdict",
                ],
            ),
            "<p>Paired over seeds, with 95% intervals that hold for all steps together (Dunn "
            "1961). A step is reproduced if its interval lies on the "
            "claimed side, undecided if the interval contains no difference.</p>",
        ]
    else:
        bound = (
            f"at most {claim['at_most']:g}"
            if "at_most" in claim
            else f"at least {claim['at_least']:g}"
        )
        parts.append(f"<p>The claim as a bound: the mean over seeds is {bound}.</p>")
    parts.append(
        rows_table(
            [[Html(f"<code>{escape(row[0])}</code>"), *row[1:]] for row in one.rows],
            ["estimator", quantity_name(claim["quantity"]), "every seed"],
            wrap=("every seed",),
        )
    )
    parts.append(
        f"<p>Again: <code>{escape(command(one.study, *one.network))}</code>. Numbers: {file}.</p>"
    )
    return document(claim["says"], parts, "../")
