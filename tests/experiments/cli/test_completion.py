"""Completion in the shells: bash's function is called in a separate process; zsh and fish run on a terminal."""

import os
import pty
import select
import shutil
import signal
import subprocess
import time
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
    done = subprocess.run(
        ["bash", "-c", script, "bash", "hardgrad " + line], capture_output=True, text=True, timeout=3000, cwd=cwd
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [word for word in done.stdout.split("\n") if word]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("mea", ["measure"]),
        ("measure --repl", ["--replicates"]),
        ("--plu", ["--plugin"]),
        ("list ma", ["matrix"]),
        ("describe rlo", ["rloo"]),
        ("describe rloo", ["rloo", "rloo["]),
        ("measure --estimator rloo[sam", ["rloo[samples="]),
        ("measure --estimator 'rloo[sam", ["rloo[samples="]),
        ("measure --estimator 'rloo[samples=", ["rloo[samples=4"]),
        ("measure --estimator rloo[samples=", ["4"]),  # bash splits the line at '='
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
        ("watch dir --by ", ["cpu_seconds", "rows", "steps"]),
        ("evaluate --split t", ["test", "train"]),
        ("measure --estimand=e", ["enumerated"]),
        ("run x.toml --set train.ste", ["train.steps="]),
        ("run x.toml --set 'train.optimizer=a", ["train.optimizer=adam"]),
        ("run x.toml --set 'grid.estimator=reb", ["grid.estimator=rebar"]),
        ("plan x.toml --only est", ["estimator="]),
        ("plan x.toml --only 'estimator=reb", ["estimator=rebar"]),
        ("test rlo", ["rloo"]),
        ("completion z", ["zsh"]),
        ("measure --checkpoint some", []),  # a file
        ("list > x; hardgrad mea", ["measure"]),
        ("compl", ["completion"]),  # `complete` is for the scripts
    ],
)
def test_bash(line, expected):
    assert complete(line) == expected


def test_every_verb_and_name():
    verbs = complete("")
    assert {
        "list",
        "describe",
        "measure",
        "gradient",
        "evaluate",
        "plan",
        "run",
        "status",
        "watch",
        "check",
        "merge",
        "export",
        "test",
        "completion",
        "plugin-flags",
    } == set(verbs)
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
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=3000)


def types(shell, tmp_path, line):
    """The command line of an interactive shell after a Tab at its end. The shell runs on a separate terminal."""
    buffer = tmp_path / "line"
    setting = {
        "zsh": f"""autoload -Uz compinit; compinit -u -D; eval "$(hardgrad completion zsh)"
show() {{ print -rn -- "$BUFFER" > {buffer}.new; mv {buffer}.new {buffer} }}; zle -N show; bindkey '^T' show; setopt no_beep
touch {buffer}.ready
""",
        "fish": f"""hardgrad completion fish | source
function show; printf %s (commandline) > {buffer}.new; mv {buffer}.new {buffer}; end; bind \\ct show; touch {buffer}.ready
""",
    }[shell]
    (tmp_path / "setting").write_text(setting)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "hardgrad").symlink_to(PROGRAM)
    env = environment(
        PATH=f"{folder}:{os.environ['PATH']}",
        HOME=str(tmp_path),
        XDG_CONFIG_HOME=str(tmp_path),
        TERM="xterm",
        ZDOTDIR=str(tmp_path),
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe(shell, [shell, "-f", "-i"] if shell == "zsh" else [shell, "-N", "-i"], env)

    def wait_for(path):
        end = time.monotonic() + 3000
        while not path.exists():
            assert time.monotonic() < end, f"{shell} does not answer"
            if select.select([terminal], [], [], 0.05)[0]:  # the shell blocks if its output is not read
                os.read(terminal, 65536)

    try:
        os.write(terminal, b"source " + str(tmp_path / "setting").encode() + b"\r")
        wait_for(Path(f"{buffer}.ready"))
        os.write(terminal, line.encode() + b"\t\x14")
        wait_for(buffer)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    return buffer.read_text()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize(
    "line, expected",
    [
        ("hardgrad mea", "hardgrad measure "),
        ("hardgrad measure --repl", "hardgrad measure --replicates "),
        ("hardgrad describe reinm", "hardgrad describe reinmax"),
        ("hardgrad measure --estimator 'rloo[sam", "hardgrad measure --estimator 'rloo[samples="),
        ("hardgrad measure --model 'translator[fe", "hardgrad measure --model 'translator[feed="),
        ("hardgrad run x.toml --set train.ste", "hardgrad run x.toml --set train.steps="),
        ("hardgrad check some_f", "hardgrad check some_file"),
    ],
)
def test_zsh_and_fish_complete_on_a_terminal(shell, tmp_path, line, expected):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "some_file").touch()
    assert types(shell, tmp_path, line).rstrip() == expected.rstrip()


def test_unknown_shell():
    refusal("completion", "tcsh")
