"""The ranking table: bias, variance, cost and final loss of every estimator, mean over seeds with
intervals; and the selection of the leading settings, for results with more of them than a page can
show."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator

import numpy as np
import pandas as pd
import xarray as xr

from .groups import in_common, labelled, runs_of
from .measured import known_unbiased, measurements
from .numbers_in_words import number, quantity_name, with_interval
from .numbers_in_words import score as in_percent
from .quantities import comparable, evaluation_names, most_common, ranking_quantity
from .result import Result
from .rounding import shows_reliability_warning
from .statistics import Mean, mean_interval, ranked
from .steps import Step

MEASURED = ("squared_bias", "variance", "relative_bias", "work_normalised_variance")
#: The table's numeric columns, and their display names.
QUANTITIES = (
    ("squared_bias", "squared bias"),
    ("relative_bias", "relative bias"),
    ("variance", "variance"),
    ("work_normalised_variance", "variance × rows"),
    ("final_loss", "final loss"),
    ("metric", "metric"),
)
MOST_SETTINGS = 30  # of each network, listed in full


def table(
    data: xr.Dataset | Result, at: str | int = "first", by: str | None = None
) -> pd.DataFrame:
    """One row per task, model and estimator (and other axes that vary), by target and then by the
    mean of the ranking quantity: `by`, or the task's metric, or the held-out loss
    (`quantities.ranking_quantity`). `rank` is the place among the rows of the same target; rows of
    one network that share one of the `letters` do not differ beyond noise (`statistics.ranked`).
    Settings that were overridden for some runs are columns named by their paths
    (`train.learning_rate`).

    `<quantity>`, `<quantity>_low`, `<quantity>_high` are the mean over seeds and its 95% interval
    (NaN for a single seed without an interval of its own). Bias and variance are measured at step
    `at` of each network (`Result.step`).
    `unbiased`: this is known (`measured.known_unbiased`). `<quantity>_unsupported` is true if some
    are sampled and their replicates do not support them. Failed and skipped runs are counted, not
    averaged."""
    result = Result.of(data)
    found = result.once(("table", at, by), lambda: _rows(result, at, by))
    return found.copy()


def _rows(result: Result, at: str | int, by: str | None) -> pd.DataFrame:
    has_measurements = "measurement_step" in result.data.dims
    step = result.step(at) if has_measurements else Step(np.full(result.count, -1), "")
    rows = []
    losses, metrics = evaluation_names(result, "heldout"), evaluation_names(result, "metric")
    of = {
        name: measurements(result, name, step)
        for name in MEASURED
        if has_measurements and name in result
    }
    warned = {name: shows_reliability_warning(result, name, step) for name in of}
    known = known_unbiased(result, step) if has_measurements else np.zeros(result.count, bool)
    steps = result.values("measurement_step") if has_measurements else np.zeros(0, int)
    for (task, model), members in result.panels.items():
        runs = runs_of(members)
        loss, metric = most_common(result, losses, runs), most_common(result, metrics, runs)
        main = ranking_quantity(result, members, by)
        if main:
            loss, metric = (main, metric) if main in losses else (loss, main)
        scores = (
            comparable(result, members, result.last(main), result.lower_is_better(main))
            if main
            else np.full((len(members), 1), np.nan)
        )
        aims = [in_common(result.targets[group.runs], "") for group in members]
        ranking = ranked(scores, aims)
        for i in ranking.in_blocks(aims):
            group = members[i]
            row: dict[str, object] = {
                "task": task,
                "model": model,
                "target": aims[i],
                "estimator": group.estimator,
                **group.others,
                **{
                    path: "; ".join(dict.fromkeys(values[run] for run in group.runs))
                    for path, values in result.overrides.items()
                },
                "rank": ranking.rank[i],
                "letters": ranking.letters[i],
                "ranked_by": main or "",
                "measured_at": steps[step.places[group.runs[0]]]
                if step.places[group.runs[0]] >= 0
                else -1,
                "runs": len(group.runs),
                "unbiased": bool(known[group.runs].all()),
                **{s: group.status.count(s) for s in ("ok", "failed", "skipped")},
            }

            def put(name: str, mean: Mean, row: dict[str, object] = row) -> None:
                row[name], row[name + "_low"], row[name + "_high"] = mean[:3]

            nothing = Mean(np.nan, np.nan, np.nan, 0)
            for name in MEASURED:
                put(name, of[name](group) if name in of else nothing)
                row[name + "_unsupported"] = bool(name in of and warned[name][group.runs].any())
            row["split"] = in_common(result.splits[group.runs])
            row["loss_name"] = loss.removeprefix("heldout_") if loss else ""
            put("final_loss", mean_interval(result.last(loss)[group.runs]) if loss else nothing)
            row["metric_name"], row["metric_share"] = (
                (metric.removeprefix("metric_"), result.is_share(metric)) if metric else ("", False)
            )
            put("metric", mean_interval(result.last(metric)[group.runs]) if metric else nothing)
            rows.append(row)
    frame = pd.DataFrame(rows)
    frame.attrs["measured_at"] = step.words if has_measurements else None
    return frame


def readable(frame: pd.DataFrame) -> pd.DataFrame:
    """The table as text for display, one column per quantity. Of the biases the relative one is
    shown if there is one; a bias within noise of zero is an upper limit, unless the estimator is
    known to be unbiased."""
    fixed = (
        "task",
        "model",
        "target",
        "estimator",
        "runs",
        "ok",
        "failed",
        "skipped",
        "split",
        "loss_name",
        "metric_name",
        "metric_share",
        "ranked_by",
        "rank",
        "letters",
        "unbiased",
        "measured_at",
    )
    others = [
        c
        for c in frame.columns
        if c not in fixed
        and f"{c}_low" not in frame
        and not c.endswith(("_low", "_high", "_unsupported"))
    ]
    out = pd.DataFrame(
        {
            "rank": [str(int(r)) if np.isfinite(r) else "–" for r in frame["rank"]],
            "estimator": frame["estimator"],
            **{name: frame[name] for name in others},
        }
    )
    if (frame["target"] != "").any():
        out["target"] = [target.replace("_", " ") for target in frame["target"]]
    shares, unbiased = frame["metric_share"].tolist(), frame["unbiased"].tolist()
    for name, title in QUANTITIES:
        if (
            not frame[name].notna().any()
            or name == "squared_bias"
            and frame["relative_bias"].notna().any()
        ):
            continue
        numbers = frame[[name, f"{name}_low", f"{name}_high"]].to_numpy(float)
        noise = (numbers[:, 1] <= 0) & (numbers[:, 2] > 0)
        of_bias = name in ("squared_bias", "relative_bias")
        warned = frame.get(f"{name}_unsupported", pd.Series(False, frame.index)).to_numpy()
        out[title] = [
            in_percent(shares[i], *v)
            if name == "metric"
            else (
                "unbiased"
                if of_bias and unbiased[i] and np.isfinite(v[0])
                else f"< {number(v[2])}"
                if of_bias and noise[i] and np.isfinite(v[2])
                else with_interval(*v)
            )
            + (" ?" if warned[i] and not (of_bias and unbiased[i]) else "")
            for i, v in enumerate(numbers)
        ]
    if "metric" in out:
        out["metric"] = [
            f"{quantity_name(m)} {v}" if v != "–" else v
            for m, v in zip(frame["metric_name"], out["metric"])
        ]
    if (frame["letters"] != "").any():
        out["letters"] = frame["letters"]
    out["runs"] = [
        " ".join(f"{count} {s}" for s, count in zip(("ok", "failed", "skipped"), counts) if count)
        for counts in zip(*(frame[s].tolist() for s in ("ok", "failed", "skipped")))
    ]
    return out


def caption(frame: pd.DataFrame) -> str:
    """A caption for the table, in a sentence or two."""
    step = frame.attrs.get("measured_at")
    words = "Mean over seeds ± half of its 95% interval. "
    if step is not None:
        words += (
            "Bias (of the gradient's mean, relative to the true gradient's norm) and variance "
            f"at {step}"
        )
        words += (
            ", where estimators that share a seed share their parameters. "
            if step == "step 0"
            else ". "
        )
    if any(frame[name].any() for name in frame if name.endswith("_unsupported")):
        words += "?: sampled, and its replicates do not support it (measurement_unsupported). "
    if frame["unbiased"].any():
        words += "“unbiased” is known, by derivation or by exact moments. "
    return words + (
        "“<”: within noise of zero, with the upper end of the 95% interval. Ranked by the "
        "mean, within the estimators of one target. Estimators of a "
        "network that share a letter do not differ beyond noise (paired t tests over seeds, "
        "all pairs of the network together, "
        "Dunn, 5%)."
    )


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
        ranks = next((quantity_name(name) for name in frame.loc[index, "ranked_by"] if name), "")
        head = (
            f"{task} · {model}"
            + (f" · ranked by {_split(frame.loc[index])} {ranks}" if ranks else "")
            + (
                f" · final loss: {quantity_name(losses[0])}"
                if losses and quantity_name(losses[0]) != ranks
                else ""
            )
        )
        part = text.loc[index]
        part = part[
            [c for c in part if c in ("rank", "estimator") or not part[c].isin(["–", ""]).all()]
        ]
        rows = [list(part.columns), *part.astype(str).values.tolist()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in rows
        ]
        lines.insert(1, "  ".join("-" * width for width in widths))
        blocks.append("\n".join([head, *lines]))
    return "\n\n".join([*blocks, textwrap.fill(caption(frame), 120)])


def keys_of(result: Result, frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Task, model and label (as `groups.Group.label`) of every row of the table."""
    names = result.other_axes
    labels = [
        labelled(estimator, dict(zip(names, rest)))
        for estimator, *rest in zip(frame["estimator"], *(frame[name] for name in names))
    ]
    return list(zip(frame["task"], frame["model"], labels))


