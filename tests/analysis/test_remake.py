"""`remake`: a small sweep is run, stopped and resumed, packed, and its table, number and figure are made; faults are one line."""

import gzip
import os
import subprocess
import sys

from pathlib import Path

import h5py
import numpy as np
import pytest
from made_up import sweep

from analysis.__main__ import main
from analysis.errors import InputError, OutputError
from analysis.load import load
from analysis.site import REFERENCE, remake
from analysis.site.packing import MOST_BYTES, _rounded, packed
from analysis.site.studies import opened

PROGRAM = os.environ.get("HARDGRAD_BINARY", "")
SWEEP = """name = "small"
precision = "double"
[grid]
task = "bits"
model = "bits[bits=2,t=0.45]"
estimator = ["exact", "rloo"]
seed = [1, 2]
[train]
steps = 20
learning_rate = 0.5
log_every = 10
[measure]
at = ["start"]
method = "exact"
"""
PAGE = "# P\n\n![f](f.png)\n\n<!-- table t -->\n<!-- end -->\nThe least is <!-- number n -->?<!-- end -->.\n"
TABLES = """[[table]]
name = "t"
study = "small"
head = ["estimator"]
columns = [{ title = "v", quantity = "variance", show = "geometric" }]
[[table]]
name = "absent"
study = "never"
head = ["estimator"]
columns = [{ title = "v", quantity = "variance" }]
[[number]]
name = "n"
study = "small"
of = {}
quantity = "heldout_expected_loss"
show = "least"
form = ".3f"
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A reference folder with two studies, and the configuration of one."""
    configs, reference = tmp_path / "configs", tmp_path / "reference"
    configs.mkdir(), (reference / "data").mkdir(parents=True)
    (configs / "small.toml").write_text(SWEEP)
    (reference / "p.md").write_text(PAGE)
    (reference / "tables.toml").write_text(TABLES)
    (reference / "claims.toml").write_text("")
    (reference / "studies.toml").write_text(
        '[[study]]\nname = "never"\nhours = 2\n[[study]]\nname = "small"\nfigures = { "f.png" = "f.py --x y" }\n'
    )
    (reference / "f.py").write_text("import sys\nopen(sys.argv[3], 'w').write(' '.join(sys.argv[4:]))\n")
    monkeypatch.setattr(remake, "CONFIGS", configs)
    return tmp_path


def made(tree, hours=None, again=False, program=PROGRAM, only=("small",)):
    reference = tree / "reference"
    studies = remake.chosen(remake.declared(reference), only)
    return list(remake.remake(studies, hours, 1, program, reference, again, tree / "runs"))


def test_a_study_is_run_packed_and_its_places_are_made(tree):
    lines = made(tree)
    page, file = (tree / "reference/p.md").read_text(), tree / "reference/data/small.h5.gz"
    assert [line.split(":")[0] for line in lines] == ["small", "small", str(tree / "reference/p.md")]
    assert "| `exact` | 0 |" in page and "| `rloo` |" in page and "?" not in page
    assert (tree / "reference/f.png").read_text() == "--x y"
    whole = subprocess.run([PROGRAM, "merge", tree / "runs/small-run", "--out", tree / "m.h5"], capture_output=True)
    assert whole.returncode == 0 and file.stat().st_size < MOST_BYTES
    kept, every = opened(file).result.data, load(tree / "m.h5")
    for name in ("cell_hash", "seed_hex", "estimator", "run_settings", "configuration"):
        assert kept[name].values.tolist() == every[name].values.tolist() and kept[name].attrs == every[name].attrs
    for name in ("variance", "heldout_expected_loss", "train_loss", "cost_cpu_seconds", "total_rows"):
        np.testing.assert_allclose(kept[name].values, every[name].values, rtol=1e-6)
    assert (
        kept.attrs["plan_hash"] == every.attrs["plan_hash"]
        and kept.attrs["significant_bits"] == 21
        and "log" not in kept
        and kept.attrs["verified"] == "by its seal"
    )
    assert "variance_interval" not in kept or kept["variance_interval"].shape == every["variance_interval"].shape
    before = file.read_bytes(), page
    assert made(tree)[0] == "small: its file is of this plan"  # and the figure, which may have a new script
    assert (file.read_bytes(), (tree / "reference/p.md").read_text()) == before
    assert "bytes in" in made(tree, again=True)[0] and (tree / "reference/p.md").read_text() == page


