"""The ranking table: bias, variance, cost and final loss of every estimator, mean over seeds with intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np
import pandas as pd
import xarray as xr

from .errors import InputError
from .groups import Group, by_seed, evaluation_splits, in_common, overrides, panels
from .load import need
from .rounding import at_step, marked
from .statistics import Mean, mean_interval, shared_ranks

MEASURED = ("squared_bias", "variance", "relative_bias", "work_normalised_variance")
#: The table's numeric columns, and their display names.
QUANTITIES = (("squared_bias", "squared bias"), ("relative_bias", "relative bias"), ("variance", "variance"),
              ("work_normalised_variance", "variance × rows"), ("final_loss", "final loss"), ("metric", "metric"))
# The held-out loss that ranks, if a task and model have several: the first one that most runs have. (The search for settings uses
# the same order.)
_LOSSES = ("heldout_expected_loss", "heldout_marginal_likelihood", "heldout_soft", "heldout_elbo", "heldout_sampled_elbo",
           "heldout_sampled_loss", "heldout_sampled_bound", "heldout_greedy_loss")


def measurement_step(data: xr.Dataset, at: str | int = "first") -> int:
    """The step for "first", "last" or a number. At the first step, 0, estimators that share a seed are measured at the same
    parameters, so the comparison is fair."""
    steps = [int(step) for step in need(data, "measurement_step", "set measure.at in the sweep").values]
    if at == "first":
        return steps[0]
    if at == "last":
        return steps[-1]
    try:
        step = int(at)
    except ValueError:
        step = -1
    if step not in steps:
        raise InputError(f"{data.attrs.get('path', 'result')}: nothing was measured at step {at} "
                         f"(there are: {', '.join(map(str, steps))})")
    return step


def measurements(data: xr.Dataset, name: str, step: int) -> Callable[[Group], Mean]:
    """By group: the mean of a measured quantity over its seeds; for a single seed, with the measurement's own interval."""
    values = at_step(data, name, step)
    interval = f"{name}_interval"
    own = at_step(data, interval, step) if interval in data else None

    def of(group: Group) -> Mean:
        mean = mean_interval(values[group.runs])
        if mean.count == 1 and own is not None:
            low, high = own[group.runs][np.isfinite(values[group.runs])][0]
            mean = mean._replace(low=float(low), high=float(high))
        return mean

    return of


def measured(data: xr.Dataset, group: Group, name: str, step: int) -> Mean:
    """The same for one group."""
    return measurements(data, name, step)(group)


def last(data: xr.Dataset, name: str) -> np.ndarray:
    """[run] The last value of each run of a quantity evaluated or logged over training, NaN without any."""
    return np.array([row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.nan for row in data[name].values])


def most_common(data: xr.Dataset, names: list[str], runs: np.ndarray) -> str | None:
    """The first of the variables that most of these runs have."""
    counts = {name: int(np.isfinite(data[name].values[runs]).any(axis=1).sum()) for name in names}
    best = max(counts.values(), default=0)
    return next((name for name, count in counts.items() if count == best), None) if best else None


def evaluation_names(data: xr.Dataset, prefix: str) -> list[str]:
    """Variables `<prefix>_*` over evaluation steps; losses ordered by preference."""
    names = [str(n) for n in data.data_vars if str(n).startswith(prefix + "_") and "evaluation_step" in data[n].dims]
    return sorted(names, key=lambda n: (_LOSSES.index(n) if n in _LOSSES else len(_LOSSES), n))


