"""The JSON of every verb is as documented in experiments/cli/README.md. Manual pages and tables fit the width of the terminal."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from program import BINARY, as_json, environment, run

PAGE = Path(__file__).resolve().parents[3] / "experiments" / "cli" / "README.md"


@pytest.fixture(scope="module")
def shapes():
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| (.+) \|$", PAGE.read_text("utf-8"), re.M)
    return {verb: (value.strip().startswith("list"), set(re.findall(r"`(\w+)`", keys))) for verb, value, keys in rows}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """{name of a call in that page: arguments}, in an order in which they can run."""
    folder = tmp_path_factory.mktemp("json")
    sweep = folder / "s.toml"
    sweep.write_text('[grid]\ntask = "bits"\nestimator = "rloo"\n')
    trained = folder / "t.toml"
    trained.write_text(
        '[grid]\ntask = "translation[examples=40,max_length=3]"\nmodel = "translator[embedding=2,hidden=2]"\nestimator = "soft"\n'
        "[train]\nsteps = 1\ncheckpoint = true\n"
    )
    run("run", trained, "--out", folder / "trained")
    (checkpoint,) = (folder / "trained").rglob("*.checkpoint.h5")
    out = folder / "run"
    bits = ("--task", "bits", "--estimator", "rloo")
    return {
        "list": ("list",),
        "list estimators": ("list", "estimators"),
        "list models": ("list", "models"),
        "list tasks": ("list", "tasks"),
        "list targets": ("list", "targets"),
        "list names": ("list", "names"),
        "list matrix": ("list", "matrix"),
        "describe sweep": ("describe", "sweep"),
        "measure": ("measure", *bits, "--exact"),
        "gradient": ("gradient", *bits, "--out", folder / "g.h5"),
        "evaluate": ("evaluate", "--checkpoint", checkpoint),
        "plan": ("plan", sweep, "--out", out),
        "run": ("run", sweep, "--out", out),
        "status": ("status", out),
        "watch": ("watch", out),
        "check": ("check", out),
        "merge": ("merge", out, "--out", folder / "m.h5"),
        "export": ("export", folder / "m.h5", "--csv", folder / "csv"),
        "test": ("test", "exact"),
        "completion": ("completion", "bash"),
        "plugin-flags": ("plugin-flags",),
    }


def test_every_verb_is_on_the_page(shapes, calls):
    verbs = set(re.findall(r"^  ([\w-]+) {2,}", run("--help").stdout.split("Subcommands:")[1], re.M))
    assert len(verbs) >= 12 and {name.split()[0] for name in shapes} == verbs
    assert set(shapes) == set(calls) | {"describe NAME"}


def test_keys_are_those_of_the_page(shapes, calls):
    for name, arguments in calls.items():
        got = as_json(*arguments)
        is_list, keys = shapes[name]
        assert isinstance(got, list) == is_list, name
        assert set(got[0] if is_list else got) == keys, name
    for name, kind in (("rloo", "estimators"), ("translator", "models"), ("qa", "tasks"), ("elbo", "targets")):
        assert set(as_json("describe", name)) == shapes[f"list {kind}"][1]
    assert len(as_json("describe", "bits")) == 2


def test_describe_reads_like_a_manual_page():
    names = {kind: [entry["name"] for entry in as_json("list", kind)] for kind in ("estimators", "models", "tasks", "targets")}
    headings = {
        "estimators": [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "PARAMETERS",
            "TARGET",
            "BIAS",
            "COST",
            "NEEDS",
            "SUPPORTS",
            "SEE ALSO",
        ],
        "models": ["NAME", "SYNOPSIS", "DESCRIPTION", "PARAMETERS", "CHOICES", "NEEDS", "SEE ALSO"],
        "tasks": ["NAME", "SYNOPSIS", "DESCRIPTION", "PARAMETERS", "SEE ALSO"],
        "targets": ["NAME", "SYNOPSIS", "DESCRIPTION", "PARAMETERS", "SEE ALSO"],
    }
    promising, with_presets = set(), set()
    for kind, all_names in names.items():
        for name in all_names:
            lines = run("describe", f"{kind[:-1]}:{name}").stdout.splitlines()
            found = [line for line in lines if line and not line.startswith(" ")]
            for optional, those in (("PROMISES", promising), ("PRESETS", with_presets)):
                if kind == "estimators" and optional in found:
                    found.remove(optional)
                    those.add(name)
            assert found == headings[kind], name
            assert all(len(line) <= 80 for line in lines), name
    assert {"straight_through", "reinmax", "optimal_baseline", "tvo"} <= promising and "exact" not in promising
    assert with_presets == {"policy_gradient"}


def test_lists_fit_120_columns():
    lines = run("list").stdout.splitlines()
    assert max(map(len, lines)) <= 120
    assert len(lines) == sum(len(entries) for entries in as_json("list").values()) + 5  # one line each


def on_terminal(*arguments, **env):
    """The program's output on a terminal."""
    main, other = pty.openpty()
    process = subprocess.Popen([BINARY, *arguments], stdout=other, stderr=other, env=environment(TERM="xterm", **env))
    os.close(other)
    text = b""
    try:
        while chunk := os.read(main, 65536):
            text += chunk
    except OSError:  # the other end is closed
        pass
    os.close(main)
    assert process.wait(timeout=3000) == 0
    return text.decode()


def test_colours_only_on_a_terminal():
    assert "\033[" not in run("describe", "rloo").stdout
    assert "\033[1mNAME\033[0m" in on_terminal("describe", "rloo")
    assert "\033[" not in on_terminal("describe", "rloo", NO_COLOR="1")


def test_bar_on_a_terminal(tmp_path):
    (tmp_path / "s.toml").write_text('[grid]\ntask = "bits"\nestimator = ["rloo", "exact"]\nseed = [1, 2, 3]\n')
    text = on_terminal("run", str(tmp_path / "s.toml"), "--out", str(tmp_path / "run"))
    assert "\r\033[K[" in text and "] 3/6 cells" in text
    # At the end the bar is erased, and the report remains.
    assert text.rsplit("\033[K", 1)[1].startswith("6 cells: 6 done now")
    arguments = ["measure", "--task", "bits", "--estimator", "rloo", "--estimator", "reinforce", "--replicates", "10"]
    text = on_terminal(*arguments)
    assert "\r\033[K[" in text and "] 1/2 estimators" in text
    assert text.rsplit("\033[K", 1)[1].startswith("bits on bits: ")
    assert run(*arguments).stderr == ""
