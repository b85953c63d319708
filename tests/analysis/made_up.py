"""Small results with numbers that are easy to check by hand."""

import json
import re
from pathlib import Path

import numpy as np
import xarray as xr


#: Facts that the program states of its quantities, as attributes of their variables (experiments/measurement/quantities.hpp).
FACTS = {
    "variance": {"better": "lower", "exact_twin": "exact_variance"},
    "squared_bias": {"better": "lower", "exact_twin": "exact_squared_bias"},
    "cosine": {"better": "higher", "exact_twin": "exact_cosine"},
    "snr": {"better": "higher"},
    "train_loss": {"better": "lower"},
    "metric_exact_match": {"better": "higher", "share": 1},
    "metric_accuracy": {"better": "higher", "share": 1},
    "metric_positions_used": {"better": "higher"},
    "metric_alignment_error_rate": {"better": "lower"},
}
_TABLE = (Path(__file__).resolve().parents[2] / "experiments/measurement/quantities.hpp").read_text("utf-8")
FACTS |= {
    name: {"better": "lower", "preference": 1 + place}
    for place, name in enumerate(re.findall(r'\bloss\("(heldout_\w+)"\)', _TABLE))
}
assert "heldout_expected_loss" in FACTS, "the table has another form"


def stated(data: xr.Dataset, precision: str = "float") -> xr.Dataset:
    """The dataset with the attributes that the program states, of its variables and of a measurement in this precision."""
    for name, facts in FACTS.items():
        if name in data:
            data[name].attrs.update(facts)
    eps = {"float": np.finfo("float32").eps, "double": np.finfo("float64").eps}[precision]
    data.attrs.update({"precision": precision, "rounding": 64 * float(eps), "least_squared_bias": 1e-30})
    return data


def made_up(**variables) -> xr.Dataset:
    """Two estimators, two seeds, one task."""
    ds = xr.Dataset(
        {
            "status": ("run", np.zeros(4, np.uint8), {"flag_meanings": "ok failed skipped"}),
            "reason": ("run", np.array([""] * 4, object)),
            "variance": (("run", "measurement_step"), [[1.0, 9], [3, 9], [0, 9], [0, 9]]),
            "squared_bias": (("run", "measurement_step"), [[-1.0, 9], [-3, 9], [4, 9], [4, 9]]),
            "heldout_expected_loss": (("run", "evaluation_step"), [[9.0, 2], [9, 4], [1, np.nan], [1, np.nan]]),
            **variables,
        },
        coords={"measurement_step": [0, 5], "evaluation_step": [0, 5]},
    )
    attrs = {name: {"grid_axis": name} for name in ("task", "model", "estimator", "seed")}
    return stated(ds).assign_coords(
        run=range(4),
        task=("run", ["t"] * 4, attrs["task"]),
        model=("run", ["m"] * 4, attrs["model"]),
        estimator=("run", ["rloo", "rloo", "soft", "soft"], attrs["estimator"]),
        seed=("run", [1, 2, 1, 2], attrs["seed"]),
    )


def sweep(panels: int, estimators: list[str], seeds: int, effect: float = 1.0, noise: float = 0.1) -> xr.Dataset:
    """Tasks t0, t1, ... x estimators x seeds. Estimator i ends with the loss i * effect, plus an effect of the seed (shared by all
    estimators) and noise; its variance is i + 1, its cost 4 rows."""
    random = np.random.default_rng(0)
    grid = [(f"t{p}", "m", e, s) for p in range(panels) for e in estimators for s in range(seeds)]
    place = np.array([estimators.index(e) for _, _, e, _ in grid], float)
    shared = random.normal(size=(panels, seeds))
    loss = np.array([shared[int(t[1:]), s] for t, _, _, s in grid]) + effect * place + noise * random.normal(size=len(grid))
    n = len(grid)
    ds = xr.Dataset(
        {
            "status": ("run", np.zeros(n, np.uint8), {"flag_meanings": "ok failed skipped"}),
            "reason": ("run", np.array([""] * n, object)),
            "variance": (("run", "measurement_step"), place[:, None] + 1.0),
            "squared_bias": (("run", "measurement_step"), np.zeros((n, 1))),
            "bias_p_value": (("run", "measurement_step"), np.ones((n, 1))),
            "rows": (("run", "measurement_step"), np.full((n, 1), 4.0)),
            "heldout_expected_loss": (("run", "evaluation_step"), loss[:, None]),
        },
        coords={"measurement_step": [0], "evaluation_step": [100], "run": range(n)},
    )
    labels = zip(("task", "model", "estimator", "seed"), zip(*grid))
    return stated(ds).assign_coords({name: ("run", list(values), {"grid_axis": name}) for name, values in labels})


def spelled(data, task="t0", model="m", samples=None, **train):
    """The same with settings as the program writes them; estimators as the sweep names them. `train`: settings of training."""
    names = data["estimator"].values.astype(str)
    own = [json.dumps({"samples": samples} if samples else {}) for _ in names]
    texts = {
        "task_settings": [json.dumps({"words": 4})] * len(names),
        "model_settings": [json.dumps({"hidden": 8, "unit": "lstm"})] * len(names),
        "estimator_settings": own,
        "target_settings": ["{}"] * len(names),
        "data_hash": [""] * len(names),
        "run_settings": [json.dumps({f"train.{name}": value for name, value in {"steps": 100, **train}.items()})] * len(names),
    }
    data = data.assign({name: ("run", np.array(values, object)) for name, values in texts.items()})
    labels = {"task": task, "model": model}
    return data.assign_coords({name: ("run", [text] * len(names), data[name].attrs) for name, text in labels.items()})


def repeated(data: xr.Dataset, times: int) -> xr.Dataset:
    """A result with `times` copies of its tasks, each copy under its own name."""
    copies = []
    for i in range(times):
        copy = data.isel(run=slice(None))
        names = np.array([f"{task}{i}" for task in data["task"].values], object)
        copies.append(
            copy.assign_coords(task=("run", names, data["task"].attrs), run=data["run"].values + i * data.sizes["run"])
        )
    return xr.concat(copies, "run", data_vars="minimal", coords="minimal", combine_attrs="override")