def test_a_script_adds_numbers_of_the_runs(tree):
    reference = tree / "reference"
    path = reference / "studies.toml"
    path.write_text(path.read_text().replace('name = "small"', 'name = "small"\nadds = "a.py"'))
    (reference / "a.py").write_text(
        "import h5py, json, sys\n"
        "f = h5py.File(sys.argv[2])\n"
        "seeds = f['seed'][()].tolist()\n"
        "print(json.dumps({'twice': [2.0 * x for x in seeds], 'program': [len(sys.argv[4])] * len(seeds)}))\n"
    )
    made(tree)
    kept = opened(reference / "data/small.h5.gz").result
    assert kept.data["twice"].values.tolist() == [2.0 * seed for seed in kept.data["seed"].values.tolist()]
    assert set(kept.data["program"].values.tolist()) == {len(PROGRAM)}
    for fault in ("raise ValueError('no network')", "from analysis.errors import InputError; raise InputError('no network')"):
        (reference / "a.py").write_text(f"import sys; sys.path.insert(0, '.')\n{fault}\n")
        with pytest.raises(InputError, match="^a.py: no network$"):
            made(tree, again=True)
    for printed, words in (
        ("", "it is not JSON"),
        ("[1, 2]", "it is list"),
        ('{"twice": 3}', "twice is no list of numbers"),
        ('{"twice": ["1", "2", "3", "4"]}', "twice is no list of numbers"),
        ('{"twice": [1, 2, 3]}', "twice has 3"),
    ):
        (reference / "a.py").write_text(f"print({printed!r})\n")
        wanted = "^small: a.py must print one JSON object, of lists of 4 numbers: "
        with pytest.raises(InputError, match=wanted + words) as error:
            made(tree, again=True)
        assert "\n" not in str(error.value)


