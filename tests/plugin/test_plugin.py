"""The steps of a plugin's author: install, find_package, build, load, test, sweep; and every reason to reject a plugin."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import h5py
import pytest

import plugin_headers

EXAMPLE = Path(__file__).parent / "example"
CMAKE = os.environ["HARDGRAD_CMAKE"]


def call(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The installed program, and the folder of plugins built against it."""
    folder = tmp_path_factory.mktemp("plugin")
    call(CMAKE, "--install", os.environ["HARDGRAD_BUILD"], "--component", "hardgrad", "--prefix", folder / "installed")
    flags = [f"-DCMAKE_CXX_FLAGS=-fsanitize={s}" for s in [os.environ.get("HARDGRAD_SANITIZE")] if s]
    source = shutil.copytree(EXAMPLE, folder / "source")
    wrong = source / "wrong_target.cpp"  # its gradient is not that of its value
    right = (EXAMPLE / "second_moment.cpp").read_text()
    assert right.count("result.value += p * f * f") == 1
    wrong.write_text(right.replace("result.value += p * f * f", "result.value += p * f"))
    with (source / "CMakeLists.txt").open("a") as more:
        more.write(f"hardgrad_add_plugin(wrong_target_estimators {wrong.name})\n")
    call(
        CMAKE,
        "-S",
        source,
        "-B",
        folder / "build",
        f"-DCMAKE_PREFIX_PATH={folder / 'installed'}",
        "-DCMAKE_BUILD_TYPE=Release",
        *flags,
    )
    call(CMAKE, "--build", folder / "build")
    return folder


@pytest.fixture(scope="session")
def hardgrad(built):
    def run(*arguments, status=0, cwd=None):
        done = subprocess.run([built / "installed/bin/hardgrad", *map(str, arguments)], capture_output=True, text=True, cwd=cwd)
        assert done.returncode == status, (arguments, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        if status == 2:
            lines = done.stderr.splitlines()
            assert len(lines) == 1 and lines[0].startswith("hardgrad: "), done.stderr
        return done

    return run


def library(built, name):
    return built / "build" / f"{name}_estimators.so"


def test_one_that_throws_is_one_failed_row(built, hardgrad):
    """In the estimates of a sample, and in the exact moments; the others are measured."""
    for how in (("--exact",), ("--replicates", 32), ("--replicates", 32, "--at-logits")):
        done = hardgrad(
            "measure",
            "--plugin",
            library(built, "failing"),
            "--task",
            "bits",
            "--model",
            "bits[t=0.3,logit=0.2]",
            *how,
            "--json",
            *(word for e in ("reinforce", "failing", "rloo[samples=2]") for word in ("--estimator", e)),
            status=1,
        )
        found = {r["estimator"]: (r["status"], r["reason"]) for r in json.loads(done.stdout)["results"]}
        assert found == {"reinforce": ("ok", ""), "failing": ("failed", "index 7 of 3"), "rloo[samples=2]": ("ok", "")}


def test_template_is_short():
    lines = (EXAMPLE / "median_baseline.cpp").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("template"))
    assert len(lines) - start <= 30


def test_right_plugin_passes(built, hardgrad):
    listed = json.loads(hardgrad("list", "estimators", "--json", "--plugin", library(built, "my")).stdout)
    assert "median_baseline" in [e["name"] for e in listed]
    assert "median_baseline" not in hardgrad("list", "estimators").stdout
    assert "median_baseline: passed" in hardgrad("test", "--plugin", library(built, "my")).stdout
    assert "array_baseline: passed" in hardgrad("test", "--plugin", library(built, "array")).stdout
    assert "example" in hardgrad("--plugin", library(built, "my"), "describe", "median_baseline").stdout
    measured = json.loads(
        hardgrad(
            "measure",
            "--task",
            "bits",
            "--estimator",
            "median_baseline[samples=3]",
            "--exact",
            "--json",
            "--plugin",
            library(built, "my"),
        ).stdout
    )["results"][0]
    assert abs(measured["squared_bias"]) < 1e-24 and measured["variance"] > 0


