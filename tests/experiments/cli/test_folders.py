"""Several processes in one folder, and their leftover files; unusual folders."""

import ctypes
import ctypes.util
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from merged import arrays
from program import BINARY, as_json, damage, records, run

TINY = (
    'precision = "double"\n[grid]\ntask = "bits"\nmodel = "bits[bits=2]"\nestimator = ["exact", "rloo[samples=2]", "reinforce"]\n'
    'seed = {seeds}\n[train]\nsteps = 0\n[measure]\nat = ["start"]\nmethod = "exact"\n'
)


def tiny(folder, seeds):
    (folder / "tiny.toml").write_text(TINY.format(seeds=list(range(seeds))))
    return folder / "tiny.toml"


def in_containers(*commands):
    """Runs the program in several containers at once, where it is process 1. Skips the test if containers are not allowed."""
    for own in (["unshare", "-p", "-f"], ["unshare", "-r", "-p", "-f"]):
        if subprocess.run([*own, "true"], capture_output=True).returncode == 0:
            processes = [
                subprocess.Popen([*own, BINARY, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for command in commands
            ]
            return [(p.returncode, errors) for p, (_, errors) in [(p, p.communicate(timeout=3000)) for p in processes]]
    pytest.skip("no containers here: unshare is not allowed")


def test_processes_of_equal_number_share_a_folder(tmp_path):
    sweep = tiny(tmp_path, 20)
    for start in range(4):
        out = tmp_path / f"run{start}"
        ended = in_containers(*(("run", sweep, "--out", out, "--jobs", 1, "--shard", f"{k}/3") for k in (1, 2, 3)))
        assert [status for status, _ in ended] == [0, 0, 0], ended
        checked = as_json("check", out)
        assert (checked["cells"], checked["files"]) == (60, 3)
        assert not list(out.rglob(".*.partial"))


def test_what_a_killed_process_left_is_told_and_removed(tmp_path):
    sweep, out = tiny(tmp_path, 1), tmp_path / "run"
    run("run", sweep, "--out", out)
    assert as_json("status", out)["leftovers"] == 0
    dead = subprocess.Popen(["true"])
    dead.wait()
    for folder, name in ((out, "plan.json"), (out / "cells", "0123456789abcdef.checkpoint.h5")):
        old = folder / f".{name}.{dead.pid}.0.partial"  # names of older releases, which are judged by age
        old.write_bytes(bytes(1000))
        subprocess.run(["touch", "-d", "3 hours ago", str(old)], check=True)
    fresh = out / "cells" / ".fedcba9876543210.claim.1234.0.partial"  # its process may run on another machine
    fresh.write_bytes(b"x")
    told = "2 files that killed processes left half-written (2 kB): the next run removes them"
    assert as_json("status", out)["leftovers"] == as_json("check", out)["leftovers"] == 2
    assert told in run("status", out).stdout and told in run("check", out).stdout
    assert "removed 2 files that killed processes had left half-written" in run("run", sweep, "--out", out).stdout
    assert as_json("run", sweep, "--out", out)["leftovers"] == as_json("status", out)["leftovers"] == 0
    assert list(out.rglob(".*.partial")) == [fresh]
    old = tmp_path / f".all.h5.{dead.pid}.0.partial"
    old.write_bytes(b"x")
    subprocess.run(["touch", "-d", "3 hours ago", str(old)], check=True)
    run("merge", out, "--out", tmp_path / "all.h5")
    assert not old.exists()


def starts(out):
    """The number of times that each cell was started."""
    events = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    return Counter(event["cell"] for event in events if event["event"] == "start")


def test_runs_at_the_same_time_share_the_work(tmp_path):
    sweep, out = tiny(tmp_path, 100), tmp_path / "run"
    processes = [
        subprocess.Popen(
            [BINARY, "run", str(sweep), "--out", str(out), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    reports = [json.loads(process.communicate(timeout=3000)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum(report["ok"] for report in reports) == 300
    assert all(report["ok"] + report["already_done"] == 300 for report in reports)
    assert set(starts(out).values()) == {1} and len(starts(out)) == 300
    assert not list(out.rglob("*.claim"))


def test_a_killed_run_leaves_no_claim_that_stands(tmp_path):
    sweep, out = tiny(tmp_path, 1), tmp_path / "run"
    arguments = [BINARY, "run", str(sweep), "--out", str(out), "--set", "train.steps=1000000000", "--set", "measure.at=[]"]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not ((out / "journal.jsonl").exists() and starts(out)):
        time.sleep(0.02)
    at_work = as_json("status", out)["running"]
    second = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    process.kill()
    process.wait()
    assert at_work >= 1
    while second.poll() is None and max(starts(out).values()) < 2:  # takes over the cell of the dead process
        time.sleep(0.02)
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=3000)
    assert second.returncode == 130 and as_json("status", out)["running"] == 0


def test_checkpoints_belong_to_their_cells(tmp_path):
    sweep, out = tiny(tmp_path, 2), tmp_path / "run"
    arguments = ("run", sweep, "--out", out, "--set", "train.checkpoint=true")
    run(*arguments)
    run("check", out)
    saved = sorted((out / "cells").glob("*.checkpoint.h5"))
    before = [path.read_bytes() for path in saved]
    assert len(saved) == 6
    saved[0].unlink()
    saved[1].write_bytes(before[1][:1000] + bytes([before[1][1000] ^ 1]) + before[1][1001:])
    saved[2].write_bytes(before[3])  # intact, but of another cell
    problems = as_json("check", out, status=3)["problems"]
    assert len(problems) == 3 and all(path.name in problem for path, problem in zip(saved, sorted(problems)))
    assert "is not the checkpoint of" in run("check", out, status=3).stdout
    assert as_json("status", out, status=3)["damaged"] == 3
    told = as_json("merge", out, "--out", tmp_path / "all.h5", status=3)
    assert (told["cells"], told["lost_networks"]) == (6, 3)  # no number is lost
    assert as_json("plan", sweep, "--out", out, "--quick", "--set", "train.checkpoint=true")["counts"]["damaged"] == 3
    report = as_json(*arguments)
    assert (report["already_done"], report["ok"]) == (3, 3)
    run("check", out)
    run("status", out)


def test_a_damaged_cell_is_no_success(tmp_path):
    sweep, out = tiny(tmp_path, 1), tmp_path / "run"
    run("run", sweep, "--out", out)
    damage(records(out)[0])
    assert "1 damaged" in run("status", out, status=3).stdout
    merged = as_json("merge", out, "--out", tmp_path / "all.h5", "--partial", status=3)
    assert (merged["cells"], merged["missing"], merged["damaged"]) == (2, 1, 1)
    assert not (tmp_path / "none.h5").exists()
    assert (
        "are not done" in run("merge", out, "--out", tmp_path / "none.h5", status=3).stderr
        and not (tmp_path / "none.h5").exists()
    )
    assert as_json("run", sweep, "--out", out)["ok"] == 1
    run("merge", out, "--out", tmp_path / "all.h5")


def sealed_as(version: bytes, record: bytes) -> bytes:
    """The record with another version in its line, whose hash is right."""
    hashed = ctypes.CDLL(ctypes.util.find_library("xxhash")).XXH3_64bits
    hashed.restype, hashed.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
    line, rest = record.split(b"\n", 1)
    words = re.sub(rb"version=\d+", b"version=" + version, line[:-16])
    assert line[-16:].decode() == f"{hashed(line[:-16], len(line) - 16):016x}"
    return words + f"{hashed(words, len(words)):016x}".encode() + b"\n" + rest


@pytest.mark.skipif(not ctypes.util.find_library("xxhash"), reason="no libxxhash")
def test_a_record_of_a_newer_release_is_named_omitted_and_computed_again(tmp_path):
    sweep, out = tiny(tmp_path, 1), tmp_path / "run"
    run("run", sweep, "--out", out)
    run("merge", out, "--out", tmp_path / "whole.h5")
    file, start, end = records(out)[0]
    whole = file.read_bytes()
    file.write_bytes(whole[:start] + sealed_as(b"9", whole[start:end]) + whole[end:])
    why = "is of a newer release: records of version 9, this program reads 3"
    shown = run("status", out, status=3).stdout
    assert "1 unreadable (will be run again)" in shown and why in shown and as_json("status", out, status=3)["unreadable"] == 1
    said = run("merge", out, "--out", tmp_path / "none.h5", status=3).stderr.splitlines()
    assert why in said[0] and said[0].endswith("; omitted, the next run computes it again")
    assert "1 of 3 cells are not done; run again, or merge the finished ones with --partial" in said[1] and len(said) == 2
    merged = as_json("merge", out, "--out", tmp_path / "part.h5", "--partial", status=3)
    assert (merged["cells"], merged["missing"], merged["damaged"]) == (2, 1, 1) and not (tmp_path / "none.h5").exists()
    report = as_json("run", sweep, "--out", out)
    assert (report["ok"], report["already_done"]) == (1, 2)
    run("merge", out, "--out", tmp_path / "all.h5")
    assert (
        arrays(tmp_path / "all.h5") == arrays(tmp_path / "whole.h5") and sealed_as(b"9", whole[start:end]) in file.read_bytes()
    )


def test_a_torn_end_and_damage_of_unknown_cells(tmp_path):
    """A killed process leaves half a record: no damage. Bytes that belong to no record are damage, until the next run."""
    sweep, out = tiny(tmp_path, 2), tmp_path / "run"
    run("run", sweep, "--out", out)
    run("merge", out, "--out", tmp_path / "whole.h5")
    file = records(out)[0][0]
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    told = "1 file that killed processes left half-written"
    status = as_json("status", out)
    assert (status["ok"], status["pending"], status["damaged"], status["leftovers"]) == (5, 1, 0, 1)
    assert told in run("status", out).stdout and told in run("check", out).stdout
    file.write_bytes(whole[:10] + b"#" + whole[11:-100])
    assert as_json("status", out, status=3)["damaged"] == 1 and "of no known cell" in run("status", out, status=3).stdout
    assert len(as_json("check", out, status=3)["problems"]) == 1
    assert as_json("merge", out, "--out", tmp_path / "part.h5", "--partial", status=3)["cells"] == 4
    report = as_json("run", sweep, "--out", out)
    assert (report["ok"], report["already_done"], report["leftovers"]) == (2, 4, 1)
    run("check", out)
    run("merge", out, "--out", tmp_path / "all.h5")
    assert arrays(tmp_path / "all.h5") == arrays(tmp_path / "whole.h5")


def test_of_many_damaged_cells_the_first_are_named_and_all_are_counted(tmp_path):
    sweep, out = tiny(tmp_path, 30), tmp_path / "run"
    run("run", sweep, "--out", out, "--set", "train.steps=0", "--set", "measure.at=[]")
    cells = records(out)
    for cell in cells:
        damage(cell)
    lines = run("status", out, status=3).stdout.splitlines()
    assert (
        sum(line.startswith("damaged: ") for line in lines) == 21
        and lines[-1] == f"damaged: {len(cells) - 20} more; --json has them all"
    )
    done = run("merge", out, "--out", tmp_path / "all.h5", "--partial", status=3).stderr.splitlines()
    assert (
        len(done) == 21 + (not (tmp_path / "all.h5").exists())
        and f"{len(cells) - 20} more are damaged; hardgrad check " in done[20]
    )
    assert len(as_json("check", out, status=3)["problems"]) == len(cells)


def as_nobody(*command):
    """The command without root's permission to open every file; None if that is not possible."""
    if os.geteuid() != 0:
        return command
    lower = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    return [*lower, *command] if shutil.which("setpriv") and subprocess.run([*lower, "true"]).returncode == 0 else None


def odd_places():
    """{path that cannot be read: the reason in the message}."""
    base = Path(tempfile.mkdtemp(prefix="hardgrad-odd-"))
    base.chmod(0o755)
    (base / "shut" / "below").mkdir(parents=True)
    (base / "shut").chmod(0)
    (base / "circle").symlink_to("circle")
    places = {
        base / "shut" / "below" / "x": "o permission",
        base / ("n" * 300): "File name too long",
        base / ("n" * 300) / "x": "File name too long",
        base / "circle" / "x": "symbolic links",
    }
    return base, places


def test_places_that_cannot_be_looked_at():
    base, places = odd_places()
    tried = 0
    try:
        sweep, odd_sweep, whole = tiny(base, 1), base / "odd.toml", base / "run"
        run("run", sweep, "--out", whole)
        run("merge", whole, "--out", base / "all.h5")
        for place, why in places.items():
            odd_sweep.write_text(f'plugins = ["{place}.so"]\n[grid]\ntask = "bits"\nestimator = "exact"\n')
            gradient = ("--task", "bits", "--estimator", "exact")
            for arguments, status in (
                (("run", place), 3),
                (("plan", place), 3),
                (("plan", "--why", place), 2),
                (("run", odd_sweep), 2),
                (("run", sweep, "--out", place), 2),
                (("plan", sweep, "--out", place, "--quick"), 2),
                (("status", place), 3),
                (("check", place), 3),
                (("merge", place, "--out", base / "m.h5"), 3),
                (("merge", whole, "--out", place), 2),
                (("export", place, "--csv", base / "csv"), 3),
                (("export", base / "all.h5", "--csv", place), 2),
                (("gradient", *gradient, "--out", place), 2),
                (("measure", *gradient, "--out", place), 2),
                (("measure", "--checkpoint", place), 3),
                (("list", "--plugin", place), 2),
                (("measure", "--task", f"qa[path={place}-train.txt]"), 3),
                (("measure", "--task", f"glimpse[path={place}]"), 3),
                (("measure", "--task", f"translation[data=tatoeba,path={place}]"), 3),
            ):
                command = as_nobody(BINARY, *map(str, arguments))
                if command is None:
                    pytest.skip("root opens everything, and setpriv is missing")
                done = subprocess.run(command, capture_output=True, text=True, cwd=base)
                said = done.stderr if arguments[0] != "check" else done.stdout + done.stderr
                assert done.returncode == status, (arguments, done.returncode, said)
                assert "bug" not in said and len(done.stderr.splitlines()) <= 1 and said.strip(), (arguments, said)
                tried += 1
    finally:
        (base / "shut").chmod(0o755)
        shutil.rmtree(base)
    assert tried == 19 * len(places)


def test_names_that_are_no_utf8(tmp_path):
    odd = os.fsdecode(b"\xff\xfe")
    folder = tmp_path / odd
    folder.mkdir()
    sweep = tiny(tmp_path, 1)
    for value in ("grid.task", "name", "train.steps", "out", "description"):
        done = subprocess.run(
            [BINARY, "run", str(sweep), "--out", str(tmp_path / "run"), "--set", f"{value}={odd}"], capture_output=True
        )
        assert (
            done.returncode == 2 and done.stderr == f"hardgrad: --set {value}: must be UTF-8, got {value}=\\xff\\xfe\n".encode()
        ), done
    (folder / f"{odd}.toml").write_text(sweep.read_text())
    done = subprocess.run([BINARY, "run", str(folder / f"{odd}.toml")], capture_output=True, cwd=tmp_path)
    assert done.returncode == 2 and b"name: must be UTF-8: give the sweep a name in its file" in done.stderr, done
    done = subprocess.run([BINARY, "run", str(sweep), "--out", str(folder / "run"), "--json"], capture_output=True, check=True)
    assert json.loads(done.stdout)["ok"] == 3
    subprocess.run([BINARY, "merge", str(folder / "run"), "--out", str(folder / "all.h5")], capture_output=True, check=True)
    subprocess.run([BINARY, "status", str(folder / "run"), "--json"], capture_output=True, check=True)