def table(data: xr.Dataset, at: str | int = "first") -> pd.DataFrame:
    """One row per task, model and estimator (and other axes that vary), ranked by final held-out loss: `rank` is 1 + the number of
    rows that are better beyond noise (`statistics.shared_ranks`). Settings that were overridden for some runs are columns named by
    their paths (`train.learning_rate`).

    `<quantity>`, `<quantity>_low`, `<quantity>_high` are the mean over seeds and its 95% interval (NaN for a single seed without an
    interval of its own). Bias and variance are measured at step `at`: "first", "last" or a number. `<quantity>_doubtful` is true if
    some are sampled and their replicates do not support them. Failed and skipped runs are counted, not averaged.
    """
    has_measurements = "measurement_step" in data.dims
    step = measurement_step(data, at) if has_measurements else 0
    rows, differing = [], overrides(data)
    losses, metrics = evaluation_names(data, "heldout"), evaluation_names(data, "metric")
    finals = {name: last(data, name) for name in losses + metrics}
    of = {name: measurements(data, name, step) for name in MEASURED if has_measurements and name in data}
    doubted = {name: marked(data, name, step) for name in of}
    splits = evaluation_splits(data)
    for (task, model), members in panels(data).items():
        runs = np.concatenate([group.runs for group in members])
        loss, metric = most_common(data, losses, runs), most_common(data, metrics, runs)
        ranks = shared_ranks(by_seed(data, members, finals[loss])[0] if loss else np.full((len(members), 1), np.nan))
        for group, rank in zip(members, ranks):
            row: dict[str, object] = {"task": task, "model": model, "estimator": group.estimator, **group.others,
                                      **{path: "; ".join(dict.fromkeys(values[run] for run in group.runs)) for path, values in differing.items()},
                                      "rank": rank,
                                      "runs": len(group.runs),
                                      **{s: group.status.count(s) for s in ("ok", "failed", "skipped")}}

            def put(name: str, mean: Mean, row: dict[str, object] = row) -> None:
                row[name], row[name + "_low"], row[name + "_high"] = mean[:3]

            nothing = Mean(np.nan, np.nan, np.nan, 0)
            for name in MEASURED:
                put(name, of[name](group) if name in of else nothing)
                row[name + "_doubtful"] = bool(name in of and doubted[name][group.runs].any())
            row["split"] = in_common(splits[group.runs])
            row["loss_name"] = loss.removeprefix("heldout_") if loss else ""
            put("final_loss", mean_interval(finals[loss][group.runs]) if loss else nothing)
            row["metric_name"] = metric.removeprefix("metric_") if metric else ""
            put("metric", mean_interval(finals[metric][group.runs]) if metric else nothing)
            rows.append(row)
    frame = pd.DataFrame(rows)
    order = {key: i for i, key in enumerate(panels(data))}
    frame["_panel"] = [order[key] for key in zip(frame["task"], frame["model"])]
    frame = frame.sort_values(["_panel", "rank", "final_loss", "variance"], kind="stable", na_position="last")
    frame = frame.drop(columns="_panel").reset_index(drop=True)
    frame.attrs["measured_at"] = step if has_measurements else None
    return frame


def _number(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value:.3g}"


def with_interval(mean: float, low: float, high: float) -> str:
    """"1.234 ± 0.034", "1.23 [1.1, 1.5]" if asymmetric, "1.23" without an interval, "1.23457" without noise, "–" without a number."""
    if not np.isfinite(mean) or not (np.isfinite(low) and np.isfinite(high)):
        return _number(mean)
    below, above = mean - low, high - mean
    if max(below, above) < 1e-9 * abs(mean):
        return f"{mean:.6g}"  # no noise but rounding: shown with more digits for comparison
    if abs(below - above) <= 1e-6 * (abs(below) + abs(above)):
        return _plus_minus(mean, above) if above else _number(mean)
    return f"{_number(mean)} [{_number(low)}, {_number(high)}]"


def difference_in_words(value: float, low: float, high: float) -> str:
    """"+0.034 [-0.01, 0.078]"; "+0.034 (one seed)" without an interval."""
    return f"{value:+.3g} (one seed)" if not np.isfinite(low) else f"{value:+.3g} [{low:.3g}, {high:.3g}]"


