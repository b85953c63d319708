"""Two thousand small cells are planned, run, checked and merged. Their time is measured elsewhere (tests/README.md)."""

import h5py

from program import as_json, run

ESTIMATORS = [
    "reinforce",
    "rloo[samples=2]",
    "rloo[samples=3]",
    "moving_baseline",
    "nvil",
    "self_critic",
    "soft_baseline",
    "exact",
    "stratified[samples=2]",
    "systematic[samples=2]",
]


def test_two_thousand_cells(tmp_path):
    sweep, out = tmp_path / "tiny.toml", tmp_path / "run"
    sweep.write_text(
        f'precision = "double"\n[grid]\ntask = "bits"\nmodel = "bits[bits=2]"\nestimator = {ESTIMATORS}\n'
        f'seed = {list(range(200))}\n[train]\nsteps = 0\n[measure]\nat = ["start"]\nmethod = "exact"\n'
    )
    assert as_json("plan", sweep, "--out", out)["counts"]["run"] == 2000
    assert as_json("run", sweep, "--out", out, "--progress", "none")["ok"] == 2000
    assert as_json("status", out)["ok"] == 2000
    assert as_json("plan", sweep, "--out", out, "--quick", "--why")["counts"]["done"] == 2000
    assert as_json("run", sweep, "--out", out, "--progress", "none")["already_done"] == 2000
    assert as_json("merge", out, "--out", tmp_path / "all.h5")["cells"] == 2000
    with h5py.File(tmp_path / "all.h5") as file:
        assert file["variance"].shape[0] == 2000
    run("check", tmp_path / "all.h5")
