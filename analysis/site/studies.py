"""The result files of a site, and their numbers of every estimator, network and stage of
training."""

from __future__ import annotations

import gzip
import shlex
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import pandas as pd
import xarray as xr

from ..answer import answer
from ..errors import InputError
from ..groups import Network, runs_of
from ..identity import NETWORK_SETTINGS, network_key, network_keys
from ..load import load
from ..output import file_name
from ..result import Result, json_object
from ..table import MEASURED, keys_of, table
from .packing import unpacked


class Study(NamedTuple):
    """One result file."""

    name: str  # of its sweep; of a user's, which may be the same sweep, the file's
    path: Path
    result: Result
    own: bool  # given by a user, beside the committed ones

    @property
    def tuned(self) -> bool:
        """Whether settings were tuned for every estimator."""
        return "tuned_axes" in self.result.data.attrs


def opened(path: Path, own: bool = False) -> Study:
    """A result file, or one that gzip compressed (`.h5.gz`)."""
    with plain(path) as file:
        return _study(path, _loaded(file), own)


def _loaded(path: Path) -> xr.Dataset:
    """The file, with the texts of one that was packed."""
    data = load(path)
    return unpacked(data) if "packed" in data.attrs else data


def _study(path: Path, data: xr.Dataset, own: bool = False) -> Study:
    data.attrs["path"] = str(path)
    result = Result(data)
    return Study(f"{path.stem} (yours)" if own else _sweep_name(result, path), path, result, own)


@contextmanager
def plain(path: Path) -> Iterator[Path]:
    """The file itself, or a copy without compression. An InputError about the copy names the
    file."""
    if path.suffix != ".gz":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / path.stem
        try:
            file.write_bytes(gzip.decompress(path.read_bytes()))
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: {error}") from error
        try:
            yield file
        except InputError as error:
            raise InputError(str(error).replace(str(file), str(path))) from error


def _networks_in(path: Path, absent: Mapping[str, object]) -> tuple[list[Network], list[object]]:
    """[run] Task and model, and their key (`identity.network_key`; None if the file has no
    settings), read without the rest."""
    try:
        with h5py.File(path) as file:
            names = list(zip(_texts(file["task"]), _texts(file["model"])))
            if not all(name in file for name in NETWORK_SETTINGS):
                return names, [None] * len(names)
            settings = [
                [json_object(text, f"{path}: {name}") for text in _texts(file[name])]
                for name in NETWORK_SETTINGS
            ]
            return names, [network_key(*one, absent) for one in zip(names, zip(*settings))]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _texts(array: h5py.Dataset) -> list[str]:
    """A text of each run; of a packed file, characters [run, place]."""
    if array.ndim == 1:
        return list(array.asstr()[:].tolist())
    joined = np.ascontiguousarray(array[:]).view(f"S{array.shape[1]}")[:, 0]
    return list(np.char.decode(joined, "utf-8").tolist())


def _sweep_name(result: Result, path: Path) -> str:
    return result.texts.get("name") or path.name.split(".")[0]


def committed(
    folder: Path, beside: Result | None = None, absent: Mapping[str, object] = {}
) -> list[Study]:
    """The studies of a folder of results: trained networks first, the largest first. `beside`:
    those that have some networks of this result (`identity.same_network`, with `absent`), with
    these networks alone. InputError if the folder has none."""
    paths = sorted(folder.glob("*.h5.gz"))
    if not paths:
        raise InputError(f"{folder}: has no result files (*.h5.gz)")
    studies = []
    wanted: set[object] = set()
    if beside is not None:
        wanted = {*beside.panels, *network_keys(beside, absent).values()}
    for path in paths:
        with plain(path) as file:
            if beside is None:
                studies.append(_study(path, _loaded(file)))
                continue
            both = zip(*_networks_in(file, absent))
            runs = [run for run, names in enumerate(both) if not wanted.isdisjoint(names)]
            if runs:
                studies.append(_study(path, _loaded(file).isel(run=runs)))
    return sorted(
        studies, key=lambda study: ("step" not in study.result.data.dims, -study.result.count)
    )


