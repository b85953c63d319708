"""Sweeps with the program: plan, run, kill, resume, shards, merge. Kills and shards do not change the numbers."""

import json
import os
import random
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

from program import BINARY, as_json, damage, records, refusal, run

SWEEP = """
name = "small"
seed = 11
[grid]
task = ["bits", "not_gate", "qa[stories=30,people=2,places=3,memory=6]"]
estimator = ["rloo[samples=2]", "moving_baseline", "soft"]
seed = [1, 2]
[[override]]
when = { task = "qa" }
set = { train.batch = 4 }
[train]
steps = 400
log_every = 100
evaluate_every = 200
[measure]
at = ["start", "end"]
replicates = 200
batch = 4
"""


@pytest.fixture
def sweep(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SWEEP)
    return path


def events(out):
    return (out / "journal.jsonl").read_text() if (out / "journal.jsonl").exists() else ""


def timing(name):
    return any(word in name for word in ("seconds", "created", "time"))


def numbers(path):
    """All datasets of a merged file as bytes, except times."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and not timing(name):
            value = item[()]
            numeric = getattr(value, "dtype", np.dtype(object)).kind in "fiu"
            found[name] = value.tobytes() if numeric else str(value.tolist() if hasattr(value, "tolist") else value)

    with h5py.File(path) as f:
        f.visititems(visit)
    return found


def merged(folder, out):
    run("merge", folder, "--out", out)
    run("check", out)
    run("check", folder)
    return numbers(out)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    (folder / "small.toml").write_text(SWEEP)
    run("run", folder / "small.toml", "--out", folder / "run", "--jobs", 1)
    return merged(folder / "run", folder / "all.h5")


def test_plan_and_run(sweep, tmp_path, expected):
    out = tmp_path / "run"
    plan = as_json("plan", sweep, "--out", out, "--quick")
    assert plan["counts"] == {
        "all": 18,
        "run": 18,
        "to_come": 0,
        "skip": 0,
        "done": 0,
        "failed": 0,
        "damaged": 0,
        "unreadable": 0,
    }
    rows = {(cell["axes"]["estimator"], cell["rows"]) for cell in plan["cells"]}  # per question and example
    assert rows == {("rloo[samples=2]", 2), ("moving_baseline", 1), ("soft", 1)}
    rebar = [
        as_json(
            "plan",
            sweep,
            "--quick",
            "--set",
            f"train.steps={steps}",
            "--set",
            "grid.estimator=['rebar']",
            "--only",
            "task=bits",
        )
        for steps in (0, 400)
    ]
    assert [plan["cells"][0]["rows"] for plan in rebar] == [3, 7]  # seven while it tunes its control
    assert not out.exists()
    estimate = as_json("plan", sweep, "--out", out)["estimate"]
    assert estimate["seconds"] > 0 and estimate["bytes"] > 0
    report = as_json("run", sweep, "--out", out, "--jobs", 2)
    assert report["ok"] == 18 and report["failed"] == 0 and not report["interrupted"]
    assert merged(out, tmp_path / "all.h5") == expected
    assert as_json("run", sweep, "--out", out)["already_done"] == 18
    status = as_json("status", out)
    assert status["ok"] == 18 and status["pending"] == 0 and status["running"] == 0
    assert as_json("plan", sweep, "--out", out, "--quick")["counts"]["done"] == 18
    assert "is complete" in run("plan", sweep, "--out", out, "--why", "--quick").stdout
    assert all(
        path.endswith((".csv", "configuration.toml"))
        for path in as_json("export", tmp_path / "all.h5", "--csv", tmp_path / "csv")["files"]
    )


def test_shards_are_the_whole(sweep, tmp_path, expected):
    out = tmp_path / "run"
    counts = [as_json("run", sweep, "--out", out, "--shard", f"{k}/4", "--jobs", 1)["ok"] for k in (3, 1, 4, 2)]
    assert sum(counts) == 18 and max(counts) - min(counts) <= 1
    assert merged(out, tmp_path / "all.h5") == expected
    for bad in ("0/2", "3/2", "1", "a/b", "1/2/3"):
        assert refusal("run", sweep, "--out", out, "--shard", bad).startswith("--shard: must be k/n")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_at_any_moment_and_resumed(sweep, tmp_path, expected, how):
    out, moments = tmp_path / "run", random.Random(5)
    stopped = 0
    for _ in range(30):
        seen = events(out).count("\n") + moments.randint(0, 5)  # after the plan, or after some more starts or ends of cells
        process = subprocess.Popen(
            [BINARY, "run", str(sweep), "--out", str(out), "--jobs", "2"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while process.poll() is None and events(out).count("\n") < seen:
            time.sleep(0.001)
        process.send_signal(how)
        _, errors = process.communicate(timeout=3000)
        if process.returncode == 0 and stopped:
            break
        if process.returncode == 0:  # it ended before the first event was seen
            shutil.rmtree(out)
            continue
        # A signal that arrives before the program installs its handler ends it immediately.
        assert process.returncode in ((-how,) if how == signal.SIGKILL else (130, -how)), errors
        stopped += 1
        if (out / "plan.json").exists():
            status = as_json("status", out)
            assert status["damaged"] == 0 and status["failed"] == 0
    assert stopped > 0
    report = as_json("run", sweep, "--out", out)
    assert report["ok"] + report["already_done"] == 18
    assert merged(out, tmp_path / "all.h5") == expected
    left = [name for name in os.listdir(out / "cells") if not name.endswith(".cells")]
    assert how == signal.SIGKILL or left == []


def test_status_tells_who_is_at_work(sweep, tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [
            BINARY,
            "run",
            str(sweep),
            "--out",
            str(out),
            "--jobs",
            "1",
            "--set",
            "train.steps=100000000",
            "--set",
            "measure.at=[]",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while process.poll() is None and '"start"' not in events(out):
            time.sleep(0.02)
        assert as_json("status", out)["running"] == 1
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=3000) == 130
    assert as_json("status", out)["running"] == 0


def test_another_plan_and_force(sweep, tmp_path):
    out = tmp_path / "run"
    run("run", sweep, "--out", out, "--only", "task=bits")
    message = refusal("run", sweep, "--out", out, "--set", "train.steps=401")
    assert "holds another plan: 18 cells changed (train.steps 400 -> 401)" in message
    assert (
        as_json("run", sweep, "--out", out, "--only", "task=bits", "--set", "grid.seed=[1,2,3]", "--force")["already_done"] == 6
    )
    message = run("merge", out, "--out", tmp_path / "x.h5", status=1).stderr
    assert "are not done" in message
    assert as_json("merge", out, "--out", tmp_path / "x.h5", "--partial")["cells"] == 9


def test_failures_are_told_kept_and_tried_again(sweep, tmp_path):
    out = tmp_path / "run"
    fail = ("--set", "train.apart=nothing", "--only", "task=bits", "--only", "estimator=rloo*")  # there is no such parameter
    done = run("run", sweep, "--out", out, *fail, status=1)
    assert "failed: task=bits" in done.stderr and "failed: task=bits" in done.stdout
    status = as_json("status", out, status=1)
    assert status["failed"] == 2 and all(f["reason"] for f in status["failures"])
    run("check", out, status=1)
    assert as_json("merge", out, "--out", tmp_path / "x.h5", "--partial", status=1)["failed"] == 2
    report = as_json("run", sweep, "--out", out, *fail, status=1)
    assert report["failed"] == 2 and report["already_done"] == 0


def test_damage_is_found_named_and_repaired(sweep, tmp_path, expected):
    out = tmp_path / "run"
    run("run", sweep, "--out", out)
    cell = records(out)[0]
    damage(cell)
    problems = as_json("check", out, status=3)["problems"]
    assert len(problems) == 1 and cell[0].name in problems[0]
    assert as_json("status", out, status=3)["damaged"] == 1
    journal = (out / "journal.jsonl").read_bytes()
    (out / "journal.jsonl").write_bytes(journal[:-7])
    assert as_json("run", sweep, "--out", out)["ok"] == 1
    for line in (out / "journal.jsonl").read_text().splitlines()[-3:]:
        json.loads(line)
    assert merged(out, tmp_path / "all.h5") == expected
    (tmp_path / "no.h5").write_text("this is no HDF5")
    assert as_json("check", tmp_path / "no.h5", status=3)["ok"] is False


def test_bad_configurations_end_with_their_place(sweep, tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text(SWEEP.replace('"soft"', '"sof"'))
    assert refusal("run", bad) == f'{bad}:6:52: grid.estimator: unknown estimator "sof" (did you mean "soft"?)'
    assert (
        refusal("plan", sweep, "--set", "train.steps=-1") == "--set train.steps: train.steps: value must be at least 0, got -1"
    )
    assert (
        refusal("run", sweep, "--out", tmp_path / "r", "--only", "task=nothing")
        == "--only task=nothing: matches no cell (there are: bits, not_gate, qa, qa[memory=6,stories=30,people=2,places=3])"
    )
    (tmp_path / "file").write_text("")
    assert "cannot be created" in refusal("run", sweep, "--out", tmp_path / "file" / "run")
    bad.write_text(SWEEP.replace('"bits", ', '"qa[path=/nothing.txt]", '))
    assert "/nothing.txt" in refusal("run", bad, "--out", tmp_path / "r", status=3)


def test_checkpoints_go_on_into_measure_and_gradient(sweep, tmp_path):
    out = tmp_path / "run"
    run(
        "run",
        sweep,
        "--out",
        out,
        "--set",
        "train.checkpoint=true",
        "--only",
        "qa*",
        "--only",
        "seed=1",
        "--only",
        "estimator=rloo*",
    )
    saved = list((out / "cells").glob("*.checkpoint.h5"))
    assert len(saved) == 1
    run("check", saved[0])
    trained = as_json("measure", "--checkpoint", saved[0], "--batch", 4, "--estimator", "rloo[samples=2]", "--replicates", 16)
    assert trained["task"].startswith("qa[")
    run("gradient", "--checkpoint", saved[0], "--estimator", "exact", "--batch", 4, "--out", tmp_path / "g.h5")
    assert "checkpoint was trained on" in refusal("measure", "--checkpoint", saved[0], "--task", "bits")
    with h5py.File(tmp_path / "g.h5") as f:  # the same data: the measurement's true gradient is the dumped gradient
        norm = np.sqrt(
            sum(
                float(np.sum(np.square(d[()])))
                for d in f["gradient"].values()
                if d.attrs.get("CLASS") != b"DIMENSION_SCALE" and d.dtype.kind == "f"
            )
        )
    assert trained["estimand_norm"] == pytest.approx(norm, rel=1e-3)


def test_progress_goes_to_stderr_and_does_not_flood(sweep, tmp_path):
    done = run("run", sweep, "--out", tmp_path / "a", "--progress", "plain")
    assert 2 <= len(done.stderr.splitlines()) <= 21 and "18/18 cells" in done.stderr and "\r" not in done.stderr
    done = run("run", sweep, "--out", tmp_path / "b", "--progress", "none")
    assert done.stderr == ""
