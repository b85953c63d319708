"""`measure` and `run` equal the program: the same numbers, its messages as exceptions, and Ctrl-C loses nothing."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import hardgrad
from hardgrad.analysis import format_table, load, table
from problem import MODEL, measured, program

TINY = {
    "name": "tiny",
    "grid": {"task": "bits", "estimator": ["exact", "rloo", "reinforce"], "seed": [1, 2]},
    "train": {"steps": 20, "evaluate_every": 10},
    "measure": {"at": ["start"], "replicates": 16},
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_measured_is_what_the_program_measures(tmp_path):
    specs = ["rloo[samples=3]", "sum_and_sample", "straight_through", "rebar"]
    ours = hardgrad.measure("bits", MODEL, specs, exact=True, batch=1)
    theirs = measured(specs)
    assert list(ours.estimator.values) == [one["estimator"] for one in theirs] == specs
    for name in ("squared_bias", "relative_bias", "variance", "rows"):
        np.testing.assert_array_equal(ours[name].values[:, 0], [np.nan if one[name] is None else one[name] for one in theirs])
    assert "rloo" in format_table(table(ours)) and ours.attrs["path"] == "measure"
    kept = hardgrad.measure(
        "bits",
        estimators="rloo",
        sampled=True,
        replicates=8,
        most_replicates=8,
        seed=3,
        batch=2,
        jobs=1,
        out=tmp_path / "kept.h5",
    )
    assert kept.replicates.item() == 8 and kept.seed.item() == 3
    assert load(tmp_path / "kept.h5").variance.equals(kept.variance)
    every = hardgrad.measure("bits", exact=True, outcome_cap=1000)
    assert len(every.run) > 20 and (every.status == 0).any()
    assert all("outcomes" in str(reason) for reason in every.reason[every.status != 0].values)


def test_a_sweep_is_the_programs(tmp_path, capfd):
    data = hardgrad.run(TINY, out="ours/cells", jobs=1)
    assert "6/6 cells" in capfd.readouterr().err
    assert (
        data.attrs["status"] == "complete"
        and data.attrs["path"] == "ours/tiny.h5"
        and sorted(os.listdir("ours")) == ["cells", "tiny.h5"]
    )
    file = tmp_path / "tiny.toml"
    file.write_text(
        'name = "tiny"\n[grid]\ntask = "bits"\nestimator = ["exact", "rloo", "reinforce"]\nseed = [1, 2]\n'
        '[train]\nsteps = 20\nevaluate_every = 10\n[measure]\nat = ["start"]\nreplicates = 16\n'
    )
    program("run", str(file), "--out", "theirs/cells", "--progress", "none")
    program("merge", "theirs/cells", "--out", "theirs/tiny.h5")
    theirs = load("theirs/tiny.h5")
    compared = 0
    for name in theirs.data_vars:
        if "step" in str(theirs[name].dims) and "seconds" not in name:
            np.testing.assert_array_equal(data[name].values, theirs[name].values)
            compared += 1
    assert compared > 10 and list(data.cell_hash.values) == list(theirs.cell_hash.values)
    assert hardgrad.run(file, out="ours/cells", progress=False).variance.equals(data.variance)  # the same plan: no cell is left
    assert capfd.readouterr().err == ""
    assert (tmp_path / "ours/cells/journal.jsonl").read_text().count('"start"') == 6


def test_parts_and_overrides():
    part = hardgrad.run(
        TINY, only=["estimator=r*", "seed=1"], overrides={"train.steps": 30, "grid.seed": [1, 2, 3]}, progress=False
    )
    assert sorted(part.estimator.values) == ["reinforce", "rloo"] and part.attrs["status"] == "incomplete"
    settings = json.loads(str(part.run_settings.values[0]))
    assert settings["train.steps"] == 30
    shards = [hardgrad.run(TINY, shard=f"{k}/2", out=f"shard{k}/cells", progress=False).sizes["run"] for k in (1, 2)]
    assert sum(shards) == 6 and min(shards) > 0


def test_a_search_waits_for_other_shards():
    search = {
        **TINY,
        "train": {**TINY["train"], "evaluate_split": "test"},
        "tune": {"train": {"learning_rate": {"low": 1e-3, "high": 0.3}}, "trials": 2, "seeds": [101, 102]},
    }
    with pytest.raises(hardgrad.Error, match="^6 trials of the search for settings belong to other shards"):
        hardgrad.run(search, shard="1/2", out="cells", progress=False)
    data = hardgrad.run(search, out="cells", progress=False)
    assert data.attrs["status"] == "complete" and data.sizes["run"] == 6


def test_cells_that_fail_are_warned_of():
    failing = {
        **TINY,
        "override": [{"when": {"estimator": "rloo"}, "set": {"train.apart": "nothing"}}],
    }  # there is no such parameter
    with pytest.warns(RuntimeWarning, match=r"^2 of 6 cells failed: task=bits.*nothing") as told:
        data = hardgrad.run(failing, progress=False)
    assert told[0].filename == __file__
    assert sorted(data.status.values) == [0, 0, 0, 0, 1, 1] and "nothing" in str(data.reason[data.status == 1].values[0])


@pytest.mark.parametrize(
    "call, kind, said",
    [
        (lambda: hardgrad.run("none.toml"), hardgrad.InputError, "^none.toml: cannot be read"),
        (
            lambda: hardgrad.run({"grid": {"task": "bits", "estimator": "rlo"}}),
            hardgrad.UsageError,
            r'^configuration.toml:3:13: grid.estimator: unknown estimator "rlo" \(did you mean "rloo"\?\)',
        ),
        (lambda: hardgrad.run({"grid": {"task": "bits", "estimator": None}}), hardgrad.UsageError, "cannot be written as TOML"),
        (lambda: hardgrad.run(TINY, overrides={"train": {"steps": 3}}), hardgrad.UsageError, "within a table by its path"),
        (
            lambda: hardgrad.run(TINY, overrides={"train.clip": float("nan")}),
            hardgrad.UsageError,
            "nan is not valid in a configuration",
        ),
        (
            lambda: hardgrad.run(TINY, overrides={"train.step": 3}),
            hardgrad.UsageError,
            'did you mean "train.steps"|did you mean "steps"',
        ),
        (lambda: hardgrad.run(TINY, only="estimator=x*"), hardgrad.UsageError, "matches no cell"),
        (lambda: hardgrad.measure("bits", estimators="rlo"), hardgrad.UsageError, 'unknown estimator "rlo"'),
        (lambda: hardgrad.measure(), hardgrad.UsageError, "--task is needed"),
        (
            lambda: hardgrad.measure("bits", estimators="disarm", model="bits[options=3]", exact=True),
            hardgrad.UsageError,
            "disarm",
        ),
        (lambda: hardgrad.measure("bits", batch=0), hardgrad.UsageError, "--batch"),
        (lambda: hardgrad.measure("bits", plugins=["none.so"]), hardgrad.UsageError, "none.so"),
        (lambda: hardgrad.measure("bits", out="no/such/folder.h5"), hardgrad.UsageError, "no/such"),
    ],
)
def test_refusals(call, kind, said, capfd):
    with pytest.raises(kind, match=said) as refusal:
        call()
    assert "\n" not in str(refusal.value)
    assert capfd.readouterr().err == ""  # the message appears once


def test_what_reads_results_may_be_missing():
    said = subprocess.run(
        [sys.executable, "-c", "import sys; sys.modules['h5py'] = None; import hardgrad; hardgrad.measure('bits')"],
        capture_output=True,
        text=True,
    )
    assert "UsageError: measure: reading results needs h5py, which is not installed" in said.stderr


def test_an_interrupt_loses_nothing(tmp_path):
    """The cell at work is stopped, the completed one is kept."""
    config = {
        "grid": {"task": "bits", "estimator": ["exact", "rloo"]},
        "measure": {"method": "sampled", "replicates": 4},
        "override": [{"when": {"estimator": "rloo"}, "set": {"measure": {"replicates": 2000000000}}}],
    }
    script = (
        f"import hardgrad\ntry:\n    hardgrad.run({config!r}, out='cells', jobs=1)\n"
        "except KeyboardInterrupt:\n    print('stopped')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "cells" / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_text().count('"start"') == 2):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said, complaints = process.communicate()
    assert process.returncode == 0 and said == "stopped\n" and "stopping; running cells are saved" in complaints
    data = hardgrad.run({**config, "override": []}, out="cells", only="estimator=exact", force=True, progress=False)
    assert data.estimator.values.tolist() == ["exact"]
    assert journal.read_text().count('"start"') == 2  # not run again


def test_a_second_interrupt_kills(tmp_path, monkeypatch):
    """A program that never ends, and a reader of its output that interrupts at each line."""
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/bash\ntrap 'echo $$ heard it >&2' INT\necho $$ at work >&2\nwhile :; do sleep 0.01; done\n")
    deaf.chmod(0o755)
    monkeypatch.setattr("hardgrad.program.PROGRAM", deaf)
    heard = []

    class Impatient(io.StringIO):
        def write(self, text):
            heard.append(text.split(maxsplit=1))
            signal.raise_signal(signal.SIGINT)
            return len(text)

    monkeypatch.setattr(sys, "stderr", Impatient())
    with pytest.raises(KeyboardInterrupt):
        hardgrad.run(TINY)
    assert [words[1].strip() for words in heard] == ["at work", "heard it"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(heard[0][0]), 0)
