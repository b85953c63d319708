"""A cell that is killed repeatedly during training ends in the same bits. A signal saves it. `watch` shows its progress."""

import json
import os
import pty
import re
import signal
import subprocess
import time

import h5py
import numpy as np

from program import BINARY, as_json, environment, run

SWEEP = """name = "kill"
seed = 3
[grid]
task = "qa[stories=40,memory=6]"
model = "memory_reader[embedding=6,hops=2]"
estimator = "nvil[samples=2]"
[train]
steps = {steps}
batch = 4
log_every = 50
evaluate_every = 400
evaluate_examples = 8
keep_best = true
checkpoint = true
save_every = {save}
save_seconds = 0
[measure]
at = ["start", "end"]
replicates = 4
"""


def arguments(folder, steps=1500, save=150):
    (folder / "s.toml").write_text(SWEEP.format(steps=steps, save=save))
    return [BINARY, "run", str(folder / "s.toml"), "--out", str(folder / "run"), "--jobs", "1", "--progress", "none"]


def left(folder):
    """The checkpoints and unfinished cells."""
    return sorted(path.name for path in (folder / "run" / "cells").glob("*.h5"))


def numbers(folder):
    """All numbers of the merged cell and its checkpoint except times, as bytes."""
    found = {}
    run("merge", folder / "run", "--out", folder / "run" / "merged.h5")
    for path in (folder / "run").rglob("*.h5"):
        with h5py.File(path) as file:

            def take(name, item):
                if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu" and "seconds" not in name:
                    found[path.name, name] = np.asarray(item).tobytes()

            file.visititems(take)
    return found


