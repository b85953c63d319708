"""A sweep with [tune], from its file to its result: planned in rounds, killed, run in shards, merged. The merged file distinguishes trials
from results."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from program import BINARY, as_json, refusal, run

TREE = Path(__file__).resolve().parents[3]
SWEEP = """
name = "tuned"
seed = 3
[grid]
task = "bits"
estimator = ["rloo", "reinforce", "gumbel_softmax"]
seed = [1, 2, 3]
[train]
steps = 40
batch = 4
log_every = 10
evaluate_every = 10
evaluate_split = "test"
[measure]
at = []
[tune]
train.learning_rate = { low = 1e-2, high = 1 }
estimator.temperature = [0.5, 1]
trials = 6
seeds = [11, 12]
rounds = [0.25, 0.5]
"""
TRIALS, REPORTED = 3 * (6 + 2) * 2, 9


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    path = tmp_path_factory.mktemp("tune") / "tuned.toml"
    path.write_text(SWEEP)
    return path


@pytest.fixture(scope="module")
def result(sweep):
    """The merged result of an uninterrupted run, and the JSON of `run`."""
    out, merged = sweep.parent / "whole", sweep.parent / "whole.h5"
    said = as_json("run", sweep, "--out", out)
    as_json("merge", out, "--out", merged)
    return merged, said


def analysis(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "analysis", *map(str, arguments)], cwd=TREE, capture_output=True, text=True, check=True
    ).stdout


def in_words(setting):
    return " ".join(f"{name}={value}" for name, value in setting.items())


def test_plan_shows_the_rounds_and_what_is_to_come(sweep, result, tmp_path):
    before = as_json("plan", sweep, "--out", tmp_path / "nothing", "--quick")
    assert before["counts"]["run"] == 36 and before["counts"]["to_come"] == 12 + REPORTED
    assert [search["axes"]["estimator"] for search in before["searches"]] == ["rloo", "reinforce", "gumbel_softmax"]
    for search in before["searches"]:
        assert [(r["settings"], r["steps"], r["cells"], r["state"]) for r in search["rounds"]] == [
            (6, 10, 12, "now"),
            (2, 20, 4, "to come"),
        ]
        assert len({json.dumps(setting) for setting in search["settings"]}) == 6 and search["chosen"] is None
    after = as_json("plan", sweep, "--out", sweep.parent / "whole", "--quick")
    assert after["counts"]["done"] == TRIALS + REPORTED and after["counts"]["run"] == after["counts"]["to_come"] == 0
    assert after["hash"] == before["hash"] and after["conflict"] == ""
    assert all(search["chosen"] in search["settings"] for search in after["searches"])
    words = run("plan", sweep, "--out", tmp_path / "nothing").stdout
    assert "to come: the best of the round before" in words and "21 more to come during the search" in words


def test_run_says_what_it_chose(sweep, result):
    _, said = result
    assert said["ok"] == TRIALS + REPORTED and said["failed"] == said["waiting"] == 0
    words = run("run", sweep, "--out", sweep.parent / "whole").stdout
    for search in said["searches"]:
        assert f"estimator={search['axes']['estimator']}: {in_words(search['chosen'])}, the best of 6 settings" in words
        rates = sorted(float(setting["train.learning_rate"]) for setting in search["settings"])
        at_end = float(search["chosen"]["train.learning_rate"]) in (rates[0], rates[-1])
        assert ("train.learning_rate" in search["edge"]) == at_end


def test_killed_anywhere_it_ends_in_the_same_choice_and_numbers(sweep, result, tmp_path):
    out, moments = tmp_path / "run", random.Random(1)
    stopped = 0
    for _ in range(12):
        journal = out / "journal.jsonl"
        lines = lambda: journal.read_text().count("\n") if journal.exists() else 0
        until = lines() + moments.randint(1, 24)
        process = subprocess.Popen(
            [BINARY, "run", str(sweep), "--out", str(out), "--jobs", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and lines() < until:
            time.sleep(0.001)
        process.kill()
        if process.wait(timeout=600) == 0:
            break
        stopped += 1
    assert stopped > 2
    assert as_json("run", sweep, "--out", out)["searches"] == result[1]["searches"]
    as_json("merge", out, "--out", tmp_path / "all.h5")
    record = json.loads(analysis("compare", result[0], tmp_path / "all.h5", "--json"))
    assert record["changed"] == 0 and not record["only_first"] and not record["only_second"] and len(record["cells"]) > 0
    assert {cell["verdict"] for cell in record["cells"] if cell["quantity"] != "seconds"} == {"same"}


def test_shards_take_turns(sweep, result, tmp_path):
    out, statuses = tmp_path / "run", []
    for turn in range(10):
        statuses.append(
            subprocess.run([BINARY, "run", sweep, "--out", out, "--shard", f"{turn % 2 + 1}/2"], capture_output=True).returncode
        )
        if statuses[-2:] == [0, 0]:
            break
    assert statuses[0] == 4 and statuses[-1] == 0 and set(statuses) == {0, 4}
    words = run("run", sweep, "--out", tmp_path / "half", "--shard", "1/2", status=4).stdout
    assert "18 trials of the search excluded by --shard or --only, and no process runs them" in words
    assert "are not done" in refusal("merge", tmp_path / "half", "--out", tmp_path / "half.h5", status=1)
    assert as_json("run", sweep, "--out", out)["searches"] == result[1]["searches"]
    assert as_json("status", out)["to_come"] == 0


def test_the_file_tells_trials_from_results(result):
    sys.path.insert(0, str(TREE))
    from analysis import load, load_tuning, tidy, tried

    data = load(result[0])
    trials = load_tuning(data)
    assert data.sizes["run"] == REPORTED and trials.sizes["run"] == TRIALS
    assert set(data["seed"].values) == {1, 2, 3} and set(trials["seed"].values) == {11, 12}
    assert len(tidy(data, "run")) == REPORTED
    assert [data[n].attrs["tuned_axis"] for n in data.variables if "tuned_axis" in data[n].attrs] == ["train.learning_rate"]
    frame = tried(trials)
    assert len(frame) == 3 * (6 + 2) and (frame["trials"] == 2).all() and (frame["failed"] == 0).all()
    for search in result[1]["searches"]:
        mine = frame[frame["estimator"] == search["axes"]["estimator"]]
        first, last = mine[mine["round"] == 1], mine[mine["round"] == 2]
        assert set(first[first["kept"]]["number"]) == set(last["number"]) == set(first.nsmallest(2, "score")["number"])
        assert last["kept"].tolist() == [True, False] and last["score"].is_monotonic_increasing
        assert (first["steps"] == 10).all() and (last["steps"] == 20).all()
        assert last["setting"].iloc[0] == in_words(search["chosen"])


def test_answer_and_report_use_the_reported_runs_and_show_the_search(result, tmp_path):
    words = analysis("answer", result[0])
    rows = json.loads(analysis("answer", result[0], "--json"))
    assert {row["seeds"] for row in rows if row["budget"] == "steps"} == {3} and len({row["estimator"] for row in rows}) == 3
    for search in result[1]["searches"]:
        rate = f"train.learning_rate={search['chosen']['train.learning_rate']}"
        mine = [row for row in rows if row["estimator"].split("[")[0] == search["axes"]["estimator"]]
        assert mine and all(rate in row["setting"] for row in mine)
        assert all(row["edge"] == search["edge"] for row in mine)
        assert f"  {search['axes']['estimator']}: {in_words(search['chosen'])}, the best of 6 settings" in words.replace(
            "\n    ", " "
        )
    assert "Tuned beforehand:" in words and "chosen beforehand, on other seeds and another split" in words.replace("\n", " ")
    page = Path(analysis("report", result[0], "--out", tmp_path / "r.html").strip()).read_text()
    assert "Tuned settings" in page and f"{TRIALS} earlier trials" in page
    assert page.count("went on</td>") == 6 and page.count("chosen</td>") == 3
