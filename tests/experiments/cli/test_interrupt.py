"""A signal stops a cell during long computations; a second run resumes."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from program import BINARY, as_json

LONG = {
    "replicates": ("float", 'task = "bits"\nestimator = ["rloo", "reinforce"]', 'method = "sampled"\nreplicates = 50000000'),
    "outcomes": (
        "double",
        'task = "bits"\nmodel = "bits[bits=8,function=table]"\nestimator = ["rloo", "reinforce[samples=3]"]',
        'method = "exact"\noutcome_cap = 1e12',
    ),
    "exact gradient": (
        "float",
        'task = "translation[examples=2000]"\nmodel = "translator[feed=sampled]"\nestimator = "rloo"',
        "batch = 1500\nleaf_cap = 1e7\nreplicates = 1000000",
    ),
}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", LONG)
def test_long_work_stops_at_once(what, how, tmp_path):
    precision, grid, measure = LONG[what]
    (tmp_path / "long.toml").write_text(f'precision = "{precision}"\n[grid]\n{grid}\n[measure]\n{measure}\n')
    out = tmp_path / "run"
    process = subprocess.Popen(
        [BINARY, "run", str(tmp_path / "long.toml"), "--out", str(out), "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = out / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and '"start"' in journal.read_text()):
        time.sleep(0.02)
    time.sleep(0.7)  # the computation has begun; if this is too short, the test passes anyway
    assert process.poll() is None, "the cell ended before the signal"
    process.send_signal(how)
    text, _ = process.communicate(timeout=3000)  # without the signal it would run for hours
    assert process.returncode == 130 and "interrupted" in text
    assert '"interrupted"' in journal.read_text()
    status = as_json("status", out)
    assert status["ok"] == status["running"] == status["damaged"] == status["failed"] == 0


def test_running_again_goes_on(tmp_path):
    (tmp_path / "s.toml").write_text(
        '[grid]\ntask = "bits"\nestimator = ["exact", "rloo"]\n[[override]]\nwhen = { estimator = "rloo" }\n'
        'set = { measure.replicates = 300000 }\n[measure]\nmethod = "sampled"\nreplicates = 4\n'
    )
    arguments = [BINARY, "run", str(tmp_path / "s.toml"), "--out", str(tmp_path / "run"), "--jobs", "1"]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = tmp_path / "run" / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_text().count('"start"') == 2):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=3000) == 130
    report = as_json(*arguments[1:])
    assert (report["already_done"], report["ok"], report["interrupted"]) == (1, 1, False)


def stuck_sweep(folder):
    """Cells that block while they load data, without polling for a stop, until the test opens a FIFO."""
    if os.environ.get("HARDGRAD_SANITIZE"):
        pytest.skip("a sanitizer must be the first library of a program, and so must gate.so")
    layer = folder / "gate.so"
    subprocess.run(
        [os.environ.get("CXX", "c++"), "-x", "c", "-shared", "-fPIC", "-o", layer, Path(__file__).with_name("gate.c")],
        check=True,
    )
    places = ("garden", "kitchen", "office")
    story = "".join(
        f"1 Mary went to the {p}.\n2 John went to the {q}.\n3 Where is Mary? \t{p}\t1\n" for p in places for q in places
    )
    (folder / "test.txt").write_text(story)
    (folder / "train.txt").write_text(story * 4)
    os.mkfifo(folder / "train.txt.gate")
    (folder / "s.toml").write_text(
        f'[grid]\ntask = "qa[path={folder}/train.txt,test_path={folder}/test.txt]"\nestimator = "soft"\nseed = [0, 1]\n'
        "[train]\nsteps = 0\n[measure]\nat = []\n"
    )
    return [BINARY, "run", str(folder / "s.toml"), "--out", str(folder / "run"), "--jobs", "1", "--json"], os.environ | {
        "LD_PRELOAD": str(layer)
    }


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_loading_is_left_alone_while_planning(how, tmp_path):
    arguments, gated = stuck_sweep(tmp_path)
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=gated)
    with open(tmp_path / "train.txt.gate", "w"):  # returns when the program opens its end
        process.send_signal(how)
        _, errors = process.communicate(timeout=3000)
    assert process.returncode == 130 and errors == "\nhardgrad: interrupted before the first cell\n"
    assert not (tmp_path / "run").exists()


def test_loading_is_left_alone_in_a_cell(tmp_path):
    arguments, gated = stuck_sweep(tmp_path)
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=gated)
    open(tmp_path / "train.txt.gate", "w").close()  # for the plan, and the first cell
    journal = tmp_path / "run" / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_text().count('"start"') == 2):
        time.sleep(0.01)
    with open(tmp_path / "train.txt.gate", "w"):
        process.send_signal(signal.SIGINT)
        text, errors = process.communicate(timeout=3000)
    assert process.returncode == 130, errors
    report = json.loads(text)
    assert (report["ok"], report["interrupted"]) == (1, True)
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [event["event"] for event in events] == ["run", "start", "end", "start", "interrupted"]
    assert not list((tmp_path / "run").rglob("*.claim"))
    status = as_json("status", tmp_path / "run")
    assert (status["ok"], status["pending"], status["running"]) == (1, 1, 0)