def test_model_and_task_of_a_plugin(built, hardgrad, tmp_path):
    plugin = ("--plugin", built / "build" / "lamps.so")
    assert (
        "lamp_reader" in hardgrad("list", *plugin).stdout
        and "lamps (task)" in hardgrad("describe", "task:lamps", *plugin).stdout
    )
    measured = json.loads(
        hardgrad(
            "measure",
            "--task",
            "lamps[lamps=3]",
            "--estimator",
            "rloo[samples=2]",
            "--estimator",
            "vimco",
            "--exact",
            "--json",
            *plugin,
        ).stdout
    )["results"]
    assert [abs(m["squared_bias"]) < 1e-20 for m in measured] == [True, True]
    (tmp_path / "sweep.toml").write_text(
        '[grid]\ntask = "lamps"\nestimator = ["rloo", "exact"]\n[train]\nsteps = 300\nbatch = 8\n'
        'optimizer = "adam"\nlearning_rate = 0.05\n[measure]\nat = []\n'
    )
    hardgrad("run", "sweep.toml", "--out", "cells", *plugin, cwd=tmp_path)
    hardgrad("merge", "cells", "--out", "lamps.h5", cwd=tmp_path)
    with h5py.File(tmp_path / "lamps.h5") as file:
        assert file["metric_found"].shape[0] == 2 and (file["metric_found"][:, -1] > 0.9).all()
    assert "complete" in hardgrad("completion", "bash").stdout
    words = json.loads(hardgrad("complete", "bash", f"hardgrad measure --plugin {plugin[1]} --task 'lamps[", "--json").stdout)
    assert words == ["lamps[lamps="]


@pytest.mark.parametrize("place", ["installed", "built"])
def test_the_headers_are_those_of_the_list(built, place):
    """In an installation and in the build folder: the named ones and their includes, nothing more."""
    folder = built / "installed" if place == "installed" else Path(os.environ["HARDGRAD_BUILD"])
    found = {
        str(path.relative_to(folder / "include/hardgrad"))
        for room in ("core", "experiments")
        for path in (folder / "include/hardgrad" / room).rglob("*.hpp")
    } - {"core/abi.hpp"}
    assert found == plugin_headers.closure() and (folder / "include/hardgrad/plugin.hpp").is_file()
    assert not [path for path in found if path.startswith("core/kernels")], "no header for plugins names a register"


def test_the_list_names_what_plugins_include():
    named = set(plugin_headers.named())
    assert 40 <= len(named) <= 65 and plugin_headers.included(plugin_headers.TREE / "core/plugin.hpp") <= named
    for source in EXAMPLE.glob("*.cpp"):
        assert set(re.findall(r"#include <hardgrad/(.+/.+)>", source.read_text())) <= named, source


def test_a_task_on_the_offered_bases_reads_a_file(built, hardgrad, tmp_path):
    plugin = ("--plugin", built / "build" / "lamps.so")
    (tmp_path / "lit.txt").write_text("".join(f"{1 + i % 3}\n" for i in range(30)))
    for spec in ("lamp_list", f"lamp_list[lamps=3,path={tmp_path / 'lit.txt'}]"):
        (verdict,) = json.loads(hardgrad("test", spec, "--json", *plugin).stdout)
        assert verdict["passed"] and verdict["task"] == spec
    refused = hardgrad("test", f"lamp_list[lamps=2,path={tmp_path / 'lit.txt'}]", *plugin, status=3).stderr
    assert "lit.txt:3:1: expected a lamp from 1 to 2" in refused


def test_target_of_a_plugin(built, hardgrad):
    plugin = ("--plugin", library(built, "second"))
    assert "second_moment" in hardgrad("list", "targets", *plugin).stdout
    assert "second_moment (target)" in hardgrad("describe", "target:second_moment", *plugin).stdout
    measured = json.loads(
        hardgrad(
            "measure",
            "--task",
            "bits",
            "--model",
            "bits[bits=2,function=table,logit=0.3]",
            "--estimator",
            "second_moment",
            "--estimator",
            "rloo",
            "--exact",
            "--json",
            *plugin,
        ).stdout
    )["results"]
    assert [m["target"] for m in measured] == ["second_moment", "expected_loss"]
    assert abs(measured[0]["squared_bias"]) < 1e-24 and measured[0]["bias_against"]["expected_loss"] > 1e-6
    assert "second_moment: passed" in hardgrad("test", *plugin).stdout
    (verdict,) = json.loads(hardgrad("test", "--json", "--plugin", library(built, "wrong_target"), status=1).stdout)
    assert {c["check"] for c in verdict["checks"] if c["outcome"] == "failed"} == {"truth"}


