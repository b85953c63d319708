"""The scripts use every core, whatever the environment variables of OpenMP, and run in the bash 3.2 of a Mac."""

import os
import re
import subprocess

from libraries import LIBRARIES
from mutants import ROOT


def scripts():
    found = subprocess.run(
        ["git", "ls-files", "*.sh", ".ci/run"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(found) > 5
    return found


def test_cores_are_not_counted_by_what_openmp_is_told():
    asked = subprocess.run(
        ["bash", "-c", "OMP_NUM_THREADS=1; export OMP_NUM_THREADS; . experiments/setup.sh; hardgrad_cores"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(asked.stdout) == len(os.sched_getaffinity(0))


def test_the_set_up_builds_the_chosen_preset():
    build = ". experiments/setup.sh; hardgrad_cmake=echo; {} hardgrad_build --target hardgrad"
    for choice, preset in ("", "release"), ("hardgrad_preset=portable;", "portable"):
        built = subprocess.run(
            ["bash", "-euc", build.format(choice)], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        assert built.startswith(f"--build --preset {preset} --parallel ") and built.endswith(" --target hardgrad\n"), built


def test_scripts_ask_nobody_else():
    assert [s for s in scripts() if s != "experiments/setup.sh" and "nproc" in (ROOT / s).read_text()] == []


def unguarded(text):
    """Expansions of arrays that may be empty: with `set -u`, bash before 4.4 ends at them."""
    empty = set(re.findall(r"(?:^|[\s;])(\w+)=\(\)", text))
    guarded = re.sub(r'\$\{(\w+)\[@\]\+"\$\{\1\[@\]\}"\}', "", text)
    checked = set(re.findall(r"\[ \$\{#(\w+)\[@\]\} -gt 0 \] \|\| return", text))
    return [found[0] for found in re.finditer(r"\$\{(\w+)\[[@*]\]\}", guarded) if found[1] in empty - checked]


def test_empty_arrays_are_guarded():
    assert unguarded('a=()\ncmake "${a[@]}" ${a[@]+"${a[@]}"}\n') == ["${a[@]}"]
    assert unguarded('local a=(x) b=()\necho "${a[@]}" "${b[*]}" ${#b[@]}\n') == ["${b[*]}"]
    assert unguarded('b=()\n[ ${#b[@]} -gt 0 ] || return 0\necho "${b[@]}"\n') == []
    assert {name: unguarded((ROOT / name).read_text()) for name in scripts()} == {name: [] for name in scripts()}
    assert sum(len(re.findall(r"=\(\)", (ROOT / name).read_text())) for name in scripts()) >= 5


def test_newer_words_of_bash_are_not_used():
    newer = re.compile(
        r"\b(mapfile|readarray|coproc|local -n|declare -[Ang]|wait -n)\b|\$\{\w+(\^|,,?)\}|\$\{\w+@|&>>|\|&|\[\[? -v "
    )
    assert [
        word
        for word in ("mapfile -t x", "declare -A x", "${x,,}", "${x^}", "${x@Q}", "a |& b", "[ -v x ]")
        if not newer.search(word)
    ] == []
    assert [(name, found[0]) for name in scripts() for found in newer.finditer((ROOT / name).read_text())] == []


def test_the_set_up_installs_and_names_every_library():
    shown = subprocess.run(
        [
            "bash",
            "-c",
            'set -euo pipefail; . experiments/setup.sh; hardgrad_explain; printf "installs %s\\n" "${hardgrad_packages[@]}"',
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name, least, debian, conda in LIBRARIES:
        assert f"    {name} {least} (conda-forge: {conda})\n" in shown
        assert f"installs {debian}\n" in shown
    assert "GNU 12 or Clang 16" in shown and "CMake 3.25" in shown
