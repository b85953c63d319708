"""Tuning of settings before the reported runs ([tune] in a sweep): settings tried, their scores,
and the choice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from .errors import InputError
from .groups import in_words
from .numbers_in_words import difference_in_words
from .result import Result
from .statistics import pairwise_differences


def tried(trials: xr.Dataset | Result) -> pd.DataFrame:
    """One row per network, estimator, round of the search and setting. Columns: `task`, `model`,
    `estimator` (as the sweep names it), `round`, `steps` (of each trial), `number` (of the
    setting), `setting` (in words), `trials`, `failed`, `score` (mean over the tuning seeds, NaN if
    one failed), `quantity`, `kept` (it entered the next round, or was chosen), `difference` to the
    best of its round, and its 95% interval `low`, `high`. Differences are paired over the tuning
    seeds; positive is worse. The intervals of a round hold simultaneously
    (`statistics.pairwise_differences`); NaN with a single seed. `trials`: as returned by
    `load_tuning`.

    In every round the best settings come first: by the mean that chose; ties by lower number.
    """
    trials = Result.of(trials)
    tuned = [str(name) for name in np.atleast_1d(trials.data.attrs.get("tuned_axes", []))]
    axes = trials.axes
    compared = [name for axis, name in axes.items() if axis not in (*tuned, "seed", "estimator")]
    own = trials.estimator_settings
    failed = np.array([status != "ok" for status in trials.status], dtype=bool)
    rows: dict[tuple[object, ...], list[int]] = {}
    columns = [
        trials.values(name)
        for name in (*compared, "tuning_estimator", "tuning_round", "tuning_setting")
    ]
    for run, key in enumerate(zip(*columns)):
        rows.setdefault(key, []).append(run)
    found = []
    for key, runs in rows.items():
        labels = dict(zip((*compared, "estimator", "round", "number"), key))
        scores = trials.values("tuning_score")[runs]
        values = {axis: str(trials.values(axes[axis])[runs[0]]) for axis in tuned if axis in axes}
        values |= {
            f"estimator.{name}": f"{value:.12g}" if isinstance(value, float) else str(value)
            for name, value in own[runs[0]].items()
            if f"estimator.{name}" in tuned
        }
        found.append(
            {
                **labels,
                "steps": int(trials.values("evaluation_step")[_last(trials, runs[0])])
                if not failed[runs[0]]
                else np.nan,
                "setting": in_words(dict(sorted(values.items()))),
                "trials": len(runs),
                "failed": int((failed[runs] | ~np.isfinite(scores)).sum()),
                "score": float(scores.mean()),
                "quantity": next(
                    (str(q) for q in trials.values("tuning_quantity")[runs] if str(q)), ""
                ),
                "kept": bool(trials.values("tuning_kept")[runs[0]]),
                "_by_seed": dict(zip(trials.values("seed")[runs].tolist(), scores)),
            }
        )
    if not found:
        raise InputError(f"{trials.path}: no trials were made")
    frame = pd.DataFrame(found)
    frame["steps"] = frame.groupby([*compared, "estimator", "round"])["steps"].transform("max")
    lower = {
        quantity: not quantity or trials.lower_is_better(quantity)
        for quantity in set(frame["quantity"])
    }  # "": all trials failed
    frame["_order"] = [
        score if lower[quantity] else -score
        for score, quantity in zip(frame["score"], frame["quantity"])
    ]
    frame["_estimator"] = pd.Categorical(
        frame["estimator"], list(dict.fromkeys(frame["estimator"]))
    )
    frame = frame.sort_values(
        [*compared, "_estimator", "round", "_order", "number"], kind="stable", na_position="last"
    )
    frame = frame.reset_index(drop=True)
    frame[["difference", "low", "high"]] = np.nan
    for _, part in frame.groupby([*compared, "estimator", "round"], sort=False):
        frame.loc[part.index, ["difference", "low", "high"]] = _to_first(
            part, lower[part["quantity"].iloc[0]]
        )
    return frame.drop(columns=["_order", "_estimator", "_by_seed"])


def _to_first(part: pd.DataFrame, lower: bool) -> np.ndarray:
    """[settings, 3] the difference of each setting to the first, low and high; NaN for settings
    with failed trials."""
    seeds = list(dict.fromkeys(seed for one in part["_by_seed"] for seed in one))
    sign = 1 if lower else -1
    scores = sign * np.array(
        [[one.get(seed, np.nan) for seed in seeds] for one in part["_by_seed"]], float
    )
    differences = pairwise_differences(
        np.where(np.isfinite(part["score"].to_numpy(float))[:, None], scores, np.nan)
    )
    return np.column_stack(
        [differences.difference[:, 0], differences.low[:, 0], differences.high[:, 0]]
    )


def chosen(result: Result, trials: Result | None) -> pd.DataFrame | None:
    """One row per network and estimator: the chosen `setting`, the numbers of `settings` and
    `rounds`, its `score` in the last round, the number of trials that `failed`, and `edge`: values
    at the end of the range tried. `close` of the `others` in the last round do not differ from it
    beyond noise. `next_setting` is the next best, by `difference` with its interval `low`, `high`.
    None without trials."""
    if trials is None:
        return None
    frame = tried(trials)
    compared = [name for name in frame.columns[: frame.columns.get_loc("estimator") + 1]]
    edges: dict[tuple[str, ...], str] = {}
    for run in range(result.count):
        key = tuple(
            str(result.values("tuning_estimator" if name == "estimator" else name)[run])
            for name in compared
        )
        edges.setdefault(key, str(result.values("tuning_edge")[run]))
    rows = []
    for key, part in frame.groupby(compared, sort=False):
        key = key if isinstance(key, tuple) else (key,)
        last = part[part["round"] == part["round"].max()]
        best = last[last["kept"]]
        others = last[~last["kept"] & last["difference"].notna()]
        row = dict(zip(compared, key))
        rows.append(
            {
                **row,
                "setting": str(best["setting"].iloc[0]) if len(best) else "",
                "settings": int(part["number"].nunique()),
                "rounds": int(part["round"].max()),
                "score": float(best["score"].iloc[0]) if len(best) else np.nan,
                "quantity": str(last["quantity"].iloc[0]),
                "trials": int(part["trials"].sum()),
                "failed": int(part["failed"].sum()),
                "edge": edges.get(tuple(map(str, key)), ""),
                "others": len(others),
                "close": int((~(others["low"] > 0)).sum()),
                "next_setting": str(others["setting"].iloc[0]) if len(others) else "",
                **{
                    name: float(others[name].iloc[0]) if len(others) else np.nan
                    for name in ("difference", "low", "high")
                },
            }
        )
    return pd.DataFrame(rows)


def said(searched: pd.DataFrame) -> list[str]:
    """A sentence for each search."""
    several = searched[["task", "model"]].drop_duplicates().shape[0] > 1
    lines = []
    for _, row in searched.iterrows():
        name = (
            f"{row['estimator']} on {row['task']} · {row['model']}"
            if several
            else str(row["estimator"])
        )
        words = (
            f"{name}: {row['setting']}, the best of {row['settings']} settings"
            if row["setting"]
            else f"{name}: none of {row['settings']} settings could be chosen"
        )
        if row["close"]:
            words += (
                f"; {row['close']} of {row['others']} others in the last round not "
                "distinguishable from it (next "
                f"{row['next_setting']} "
                f"{difference_in_words(row['difference'], row['low'], row['high'])})"
            )
        if row["edge"]:
            words += f"; {row['edge']}: extend the range"
        if row["failed"]:
            words += (
                f"; {row['failed']} of {row['trials']} trials failed; a setting with failed "
                "trials is never chosen"
            )
        lines.append(words + ".")
    return lines


def _last(trials: Result, run: int) -> int:
    """Index of the run's last evaluation."""
    places = np.flatnonzero(trials.values("evaluated")[run])
    return int(places[-1]) if places.size else 0
