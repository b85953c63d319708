"""Two thousand tiny cells: planned, run, looked at and merged without a wait that grows with their square."""
import time

import h5py

from program import as_json, run

ESTIMATORS = ["reinforce", "rloo[samples=2]", "rloo[samples=3]", "moving_baseline", "nvil", "self_critic", "soft_baseline", "exact",
              "stratified[samples=2]", "systematic[samples=2]"]


def timed(limit, *arguments):
    start = time.monotonic()
    got = as_json(*arguments)
    assert time.monotonic() - start < limit, arguments
    return got


def test_two_thousand_cells(tmp_path):
    sweep, out = tmp_path / "tiny.toml", tmp_path / "run"
    sweep.write_text(f'precision = "double"\n[grid]\ntask = "bits"\nmodel = "bits[bits=2]"\nestimator = {ESTIMATORS}\n'
                     f'seed = {list(range(200))}\n[train]\nsteps = 0\n[measure]\nat = ["start"]\nexact = true\n')
    # Limits are several times what it takes on an idle machine.
    assert timed(10, "plan", sweep, "--out", out)["counts"]["run"] == 2000
    assert timed(150, "run", sweep, "--out", out, "--progress", "none")["ok"] == 2000
    assert timed(3, "status", out)["ok"] == 2000
    assert timed(5, "plan", sweep, "--out", out, "--quick", "--why")["counts"]["done"] == 2000
    assert timed(3, "run", sweep, "--out", out, "--progress", "none")["already_done"] == 2000
    assert timed(90, "merge", out, "--out", tmp_path / "all.h5")["cells"] == 2000
    with h5py.File(tmp_path / "all.h5") as file:
        assert file["variance"].shape[0] == 2000
    run("check", tmp_path / "all.h5")
