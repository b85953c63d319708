"""What the program does with the field's networks: `measure` and `run`."""
from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from ._core import Error, UsageError
from ._program import call

if TYPE_CHECKING:
    import xarray

_Path = Union[str, os.PathLike[str]]
_Texts = Union[str, Iterable[str]]


def measure(task: Optional[str] = None, model: Optional[str] = None, estimators: _Texts = (), *, exact: bool = False,
            replicates: Optional[int] = None, most_replicates: Optional[int] = None, batch: Optional[int] = None, seed: Optional[int] = None,
            precision: Optional[str] = None, checkpoint: Optional[_Path] = None, adapt: Optional[int] = None,
            adapt_rate: Optional[float] = None, estimand: Optional[str] = None, leaf_cap: Optional[float] = None,
            outcome_cap: Optional[float] = None, jobs: Optional[int] = None, plugins: Iterable[_Path] = (),
            out: Optional[_Path] = None) -> xarray.Dataset:
    """Bias, variance and cost of estimators on one of the program's networks, now: `hardgrad measure`, whose options these are.
    (On a loss of your own: `moments`.)

    task, model: e.g. "translation[examples=1000]", "translator[heads=4]"; without a model, the task's own.
    estimators: names, or one; without any, all that fit.
    exact: every outcome is visited with its probability; nothing is sampled.
    replicates, most_replicates: gradients drawn of each estimator, and up to how many where these do not support their intervals.
    batch: examples, the first of the training split.
    seed: of data, parameters and noise. precision: "float" or "double".
    checkpoint: where parameters come from (and task and model).
    adapt, adapt_rate: steps, and their rate, in which an estimator learns what it learns (baselines, control variates) beforehand.
    estimand: the true gradient: "any" (a long run if it cannot be enumerated), "enumerated", "none".
    leaf_cap, outcome_cap: most leaves behind the exact gradient, and most outcomes of exact moments.
    jobs: threads; by default one a core.
    plugins: shared libraries with estimators, models or tasks of your own.
    out: a file (.h5) that is to keep the result.

    Returns what `hardgrad.analysis.load` reads of it: a run for each estimator, with squared_bias, variance, relative_bias, rows, ...;
    results/README.md describes them all. An estimator that could not be measured has its status and reason.
    """
    given: dict[str, Any] = {"task": task, "model": model, "checkpoint": checkpoint, "seed": seed, "batch": batch, "precision": precision,
                             "replicates": replicates, "most-replicates": most_replicates, "adapt": adapt, "adapt-rate": adapt_rate,
                             "estimand": estimand, "leaf-cap": leaf_cap, "outcome-cap": outcome_cap, "jobs": jobs}
    options = _options({**given, "estimator": _texts(estimators), "plugin": plugins})
    load = _loader("measure")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "measured.h5" if out is None else Path(out)
        call(["measure", *options, *(["--exact"] if exact else []), "--out", str(path)], progress=False)
        data = load(path)
    if out is None:
        data.attrs["path"] = "measure"
    return data


def run(config: Union[_Path, Mapping[str, Any]], *, out: Optional[_Path] = None, overrides: Optional[Mapping[str, Any]] = None,
        only: _Texts = (), shard: Optional[str] = None, jobs: Optional[int] = None, fail_fast: bool = False, force: bool = False,
        plugins: Iterable[_Path] = (), progress: bool = True) -> xarray.Dataset:
    """Runs a sweep, or goes on where it stopped: `hardgrad run`, then `hardgrad merge`. Cells that are done are not done again.

    config: a TOML file, or what would stand in one as a dictionary (experiments/configs/README.md).
    out: the folder of its cells; by default what the configuration says, below the working directory.
    overrides: e.g. {"train.steps": 100}.
    only: cells that match "estimator=rloo*", or a pattern; all of several must match. shard: "k/n", the k-th of n parts.
    jobs: cells at a time; by default one a core. The numbers are the same for any.
    fail_fast: stop at the first cell that fails. force: go on in a folder that holds another plan.
    plugins: shared libraries with estimators, models or tasks of your own.
    progress: tell how far it is, on sys.stderr.

    Returns what `hardgrad.analysis.load` reads of the merged file, which stays beside the folder, named after the sweep; what is not
    run yet is not in it (`data.attrs["status"]`). Cells that failed are warned of. Error if a search for settings waits for other
    shards. Ctrl-C saves what is at work and raises KeyboardInterrupt: the same call goes on from there.
    """
    load = _loader("run")
    sets = [f"{name}={_value(value)}" for name, value in (overrides or {}).items()]
    options = _options({"out": out, "jobs": jobs, "shard": shard, "set": sets, "only": _texts(only), "plugin": plugins})
    flags = [flag for flag, wanted in (("--fail-fast", fail_fast), ("--force", force)) if wanted]
    with tempfile.TemporaryDirectory() as folder:
        file = _written(config, Path(folder)) if isinstance(config, Mapping) else Path(config)
        try:
            said = call(["run", str(file), *options, *flags, "--json", "--progress", "plain" if progress else "none"], progress).json()
        except Error as error:
            raise type(error)(str(error).removeprefix(f"{folder}/")) from None
    if said["waiting"]:
        raise Error(f"{said['waiting']} trials of the search for settings are others' to run (shard, only), and nobody is at work on them: "
                    "when they are over, the same call goes on")
    failures = [str(failure) for failure in said["failures"]]
    if failures:
        rest = f"; and {len(failures) - 3} more" if len(failures) > 3 else ""
        warnings.warn(f"{len(failures)} of {said['cells']} cells failed: {'; '.join(failures[:3])}{rest}", RuntimeWarning, stacklevel=2)
    merged = Path(said["out"]).parent / f"{said['name']}.h5"
    call(["merge", said["out"], "--out", str(merged), "--partial"], progress=False)
    return load(merged)


def _loader(what: str) -> Callable[[Path], xarray.Dataset]:
    try:
        from .analysis import load
        found: Callable[[Path], xarray.Dataset] = load
    except ModuleNotFoundError as missing:
        raise UsageError(f"{what}: what reads results wants {missing.name}, which is not installed; "
                         "hardgrad[analysis] names all that is wanted") from missing
    return found


def _options(given: Mapping[str, Any]) -> list[str]:
    """--name=value of each, again and again of lists; nothing of what is None."""
    found = []
    for name, value in given.items():
        several = value if not isinstance(value, (str, os.PathLike)) and isinstance(value, Iterable) else [] if value is None else [value]
        found += [f"--{name}={one}" for one in several]
    return found


def _texts(given: _Texts) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _value(value: Any) -> str:
    """As TOML has it, which is as JSON has it for numbers, texts, truths and lists of these."""
    if isinstance(value, Mapping):
        raise UsageError('run: an override is a number, a text, a truth or a list; name what is within a table by its path ("train.steps")')
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"run: {value!r} cannot stand in a configuration: {error}") from error


def _written(config: Mapping[str, Any], folder: Path) -> Path:
    try:
        import tomli_w
    except ModuleNotFoundError as missing:
        raise UsageError("run: a configuration that is a dictionary wants tomli_w, which is not installed; or give the path of a TOML file") from missing
    path = folder / "configuration.toml"
    try:
        path.write_text(tomli_w.dumps(dict(config)), encoding="utf-8")
    except TypeError as error:
        raise UsageError(f"run: the configuration cannot be written as TOML: {error}") from error
    return path