def slug(network: Network) -> str:
    """A name for the network's page."""
    return "-".join(
        [
            *dict.fromkeys(file_name(part.split("[")[0]) for part in network),
            f"{zlib.crc32(' '.join(network).encode()):08x}",
        ]
    )


def stage(share: float) -> str:
    """A share of training in words: "start", "10%", "half", "end"."""
    return {0.0: "start", 0.5: "half", 1.0: "end"}.get(round(share, 2), f"{100 * share:.0f}%")


def command(study: Study, task: str, model: str, estimator: str = "") -> str:
    """The command that runs the cells of an entry again, from the sweep's file. It names the task
    or model only where the sweep has others."""
    networks = list(study.result.panels)
    only = (
        [f"task={_shortest(task, {one for one, _ in networks})}"]
        if len({one for one, _ in networks}) > 1
        else []
    )
    only += (
        [f"model={_shortest(model, {one for other, one in networks if other == task})}"]
        if len({one for other, one in networks if other == task}) > 1
        else []
    )
    only += [f"estimator={estimator}"] if estimator else []
    return " ".join(
        [f"hardgrad run {sweep_file(study)}", *(f"--only {shlex.quote(one)}" for one in only)]
    )


def _shortest(spec: str, others: set[str]) -> str:
    """The bare name, if no other spec has it."""
    bare = spec.split("[")[0]
    return bare if sum(one.split("[")[0] == bare for one in others) == 1 else spec


def sweep_file(study: Study) -> str:
    """Where the sweep stands: in the tree; a user's has the name of its sweep."""
    return (
        f"{'' if study.own else 'experiments/configs/'}{_sweep_name(study.result, study.path)}.toml"
    )


def explored(study: Study) -> pd.DataFrame:
    """The rows of `table` at every measured step: `step`, `share` (of the training; NaN without a
    measurement), `label` (the estimator with the other axes that distinguish it), `spec` (the
    estimator as the sweep gives it)."""
    result = study.result
    steps = {
        panel: max(int(result.run_settings[run].get("train.steps", 0)) for run in runs_of(members))
        for panel, members in result.panels.items()
    }
    specs = {
        (*group.panel, group.label): str(result.values("estimator")[group.runs[0]])
        for group in result.groups
    }
    measured = (
        result.values("measurement_step").astype(int).tolist()
        if "measurement_step" in result.data.dims
        else []
    )
    frames: list[pd.DataFrame] = []
    for step in measured or [-1]:
        frame = table(result, step if measured else "first")
        keys = keys_of(result, frame)
        networks = pd.Series([key[:2] for key in keys], frame.index)
        frame = frame.assign(
            step=step,
            label=[label for *_, label in keys],
            spec=[specs[key] for key in keys],
            share=[step / steps[network] if steps[network] else 0.0 for network in networks]
            if measured
            else np.nan,
        )
        there = frame[list(MEASURED)].notna().any(axis=1)
        frames.append(frame[there | (not measured)])
    found = pd.concat(frames, ignore_index=True)
    never = [
        network
        for network in result.panels
        if not ((found["task"] == network[0]) & (found["model"] == network[1])).any()
    ]
    if never:  # networks that were trained without measurements
        frame = table(result, "first").assign(step=-1, share=np.nan)
        keys = keys_of(result, frame)
        frame = frame.assign(label=[label for *_, label in keys], spec=[specs[key] for key in keys])
        found = pd.concat([found, frame[[key[:2] in never for key in keys]]], ignore_index=True)
    return found


def answered(study: Study) -> pd.DataFrame:
    """The ranking of its networks at equal steps, and at equal rows (`answer`). Empty if nothing
    was trained and evaluated."""
    try:
        answers = answer(study.result)
    except InputError:
        return pd.DataFrame()
    return answers[answers["budget"].isin(("steps", "rows")) & (answers["at"] > 0)]