def test_scripts_tell_why_the_program_failed(tmp_path):
    """Its message, and the run; a run without a checkpoint is named."""
    failing, silent = tmp_path / "failing", tmp_path / "silent"
    failing.write_text("#!/bin/sh\necho 'hardgrad: no such thing' >&2\nexit 3\n"), silent.write_text("#!/bin/sh\n")
    failing.chmod(0o755), silent.chmod(0o755)
    (tmp_path / "run/cells").mkdir(parents=True), (tmp_path / "run/cells/c.h5").touch()

    def said(script, *words, program):
        done = subprocess.run(
            [sys.executable, REFERENCE / script, *words, "--hardgrad", program], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 1 and done.stdout == ""
        return done.stderr

    heads = "heads_figure.py", "--figure", "heads.png"
    assert said(*heads, program=failing) == "recall.toml: no such thing\n"
    assert said(*heads, program=silent) == "recall.toml: transformer[layers=1,picks=0]: the run has no checkpoint: it failed\n"
    for file, reason, words in (
        ("c.h5", "", "no such thing"),
        ("", "loss is not finite", "the run has no checkpoint: loss is not finite"),
        ("absent.h5", "", "the run has no checkpoint: it was not saved"),
    ):
        with h5py.File(tmp_path / "m.h5", "w") as merged:
            labels = {"checkpoint": file, "reason": reason, "model": "m", "estimator": "rloo", "train.steps": "0"}
            for name, value in labels.items():
                merged[name] = np.array([value], h5py.string_dtype())
            merged["seed"] = [7]
        cosines = "imitation_cosines.py", tmp_path / "run", tmp_path / "m.h5"
        assert said(*cosines, program=failing) == f"m, rloo, 0 steps, seed 7: {words}\n"


def test_spent_hours_stop_the_run_and_the_same_call_goes_on(tree):
    config = tree / "configs/small.toml"
    config.write_text(SWEEP.replace("steps = 20", "steps = 300000").replace("log_every = 10", "log_every = 100000"))
    assert made(tree, hours=2 / 3600)[0] == "small: stopped: the 0.000555556 core-hours are spent; run it again"
    assert not (tree / "reference/data/small.h5.gz").exists() and (tree / "runs/small-run/plan.json").exists()
    twice = remake.chosen(remake.declared(tree / "reference"), ["small"]) * 2
    lines = list(remake.remake(twice, 1e-9, 1, PROGRAM, tree / "reference", False, tree / "runs"))
    assert "stopped" in lines[0] and lines[1] == "small: not run: the 1e-09 core-hours are spent"
    assert not (tree / "reference/data/small.h5.gz").exists()
    assert (tree / "reference/p.md").read_text() == PAGE, "a table without a file stays"


def test_other_plans_are_run_again(tree):
    made(tree)
    (tree / "configs/small.toml").write_text(SWEEP.replace("steps = 20", "steps = 30"))
    with pytest.raises(InputError, match="^small: .*(another plan|other plan|--force)") as error:
        made(tree)
    assert "\n" not in str(error.value)


def test_studies_that_decide_most_per_hour_are_first(tree):
    path = tree / "reference/studies.toml"
    path.write_text('[[study]]\nname = "small"\n[[study]]\nname = "dear"\nhours = 5\n[[study]]\nname = "never"\nhours = 0.5\n')
    (tree / "reference/tables.toml").write_text(TABLES.replace('study = "small"', 'study = "dear"', 1))
    (tree / "reference/p.md").write_text(PAGE + "<!-- table absent -->\n<!-- end -->\n")
    found = remake.declared(tree / "reference")
    assert [one.name for one in found] == ["never", "dear", "small"]  # 2 an hour, 0.2, unknown
    assert found[0].feeds == ("p.md: table absent",) and found[2].feeds == ("p.md: number n",)
    assert "unknown core-hours" in remake.overview(found).splitlines()[2]


@pytest.mark.parametrize(
    "spoil, kind, words",
    [
        (lambda tree: (tree / "reference/studies.toml").write_text("x = "), InputError, "studies.toml: cannot be read"),
        (lambda tree: (tree / "configs/small.toml").write_text("x = 1\n"), InputError, "small: "),
        (lambda tree: (tree / "configs/small.toml").unlink(), InputError, "small"),
        (lambda tree: (tree / "reference/f.py").write_text("raise ValueError('no ink')"), InputError, "^f.py: no ink$"),
        (lambda tree: (tree / "reference/f.py").unlink(), InputError, "^f.py: "),
        (lambda tree: (tree / "reference/data").rmdir(), OutputError, "cannot be written"),
    ],
)
def test_a_fault_is_one_line(tree, spoil, kind, words):
    spoil(tree)
    with pytest.raises(kind, match=words) as error:
        made(tree)
    assert "\n" not in str(error.value) and "Traceback" not in str(error.value)


def test_the_command_names_faults(tree, capsys):
    with pytest.raises(InputError, match="cannot be run"):
        made(tree, program="/none/hardgrad")
    assert main(["remake", "--only", "nothing"]) == 3
    assert "has no study nothing (there are: " in capsys.readouterr().err
    assert main(["remake", "--list", "--only", "router"]) == 0
    assert capsys.readouterr().out.startswith("router ")
    for wrong in ("0", "-1", "nan", "x"):
        with pytest.raises(SystemExit):
            main(["remake", "--hours", wrong])


def test_a_study_that_is_too_large_is_refused():
    data = sweep(20, [f"e{i}" for i in range(60)], 20)
    data["variance"].values[...] = np.random.default_rng(1).random(data["variance"].shape)
    with pytest.raises(OutputError, match=rf"a study may have {MOST_BYTES}: .*\(only\).*\(most_bytes\)"):
        packed(data)


def test_numbers_are_rounded_to_six_digits():
    numbers = np.array([1 / 3, -1e-30, 1e300, np.nan, np.inf, 0.0, 1.0])
    found = _rounded(numbers)
    np.testing.assert_allclose(found, numbers, rtol=2.0**-21)
    assert found[0] != numbers[0] and len(np.unique(_rounded(1 + np.arange(1, 1000) * 1e-9))) <= 2
    whole = np.array([123456789123.0, np.nan])
    assert _rounded(whole) is whole


LARGER = {"every_estimator"}  # both sets can only shrink
OLDER = {"every_estimator", "policies", "transduce"}


def test_committed_files_are_within_their_bounds():
    studies = {one.name: one for one in remake.declared(REFERENCE)}
    files = {path.name.split(".")[0]: path for path in (REFERENCE / "data").glob("*.h5.gz")}
    assert files.keys() == studies.keys() and all(path.stat().st_size <= studies[name].most for name, path in files.items())
    assert {one.name for one in studies.values() if one.most > MOST_BYTES} <= LARGER
    assert sum(path.stat().st_size for path in files.values()) <= 2_000_000
    assert all("packed" in opened(path).result.data.attrs for path in files.values())


def test_files_of_older_plans_are_listed():
    """A file is of today's plan of its configuration, or in the list, with its price."""
    entries, missing = remake.listed(REFERENCE)["study"], []
    listed = {one["name"] for one in entries if "older" in one}
    assert listed <= OLDER and all(one["older"] > 0 for one in entries if "older" in one)
    older = set()
    for one in entries:
        try:
            plan = remake._plan(PROGRAM, remake.CONFIGS / f"{one['name']}.toml")
        except InputError as error:  # real data that are not here
            assert "HARDGRAD_DATA" in str(error)
            missing.append(one["name"])
            continue
        if plan != remake._plan_of(REFERENCE / "data" / f"{one['name']}.h5.gz"):
            older.add(one["name"])
    assert older == listed - set(missing) and len(missing) <= 4 < len(entries) - 4


def test_a_packed_file_that_was_damaged_is_refused(tree):
    made(tree)
    file = tree / "reference/data/small.h5.gz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        opened(file)
    file.write_bytes(gzip.compress(b"\x89HDF\r\n\x1a\n" + b"x" * 100))
    with pytest.raises(InputError):
        opened(file)
