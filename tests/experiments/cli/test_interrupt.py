"""A signal stops a cell in the midst of what is long; running again goes on."""
import signal
import subprocess
import time

import pytest

from program import BINARY, as_json, environment

LONG = {
    "replicates": ("float", 'task = "bits"\nestimator = ["rloo", "reinforce"]', "replicates = 50000000"),
    "outcomes": ("double", 'task = "bits"\nmodel = "bits[bits=8,function=table]"\nestimator = ["rloo", "reinforce[samples=3]"]',
                 "exact = true\noutcome_cap = 1e12"),
    "exact gradient": ("float", 'task = "translation[examples=2000]"\nmodel = "translator[feed=sampled]"\nestimator = "exact"',
                       "batch = 1500\nleaf_cap = 1e7\nreplicates = 1000000"),
}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", LONG)
def test_long_work_stops_at_once(what, how, tmp_path):
    precision, grid, measure = LONG[what]
    (tmp_path / "long.toml").write_text(f'precision = "{precision}"\n[grid]\n{grid}\n[measure]\n{measure}\n')
    out = tmp_path / "run"
    process = subprocess.Popen([BINARY, "run", str(tmp_path / "long.toml"), "--out", str(out), "--jobs", "2"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    journal = out / "journal.jsonl"
    for _ in range(400):
        time.sleep(0.02)
        if journal.exists() and '"start"' in journal.read_text():
            break
    time.sleep(0.7)
    assert process.poll() is None, "it was to be long"
    process.send_signal(how)
    text, _ = process.communicate(timeout=600)  # hours are left: that it ends at all is what is asked
    assert process.returncode == 130 and "interrupted" in text
    assert '"interrupted"' in journal.read_text()
    status = as_json("status", out)
    assert status["ok"] == status["running"] == status["damaged"] == status["failed"] == 0


def test_running_again_goes_on(tmp_path):
    (tmp_path / "s.toml").write_text('[grid]\ntask = "bits"\nestimator = ["exact", "rloo"]\n[[override]]\nwhen = { estimator = "rloo" }\n'
                                     'set = { measure.replicates = 300000 }\n[measure]\nreplicates = 4\n')
    arguments = [BINARY, "run", str(tmp_path / "s.toml"), "--out", str(tmp_path / "run"), "--jobs", "1"]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    journal = tmp_path / "run" / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_text().count('"start"') == 2):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    report = as_json(*arguments[1:])
    assert (report["already_done"], report["ok"], report["interrupted"]) == (1, 1, False)
