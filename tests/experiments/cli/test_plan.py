"""plan: the cells to run, with reasons, time and disk space; and the Slurm array."""

import os
import shlex
import signal
import subprocess
import time

import pytest

from program import BINARY, as_json, environment, refusal, run

SWEEP = """
name = "small sweep"
out = "OUT"
[grid]
task = ["bits", "not_gate"]
estimator = ["rloo[samples=2]", "reinforce"]
seed = [1, 2, 10]
[train]
steps = 20
[measure]
replicates = 8
"""


@pytest.fixture
def sweep(tmp_path):
    path = tmp_path / "it's.toml"  # must be quoted in a shell
    path.write_text(SWEEP.replace("OUT", str(tmp_path / "small sweep-run")))
    return path


def whats(*arguments):
    return [cell["what"] for cell in as_json("plan", *arguments, "--quick")["cells"]]


def test_why(sweep, tmp_path):
    out = tmp_path / "run"
    run("run", sweep, "--out", out, "--only", "estimator=rloo")
    plan = as_json("plan", sweep, "--out", out, "--quick", "--why")
    assert [cell["what"].split(":")[0] for cell in plan["cells"]] == (["done"] * 3 + ["run"] * 3) * 2
    one = plan["cells"][0]["hash"]
    assert len(whats(sweep, "--out", out, "--why", one[:8])) == 1
    stale = whats(sweep, "--out", out, "--set", "train.steps=21", "--set", "train.clip=1", "--why", "estimator=rloo*")
    assert len(stale) == 6 and all(what.endswith("differs: train.clip 0 -> 1, train.steps 20 -> 21") for what in stale)
    assert any(one in what for what in stale)
    assert refusal("plan", sweep, "--quick", "--why", "nothing").startswith("--why nothing: there is no such cell")
    assert len(as_json("plan", "--why", sweep, "--out", out, "--quick")["cells"]) == 12  # the file may be at any position
    assert refusal("plan", "--quick", "--why", "nothing.toml") == "plan: sweep is required"


def test_filters_are_exact_and_suggest(sweep):
    assert len(whats(sweep, "--only", "seed=1")) == 4
    assert (
        refusal("plan", sweep, "--only", "estimator=rlooo") == '--only estimator=rlooo: matches no cell (did you mean "rloo"?)'
    )
    assert refusal("run", sweep, "--only", "sede=1") == '--only sede=1: no axis "sede" (did you mean "seed"?)'
    assert refusal("plan", sweep, "--set", "steps=3") == '--set steps: steps: unknown key (did you mean "train.steps"?)'
    assert (
        refusal("plan", sweep, "--set", "train.stepz=3")
        == '--set train.stepz: train.stepz: unknown key (did you mean "train.steps"?)'
    )
    assert (
        refusal("plan", sweep, "--set", "train.lr=.1")
        == '--set train.lr: train.lr: unknown key (did you mean "train.learning_rate"?)'
    )
    assert refusal("plan", sweep, "--set", "lr=.1") == '--set lr: lr: unknown key (did you mean "train.learning_rate"?)'


def test_estimate(sweep, tmp_path):
    estimate = as_json("plan", sweep, "--jobs", 1)["estimate"]
    assert estimate["kinds"] == 4 and 1 <= estimate["tried"] <= 4  # limited to five seconds
    run("run", sweep, "--out", tmp_path / "run")
    bytes_used = sum(file.stat().st_size for file in (tmp_path / "run" / "cells").iterdir())
    assert estimate["at_least"] or estimate["tried"] < 4 or 0.8 * bytes_used < estimate["bytes"] < 1.2 * bytes_used


