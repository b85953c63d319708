"""The program rejects FIFOs and devices where it expects a regular file, and reports files that it cannot write."""

import os
import resource
import subprocess

import pytest

from program import BINARY, as_json, refusal, run

SWEEP = (
    'name = "odd"\n[grid]\ntask = "bits"\nmodel = "bits[bits=2]"\nestimator = ["exact", "rloo"]\n[train]\nsteps = 3\n'
    "checkpoint = true\n[measure]\nat = []\n"
)


@pytest.fixture
def sweep(tmp_path):
    (tmp_path / "odd.toml").write_text(SWEEP)
    return tmp_path / "odd.toml"


def refused(*arguments, status):
    """The one-line error. The program must not read the file: a FIFO would block, and a device would not end."""
    done = subprocess.run(
        [BINARY, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31)),
    )
    assert done.returncode == status and done.stderr.count("\n") == 1, (arguments, done.returncode, done.stderr)
    return done.stderr


def odd(tmp_path, kind):
    if kind == "device":
        return "/dev/zero"
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_is_no_file_is_refused_at_once(tmp_path, sweep, kind):
    path = odd(tmp_path, kind)
    data = f"translation[data=tatoeba,path={path}]"
    for status, *arguments in (
        (3, "plan", path),
        (3, "run", path),
        (2, "list", "--plugin", path),
        (2, "seal", path),
        (3, "measure", "--task", data),
        (3, "evaluate", "--checkpoint", path),
    ):
        assert "is not a regular file" in refused(*arguments, status=status), arguments
    sweep.write_text(f'plugins = ["{path}"]\n' + SWEEP)
    assert "odd.toml:1:" in refused("plan", sweep, status=2)


@pytest.mark.parametrize("name", ["journal.jsonl", "plan.json", "cells/0123456789abcdef.claim"])
def test_a_folder_with_a_fifo_in_it_is_refused_at_once(tmp_path, sweep, name):
    out = tmp_path / "out"
    run("run", sweep, "--out", out)
    (out / name).unlink(missing_ok=True)
    os.mkfifo(out / name)
    assert f"{out / name}: is not a regular file" in refused("status", out, status=3)
    assert f"{out / name}: is not a regular file" in refused("run", sweep, "--out", out, status=2 if "journal" in name else 3)


def test_a_file_beyond_the_largest_size_is_said(tmp_path, sweep):
    long = (
        "run",
        sweep,
        "--out",
        tmp_path / "out",
        "--set",
        "train.checkpoint=false",
        "--set",
        "train.steps=600",
        "--set",
        "train.log_every=1",
    )
    done = subprocess.run(
        [BINARY, *long],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)),
    )
    assert (
        done.returncode == 2 and ".cells: cannot be written: the file would exceed the largest size allowed" in done.stderr
    ), done
    assert not list(tmp_path.rglob(".*.partial")) and not next(tmp_path.rglob("*.cells")).stat().st_size
    run(*long)


def test_merge_and_check_agree_on_a_checkpoint_that_is_gone(tmp_path, sweep):
    out = tmp_path / "out"
    run("run", sweep, "--out", out)
    next(out.glob("cells/*.checkpoint.h5")).unlink()
    run("check", out, status=3)
    done = run("merge", out, "--out", tmp_path / "all.h5", status=3)
    assert "the checkpoint of" in done.stderr and "the cell's numbers are merged" in done.stderr
    assert as_json("merge", out, "--out", tmp_path / "all.h5", status=3)["lost_networks"] == 1
    run("check", tmp_path / "all.h5")


def test_a_name_does_nothing_to_a_terminal(tmp_path, sweep):
    sweep.write_text(SWEEP.replace('"odd"', "\"two\\nlines \\u001b[31m'red'\""))
    said = [run("run", sweep, cwd=tmp_path).stdout, run("run", sweep, cwd=tmp_path).stderr]
    out = next((tmp_path / "results").iterdir())
    said += [run(verb, out).stdout for verb in ("status", "watch", "check")] + [
        run("plan", sweep, "--quick", cwd=tmp_path).stdout
    ]
    said.append(run("plan", sweep, "--slurm", "--out", "other", cwd=tmp_path).stdout)
    for text in said:
        assert "\x1b" not in text and "two\nlines" not in text, text
    merge = next(line for line in said[0].splitlines() if line.startswith("next: hardgrad ")).removeprefix("next: hardgrad ")
    subprocess.run(["bash", "-c", f"'{os.path.abspath(BINARY)}' {merge}"], check=True, cwd=tmp_path, capture_output=True)
    assert (tmp_path / "results" / "two\nlines \x1b[31m'red'.h5").exists()
