"""The scripts use every core, whatever the environment variables of OpenMP."""
import os
import subprocess

from mutants import ROOT


def test_cores_are_not_counted_by_what_openmp_is_told():
    asked = subprocess.run(["bash", "-c", "OMP_NUM_THREADS=1; export OMP_NUM_THREADS; . experiments/setup.sh; hardgrad_cores"], cwd=ROOT,
                           capture_output=True, text=True, check=True)
    assert int(asked.stdout) == len(os.sched_getaffinity(0))


def test_the_set_up_builds_the_chosen_preset():
    build = ". experiments/setup.sh; hardgrad_cmake=echo; {} hardgrad_build --target hardgrad"
    for choice, preset in ("", "release"), ("hardgrad_preset=portable;", "portable"):
        built = subprocess.run(["bash", "-euc", build.format(choice)], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert built.startswith(f"--build --preset {preset} --parallel ") and built.endswith(" --target hardgrad\n"), built


def test_scripts_ask_nobody_else():
    scripts = subprocess.run(["git", "ls-files", "*.sh", ".ci/run"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert len(scripts) > 5
    assert [s for s in scripts if s != "experiments/setup.sh" and "nproc" in (ROOT / s).read_text()] == []