def test_slurm_script_does_all_cells(sweep, tmp_path):
    arguments = (
        "plan",
        sweep,
        "--out",
        tmp_path / "a run",
        "--set",
        'name="other"',
        "--only",
        "task=bits",
        "--slurm",
        "--tasks",
        4,
    )
    script = run(*arguments).stdout
    assert as_json(*arguments)["slurm"].splitlines()[0] == script.splitlines()[0] == "#!/bin/bash"
    directives = dict(
        line.removeprefix("#SBATCH --").partition("=")[::2] for line in script.splitlines() if line.startswith("#SBATCH")
    )
    assert directives["array"] == "1-4" and "requeue" in directives and directives["job-name"] == "other"
    (tmp_path / "job.sh").write_text(script)
    for task in range(1, 5):
        subprocess.run(
            ["bash", tmp_path / "job.sh"],
            check=True,
            timeout=3000,
            capture_output=True,
            cwd="/",
            env=environment(SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_JOB_ID="7"),
        )
    assert as_json("status", tmp_path / "a run")["ok"] == 6
    merge = next(line for line in script.splitlines() if " merge " in line)
    assert shlex.split(merge.lstrip("# "))[1:3] == ["merge", str(tmp_path / "a run")]
    assert "remove --shard" in refusal("plan", sweep, "--slurm", "--shard", "1/2")


def test_slurm_of_another_plan_needs_force_and_says_how_seeds_are_added(sweep, tmp_path):
    arguments = ("--out", tmp_path / "run", "--only", "task=bits")
    run("run", sweep, *arguments, "--only", "seed=1")
    sweep.write_text(sweep.read_text().replace("[1, 2, 10]", "[1, 2, 3, 10]"))
    said = refusal("plan", sweep, *arguments, "--slurm", "--quick")
    assert "holds another plan: 4 cells more; give another --out; or --force" in said and "when seeds are added" in said
    assert "when seeds are added" in run("plan", sweep, *arguments, "--quick").stdout
    (tmp_path / "job.sh").write_text(run("plan", sweep, *arguments, "--slurm", "--quick", "--tasks", 1, "--force").stdout)
    subprocess.run(
        ["bash", tmp_path / "job.sh"],
        check=True,
        timeout=3000,
        capture_output=True,
        env=environment(SLURM_ARRAY_TASK_ID="1", SLURM_ARRAY_JOB_ID="7"),
    )
    assert as_json("status", tmp_path / "run")["ok"] == 8
    assert refusal("plan", sweep, *arguments, "--slurm", "--quick").startswith(
        "plan --slurm: nothing is left to run; next: hardgrad merge "
    )


@pytest.mark.parametrize("cancelled", [False, True])
def test_slurm_task_out_of_time_is_queued_again_and_a_cancelled_one_is_not(cancelled, sweep, tmp_path):
    script = run(
        "plan",
        sweep,
        "--out",
        tmp_path / "run",
        "--set",
        "train.steps=100000000",
        "--set",
        "measure.at=[]",
        "--only",
        "seed=1",
        "--slurm",
        "--tasks",
        1,
        "--quick",
    ).stdout
    (tmp_path / "job.sh").write_text(script)
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" > {shlex.quote(str(tmp_path / "said"))}\n')
    (tmp_path / "scontrol").chmod(0o755)
    env = environment(SLURM_ARRAY_TASK_ID="1", SLURM_ARRAY_JOB_ID="7", PATH=f"{tmp_path}:{os.environ['PATH']}")
    job = subprocess.Popen(
        ["bash", tmp_path / "job.sh"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, start_new_session=True
    )
    journal = tmp_path / "run" / "journal.jsonl"
    try:
        while job.poll() is None and not (journal.exists() and '"start"' in journal.read_text()):
            time.sleep(0.01)
    finally:  # at the time limit only the script gets the signal; a cancellation signals all processes of the task
        os.killpg(job.pid, signal.SIGTERM) if cancelled else job.send_signal(signal.SIGUSR1)
    assert job.wait(timeout=3000) == (130 if cancelled else 0)
    assert not (tmp_path / "said").exists() if cancelled else (tmp_path / "said").read_text() == "requeue 7_1\n"
    assert '"interrupted"' in journal.read_text()


def test_most_tasks_is_below_slurms_limit(tmp_path):
    (tmp_path / "many.toml").write_text(f'[grid]\ntask = "bits"\nestimator = "rloo"\nseed = {list(range(3000))}\n')
    script = run("plan", tmp_path / "many.toml", "--slurm", "--tasks", 1000, "--quick").stdout
    assert "#SBATCH --array=1-1000\n" in script and '--shard "$SLURM_ARRAY_TASK_ID/1000"' in script
    refusal("plan", tmp_path / "many.toml", "--slurm", "--tasks", 1001)
    assert BINARY.split("/")[-1] in script
