"""Results cut to the variables that tables and figures of the pages read, as files to commit in
`results/reference/data`."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Collection
from pathlib import Path

import numpy as np
import xarray as xr

from ..errors import OutputError
from ..seal import SEALED, sealed

MOST_BYTES = 60_000  # of a study
#: Of the measurements, these are kept, with their intervals; the others can be measured again.
_MEASURED = (
    "variance", "squared_bias", "relative_bias", "work_normalised_variance", "cosine",
    "mean_cosine", "bias_p_value", "exact_variance", "exact_squared_bias", "exact_cosine", "rows",
    "attention_values", "estimand_norm", "measurement_unsupported", *(_ABOUT := (
        "measurement_status", "measured_estimator", "own_target", "known_unbiased")),
)  # fmt: skip
_TRAINED = ("train_loss", "train_rows", "train_attention_values", "train_cpu_seconds")
_OTHERS = ("log", "checkpoint", "total_seconds")  # of a machine and folder
_MANY = 1000  # runs, whose identities are left out: the configuration has them
_BITS = 20  # of a mantissa: six digits


def packed(
    data: xr.Dataset,
    also: Collection[str] = (),
    only: Collection[str] | None = None,
    most: int = MOST_BYTES,
) -> bytes:
    """A result (of `load`) as a compressed file: labels, settings, costs, scores of every seed and
    evaluation, moments, identity and provenance, and the variables `also`; of scores and moments
    with `only` these. Numbers that are not whole are rounded to `significant_bits` (an attribute;
    six digits), and the file has a seal of its own. OutputError above `most` bytes."""
    moments = _MEASURED if only is None else (*_ABOUT, *only)
    names = [str(name) for name in data.variables if _keeps(str(name), data, also, moments)]
    kept = data[names]
    kept.attrs = {
        **{name: value for name, value in data.attrs.items() if name not in _OF_THE_FILE},
        "packed": "a selection of the variables, numbers rounded to significant_bits",
        "significant_bits": _BITS + 1,
        SEALED: 1,
    }
    for name in kept.variables:
        if kept[name].dtype.kind == "f":
            kept[name].values[...] = _rounded(kept[name].values)
        elif kept[name].dtype.kind in "OU" and kept[name].dims and name not in kept[name].dims:
            kept[name] = kept[name].copy(
                data=np.char.encode(kept[name].values.astype(str), "utf-8")
            )
        kept[name].encoding = {}
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "packed.h5"
        kept.to_netcdf(plain, engine="h5netcdf")
        content = gzip.compress(sealed(plain.read_bytes()), 9, mtime=0)
    if len(content) > most:
        raise OutputError(
            f"{len(content)} bytes after packing, a study may have {most}: it has "
            f"{data.sizes['run']} runs; make its grid smaller, or in studies.toml keep fewer "
            "moments (only) or allow more (most_bytes)"
        )
    return content


#: Attributes that describe a file which the program wrote and sealed.
_OF_THE_FILE = (SEALED, "checksum", "verified", "path")


def _keeps(name: str, data: xr.Dataset, also: Collection[str], moments: Collection[str]) -> bool:
    axes = set(map(str, data[name].dims))
    if name in also:
        return True
    if axes <= {"run"} or name in axes:
        many = name == "cell_hash" and data.sizes["run"] > _MANY
        return name not in _OTHERS and not many
    every = len(moments) == len(_MEASURED)
    if "measurement_step" in axes:
        return name in moments or every and name.removesuffix("_interval") in moments
    return name in moments or every and (name in _TRAINED or axes == {"run", "evaluation_step"})


def unpacked(data: xr.Dataset) -> xr.Dataset:
    """A packed result with its texts decoded, which, but for labels of axes, are of fixed length in
    the file: a sixth of the size."""
    texts = {
        name: (one.dims, np.char.decode(one.values, "utf-8").astype(object), one.attrs)
        for name, one in data.variables.items()
        if one.dtype.kind == "S"
    }
    labels = {name: one for name, one in texts.items() if name in data.coords}
    return data.assign_coords(labels).assign(
        {name: one for name, one in texts.items() if name not in labels}
    )


def _rounded(numbers: np.ndarray) -> np.ndarray:
    """To _BITS of the mantissa, half away from 0; arrays of whole numbers as they are."""
    if (np.isnan(numbers) | (numbers == np.round(numbers))).all():
        return numbers
    lost = 52 - _BITS
    raised = numbers.astype(np.float64).view(np.int64) + (1 << (lost - 1))
    rounded = (raised >> lost << lost).view(np.float64)
    return np.where(np.isfinite(numbers), rounded, numbers).astype(numbers.dtype)