def test_a_plugin_by_flags_alone(built, hardgrad, tmp_path):
    """From the build folder, and from an installation, as `hardgrad plugin-flags` says."""
    for number, program in enumerate((os.environ["HARDGRAD_BINARY"], built / "installed/bin/hardgrad")):
        flags = call(program, "plugin-flags").split()
        mine = tmp_path / f"mine{number}.so"
        call(os.environ["CXX"], *flags, EXAMPLE / "median_baseline.cpp", "-o", mine)
        assert "is damaged" in hardgrad("list", "--plugin", mine, status=2).stderr
        hardgrad("seal", mine)
        assert "median_baseline" in hardgrad("list", "estimators", "--plugin", mine).stdout
        prefix = Path(call(program, "plugin-flags", "--prefix").strip())
        assert (prefix / "include/hardgrad/plugin.hpp").is_file() and list(prefix.glob("lib*/**/hardgrad-config.cmake"))
    lonely = shutil.copy(os.environ["HARDGRAD_BINARY"], tmp_path / "hardgrad")
    done = subprocess.run([lonely, "plugin-flags"], capture_output=True, text=True)
    assert (
        done.returncode == 2 and "has no headers beside it: install both" in done.stderr and len(done.stderr.splitlines()) == 1
    )


def compilers():
    """The installed compilers, beside that of the program."""
    names = [f"{kind}-{version}" for kind, least in (("g++", 11), ("clang++", 16)) for version in range(least, 21)]
    return [name for name in names if shutil.which(name)]


@pytest.mark.skipif(not compilers(), reason="no compiler has a version in its name (Debian: g++-12)")
@pytest.mark.skipif(bool(os.environ.get("HARDGRAD_SANITIZE")), reason="each compiler has its own sanitizer")
def test_a_plugin_of_another_compiler(hardgrad, built, tmp_path):
    """What counts is the standard library: the same exact moments to the last digits, by every compiler."""
    flags = call(built / "installed/bin/hardgrad", "plugin-flags").split()
    measured = []
    for compiler in compilers():
        mine = tmp_path / f"{compiler}.so"
        call(compiler, *flags, EXAMPLE / "median_baseline.cpp", "-o", mine)
        hardgrad("seal", mine)
        found = json.loads(
            hardgrad(
                "measure", "--task", "bits", "--estimator", "median_baseline[samples=3]", "--exact", "--json", "--plugin", mine
            ).stdout
        )["results"][0]
        measured.append(found["variance"])
    assert measured == pytest.approx([measured[0]] * len(measured), rel=1e-12)


def test_another_library_is_refused(hardgrad, built, tmp_path):
    """Containers for debugging have other sizes: refused before the plugin runs."""
    mine = tmp_path / "mine.so"
    call(
        os.environ["CXX"],
        *call(built / "installed/bin/hardgrad", "plugin-flags").split(),
        "-D_GLIBCXX_DEBUG",
        EXAMPLE / "median_baseline.cpp",
        "-o",
        mine,
    )
    hardgrad("seal", mine)
    said = hardgrad("list", "--plugin", mine, status=2).stderr
    assert (
        "libstdc++, containers for debugging, this is" in said.replace(", address sanitizer", "") and "build it again" in said
    )


def test_wrong_plugin_fails(built, hardgrad):
    verdict = json.loads(hardgrad("test", "--json", "--plugin", library(built, "wrong"), status=1).stdout)[0]
    assert verdict["estimator"] == "wrong_baseline" and not verdict["passed"]
    failed = {c["check"] for c in verdict["checks"] if c["outcome"] == "failed"}
    assert "exact mean" in failed


