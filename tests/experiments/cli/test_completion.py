"""Completion as the shell asks for it: bash's own function in a process of its own."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from program import BINARY, as_json, environment, refusal, run

PROGRAM = str(Path(BINARY).resolve())


def complete(line, cwd=None):
    """COMPREPLY of bash's function for a line with the cursor at its end."""
    script = f"""
eval "$({PROGRAM} completion bash)"
COMP_LINE="$1"; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({PROGRAM}); COMP_CWORD=0
_hardgrad
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script, "bash", "hardgrad " + line], capture_output=True, text=True, timeout=60, cwd=cwd,
                          env=environment())
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [word for word in done.stdout.split("\n") if word]


@pytest.mark.parametrize("line, expected", [
    ("mea", ["measure"]),
    ("measure --repl", ["--replicates"]),
    ("--plu", ["--plugin"]),
    ("list ma", ["matrix"]),
    ("describe rlo", ["rloo"]),
    ("describe rloo", ["rloo", "rloo["]),
    ("measure --estimator rloo[sam", ["rloo[samples="]),
    ("measure --estimator 'rloo[sam", ["rloo[samples="]),
    ("measure --estimator 'rloo[samples=", ["rloo[samples=4"]),
    ("measure --estimator rloo[samples=", ["4"]),  # bash takes the line apart at '='
    ("measure --estimator 'rloo[samples=4", ["rloo[samples=4", "rloo[samples=4,", "rloo[samples=4]"]),
    ("measure --estimator 'rloo[samples=2,rew", ["rloo[samples=2,reward_to_go="]),
    ("measure --estimator 'rloo[reward_to_go=t", ["rloo[reward_to_go=true"]),
    ("measure --estimator 'rloo[samples=2,sam", []),  # given already
    ("measure --estimator='rloo[sam", ["rloo[samples="]),
    ("measure --task bits --model 'translator[fe", ["translator[feed="]),
    ("measure --task bits --model 'translator[feed=s", ["translator[feed=sampled", "translator[feed=soft"]),
    ("measure --task glim", ["glimpse"]),
    ("measure --precision d", ["double"]),
    ("run x.toml --progress p", ["plain"]),
    ("run x.toml --set train.st", ["train.steps="]),
    ("run x.toml --set 'train.optimizer=a", ["train.optimizer=adam"]),
    ("run x.toml --set 'grid.estimator=reb", ["grid.estimator=rebar"]),
    ("plan x.toml --only est", ["estimator="]),
    ("plan x.toml --only 'estimator=reb", ["estimator=rebar"]),
    ("test rlo", ["rloo"]),
    ("completion z", ["zsh"]),
    ("measure --checkpoint some", []),  # a file
    ("list > x; hardgrad mea", ["measure"]),
    ("compl", ["completion"]),  # `complete` is for the scripts
])
def test_bash(line, expected):
    assert complete(line) == expected


def test_every_verb_and_name():
    verbs = complete("")
    assert {"list", "describe", "measure", "gradient", "plan", "run", "status", "check", "merge", "export", "test", "completion"} == set(verbs)
    for kind in ("estimator", "model", "task"):
        names = [entry["name"] for entry in as_json("list", kind + "s")]
        assert complete(f"measure --{kind} ") == names
    for verb in verbs:
        assert "--json" in complete(f"{verb} --"), verb


def test_a_program_with_variables_and_path_in_front():
    words = as_json("complete", "bash", "X=1 build/release/hardgrad measure --task 'bi")
    assert words == ["bits"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_scripts(shell, tmp_path):
    script = run("completion", shell).stdout
    assert as_json("completion", shell) == {"shell": shell, "script": script}
    assert "complete " + shell in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=60)


def test_unknown_shell():
    refusal("completion", "tcsh")


@pytest.mark.skipif("HARDGRAD_EXAMPLE_PLUGIN" not in os.environ, reason="no plugin was built")
def test_names_of_plugins():
    plugin = os.environ["HARDGRAD_EXAMPLE_PLUGIN"]
    assert complete(f"measure --plugin {plugin} --estimator media") == ["median_baseline"]
