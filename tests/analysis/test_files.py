"""The files open with their labels in h5py, xarray with h5netcdf (and netCDF4 if installed), and h5dump."""

import shutil
import subprocess
import warnings

import h5py
import numpy as np
import pytest
import xarray as xr

from analysis import InputError, load

FILES = ["result.h5", "one_seed.h5", "all_failed.h5", "gradient.h5", "checkpoint.h5"]


def in_sight(name, group):
    """A gradient's groups hold only the named arrays: their scales are in the root, where netCDF searches next."""
    return {group, "/"} if name == "gradient.h5" else {group}


def groups_of(path):
    with h5py.File(path) as f:
        return ["/", *(f"/{name}" for name in f if isinstance(f[name], h5py.Group))]


@pytest.mark.parametrize(
    "lead",
    [
        lambda file, other: file.__setitem__("elsewhere", h5py.ExternalLink(other, "/variance")),
        lambda file, other: file.__setitem__("elsewhere", h5py.SoftLink("/variance")),
        lambda file, other: file.create_dataset("elsewhere", (1,), "f8", external=[(str(other), 0, 8)]),
        lambda file, other: file.create_virtual_dataset("elsewhere", virtual_of(other)),
        lambda file, other: file.create_group("tuning").__setitem__("elsewhere", h5py.ExternalLink(other, "/variance")),
    ],
)
def test_nothing_is_read_from_another_file(sample, tmp_path, lead):
    shutil.copy(sample / "result.h5", tmp_path / "r.h5")
    with h5py.File(tmp_path / "r.h5", "a") as file:
        lead(file, sample / "result.h5")
    with warnings.catch_warnings(), pytest.raises(InputError, match="another file"):
        warnings.simplefilter("ignore")
        load(tmp_path / "r.h5", unverified=True)


def virtual_of(other):
    layout = h5py.VirtualLayout((1,), "f8")
    layout[:] = h5py.VirtualSource(other, "variance", (1,))
    return layout


