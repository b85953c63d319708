"""Small results with numbers that are easy to check by hand."""

import numpy as np
import xarray as xr


def made_up(**variables) -> xr.Dataset:
    """Two estimators, two seeds, one task."""
    ds = xr.Dataset({"status": ("run", np.zeros(4, np.uint8), {"flag_meanings": "ok failed skipped"}),
                     "reason": ("run", np.array([""] * 4, object)),
                     "variance": (("run", "measurement_step"), [[1.0, 9], [3, 9], [0, 9], [0, 9]]),
                     "squared_bias": (("run", "measurement_step"), [[-1.0, 9], [-3, 9], [4, 9], [4, 9]]),
                     "heldout_expected_loss": (("run", "evaluation_step"), [[9.0, 2], [9, 4], [1, np.nan], [1, np.nan]]),
                     **variables},
                    coords={"measurement_step": [0, 5], "evaluation_step": [0, 5]})
    attrs = {name: {"grid_axis": name} for name in ("task", "model", "estimator", "seed")}
    return ds.assign_coords(run=range(4), task=("run", ["t"] * 4, attrs["task"]), model=("run", ["m"] * 4, attrs["model"]),
                            estimator=("run", ["rloo", "rloo", "soft", "soft"], attrs["estimator"]),
                            seed=("run", [1, 2, 1, 2], attrs["seed"]))


def sweep(panels: int, estimators: list[str], seeds: int, effect: float = 1.0, noise: float = 0.1) -> xr.Dataset:
    """Tasks t0, t1, ... x estimators x seeds. Estimator i ends with the loss i * effect, plus an effect of the seed (shared by all
    estimators) and noise; its variance is i + 1, its cost 4 rows."""
    random = np.random.default_rng(0)
    grid = [(f"t{p}", "m", e, s) for p in range(panels) for e in estimators for s in range(seeds)]
    place = np.array([estimators.index(e) for _, _, e, _ in grid], float)
    shared = random.normal(size=(panels, seeds))
    loss = np.array([shared[int(t[1:]), s] for t, _, _, s in grid]) + effect * place + noise * random.normal(size=len(grid))
    n = len(grid)
    ds = xr.Dataset({"status": ("run", np.zeros(n, np.uint8), {"flag_meanings": "ok failed skipped"}),
                     "reason": ("run", np.array([""] * n, object)),
                     "variance": (("run", "measurement_step"), place[:, None] + 1.0),
                     "squared_bias": (("run", "measurement_step"), np.zeros((n, 1))),
                     "bias_p_value": (("run", "measurement_step"), np.ones((n, 1))),
                     "rows": (("run", "measurement_step"), np.full((n, 1), 4.0)),
                     "heldout_expected_loss": (("run", "evaluation_step"), loss[:, None])},
                    coords={"measurement_step": [0], "evaluation_step": [100], "run": range(n)})
    labels = zip(("task", "model", "estimator", "seed"), zip(*grid))
    return ds.assign_coords({name: ("run", list(values), {"grid_axis": name}) for name, values in labels})


def repeated(data: xr.Dataset, times: int) -> xr.Dataset:
    """A result with `times` copies of its tasks, each copy under its own name."""
    copies = []
    for i in range(times):
        copy = data.isel(run=slice(None))
        names = np.array([f"{task}{i}" for task in data["task"].values], object)
        copies.append(copy.assign_coords(task=("run", names, data["task"].attrs), run=data["run"].values + i * data.sizes["run"]))
    return xr.concat(copies, "run", data_vars="minimal", coords="minimal", combine_attrs="override")
