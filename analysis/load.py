"""Opening results: verified, decoded and labelled."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import h5py
import xarray as xr

from .errors import InputError, Unverified
from .seal import verify

SCHEMA_VERSION = 2


def load(
    path: str | os.PathLike[str],
    unverified: bool = False,
    *,
    only: Iterable[str] | None = None,
    runs: slice | None = None,
) -> xr.Dataset:
    """The merged result at `path` as one labelled dataset, in memory.

    Axes are `run`, `step`, `evaluation_step`, `measurement_step`, ...; `task`, `model`, `estimator`
    and `seed` are coordinates along `run`. `results/README.md` describes every variable. Raises
    InputError, in one line, if the file is missing, damaged, or not a result of this schema.
    `unverified`: also read files that another program has changed. Their integrity is unknown: the
    attribute `verified` records this, and a warning is issued.

    A large result can be read in part: `only` these variables, beside the labels and statuses of
    the runs, and only the `runs` of a slice, such as slice(0, 10_000). InputError if there is no
    variable of a name."""
    path = Path(path)
    data = _open_verified(path, unverified, only, runs)
    _require(path, data, "result")
    missing = [
        name
        for name in ("run", "task", "model", "estimator", "status", "reason")
        if name not in data.variables
    ]
    if missing:
        raise InputError(f"{path}: has no variable {', '.join(missing)}: the result is incomplete")
    if not data.sizes.get("run"):
        raise InputError(f"{path}: has no runs")
    data.attrs["path"] = str(path)
    return data


def load_tuning(data: xr.Dataset) -> xr.Dataset | None:
    """The tuning trials of a result (as returned by `load`): the group `tuning` of its file, with
    the axes of `load`. None if the sweep had no [tune]. InputError if it cannot be read."""
    if "tuned_axes" not in data.attrs:
        return None
    path = Path(str(data.attrs["path"]))
    try:
        with h5py.File(path) as file:
            there = "tuning" in file
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {_line(error)}") from error
    if not there:
        return None
    trials = _open(path, "tuning")
    trials.attrs.update({"path": str(path), "tuned_axes": data.attrs["tuned_axes"]})
    return trials


def load_gradient(
    path: str | os.PathLike[str], unverified: bool = False
) -> tuple[xr.Dataset, xr.Dataset]:
    """A file of `hardgrad gradient --out`: its root (choices, logits, ...) and its batch. Raises
    InputError, in one line, if it is missing, damaged, or not such a file. `unverified`: as in
    `load`."""
    path = Path(path)
    data = _open_verified(path, unverified)
    _require(path, data, "gradient")
    data.attrs["path"] = str(path)
    return data, _open(path, "batch")


def _open_verified(
    path: Path, unverified: bool, only: Iterable[str] | None = None, runs: slice | None = None
) -> xr.Dataset:
    trust = verify(path, unverified)
    data = _open(path, None, only, runs)
    data.attrs["verified"] = trust
    if trust.startswith("unverified"):
        warnings.warn(f"{path}: {trust}", Unverified, stacklevel=3)
    return data


def _open(
    path: Path,
    group: str | None = None,
    only: Iterable[str] | None = None,
    runs: slice | None = None,
) -> xr.Dataset:
    """A group of the file, or a part of it, in memory."""
    try:
        _require_whole(path)
        drop = None if only is None else _others(path, list(only))
        with xr.open_dataset(path, engine="h5netcdf", group=group, drop_variables=drop) as opened:
            return (opened if runs is None else opened.isel(run=runs)).load()
    except InputError:
        raise
    except (
        Exception
    ) as error:  # h5py, h5netcdf and xarray raise many kinds of exceptions on damaged files
        raise InputError(f"{path}: cannot be read: {_line(error)}") from error


def _require_whole(path: Path) -> None:
    """InputError if a link or an array of the file leads into another file, which would be read in
    its place."""
    with h5py.File(path) as file:
        for group in (
            file,
            *(item for name, item in _members(path, file) if isinstance(item, h5py.Group)),
        ):
            for name, item in _members(path, group):
                if isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
                    raise InputError(f"{path}: {name} has its values in another file")


def _members(path: Path, group: h5py.Group) -> list[tuple[str, Any]]:
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise InputError(f"{path}: {name} is a link, maybe into another file")
    return list(group.items())


def _others(path: Path, only: list[str]) -> list[str]:
    """The variables that are neither wanted nor labels nor statuses. They are dropped at once:
    xarray of 2023 reads every text when it opens a file (GH 6453)."""
    with h5py.File(path) as file:
        if unknown := [name for name in only if name not in file]:
            raise InputError(f"{path}: has no variable {', '.join(unknown)}")
        kept = {*only, *str(file.attrs.get("coordinates", "")).split(), "status", "reason"}
        return [
            name
            for name, item in file.items()
            if name not in kept
            and isinstance(item, h5py.Dataset)
            and not h5py.h5ds.is_scale(item.id)
        ]


def _require(path: Path, data: xr.Dataset, wanted: str) -> None:
    """InputError unless the file is of this schema and kind."""
    version = data.attrs.get("schema_version")
    if version is None:
        raise InputError(f"{path}: is not a Hardgrad file: it has no schema_version")
    if str(version) != str(SCHEMA_VERSION):
        raise InputError(
            f"{path}: has schema version {version}, this program reads {SCHEMA_VERSION}: create it "
            "again, or read it with the release that wrote it"
        )
    kind = data.attrs.get("kind")
    if kind != wanted:
        hint = {
            ("gradient", "result"): "; `analysis look` shows it",
            ("result", "gradient"): "; `analysis report` shows it",
        }.get((str(kind), wanted), "")
        raise InputError(f"{path}: is a {kind} file, not a {wanted}{hint}")


def _line(error: Exception) -> str:
    """The error's message without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__
