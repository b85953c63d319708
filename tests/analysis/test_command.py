"""The command line: its outputs, and a one-line message for every error."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import xarray as xr

from analysis import InputError, Unverified, load, tidy
from analysis.__main__ import main
from conftest import ROOT
from made_up import repeated


def run(*arguments) -> SimpleNamespace:
    """The command in this process, since each import of matplotlib takes seconds."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as stop:
            status = stop.code
    return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())


def test_as_a_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "analysis", "report", str(tmp_path / "none.h5")], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 3 and done.stdout == ""
    assert done.stderr == f"analysis: {tmp_path / 'none.h5'}: cannot be read: No such file or directory\n"


def test_a_python_without_the_packages_is_told_in_a_line(tmp_path):
    (tmp_path / "analysis").symlink_to(ROOT / "analysis")
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-m", "analysis", "report", "x.h5"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"analysis: {sys.executable} lacks numpy, ") and "-m pip install numpy" in done.stderr


def test_streams_that_cannot_be_written(sample, tmp_path):
    def ended(*arguments, redirected):
        command = ["/bin/sh", "-c", f'exec "$0" "$@" {redirected}', sys.executable, "-m", "analysis", *map(str, arguments)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        return done.returncode, done.stderr

    same = ("compare", sample / "result.h5", sample / "result.h5")
    assert ended(*same, redirected=">/dev/full") == (
        2,
        "analysis: standard output cannot be written: No space left on device\n",
    )
    assert ended(*same, redirected=">&-") == (2, "analysis: standard output cannot be written: Bad file descriptor\n")
    assert ended(*same, redirected="2>/dev/full") == (0, "")
    assert ended("report", tmp_path / "none.h5", redirected="2>/dev/full") == (3, "")
    assert ended("report", tmp_path / "none.h5", redirected="2>&-") == (3, "")
    said = f"analysis: {tmp_path}/a\\x1b[31m\\nb: cannot be read: No such file or directory\n"  # escaped, so it does not affect the terminal
    assert ended("report", tmp_path / "a\033[31m\nb", redirected=">/dev/full") == (3, said)


def complaint(status: int, *arguments) -> str:
    done = run(*arguments)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""
    return done.stderr


def test_draw_writes_pictures_and_prints_the_table(result, tmp_path):
    done = run("draw", result, "--out", tmp_path / "deep" / "pictures")
    assert done.returncode == 0 and done.stderr == ""
    paths = [line for line in done.stdout.splitlines() if line.endswith((".png", ".svg"))]
    assert len(paths) == 30 and "rloo[samples=4]" in done.stdout
    for path in paths:
        with open(path, "rb") as f:
            assert f.read(5) in (b"\x89PNG\r", b"<?xml")


def test_draw_takes_figures_estimators_sizes_and_formats(result, tmp_path):
    how = ["draw", result, "--out", tmp_path / "p", "--figure", "bias_variance", "--format", "pdf", "--size", "paper"]
    done = run(*how, "--estimator", "rloo")
    assert done.returncode == 0 and "rloo" in done.stdout and "reinforce" not in done.stdout
    assert [path.name for path in (tmp_path / "p").iterdir()] == ["bias_variance.pdf"]
    drawn = (tmp_path / "p" / "bias_variance.pdf").read_bytes()
    assert drawn.startswith(b"%PDF")
    run(*how, "--estimator", "rloo")
    assert (tmp_path / "p" / "bias_variance.pdf").read_bytes() == drawn  # equal figures give equal files
    every, one = (run(*how, *more).stdout for more in ((), ("--estimator", "rloo")))
    rows = [line for line in every.splitlines() if " rloo" in line]
    assert rows and [line.split() for line in rows] == [line.split() for line in one.splitlines() if " rloo" in line], (
        "ranks and letters of one family"
    )
    refused = run(*how, "--estimator", "nothing")
    assert refused.returncode == 3 and "no run has estimator nothing" in refused.stderr
    empty = run("draw", result, "--out", tmp_path / "q", "--figure", "variance_against_samples")
    assert empty.returncode == 3 and "no estimator has several values of samples" in empty.stderr, "a figure that was asked for"


def test_draw_takes_a_metric(result, tmp_path):
    done = run(
        "draw", result, "--out", tmp_path / "p", "--figure", "metric_curves", "--metric", "metric_none", "--format", "png"
    )
    assert done.returncode == 3 and "metric_none" in done.stderr and "evaluated metrics are: " in done.stderr
    name = re.search(r"evaluated metrics are: (\w+)", done.stderr).group(1)
    done = run("draw", result, "--out", tmp_path / "p", "--figure", "metric_curves", "--metric", name, "--format", "png")
    assert done.returncode == 0 and (tmp_path / "p" / "metric_curves.png").exists()


def test_draw_turns_pages(result, tmp_path, monkeypatch):
    monkeypatch.setattr("analysis.__main__.MOST_PANELS", 2)
    done = run("draw", result, "--out", tmp_path, "--page", "2")
    assert done.returncode == 0 and done.stdout.endswith("page 2 of 2, 2 networks each; use --page N for another\n")
    assert (tmp_path / "bias_variance_page2.png").exists() and not (tmp_path / "bias_variance.png").exists()
    assert "glimpse" in done.stdout and "translation" not in done.stdout
    assert "has no page 3: 4 networks fill 2" in complaint(3, "draw", result, "--out", tmp_path, "--page", "3")


def test_report_is_one_page_that_stands_alone(result, tmp_path):
    done = run("report", result, "--out", tmp_path / "r.html")
    assert done.returncode == 0 and done.stdout.strip() == str(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert page.count("<img") == 15 and "the gradient is not finite at step 12" in page and "grüß" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)  # no external resources
    assert "SkylakeX" in page


def test_report_of_two_thousand_runs_is_no_longer_than_of_seventy(sample):
    from analysis.report import report

    data = repeated(load(sample / "result.h5"), 28)
    page = report(data)
    assert data.sizes["run"] == 2016
    assert "The first 6 of 112 networks are drawn here" in page and page.count("<img") == 15
    assert page.count("glimpse27") > 6  # the others are in the tables


def test_text_from_files_cannot_become_markup(result, tmp_path):
    bytes_ = result.read_bytes()
    result.write_bytes(bytes_[: bytes_.rfind(b"\nHARDGRAD-SEAL")])  # as a file another program has changed
    with h5py.File(result, "r+") as f:
        f["reason"][0] = "<script>alert(1)</script>"
        f["status"][0] = 1
    assert run("report", result, "--out", tmp_path / "r.html", "--unverified").returncode == 0
    page = (tmp_path / "r.html").read_text()
    assert "<script>alert" not in page and "&lt;script&gt;" in page


def test_draw_goes_on_without_what_is_missing(sample, tmp_path):
    done = run("draw", sample / "all_failed.h5", "--out", tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert "bias_variance: not drawn" in done.stderr and "1 failed" in done.stdout


@pytest.mark.parametrize(
    "content, words",
    [(b"", "is empty"), (b"not HDF5 at all", "not an HDF5 file"), (b"\x89HDF\r\n\x1a\n" + bytes(100), "truncated or damaged")],
)
def test_foreign_bytes(tmp_path, content, words):
    path = tmp_path / "odd.h5"
    path.write_bytes(content)
    assert words in complaint(3, "report", path)


def test_damage_is_found_wherever_it_is(result):
    whole = result.read_bytes()
    for i in range(0, len(whole), len(whole) // 60):
        for spoilt in (whole[:i], whole[:i] + bytes([whole[i] ^ 16]) + whole[i + 1 :]):
            result.write_bytes(spoilt)
            with pytest.raises(InputError, match="result.h5: "):
                load(result)
    result.write_bytes(whole)
    load(result)
    result.write_bytes(whole[:-200])
    assert "result.h5" in complaint(3, "report", result)


def change(path, do):
    """Changes a file as another program would: the seal is lost."""
    whole = path.read_bytes()
    path.write_bytes(whole.split(b"\nHARDGRAD-SEAL")[0])
    with h5py.File(path, "r+") as f:
        do(f)


def changed_complaint(status, *arguments):
    """The message for such a file, besides the warning that it is unverified."""
    done = run(*arguments, "--unverified")
    warning, error = done.stderr.splitlines()
    assert done.returncode == status and "unverified: its seal is missing, so another program has changed it" in warning
    return error


def test_a_file_without_its_seal(result, tmp_path):
    whole = result.read_bytes()
    at = whole.rfind(b"\nHARDGRAD-SEAL")
    name = whole.index(b"rloo[samples=4]", len(whole) // 3)
    renamed = whole[:name] + b"rlOO[samples=4]" + whole[name + 15 :]
    bare = whole[:at]
    found = {
        "zeroed": whole[:at] + bytes(len(whole) - at),
        "half zeroed": whole[: at // 2] + bytes(len(whole) - at // 2),
        "zeros behind": whole + bytes(600),
        "changed": renamed + bytes(600),
        "cut": whole[: at - 1],
        "cut to zeros": bare[: at // 2] + bytes(600),
    }
    for how, content in found.items():
        result.write_bytes(content)
        for more in ((), ("--unverified",)):
            assert "it has no seal, and its length does not match its HDF5 header" in complaint(3, "report", result, *more), how
    for content in (bare, renamed[:at]):
        result.write_bytes(content)
        assert "its seal is missing; to read it anyway, use --unverified" in complaint(
            3, "report", result, "--out", tmp_path / "x"
        )
    done = run("compare", result, result, "--unverified")
    assert done.returncode == 0 and done.stderr.count("warning: ") == 2
    with pytest.warns(Unverified, match="its seal is missing"):
        assert load(result, unverified=True).attrs["verified"].startswith("unverified")


def test_a_file_that_never_had_a_seal_is_said_to_be_unverified(result, tmp_path):
    assert load(result).attrs["verified"] == "by its seal"
    with xr.open_dataset(result, engine="h5netcdf") as data:
        own = data.load()
    own = own.isel(run=own["task"] == "bits")
    for variable in own.variables.values():
        variable.encoding = {}
    del own.attrs["hardgrad_seal"]
    own.to_netcdf(tmp_path / "own.h5", engine="h5netcdf", invalid_netcdf=True)
    done = run("report", tmp_path / "own.h5")
    assert done.returncode == 0
    assert done.stderr == f"analysis: warning: {tmp_path / 'own.h5'}: unverified: it has no seal, so another program wrote it\n"
    assert "unverified: it has no seal" in (tmp_path / "own.html").read_text()


def test_wrong_content(result, sample, tmp_path):
    assert "merge them first" in complaint(3, "report", sample / "some.cells", "--out", tmp_path / "x")
    assert "is a gradient file" in complaint(3, "draw", sample / "gradient.h5", "--out", tmp_path / "x")
    assert "No such file" in complaint(3, "report", tmp_path / "none.h5")
    assert "is a folder" in complaint(3, "report", tmp_path)
    assert "nothing was measured at step 7" in complaint(3, "draw", result, "--at", "7", "--out", tmp_path / "x")
    change(result, lambda f: f.attrs.__setitem__("schema_version", 9))
    assert "has schema version 9, this program reads 2: create it again" in changed_complaint(3, "report", result)
    change(result, lambda f: f.attrs.__delitem__("schema_version"))
    assert "not a Hardgrad file" in changed_complaint(3, "report", result)


def test_a_result_without_runs(result):
    with xr.open_dataset(result, engine="h5netcdf") as data:
        empty = data.load().isel(run=[])
    for variable in empty.variables.values():
        variable.encoding = {}
    empty.to_netcdf(result, engine="h5netcdf", invalid_netcdf=True)
    assert "has no runs" in changed_complaint(3, "report", result)


def test_a_gradient_without_its_batch(sample, tmp_path):
    path = shutil.copy(sample / "gradient.h5", tmp_path / "g.h5")
    change(tmp_path / "g.h5", lambda f: f.__delitem__("batch"))
    assert "g.h5: cannot be read" in changed_complaint(3, "look", path)


def test_settings_that_are_no_json(result):
    change(result, lambda f: f["estimator_settings"].__setitem__(0, "{samples"))
    assert (
        run("report", result, "--out", result.with_suffix(".html"), "--unverified").returncode == 0
    )  # only the figures that need them are missing
    words = "estimator_settings is not a JSON object: {samples"
    assert words in result.with_suffix(".html").read_text()
    with pytest.raises(InputError, match=words), pytest.warns(Unverified):
        tidy(load(result, unverified=True))


def test_missing_variable(result):
    change(result, lambda f: f.__delitem__("estimator"))
    assert "has no variable estimator" in changed_complaint(3, "report", result)


def test_nan_cells_leave_the_rest(result, tmp_path):
    def spoil(f):
        f["variance"][:30] = np.nan
        f["train_loss"][5] = np.inf

    change(result, spoil)
    assert run("draw", result, "--out", tmp_path / "p", "--unverified", "--format", "png").returncode == 0


def test_bad_output_places(result, tmp_path, monkeypatch):
    monkeypatch.setattr("analysis.__main__.report", None)  # the path is checked before the report is made
    (tmp_path / "file").write_text("x")
    assert "cannot be written" in complaint(2, "report", result, "--out", tmp_path / "none" / "r.html")
    assert "cannot be created" in complaint(2, "draw", result, "--out", tmp_path / "file" / "below")
    assert run("paint", result).returncode == 2


def test_compare(sample, result, tmp_path):
    done = run("compare", result, sample / "result.h5")
    assert done.returncode == 0 and re.fullmatch(r"\d+ comparisons: \d+ same\n", done.stdout)

    def slower(f):
        f["heldout_expected_loss"][:18] += 1.0

    change(result, slower)
    done = run("compare", sample / "result.h5", result, "--json", "--unverified")
    record = json.loads(done.stdout)
    moved = [c for c in record["cells"] if c["difference"] and c["difference"] > 0.9]
    assert (
        done.returncode == 0 and len(moved) == 5 and {(c["task"], c["verdict"]) for c in moved} == {("bits", "few seeds")}
    )  # of three seeds
    assert "No such file" in complaint(3, "compare", sample / "result.h5", tmp_path / "none.h5")


def test_compare_knows_what_programs_without_a_setting_did(sample, result, tmp_path):
    def newer(f):
        texts = [json.loads(text) for text in f["run_settings"].asstr()[:]]
        assert not any("train.parts" in one for one in texts), "of a few settings alone"
        f["run_settings"][:] = [json.dumps({**one, "train.parts": 1}) for one in texts]

    change(result, newer)
    same = ("compare", sample / "result.h5", result, "--unverified", "--json", "--hardgrad")
    assert json.loads(run(*same, os.environ["HARDGRAD_BINARY"]).stdout)["settings"] == {}
    assert json.loads(run(*same, "").stdout)["settings"] == {"train.parts": ["not recorded in one or both"] * 2}
    assert "cannot be run" in changed_complaint(3, *same[:3], "--hardgrad", tmp_path / "none")


def test_compare_of_files_without_anything_to_compare(sample):
    done = run("compare", sample / "all_failed.h5", sample / "all_failed.h5")
    assert done.returncode == 0 and done.stdout == "0 comparisons: none\n"


def test_look(sample, tmp_path):
    assert "the batch has no field story" in complaint(3, "look", sample / "gradient.h5", "--out", tmp_path / "none")
    many = complaint(3, "look", sample / "gradient.h5", "--examples", *"01234", "--out", tmp_path / "none")
    assert "--examples: at most 4 are drawn at once, 5 are given" in many
    assert not (tmp_path / "none").exists() and "at most 4" in run("look", "--help").stdout
    plain = shutil.copy(sample / "gradient.h5", tmp_path / "g.h5")
    change(tmp_path / "g.h5", lambda f: f.attrs.__setitem__("model", "another[hops=2]"))
    done = run("look", plain, "--unverified")
    assert done.returncode == 0 and [line.rsplit("/", 1)[1] for line in done.stdout.splitlines()] == [
        "attention_maps.png",
        "attention_maps.svg",
        "attention_entropy.png",
        "attention_entropy.svg",
    ]
    assert (tmp_path / "g" / "attention_maps.png").read_bytes().startswith(b"\x89PNG")
    assert "another and memory_reader: several files are drawn together for " in changed_complaint(
        3, "look", plain, sample / "gradient.h5"
    )
    change(tmp_path / "g.h5", lambda f: f.__delitem__("logits"))
    assert "has no logits" in changed_complaint(3, "look", plain)