def _plus_minus(mean: float, half: float) -> str:
    """Both rounded to the second digit of the half width: "0.6603 ± 0.0012", "(0.2 ± 1.6)e-05"."""
    half = float(f"{half:.1e}")
    largest = int(np.floor(np.log10(max(abs(mean), half))))
    shift = largest if not -3 <= largest < 5 else 0
    mean, half = mean / 10.0**shift, half / 10.0**shift
    digits = min(max(1 - int(np.floor(np.log10(half))), 0), 9)
    text = f"{round(mean, digits) + 0.0:.{digits}f} ± {half:.{digits}f}"  # never "-0"
    return f"({text})e{shift:+03d}" if shift else text


def readable(frame: pd.DataFrame) -> pd.DataFrame:
    """The table as text for display, one column per quantity."""
    fixed = ("task", "model", "estimator", "runs", "ok", "failed", "skipped", "split", "loss_name", "metric_name", "rank")
    others = [c for c in frame.columns if c not in fixed and f"{c}_low" not in frame and not c.endswith(("_low", "_high", "_doubtful"))]
    out = pd.DataFrame({"rank": [str(int(r)) if np.isfinite(r) else "–" for r in frame["rank"]],
                        "estimator": frame["estimator"], **{name: frame[name] for name in others}})
    noise = (frame["squared_bias_low"] <= 0) & (frame["squared_bias_high"] > 0)
    for name, title in QUANTITIES:
        if frame[name].notna().any():
            numbers = frame[[name, f"{name}_low", f"{name}_high"]].to_numpy(float)
            out[title] = [(f"< {_number(v[2])}" if of_bias and np.isfinite(v[2]) else with_interval(*v)) + (" ?" if doubtful else "")
                          for v, of_bias, doubtful in zip(numbers, noise & (name in ("squared_bias", "relative_bias")),
                                                          frame.get(f"{name}_doubtful", pd.Series(False, frame.index)))]
    if "metric" in out:
        out["metric"] = [f"{m} {v}" if v != "–" else v for m, v in zip(frame["metric_name"], out["metric"])]
    out["runs"] = [" ".join(f"{row[s]} {s}" for s in ("ok", "failed", "skipped") if row[s]) for _, row in frame.iterrows()]
    return out


def caption(frame: pd.DataFrame) -> str:
    """A caption for the table, in a sentence or two."""
    step = frame.attrs.get("measured_at")
    words = "Mean over seeds ± half of its 95% interval. "
    if step is not None:
        words += f"Bias and variance are measured at step {step}"
        words += ", where estimators that share a seed share their parameters. " if step == 0 else ". "
    if any(frame[name].any() for name in frame if name.endswith("_doubtful")):
        words += "?: sampled, and the replicates do not support the estimate (measurement_unsupported). "
    return words + (f"A negative estimate of the bias is within noise of zero. Ranked by final {_split(frame)} loss; estimators that do not "
                    "differ beyond noise (paired t tests over seeds, Dunn, 5%) share a rank.")


def _split(frame: pd.DataFrame) -> str:
    splits = set(frame["split"])
    return splits.pop() if len(splits) == 1 else "evaluated"


def panel_rows(frame: pd.DataFrame) -> list[tuple[str, str, list[int]]]:
    """Task, model and row labels of every block of the table, in order."""
    blocks: dict[tuple[str, str], list[int]] = {}
    for index, task, model in zip(frame.index, frame["task"], frame["model"]):
        blocks.setdefault((task, model), []).append(index)
    return [(*key, rows) for key, rows in blocks.items()]


def format_table(frame: pd.DataFrame) -> str:
    """The table as plain text, one block per task and model."""
    text = readable(frame)
    blocks = []
    for task, model, index in panel_rows(frame):
        losses = sorted({name for name in frame.loc[index, "loss_name"] if name})
        head = f"{task} · {model}" + (f" · final loss: {_split(frame.loc[index])} {losses[0]}" if losses else "")
        part = text.loc[index]
        part = part[[c for c in part if c in ("rank", "estimator") or (part[c] != "–").any()]]
        rows = [list(part.columns), *part.astype(str).values.tolist()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        blocks.append("\n".join([head, *lines]))
    return "\n\n".join([*blocks, textwrap.fill(caption(frame), 120)])
