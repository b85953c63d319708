"""A real Slurm runs the job array that `plan --slurm` writes. One task is killed, one cancelled, one requeued and one out of time;
the results are those of an undisturbed run."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "experiments/cli"), str(TESTS / "support")]
from cluster import Cluster, missing  # noqa: E402
from merged import arrays  # noqa: E402
from program import run  # noqa: E402

TASKS = 5
SWEEP = """name = "array"
[grid]
task = "bits"
model = "bits[bits=8]"
estimator = ["rloo[samples=8]", "nvil", "exact"]
seed = [1, 2, 3, 4, 5]
[train]
steps = 30000
[measure]
at = ["end"]
replicates = 8
"""


def events(folder, kind):
    journal = folder / "journal.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [event for event in map(json.loads, lines) if event.get("event") == kind]


def at_work(folder, known):
    """Stops (SIGSTOP) a process of the sweep in the middle of a cell and returns its id; None if there is none yet."""
    ended = [event["cell"] for event in events(folder, "end")]
    for event in events(folder, "start"):
        if event["cell"] in ended or event["pid"] in known:
            continue
        try:
            os.kill(event["pid"], signal.SIGSTOP)
        except ProcessLookupError:
            continue
        if event["cell"] not in [e["cell"] for e in events(folder, "end")]:
            return event["pid"]
        os.kill(event["pid"], signal.SIGCONT)
    return None


def waits_for(pid, number):
    """Whether the signal is pending for the stopped process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return any(int(line.split()[1], 16) >> (number - 1) & 1 for line in lines if line.startswith(("SigPnd", "ShdPnd")))


def number_of(pid):
    environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return int(next(line for line in environment if line.startswith("SLURM_ARRAY_TASK_ID=")).split("=")[1])


@pytest.mark.skipif(bool(missing()), reason=f"no Slurm here: {', '.join(missing())} missing")
def test_an_array_with_tasks_killed_cancelled_requeued_and_out_of_time(tmp_path):
    sweep, folder, alone = tmp_path / "array.toml", tmp_path / "many", tmp_path / "alone"
    sweep.write_text(SWEEP)
    run("run", sweep, "--out", alone, "--progress", "none")
    run("merge", alone, "--out", tmp_path / "alone.h5")
    script = tmp_path / "array.sbatch"
    script.write_text(run("plan", sweep, "--out", folder, "--slurm", "--tasks", TASKS, "--jobs", 1, cwd=tmp_path).stdout)
    (tmp_path / "slurm").mkdir()
    with Cluster(tmp_path / "slurm") as cluster:
        job = cluster.ask("sbatch", "--parsable", script).strip()

        killed = cluster.until(lambda: at_work(folder, []), "a task at work")
        dead = number_of(killed)
        os.kill(killed, signal.SIGKILL)
        cancelled = cluster.until(lambda: at_work(folder, [killed]), "another task at work")
        unwanted = number_of(cancelled)
        cluster.ask("scancel", f"{job}_{unwanted}")  # Slurm continues a stopped process, sends TERM, and KILL after KillWait
        requeued = cluster.until(lambda: at_work(folder, [killed, cancelled]), "a third task at work")
        again = number_of(requeued)
        cluster.ask("scontrol", "requeue", f"{job}_{again}")
        slow = cluster.until(lambda: at_work(folder, [killed, cancelled, requeued]), "a fourth task at work")
        late = number_of(slow)
        assert len({dead, unwanted, again, late}) == 4
        cluster.ask("scancel", "--batch", "--signal=USR1", f"{job}_{late}")  # as Slurm does shortly before the time limit
        cluster.until(lambda: waits_for(slow, signal.SIGTERM), "the script to pass it on")
        os.kill(slow, signal.SIGCONT)
        for number in again, late:  # the second is requeued by its own script
            cluster.until(lambda: cluster.states(job)[number] == "PENDING", "a requeued task")
            # Starts it earlier than Slurm would (two minutes), but not in the second in which the credential was revoked.
            cluster.ask("scontrol", "update", f"JobId={job}_{number}", "StartTime=now+3")

        over = cluster.until(
            lambda: (
                all(
                    s not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED")
                    for s in cluster.states(job).values()
                )
                and cluster.states(job)
            ),
            "the array",
        )
        assert len(over) == TASKS and (over[dead], over[unwanted]) == ("FAILED", "CANCELLED"), over
        assert {over[n] for n in over if n not in (dead, unwanted)} == {"COMPLETED"}, over
        pids = {event["pid"] for event in events(folder, "run")}
        assert {killed, cancelled, requeued, slow} < pids and len(pids) == TASKS + 2, "only the requeued tasks ran twice"
        unfinished = {
            event["pid"]
            for event in events(folder, "start")
            if event["cell"] not in {ended["cell"] for ended in events(folder, "end")}
        }
        assert unfinished == {killed, cancelled}, "both were in the middle of a cell"
        assert slow in {event["pid"] for event in events(folder, "interrupted")}, "its cell was checkpointed and resumed"
        run("merge", folder, "--out", tmp_path / "many.h5", status=1)  # and reports the missing cells

        second = cluster.ask("sbatch", "--parsable", script).strip()  # only missing cells run
        cluster.until(lambda: set(cluster.states(second).values()) == {"COMPLETED"}, "the array again")
    ends = [event["cell"] for event in events(folder, "end")]
    assert len(ends) == len(set(ends)) == 15, "each cell ended once"
    run("merge", folder, "--out", tmp_path / "many.h5")
    assert arrays(tmp_path / "many.h5") == arrays(tmp_path / "alone.h5")
