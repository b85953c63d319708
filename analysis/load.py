"""Opening results: verified, decoded, labelled."""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any

import xarray as xr

from .errors import InputError

SCHEMA_VERSION = 2
_SEAL = b"\nHARDGRAD-SEAL "


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """The merged result at `path` as one labelled dataset, in memory.

    Axes are `run`, `step`, `evaluation_step`, `measurement_step`, ...; `task`, `model`, `estimator` and `seed` are
    coordinates along `run`. `results/README.md` describes every variable. Raises InputError, in one line, if the file
    is missing, damaged, or not a result of this schema.
    """
    path = Path(path)
    _verify(path)
    data = _open(path)
    _require(path, data, "result")
    missing = [name for name in ("run", "task", "model", "estimator", "status", "reason") if name not in data.variables]
    if missing:
        raise InputError(f"{path}: has no variable {', '.join(missing)}: it is not a whole result")
    if not data.sizes.get("run"):
        raise InputError(f"{path}: holds no runs")
    data.attrs["path"] = str(path)
    return data


def load_gradient(path: str | os.PathLike[str]) -> tuple[xr.Dataset, xr.Dataset]:
    """A file of `hardgrad gradient --out`: what stands in its root (choices, logits, ...), and its batch. Raises InputError, in
    one line, if it is missing, damaged, or no such file."""
    path = Path(path)
    _verify(path)
    data = _open(path)
    _require(path, data, "gradient")
    data.attrs["path"] = str(path)
    return data, _open(path, "batch")


def _open(path: Path, group: str | None = None) -> xr.Dataset:
    """A group of the file, in memory."""
    try:
        with xr.open_dataset(path, engine="h5netcdf", group=group) as opened:
            return opened.load()
    except Exception as error:  # h5py, h5netcdf and xarray raise every kind there is on odd files
        raise InputError(f"{path}: cannot be read: {_line(error)}") from error


def _require(path: Path, data: xr.Dataset, wanted: str) -> None:
    """InputError unless the file is of this schema and kind."""
    version = data.attrs.get("schema_version")
    if version is None:
        raise InputError(f"{path}: is not a file of Hardgrad: it has no schema_version")
    if str(version) != str(SCHEMA_VERSION):
        raise InputError(f"{path}: has schema version {version}, this program reads {SCHEMA_VERSION}: make it "
                         "anew, or read it with the release that wrote it")
    kind = data.attrs.get("kind")
    if kind != wanted:
        hint = {("cell", "result"): "; merge the cells first", ("gradient", "result"): "; `analysis look` shows it",
                ("result", "gradient"): "; `analysis report` shows it"}.get((str(kind), wanted), "")
        raise InputError(f"{path}: is a {kind} file, not a {wanted}{hint}")


def need(data: xr.Dataset, name: str, remedy: str) -> xr.DataArray:
    """Variable `name`; InputError that says what would bring it if it is missing or holds no number."""
    where = data.attrs.get("path", "result")
    if name not in data.variables:
        raise InputError(f"{where}: has no variable {name}: {remedy}")
    if data[name].dtype.kind == "f" and not data[name].notnull().any():
        raise InputError(f"{where}: {name} holds no number at all: {remedy}")
    return data[name]


def status_names(data: xr.Dataset) -> list[str]:
    """"ok", "failed" or "skipped" for every run."""
    meanings = str(data["status"].attrs.get("flag_meanings", "ok failed skipped")).split()
    return [meanings[int(code)] if int(code) < len(meanings) else "unknown" for code in data["status"].values]


def estimator_settings(data: xr.Dataset) -> list[dict[str, Any]]:
    """Every run's parameters of the estimator, by name; empty where the result holds none. InputError if one is no JSON object."""
    texts = list(data["estimator_settings"].values) if "estimator_settings" in data else [""] * data.sizes["run"]
    found = []
    for text in texts:
        try:
            settings = json.loads(str(text) or "{}")
        except ValueError:
            settings = None
        if not isinstance(settings, dict):
            raise InputError(f"{data.attrs.get('path', 'result')}: estimator_settings is no JSON object: {text}")
        found.append(settings)
    return found


def _verify(path: Path) -> None:
    """Magic number and seal, before any HDF5 code sees the bytes."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: is not a regular file")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not content:
        raise InputError(f"{path}: is empty")
    if not content.startswith(b"\x89HDF\r\n\x1a\n"):
        raise InputError(f"{path}: is not an HDF5 file")
    mark = content.rfind(_SEAL, max(0, len(content) - 512))
    if mark < 0:
        # Repacked files have lost it; truncated ones too, which HDF5 itself notices.
        return
    end = re.search(rb" crc32:([0-9a-f]{8}) xxh3:[0-9a-f]{16}\n\Z", content[mark:])
    if not end:
        raise InputError(f"{path}: truncated: its seal is torn")
    if zlib.crc32(content[: mark + end.start()]) != int(end.group(1), 16):
        raise InputError(f"{path}: damaged: its bytes do not match the checksum in its seal")


def _line(error: Exception) -> str:
    """The error's message without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__