def test_an_estimator_that_is_biased_by_default(built, hardgrad):
    plugin = ("--plugin", library(built, "wrong"))
    entry = json.loads(hardgrad("describe", "honest_baseline", "--json", *plugin).stdout)
    assert (entry["unbiased"], entry["biased_by"], entry["unbiased_by"]) == (False, [], ["leave_out=true"])
    assert "Biased, but not with leave_out=true." in hardgrad("describe", "honest_baseline", *plugin).stdout
    (line,) = [x for x in hardgrad("list", "estimators", *plugin).stdout.splitlines() if x.startswith("honest_baseline")]
    assert line.split()[2] == "no"
    claims = [
        json.loads(hardgrad("test", "--json", spec, *plugin).stdout)[0]["claims_unbiased"]
        for spec in ("honest_baseline", "honest_baseline[leave_out=true]")
    ]
    assert claims == [False, True]


def test_models_and_tasks_of_plugins_are_tested(built, hardgrad):
    right = json.loads(hardgrad("test", "--json", "--plugin", built / "build" / "lamps.so").stdout)
    assert {(v.get("model"), v.get("task"), v["passed"]) for v in right} == {
        ("lamp_reader", None, True),
        (None, "lamps", True),
        (None, "lamp_list", True),
    }
    assert {c["check"] for c in right[0]["checks"] if c["outcome"] == "passed"} == {
        "sites",
        "reach",
        "outcomes",
        "posterior",
        "gradient",
        "repeated",
        "batching",
        "padding",
        "samples",
        "sharing",
        "one-hot",
    }
    # A model that declares one choice and makes four is detected and named by every verb, and never crashes.
    plugin = ("--plugin", built / "build" / "four_ends.so")
    verdict = json.loads(hardgrad("test", "--json", "four_ends", *plugin, status=1).stdout)[0]
    (failed,) = [c for c in verdict["checks"] if c["outcome"] == "failed"]
    fault = "site `end` is asked too many times: 2, declared 1"
    assert failed["check"] == "sites" and fault in failed["detail"]
    assert not json.loads(hardgrad("test", "--json", "--task", "ends", *plugin, status=1).stdout)[0]["passed"]
    for estimator in ("nvil", "moving_baseline", "disarm_tree", "kmax_marginal", "relax"):
        refused = hardgrad("measure", "--task", "ends", "--estimator", estimator, *plugin, status=2).stderr
        assert "the model does not run as it declares: " + fault in refused or "needs bits" in refused


def test_sweep_with_plugins(built, hardgrad, tmp_path):
    shutil.copy(library(built, "my"), tmp_path / "mine.so")
    (tmp_path / "sweep.toml").write_text("""
plugins = ["mine.so"]
[grid]
task = "bits"
estimator = ["rloo", "median_baseline[samples=3]"]
[train]
steps = 5
""")
    hardgrad("run", "sweep.toml", "--out", "cells", cwd=tmp_path)
    again = json.loads(hardgrad("run", "sweep.toml", "--out", "cells", "--json", cwd=tmp_path).stdout)
    assert again["already_done"] == 2 and again["failed"] == 0
    # Another build of the plugin may change results: only its cell is run again.
    with open(tmp_path / "mine.so", "ab") as file:
        file.write(b"another build")
    assert "is damaged, or was changed after its build" in hardgrad("plan", "sweep.toml", status=2, cwd=tmp_path).stderr
    hardgrad("seal", "mine.so", cwd=tmp_path)
    why = hardgrad("plan", "sweep.toml", "--out", "cells", "--quick", "--why", "median*", cwd=tmp_path).stdout
    assert "differs: the estimator's plugin is another build" in why
    assert "holds another plan: 1 cell changed (the estimator's plugin is another build)" in why
    refused = hardgrad("run", "sweep.toml", "--out", "cells", status=2, cwd=tmp_path).stderr
    assert "holds another plan: 1 cell changed (the estimator's plugin is another build)" in refused
    rerun = json.loads(hardgrad("run", "sweep.toml", "--out", "cells", "--force", "--json", cwd=tmp_path).stdout)
    assert (rerun["already_done"], rerun["ok"]) == (1, 1)


