"""If standard output or standard error cannot be written, the exit status, the files and the other stream are still correct."""

import json
import os
import subprocess

import pytest

from program import BINARY, as_json, run

SWEEP = (
    'precision = "double"\n[grid]\ntask = "bits"\nestimator = ["exact", "rloo[samples=2]"]\n[[exclude]]\nestimator = "soft*"\n'
    '[train]\nsteps = 0\n[measure]\nat = ["start"]\nmethod = "exact"\n'
)


def streams(how):
    """A stream that cannot be written: /dev/full, or a pipe without a reader."""
    if how == "full":
        return open("/dev/full", "w")
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


def ended(arguments, out=None, err=None, **options):
    """Runs the program with these streams; None: a pipe, read to its end. Returns the completed process."""
    closed = [number for number, how in ((1, out), (2, err)) if how == "closed"]
    files = {
        name: streams(how) if how not in (None, "closed") else subprocess.PIPE
        for name, how in (("stdout", out), ("stderr", err))
    }
    try:
        # A shell closes the descriptors, because Python would replace them.
        command = [
            "/bin/sh",
            "-c",
            'exec "$0" "$@"' + "".join(f" {number}>&-" for number in closed),
            BINARY,
            *map(str, arguments),
        ]
        return subprocess.run(command, text=True, timeout=3000, **files, **options)
    finally:
        for file in files.values():
            if file is not subprocess.PIPE:
                file.close()


@pytest.fixture
def sweep(tmp_path):
    (tmp_path / "s.toml").write_text(SWEEP)
    return tmp_path / "s.toml"


@pytest.mark.parametrize("how", ["full", "closed"])
def test_a_message_that_cannot_be_written_leaves_the_status(how, sweep, tmp_path):
    fails = ("--set", "train.apart=nothing")
    commands = [
        (("check", tmp_path / "none.h5"), 3),
        (("list", "estimator"), 2),
        (("rn",), 2),
        (("status", tmp_path), 3),
        (("measure", "--task", "bitz"), 2),
        (("run", sweep, "--out", tmp_path / "failing", *fails), 1),
        (("run", sweep, "--out", tmp_path / "run"), 0),
        (("plan", sweep, "--out", tmp_path / "run", "--quick"), 0),
    ]
    for arguments, status in commands:
        done = ended(arguments, err=how)
        assert done.returncode == status, (arguments, done.returncode)
    assert as_json("status", tmp_path / "run")["ok"] == 2
    for line in (
        (tmp_path / "run" / "journal.jsonl").read_text().splitlines()
    ):  # the journal may get the number of a closed descriptor
        json.loads(line)


def verbs(sweep, folder):
    return [
        ("list",),
        ("list", "matrix", "--json"),
        ("describe", "rloo"),
        ("completion", "bash"),
        ("--help",),
        ("--version",),
        (),
        ("measure", "--task", "bits", "--exact"),
        ("gradient", "--task", "bits", "--estimator", "exact", "--out", folder / "g.h5"),
        ("run", sweep, "--out", folder / "run"),
        ("plan", sweep, "--out", folder / "run"),
        ("status", folder / "run"),
        ("check", folder / "run"),
        ("merge", folder / "run", "--out", folder / "all.h5"),
        ("export", folder / "all.h5", "--csv", folder / "csv"),
        ("test", "exact"),
    ]


@pytest.mark.parametrize("how", ["full", "closed"])
def test_output_that_cannot_be_written_is_one_line(how, sweep, tmp_path):
    for arguments in verbs(sweep, tmp_path):
        done = ended(arguments, out=how)
        assert done.returncode == 2, (arguments, done.returncode, done.stderr)
        lines = [line for line in done.stderr.splitlines() if "cells" not in line and "warning" not in line]
        assert lines == [
            "hardgrad: standard output cannot be written: "
            + {"full": "No space left on device", "closed": "Bad file descriptor"}[how]
        ], (arguments, done.stderr)
    run("check", tmp_path / "all.h5")  # the file was written nevertheless
    run("check", tmp_path / "run")


def test_nothing_can_be_written(sweep, tmp_path):
    fails = ("--set", "train.apart=nothing")
    for how in ("full", "closed"):
        assert ended(("run", sweep, "--out", tmp_path / how), out=how, err=how).returncode == 2
        assert as_json("status", tmp_path / how)["ok"] == 2
        assert (
            ended(("run", sweep, "--out", tmp_path / f"{how}-failing", *fails), out=how, err=how).returncode == 1
        )  # failure takes precedence
        assert ended(("check", tmp_path / "none.h5"), out=how, err=how).returncode == 3


def test_a_sweep_outlives_its_reader(sweep, tmp_path):
    done = ended(("run", sweep, "--out", tmp_path / "run", "--progress", "plain"), err="deserted")
    assert done.returncode == 0 and "2 done now" in done.stdout
    done = ended(("run", sweep, "--out", tmp_path / "again"), out="deserted")
    assert done.returncode == 0 and "Broken pipe" not in done.stderr
    assert as_json("status", tmp_path / "again")["ok"] == 2


@pytest.mark.parametrize("signal", ["ends the program", "is ignored"])
def test_a_reader_that_has_gone_is_no_error(signal):
    """As with `head`: where the signal of a closed pipe is ignored (by a parent), no message remains."""
    for arguments in (("measure", "--task", "bits", "--exact"), ("list",), ("describe", "rloo"), ("--help",)):
        done = ended(arguments, out="deserted", restore_signals=signal != "is ignored")
        assert (done.returncode, done.stderr) == (0 if signal == "is ignored" else -13, ""), arguments


def test_what_was_given_cannot_command_a_terminal(tmp_path):
    odd = "a\x1b[31m\nb\x7f\u009b2J\xe9"
    for arguments, status in (
        (("run", f"{odd}.toml"), 3),
        (("measure", "--task", odd), 2),
        ((odd,), 2),
        (("status", odd), 3),
        (("describe", odd), 2),
    ):
        said = ended(arguments).stderr
        assert "a\\x1b[31m\\nb\\x7f\\xc2\\x9b2J\xe9" in said and said.count("\n") == 1 and said.replace("\n", "").isprintable()
        assert ended(arguments).returncode == status


def test_what_is_suggested_can_be_pasted(tmp_path):
    (tmp_path / "s.toml").write_text(SWEEP)
    out = tmp_path / "it's a folder"
    suggested = run("run", tmp_path / "s.toml", "--out", out).stdout.splitlines()[-1].removeprefix("next: hardgrad ")
    subprocess.run(["/bin/sh", "-c", f"{BINARY} {suggested}"], check=True, capture_output=True)
    assert (tmp_path / "s.h5").exists()


def test_no_more_jobs_than_help(sweep, tmp_path):
    cores = len(os.sched_getaffinity(0))
    for arguments in (("run", sweep, "--out", tmp_path / "run"), ("measure", "--task", "bits", "--exact")):
        said = run(*arguments, "--jobs", 4096).stderr
        assert f"hardgrad: note: --jobs 4096: using {cores}, more would not help on {cores} core" in said
        assert "--jobs" not in run(*arguments, "--jobs", 1).stderr
    started = json.loads((tmp_path / "run" / "journal.jsonl").read_text().splitlines()[0])
    assert started["event"] == "run" and started["jobs"] == cores
    assert as_json("plan", sweep, "--out", tmp_path / "other", "--jobs", 4096)["estimate"]["jobs"] == cores
    assert "--cpus-per-task=64" in run("plan", sweep, "--out", tmp_path / "other", "--jobs", 64, "--slurm", "--quick").stdout