def leading(frame: pd.DataFrame, most: int = MOST_SETTINGS) -> np.ndarray:
    """Mask [rows] of the table (`table`, best rows first): for each network the best row of every
    estimator, then the next best rows, `most` in all."""
    kept = np.zeros(len(frame), bool)
    for rows in _in_order(frame):
        kept[rows[:most]] = True
    return kept


def _in_order(frame: pd.DataFrame) -> Iterator[np.ndarray]:
    """Positions of the rows of each network: the best of every estimator, then the next best."""
    places = pd.Series(np.arange(len(frame)))
    for _, part in places.groupby(
        [frame["task"].to_numpy(), frame["model"].to_numpy()], sort=False
    ):
        again = frame["estimator"].iloc[part].duplicated().to_numpy()
        yield part.to_numpy()[np.argsort(again, kind="stable")]


def foremost(result: Result, most: int, at: str | int = "first") -> list[str]:
    """The labels of at most so many settings, but of the first of each network (`leading`): those
    that are first before those that are second, and so on."""
    frame = table(result, at)
    labels, places = [label for *_, label in keys_of(result, frame)], dict[str, int]()
    for rows in _in_order(frame):
        for place, row in enumerate(rows):
            places[labels[row]] = min(place, places.get(labels[row], place))
    firsts = sum(place == 0 for place in places.values())
    return sorted(places, key=lambda label: places[label])[: max(most, firsts)]


def with_labels(result: Result, labels: Collection[str], part: str) -> Result:
    """The runs of these settings on all networks, called `part` in the titles of figures."""
    runs = np.concatenate([group.runs for group in result.groups if group.label in labels])
    return result.part_of(runs, part)


def only(result: Result, keys: set[tuple[str, str, str]]) -> Result:
    """The runs of these rows of the table."""
    return result.part_of(
        np.concatenate(
            [group.runs for group in result.groups if (*group.panel, group.label) in keys]
        )
    )