def test_a_truncated_plugin_is_refused(built, hardgrad, tmp_path):
    whole = library(built, "my").read_bytes()
    cut = tmp_path / "cut.so"
    lengths = sorted({*range(0, len(whole), len(whole) // 40), *(len(whole) - n for n in (1, 8, 64, 512, 4096))})
    for length in lengths:
        cut.write_bytes(whole[:length])
        said = hardgrad("list", "--plugin", cut, status=2).stderr
        assert "damaged" in said or "is not a hardgrad plugin" in said
    assert len(lengths) > 40
    cut.write_bytes(whole)
    assert "median_baseline" in hardgrad("list", "--plugin", cut).stdout


def test_damage_anywhere_is_refused_before_a_plugin_runs(built, hardgrad, tmp_path):
    whole = library(built, "my").read_bytes()
    damaged = tmp_path / "damaged.so"
    places = sorted({*range(16, len(whole), len(whole) // 60), *(len(whole) - n for n in range(1, 31, 3))})
    for place in places:
        damaged.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        said = hardgrad("list", "--plugin", damaged, status=2).stderr
        assert "damaged" in said or "is not a hardgrad plugin" in said, (place, said)
    assert len(places) > 60
    damaged.write_bytes(whole)
    call("strip", "--strip-debug", damaged)  # an intended change
    assert "run `hardgrad seal` if the change is intended" in hardgrad("list", "--plugin", damaged, status=2).stderr
    for _ in range(2):
        hardgrad("seal", damaged)
        assert "median_baseline" in hardgrad("list", "--plugin", damaged).stdout
    (tmp_path / "text.so").write_text("not a library")
    assert "is not a shared library" in hardgrad("seal", tmp_path / "text.so", status=2).stderr
    assert "cannot be read" in hardgrad("seal", tmp_path / "nowhere.so", status=2).stderr


def test_a_plugin_written_over_while_it_is_used(built, tmp_path):
    mine = tmp_path / "mine.so"
    shutil.copy(library(built, "my"), mine)
    (tmp_path / "sweep.toml").write_text(
        'plugins = ["mine.so"]\n[grid]\ntask = "bits"\nestimator = "median_baseline[samples=3]"\n[train]\nsteps = 1000000000\n'
    )
    process = subprocess.Popen(
        [built / "installed/bin/hardgrad", "run", "sweep.toml", "--out", "cells"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = tmp_path / "cells" / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and '"start"' in journal.read_text()):
        time.sleep(0.02)
    mine.write_bytes(b"")  # in place: the mapped pages disappear
    time.sleep(0.5)  # long enough for some steps; if it is too short, the test passes anyway
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors


def test_refusals(built, hardgrad, tmp_path):
    def refusal(path):
        return hardgrad("list", "--plugin", path, status=2).stderr

    assert "no such file" in refusal(tmp_path / "nowhere.so")
    (tmp_path / "text.so").write_text("not a library")
    said = refusal(tmp_path / "text.so")
    assert "is not a hardgrad plugin" in said and "`hardgrad plugin-flags`" in said and "hardgrad_add_plugin()" in said
    assert "is not a hardgrad plugin" in refusal("/bin/true")
    (tmp_path / "empty.so").touch()
    assert "is not a hardgrad plugin" in refusal(tmp_path / "empty.so")
    assert 'registers the estimator "rloo", which exists already' in refusal(library(built, "clashing"))
    assert 'its estimator "silent" does not declare the choices it needs' in refusal(library(built, "silent"))
    other = library(built, "my").read_bytes()
    at = other.index(b"hardgrad-sealed-abi:") + len(b"hardgrad-sealed-abi:")
    (tmp_path / "old.so").write_bytes(other[:at] + b"9" + other[at + 1 :])
    hardgrad("seal", tmp_path / "old.so")
    assert "was built against hardgrad 9" in refusal(tmp_path / "old.so") and "build it again" in refusal(tmp_path / "old.so")
    assert "name an estimator, a model or a task" in hardgrad("test", status=2).stderr
    (tmp_path / "sweep.toml").write_text('plugins = ["nowhere.so"]\n[grid]\ntask = "bits"\nestimator = "rloo"\n')
    assert (
        "sweep.toml:1:12: plugins: plugin nowhere.so: no such file"
        in hardgrad("plan", "sweep.toml", status=2, cwd=tmp_path).stderr
    )
