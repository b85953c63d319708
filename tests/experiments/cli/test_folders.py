"""Several processes, and what they leave, in one folder; folders that are odd."""
import subprocess

import pytest

from program import BINARY, as_json, environment, run

TINY = ('precision = "double"\n[grid]\ntask = "bits"\nmodel = "bits[bits=2]"\nestimator = ["exact", "rloo[samples=2]", "reinforce"]\n'
        'seed = {seeds}\n[train]\nsteps = 0\n[measure]\nat = ["start"]\nexact = true\n')


def tiny(folder, seeds):
    (folder / "tiny.toml").write_text(TINY.format(seeds=list(range(seeds))))
    return folder / "tiny.toml"


def in_containers(*commands):
    """Runs the program in as many containers at once, where it is process number 1; nothing where that is not allowed."""
    for own in (["unshare", "-p", "-f"], ["unshare", "-r", "-p", "-f"]):
        if subprocess.run([*own, "true"], capture_output=True).returncode == 0:
            processes = [subprocess.Popen([*own, BINARY, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                          env=environment()) for command in commands]
            return [(p.returncode, errors) for p, (_, errors) in [(p, p.communicate(timeout=600)) for p in processes]]
    pytest.skip("no containers here: unshare is not allowed")


def test_processes_of_equal_number_share_a_folder(tmp_path):
    sweep = tiny(tmp_path, 20)
    for start in range(6):
        out = tmp_path / f"run{start}"
        ended = in_containers(*(("run", sweep, "--out", out, "--jobs", 1, "--shard", f"{k}/3") for k in (1, 2, 3)))
        assert [status for status, _ in ended] == [0, 0, 0], ended
        assert as_json("check", out)["files"] == 60
        assert not list(out.rglob(".*.partial"))


def test_what_a_killed_process_left_is_told_and_removed(tmp_path):
    sweep, out = tiny(tmp_path, 1), tmp_path / "run"
    run("run", sweep, "--out", out)
    assert as_json("status", out)["leftovers"] == 0
    dead = subprocess.Popen(["true"])
    dead.wait()
    for folder, name in ((out, "plan.json"), (out / "cells", "0123456789abcdef.h5")):
        old = folder / f".{name}.{dead.pid}.0.partial"  # as releases of before named them: their age tells
        old.write_bytes(bytes(1000))
        subprocess.run(["touch", "-d", "3 hours ago", str(old)], check=True)
    fresh = out / "cells" / ".fedcba9876543210.h5.1234.0.partial"  # may be at work on another machine
    fresh.write_bytes(b"x")
    told = "2 files that killed processes left half-written (2 kB): the next run removes them"
    assert as_json("status", out)["leftovers"] == as_json("check", out)["leftovers"] == 2
    assert told in run("status", out).stdout and told in run("check", out).stdout
    assert "2 files that killed processes had left half-written removed" in run("run", sweep, "--out", out).stdout
    assert as_json("run", sweep, "--out", out)["leftovers"] == as_json("status", out)["leftovers"] == 0
    assert list(out.rglob(".*.partial")) == [fresh]
    old = tmp_path / f".all.h5.{dead.pid}.0.partial"
    old.write_bytes(b"x")
    subprocess.run(["touch", "-d", "3 hours ago", str(old)], check=True)
    run("merge", out, "--out", tmp_path / "all.h5")
    assert not old.exists()