@pytest.mark.parametrize("name", FILES)
def test_every_axis_has_a_scale_where_readers_look(sample, name):
    with h5py.File(sample / name) as f:
        assert f.attrs["status"] == "complete" and f.attrs["schema_version"] == 2
        for group in groups_of(sample / name):
            for dataset in f[group].values():
                if not isinstance(dataset, h5py.Dataset) or h5py.h5ds.is_scale(dataset.id):
                    continue
                assert dataset.shape is not None
                assert not isinstance(dataset.dtype, np.dtype) or dataset.dtype.names is None  # no compound types
                assert dataset.dtype.kind != "S"  # no fixed-length strings
                for axis, dim in enumerate(dataset.dims):
                    assert len(dim) == 1, f"{dataset.name} axis {axis}"
                    assert dim[0].parent.name in in_sight(name, group)
                    assert dim[0].shape == (dataset.shape[axis],)


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
@pytest.mark.parametrize("name", FILES)
def test_xarray_labels_every_axis(sample, name, engine):
    if engine == "netcdf4":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Debian's build issues a warning about numpy when it is first imported
            pytest.importorskip("netCDF4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xr.open_dataset(sample / name, engine=engine) as data:
            root = set(data.coords)
        for group in groups_of(sample / name):
            with xr.open_dataset(sample / name, engine=engine, group=group) as data:
                data.load()
                labelled = set(data.coords) | (root if "/" in in_sight(name, group) else set())
                for dim in data.dims:
                    assert dim in labelled, f"{group}: {dim} has no labels"
                    assert not str(dim).startswith("phony")


def test_a_gradients_groups_hold_the_named_arrays_alone(sample):
    with h5py.File(sample / "gradient.h5") as f:
        assert set(f["gradient"]) == set(f["parameters"])
        for group in ("parameters", "gradient", "batch"):
            assert not any(h5py.h5ds.is_scale(d.id) for d in f[group].values())


def test_result_is_labelled_at_once(sample):
    with xr.open_dataset(sample / "result.h5", engine="h5netcdf") as data:
        assert {"task", "model", "estimator", "seed", "seed_hex", "status"} <= set(data.coords)
        loss = data["train_loss"].where(data["estimator"] == "rloo[samples=4]", drop=True)
        assert loss.dims == ("run", "step") and loss.sizes["run"] == 12
        assert set(loss["task"].values) == {"bits", "translation[length=6]", "qa", "glimpse"}
        assert data["step"].values.tolist() == list(range(0, 301, 10))
        assert data["variance_interval"].dims == ("run", "measurement_step", "bound")
        assert data["bound"].values.tolist() == ["low", "high"]
        assert data["train_seconds"].attrs["units"] == "s" and data["train_seconds"].dtype == float
        frame = data[["train_loss"]].to_dataframe()  # pandas via xarray
        assert {"task", "estimator"} <= set(frame.columns)


def test_a_part_of_a_result_is_that_part_of_the_whole(sample):
    from analysis import load
    from analysis.errors import InputError

    whole = load(sample / "result.h5")
    some = load(sample / "result.h5", only=["variance"], runs=slice(5, 40))
    xr.testing.assert_identical(some.variance, whole.variance.isel(run=slice(5, 40)))
    assert set(some.data_vars) | set(some.coords) < set(whole.variables)
    assert "run_settings" in whole and "run_settings" not in some
    assert list(some.reason.values) == list(whole.reason.values[5:40])
    with pytest.raises(InputError, match="no variable variants"):
        load(sample / "result.h5", only=["variants"])


def test_merged_numbers_are_chunked_and_compressed(sample):
    with h5py.File(sample / "result.h5") as f:
        for dataset in f.values():
            if dataset.dtype.kind in "fiu" and dataset.shape:
                assert dataset.chunks and dataset.shuffle and dataset.compression == "gzip"
        assert f["status"].attrs["flag_meanings"] == "ok failed skipped"
        assert f["status"].attrs["flag_values"].tolist() == [0, 1, 2] and f["status"].attrs["flag_values"].dtype == np.uint8
        assert np.isnan(f["variance"].attrs["_FillValue"]) and np.isnan(f["variance"].fillvalue)
        assert "grüß" in f["configuration"][()].decode()
        for name in (
            "Conventions",
            "created_at",
            "git_commit",
            "git_dirty",
            "compiler",
            "flags",
            "blas",
            "blas_kernel",
            "instruction_set",
            "cpu",
            "threads",
            "plan_hash",
        ):
            assert name in f.attrs


def test_gradient_holds_what_a_reference_needs(sample):
    with h5py.File(sample / "gradient.h5") as f:
        assert f["parameters/encoder.weight"][()].tolist() == [[1, 2], [3, 4]]
        assert f["gradient/encoder.weight"].dtype == np.float32
        assert f["gradient/encoder.bias"].shape == (2,)
        assert f["batch/source"][()].tolist() == [[1, 2, 3], [4, 5, 0]]
        assert f["choices"][()].tolist() == [[0, 1, 2, 0], [1, 1, 0, -1]]
        assert f["logits"].shape == (2, 4, 3) and f["loss"].shape == f["log_prob"].shape == (2, 4)
        assert f["row_example"][()].tolist() == [0, 0, 1, 1]
        assert f.attrs["seed_hex"] == "0xfedcba9876543210" and f.attrs["surrogate"] == 1.5
        assert int(f.attrs["seed"]) % 2**64 == 0xFEDCBA9876543210


@pytest.mark.parametrize("name", FILES)
def test_h5dump_reads_it(sample, name):
    if not shutil.which("h5dump"):
        pytest.skip("h5dump is not installed")
    done = subprocess.run(["h5dump", str(sample / name)], capture_output=True, text=True)
    assert done.returncode == 0 and "unable" not in done.stderr


READ_IN_R = """
suppressMessages(library(rhdf5))
path <- commandArgs(TRUE)[1]
variance <- h5read(path, "variance")          # R counts axes the other way round: [measurement_step, run]
estimator <- h5read(path, "estimator")
title <- h5readAttributes(path, "variance")$long_name
cat(dim(variance), "\\n")
cat(length(estimator), estimator[1], "\\n")
cat(sprintf("%.17g", variance[2, 4]), "\\n")
cat(title, "\\n")
"""


def test_rhdf5_reads_it(sample):
    if not shutil.which("Rscript"):
        pytest.skip("R is not installed")
    if subprocess.run(["Rscript", "-e", "library(rhdf5)"], capture_output=True).returncode:
        pytest.skip("R has no package rhdf5")
    done = subprocess.run(
        ["Rscript", "-", str(sample / "result.h5")], input=READ_IN_R, capture_output=True, text=True, timeout=3000
    )
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    with h5py.File(sample / "result.h5") as f:
        assert lines == ["3 72", "72 exact", f"{f['variance'][3, 1]:.17g}", f["variance"].attrs["long_name"]]