def killed_when(command, ready, how=signal.SIGKILL):
    """Starts the program and sends it the signal when `ready()` is true; False if the program ended first."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not ready():
        time.sleep(0.001)
    if process.poll() is not None:
        return False
    process.send_signal(how)
    process.wait(timeout=600)
    return True


def saved(folder):
    """A value that changes with each save."""
    for path in (folder / "run" / "cells").glob("*.unfinished.h5"):
        try:
            return path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
    return None


def test_killed_again_and_again(tmp_path):
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    whole.mkdir(), torn.mkdir()
    run(*arguments(whole)[1:])
    assert len(left(whole)) == 1
    kills, steps = 0, []
    while True:  # each run saves at least once, so it progresses at any machine load
        before = saved(torn)
        if not killed_when(arguments(torn), lambda: saved(torn) not in (None, before)):
            break
        kills += 1
        step = as_json("status", torn / "run")["cells"][0]["step"]
        if step is not None:
            steps.append(step)
        assert kills < 200
    assert kills >= 2 and steps == sorted(steps) and steps[0] >= 150, steps
    assert as_json("check", torn / "run")["ok"]
    ours, theirs = numbers(torn), numbers(whole)
    assert len(theirs) > 30 and ours == theirs
    assert left(torn) == left(whole) and not list((torn / "run").rglob("*.partial"))


def test_a_time_limit_saves(tmp_path):
    command = arguments(tmp_path, steps=10_000_000, save=1_000_000)  # only the signal saves
    journal = tmp_path / "run" / "journal.jsonl"
    assert killed_when(command, lambda: journal.exists() and '"progress"' in journal.read_text(), signal.SIGTERM)
    status = as_json("status", tmp_path / "run")
    step = status["cells"][0]["step"]
    assert step > 0 and status["pending"] == 1 and status["running"] == 0
    assert f"resumes at step {step}: task=qa" in run("status", tmp_path / "run").stdout
    plan = as_json("plan", tmp_path / "s.toml", "--out", tmp_path / "run", "--quick")
    shown = run("plan", tmp_path / "s.toml", "--out", tmp_path / "run", "--quick", "--why", "nvil").stdout
    assert plan["counts"]["run"] == 1 and f"resumes at step {step}" in shown
    assert as_json("check", tmp_path / "run")["ok"]
    # The curves of running cells are in the journal; those of stopped cells are in their files.
    watched = as_json("watch", tmp_path / "run")["cells"][0]
    assert watched["state"] == "stopped" and watched["step"] == step and watched["training"][-1]["step"] == step // 50 * 50
    path = tmp_path / "run" / "cells" / left(tmp_path)[0]
    bytes_ = bytearray(path.read_bytes())
    bytes_[len(bytes_) // 2] ^= 1
    path.write_bytes(bytes_)
    problems = as_json("check", tmp_path / "run", status=3)["problems"]
    assert len(problems) == 1 and problems[0].endswith("; the cell starts again")


def test_status_and_watch_count_the_same_cells(tmp_path):
    (tmp_path / "s.toml").write_text(
        'name = "w"\n[grid]\ntask = ["bits", "qa[stories=40]"]\nestimator = ["rloo", "arm"]\n'
        "[train]\nsteps = 1\nbatch = 1\n[measure]\nat = []\n"
    )
    folder = tmp_path / "run"
    run("run", tmp_path / "s.toml", "--out", folder)
    first = "w: 4 cells: 3 ok, 1 skipped, 0 failed, 0 pending, 0 at work"
    assert [run(verb, folder).stdout.splitlines()[0] for verb in ("status", "watch")] == [first, first]
    watched = as_json("watch", folder)
    assert watched["skipped"] == 1 and len(watched["cells"]) == 3


def test_watch_of_a_sweep(tmp_path):
    (tmp_path / "s.toml").write_text(
        'name = "w"\n[grid]\ntask = ["bits", "not_gate"]\nestimator = ["rloo", "reinforce", "exact"]\nseed = [1, 2]\n'
        "[train]\nsteps = 60\nlearning_rate = 0.1\nlog_every = 5\nevaluate_every = 20\n[measure]\nat = []\n"
    )
    folder = tmp_path / "run"
    run("run", tmp_path / "s.toml", "--out", folder)
    table = run("watch", folder).stdout.splitlines()
    assert table[0] == "w: 12 cells: 12 ok, 0 skipped, 0 failed, 0 pending, 0 at work" and len(table) == 14
    assert all(re.match(r"ok +60 +100% ", line) for line in table[2:])
    shown = as_json("watch", folder, "--only", "rloo", "--only", "seed=1")["cells"]
    assert len(shown) == 2 and [point["step"] for point in shown[0]["training"]] == list(range(5, 61, 5))
    assert shown[0]["ended_by"] == "steps" and shown[0]["losses"]["expected_loss"] > 0

    for size, networks in (((40, 100), 2), ((14, 60), 1)):
        lines = on_terminal([BINARY, "watch", str(folder), "--every", "0.1"], *size)
        assert len(lines) <= size[0] and max(map(len, lines)) <= size[1]
        text = "\n".join(lines)
        assert text.count("training loss by steps") == networks and ("1 network more" in text) == (networks == 1)
        assert "a rloo: 2 ok; step 60" in text and "c exact: 2 ok; step 60" in text
        assert re.search(r"^ +[-\d.]+\|.*[abc]", text, re.M)
        assert text.isascii()
    dumb = typed_on_terminal([BINARY, "watch", str(folder)], 40, 100, "dumb")  # the table, once
    assert dumb.replace("\r", "").splitlines() == table and "\x1b" not in dumb


def on_terminal(command, rows, columns):
    """The contents of a terminal of this size after the program has ended."""
    last = typed_on_terminal(command, rows, columns, "xterm").rsplit("\x1b[H", 1)[1]
    return [re.sub(r"\x1b\[[KJ]", "", line) for line in last.replace("\r", "").rstrip("\n").split("\n")][:-1]


def typed_on_terminal(command, rows, columns, terminal):
    """All that the program writes to a terminal of this kind and size."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment(TERM=terminal))
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    assert process.wait(timeout=60) == 0
    return text.decode()
