"""Evaluated quantities: their order of preference, and the one that ranks the estimators of a
network."""

from __future__ import annotations

import numpy as np

from .groups import Group, runs_of
from .result import Result

# Metrics of success, in this order; a task may have several. Others follow by name.
_METRICS = tuple(
    "metric_" + name
    for name in (
        "exact_match",
        "accuracy",
        "solved",
        "word_error_rate",
        "symbol_error_rate",
        "error_rate",
        "bleu",
        "token_accuracy",
    )
)
#: Metrics that describe attention or the course of a run, not its success; they never rank unless
#: asked for.
_DESCRIPTIONS = tuple(
    "metric_" + name
    for name in (
        "alignment_error_rate",
        "positions_used",
        "supporting_fact_hit",
        "support_hit",
        "object_hit",
        "ink_seen",
        "well_formed",
        "gold_program",
        "steps",
        "steps_easier",
        "steps_harder",
    )
)


def evaluation_names(result: Result, prefix: str) -> list[str]:
    """Variables `<prefix>_*` over evaluation steps, by preference: of losses as the file states
    it."""
    order = {name: place for place, name in enumerate(_METRICS)} | {
        name: 99 for name in _DESCRIPTIONS
    }
    names = [
        str(n)
        for n in result.data.data_vars
        if str(n).startswith(prefix + "_") and "evaluation_step" in result.data[n].dims
    ]
    return sorted(names, key=lambda name: (order.get(name, result.preference(name)), name))


def most_common(result: Result, names: list[str], runs: np.ndarray) -> str | None:
    """The first of the variables that most of these runs have."""
    counts = {name: int(result.has(name)[runs].sum()) for name in names}
    best = max(counts.values(), default=0)
    return next((name for name, count in counts.items() if count == best), None) if best else None


def ranking_quantity(result: Result, members: list[Group], by: str | None = None) -> str | None:
    """The quantity that ranks the estimators of a network: `by`, or the first that all of them
    have, of its metrics and then of its losses; without such a quantity the one that most runs
    have. None if nothing was evaluated. InputError if `by` does not exist."""
    losses, metrics = evaluation_names(result, "heldout"), evaluation_names(result, "metric")
    if by is not None:
        result.need(by, f"evaluated quantities are: {', '.join(losses + metrics)}")
        return by
    names = [name for name in metrics if name not in _DESCRIPTIONS] + losses
    evaluated = {
        name: [bool(result.has(name)[group.runs].any()) for group in members]
        for name in losses + metrics
    }
    some = np.any(list(evaluated.values()), axis=0) if evaluated else np.zeros(len(members), bool)
    whole = [name for name in names if some.any() and np.asarray(evaluated[name])[some].all()]
    runs = runs_of(members)
    return (
        whole[0]
        if whole
        else most_common(result, names, runs) or most_common(result, losses + metrics, runs)
    )


def lost(group: Group, values: np.ndarray) -> np.ndarray:
    """[runs of the group] Whether a run failed, or ended with an infinite loss; `values` [run]."""
    return np.array([status == "failed" for status in group.status], bool) | np.isinf(
        values[group.runs]
    )


def comparable(result: Result, members: list[Group], values: np.ndarray, lower: bool) -> np.ndarray:
    """Scores [groups, seeds] of one network from `values` [run], lower is better: negated if higher
    values are better. A run that is `lost` counts as the worst score of the network; a skipped one
    has none."""
    scores = np.where(np.isfinite(values), values if lower else -values, np.nan)
    runs, gone = runs_of(members), np.concatenate([lost(group, values) for group in members])
    scores[runs[gone]] = np.nan
    finite = np.isfinite(scores[runs])
    scores[runs[gone]] = scores[runs[finite]].max() if finite.any() else np.nan
    return result.by_seed(members, scores)[0]
