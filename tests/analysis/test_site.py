"""The site: verdicts on planted numbers, the committed files, and comparisons with a user's file."""

import gzip
import io
import json
import os
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
import xarray as xr
from made_up import spelled, sweep
from matplotlib.figure import Figure

from analysis.__main__ import main
from analysis.errors import InputError, OutputError
from analysis.compare import compare
from analysis.load import load
from analysis.result import Result
from analysis.site import claims, studies
from analysis.output import file_name
from analysis.program import absent_values
from analysis.site.build import REFERENCE, _pages, build, sitemap
from analysis.identity import differences, matched, network_keys
from analysis.site.own import Own, own_page, own_result
from analysis.saving import small_svg
from analysis.site.packing import packed
from analysis.site.pages import Site, _by_rows, document, estimator_page, explorer
from analysis.site.studies import Study, answered, committed, explored, opened, slug, stage

FILES = sorted((REFERENCE / "data").glob("*.h5.gz"))


def study(data, name="planted", own=False) -> Study:
    return Study(name, Path(f"{name}.h5"), Result(data), own)


def claim(**more):
    return {"name": "c", "says": "s", "source": "x", "study": "planted", "quantity": "heldout_expected_loss", **more}


@pytest.mark.parametrize(
    "order, effect, verdict",
    [
        (["a", "b"], 1, "reproduced"),
        (["b", "a"], 1, "not reproduced"),
        (["a", "b"], 0, "undecided"),
        (["a", "c", "b"], 1, "not reproduced"),
    ],
)
def test_an_order_is_judged_by_its_differences(order, effect, verdict):
    found = claims.tested(claim(order=order), [study(sweep(1, ["a", "b", "c"], 10, effect))])
    assert found.verdict == verdict and len(found.steps) == len(order) - 1


def test_ratios_of_variances_are_those_of_the_numbers():
    data = sweep(1, ["a", "b"], 8)
    data["variance"].values *= np.exp(0.01 * np.random.default_rng(1).normal(size=data["variance"].shape))
    verdict = claims.tested(claim(order=["a", "b"], quantity="variance"), [study(data)])
    middle = float(verdict.steps[0][1].split()[0])
    values = data["variance"].values[:, 0]
    assert verdict.verdict == "reproduced" and middle == pytest.approx(
        np.exp(np.log(values[8:] / values[:8]).mean()), rel=0.005
    )


def test_too_few_seeds_decide_about_measured_networks_alone():
    data = sweep(1, ["a", "b"], 3)
    bare = claims.tested(claim(order=["a", "b"], quantity="variance"), [study(data)])
    assert bare.verdict == "undecided" and "in these networks" not in bare.steps[0][1]
    for half, verdict in ((0.01, "reproduced"), (0.9, "undecided")):
        own = data.assign(
            variance_interval=(("run", "measurement_step", "bound"), data["variance"].values[..., None] * [1 - half, 1 + half])
        )
        found = claims.tested(claim(order=["a", "b"], quantity="variance"), [study(own)])
        assert (
            found.verdict == verdict
            and found.steps[0][1].startswith("2 times [")
            and found.steps[0][1].endswith(" (in these networks)")
        )


@pytest.mark.parametrize(
    "bound, verdict",
    [({"at_most": 1.5}, "reproduced"), ({"at_most": 0.5}, "not reproduced"), ({"at_least": 1.5}, "not reproduced")],
)
def test_a_bound_is_of_the_mean(bound, verdict):
    assert claims.tested(claim(estimators=["a"], quantity="variance", **bound), [study(sweep(1, ["a"], 3))]).verdict == verdict


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"study": "none"}, "there is no study"),
        ({"order": ["a", "z"]}, "0 settings match z"),
        ({"network": "nowhere"}, "0 networks"),
    ],
)
def test_a_claim_about_what_is_not_there_is_an_error(wrong, words):
    with pytest.raises(InputError, match=words):
        claims.tested(claim(**{"order": ["a", "b"], **wrong}), [study(sweep(1, ["a", "b"], 3))])


def test_a_small_figure_keeps_its_labels():
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0.12345, 0.12355], [1, 2])
    axes.set_xticks([0.12345, 0.12355], ["0.12345", "0.12355"])
    picture = small_svg(figure).decode()
    assert ">0.12345<" in picture and ">0.12355<" in picture and "metadata" not in picture
    for style in set(re.findall(r'class="(s\d+)"', picture)):
        assert f".{style}{{" in picture
    content = io.BytesIO()
    figure.savefig(content, format="svg")
    assert len(picture) < 0.75 * len(content.getvalue())


def test_stages_and_slugs():
    assert [stage(share) for share in (0.0, 0.1, 0.5, 1.0)] == ["start", "10%", "half", "end"]
    assert slug(("bits", "bits[t=1]")) != slug(("bits", "bits[t=2]")) and slug(("bits", "bits[t=1]")).startswith("bits-")


def test_labels_name_no_file_outside_the_folder(tmp_path):
    """Every page and figure of a result whose labels are paths, hidden, long or equal but for a character."""
    labels = ["../../../PWNED", "/etc/PWNED", "..", "a/b", "a?b", "x" * 300, "b\n", "plain"]
    assert len({file_name(label) for label in labels}) == len(labels) and file_name("plain") == "plain" and file_name("") != ""
    assert not any(
        "/" in file_name(label) or file_name(label).startswith(".") or len(file_name(label)) > 100 for label in labels
    )
    data = sweep(1, labels, 3)
    data = data.assign_coords(
        task=("run", ["../../../PWNED[a=1]"] * data.sizes["run"], data["task"].attrs),
        model=("run", ["/PWNED"] * data.sizes["run"], data["model"].attrs),
    )
    (tmp_path / "mine.h5").write_bytes(b"")
    one = Study("mine", tmp_path / "mine.h5", Result(data), True)
    site, out = Site.of([one], {"estimators": {}, "models": {}, "tasks": {}}), tmp_path / "site"
    (out / "figures").mkdir(parents=True)
    pages = dict(_pages(site, [], "hardgrad", Own(one, []), out))
    assert len(pages) == 7 + len(labels) and all((out / name).resolve().is_relative_to(out) for name in pages)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "mine.h5"]
    assert written and all(path.parent == out / "figures" for path in written)
    linked = set(
        re.findall(
            r'href="((?:estimators|networks)/[^"]+)"',
            pages["index.html"] + pages["estimators.html"] + pages["networks.html"] + pages["explorer.html"],
        )
    )
    assert len(linked) == len(labels) + 1 and linked <= set(pages)


def test_every_entry_is_explored_once():
    data = sweep(2, ["a", "b"], 3)
    rows = explored(study(data))
    assert len(rows) == 4 and set(rows["share"]) == {0.0} and rows[["task", "label"]].drop_duplicates().shape[0] == 4
    unmeasured = explored(study(data.drop_vars(["variance", "squared_bias", "bias_p_value", "rows", "measurement_step"])))
    assert len(unmeasured) == 4 and unmeasured["share"].isna().all()


def test_the_pages_escape_and_link_what_they_show():
    data = sweep(1, ["rloo", "<b>"], 6)
    site = Site.of([study(data)], {"estimators": {}, "models": {}, "tasks": {}})
    text = explorer(site)
    assert "<b>" not in text and "&lt;b&gt;" in text and 'href="data/planted.h5"' in text and "--only" in text
    assert "Worse than rloo beyond noise on" in estimator_page(site, "<b>", "", "")  # as planted


def test_the_comparison_at_equal_rows_names_another_best():
    """Planted: `a` is best at equal steps with twice the rows of the others, and last at equal rows, where `b` is best."""
    data = sweep(1, ["a", "b", "c"], 8)
    ends = data["heldout_expected_loss"].values[:, 0]
    half = ends + 10 * (data["estimator"].values == "a")
    rows = np.where(data["estimator"].values == "a", 2000.0, 1000.0)[:, None] * [0.5, 1]
    data = data.drop_dims("evaluation_step").assign(
        heldout_expected_loss=(("run", "evaluation_step"), np.stack([half, ends], 1), {"better": "lower"}),
        train_loss=(("run", "step"), rows * 0),
        train_rows=(("run", "step"), rows),
    ).assign_coords(evaluation_step=[50, 100], step=[50, 100])  # fmt: skip
    every = answered(study(data))
    steps = every[every["budget"] == "steps"].set_index("estimator", drop=False)
    assert steps.loc["a", "verdict"] == "best" and steps.loc["c", "reference"] == "a"
    said = {name: _by_rows(every, steps.loc[name]) for name in "abc"}
    assert (
        said["a"].startswith("worse than b, +8.89 [")
        and said["b"] == "best"
        and said["c"] == "worse than b, +0.954 [0.802, 1.11]"
    )
    same = every[every["budget"] == "rows"].set_index("estimator", drop=False)
    assert _by_rows(every, same.loc["c"]) == "worse, +0.954 [0.802, 1.11]"
    unclear = every.assign(verdict=every["verdict"].replace("worse", "unclear"))
    assert _by_rows(unclear, steps.loc["c"]) == "unclear, from b, +0.954 [0.802, 1.11]"
    for verdict in ("none", "alone"):
        assert _by_rows(every.assign(verdict=verdict), steps.loc["c"]) == "–"
    assert _by_rows(every[every["budget"] == "steps"], steps.loc["c"]) == "–"


def test_a_new_estimator_is_compared_with_all_that_stand_there():
    mine, theirs = sweep(1, ["a", "b", "late"], 8), sweep(1, ["a", "b"], 8)
    mine = mine.isel(run=[i for i, name in enumerate(mine["estimator"].values) if name == "late"])
    site = Site.of([study(theirs), study(mine, "yours", own=True)], {"estimators": {}, "models": {}, "tasks": {}})
    text = own_page(
        site,
        Own(
            site.studies[1],
            [
                {
                    "estimator": "late",
                    "passed": True,
                    "checks": [{"check": "c", "where": "w", "outcome": "passed", "detail": ""}],
                }
            ],
        ),
    )
    assert text.count("yours is worse") == 2 and "1 of 1" in text


def told(first, second, absent={}):
    first, second = Result(first), Result(second)
    return differences(first, second, matched(first, second, absent), absent)


def test_settings_that_one_file_lacks_have_a_known_value_or_are_unknown():
    first, second = (spelled(sweep(1, ["a"], 2), steps=steps) for steps in (600, 300))
    assert told(first, second) == ({"train.steps": ("600", "300")}, [])
    newer = spelled(sweep(1, ["a"], 2), steps=600, reuse=1, new=2)
    assert told(first, newer, {"train.reuse": 1}) == ({}, ["train.new"]), "what programs without it did, or unknown"
    assert told(first, newer, {"train.reuse": 2, "train.new": 2}) == ({"train.reuse": ("2", "1")}, [])


@pytest.mark.parametrize("lacks", [[0], [1], [0, 1]])
@pytest.mark.parametrize(
    "name, path",
    [
        ("task_settings", "task settings"),
        ("model_settings", "model settings"),
        ("estimator_settings", "estimator settings"),
        ("target_settings", "target settings"),
        ("run_settings", "run settings"),
        ("data_hash", "data"),
        ("precision", "precision"),
    ],
)
def test_what_a_file_does_not_record_is_unknown(name, path, lacks):
    both = [spelled(sweep(1, ["a", "b"], 6)) for _ in range(2)]
    for place in lacks:
        both[place] = both[place].drop_vars(name, errors="ignore")
        both[place].attrs.pop(name, None)
    assert told(*both) == ({}, [path])
    if path in ("data", "precision"):
        other = both[1].assign_coords(estimator=("run", ["a[samples=4]"] * 6 + ["b"] * 6, both[1]["estimator"].attrs))
        assert len(matched(Result(both[0]), Result(other))) == 2, "by the settings that both record"
    text = own_text(*both)
    assert f"do not record {path}, in which they may differ" in text and "6 numbers of the same estimators: 0 changed" in text
    late = spelled(sweep(1, ["late"], 6))
    late = late.drop_vars(name, errors="ignore") if 1 in lacks else late
    late.attrs.pop(name if 1 in lacks else "", None)
    warned = f"do not record {path}, in which they may differ" in own_text(both[0], late)
    assert warned == (name not in ("estimator_settings", "target_settings")), "a new estimator has settings of its own"
    assert compare(*both).settings == {path: ("not recorded in one or both",) * 2}
    assert told(spelled(sweep(1, ["a"], 2)), spelled(sweep(1, ["a"], 2))) == ({}, [])


def test_networks_of_an_older_program_may_differ():
    """The file records only how the sweep named its networks: the program gives these names another meaning since."""
    file = REFERENCE / "data" / "every_estimator.h5.gz"
    theirs = opened(file).result
    theirs = theirs.of_runs(np.flatnonzero([task.startswith("qa") for task in theirs.values("task")]))
    one, data = '{"tying": "adjacent"}', theirs.data
    today = data.assign({f"{name}_settings": ("run", np.full(theirs.count, one, object)) for name in ("task", "model")})
    found = told(data, today)
    assert found.differ == {} and found.unknown == ["task settings", "model settings", "target settings", "data"]
    text = own_page(
        Site.of([study(data), study(today, "yours", own=True)], {"estimators": {}, "models": {}, "tasks": {}}),
        Own(study(today, "yours", own=True), []),
    )
    assert text.count("do not record task settings, model settings, target settings, data, in which they may differ") == 1


def own_text(theirs, mine, absent={}):
    site = Site.of([study(theirs), study(mine, "yours", own=True)], {"estimators": {}, "models": {}, "tasks": {}})
    return own_page(site, Own(site.studies[1], [], absent))


def test_other_training_is_told_and_not_compared():
    theirs, mine = spelled(sweep(1, ["a", "b"], 6)), spelled(sweep(1, ["a", "b"], 6), steps=300)
    text = own_text(theirs, mine)
    assert "committed | yours (train.steps 100 | 300), and so not compared: a, b." in text and "of the same" not in text
    mine["run_settings"].values[:6] = theirs["run_settings"].values[:6]  # of a alone: a is compared, b is not
    text = own_text(theirs, mine)
    assert "and so not compared: b." in text and "3 numbers of the same estimators: 0 changed" in text
    late = spelled(sweep(1, ["a", "late"], 6), steps=300).isel(run=slice(6, None))
    assert "New: <code>late</code>, run with other settings, committed | yours (train.steps 100 | 300)" in own_text(
        theirs, late
    )


def test_settings_without_effect_are_not_told():
    """All that the program's table declares so; and how often a run is evaluated, unless an evaluation chooses its network."""
    table = (REFERENCE.parents[1] / "experiments/sweeps/settings_table.cpp").read_text("utf-8")
    names = re.findall(r'without_effect\(\s*(?:TRAIN|CELL)\(\s*(?:"train",\s*)?Info::\w+\("(\w+)"', table)
    assert {*names} == {"threads", "save_seconds", "save_every"} and table.count("without_effect(") == len(names) + 1
    for name in (*names, "log_every", "checkpoint"):
        text = own_text(spelled(sweep(1, ["a"], 6), **{name: 1}), spelled(sweep(1, ["a"], 6), **{name: 2}))
        assert "3 numbers of the same estimators" in text and name not in text, name


CHOOSING = {"keep_best": (False, True), "patience": (0, 3), "target_loss": (-1e300, 0.5)}


@pytest.mark.parametrize("name", [None, "monitor", *CHOOSING])
def test_how_often_a_run_is_evaluated_matters_if_an_evaluation_chooses(name):
    described = json.loads(subprocess.check_output([os.environ["HARDGRAD_BINARY"], "describe", "sweep", "--json"]))[
        "parameters"
    ]
    off = {path: values[0] for path, values in CHOOSING.items()}
    assert {one["name"]: one["default"] for one in described}.items() >= {
        f"train.{path}": value for path, value in off.items()
    }.items()
    now = off | ({name: CHOOSING[name][1]} if name in CHOOSING else {"monitor": "soft"} if name else {})
    both = [spelled(sweep(1, ["a", "b"], 6), evaluate_every=every, **now) for every in (0, 50)]
    late = spelled(sweep(1, ["late"], 6), evaluate_every=50, **now)
    said = "run with other settings, committed | yours (train.evaluate_every 0 | 50)"
    if name in CHOOSING:
        assert told(*both) == ({"train.evaluate_every": ("0", "50")}, [])
        assert said in own_text(*both).replace("Run", "run") and said in own_text(both[0], late)
    else:
        both[1] = both[1] if name is None else spelled(both[1], evaluate_every=50, **{**off, "monitor": "metric_accuracy"})
        assert told(*both) == ({}, []) and compare(*both).settings == {}
        assert "6 numbers of the same estimators: 0 changed" in own_text(*both) and "New" in own_text(both[0], late)
        assert said not in own_text(both[0], late)
        often = late.reindex(evaluation_step=[50, 100])
        assert own_text(both[0], often).count("not distinguishable") + own_text(both[0], often).count("yours is") == 2


def test_other_measuring_is_told_and_only_scores_are_compared():
    theirs, mine = spelled(sweep(1, ["a", "b"], 6)), spelled(sweep(1, ["a", "b"], 6))
    for data, batch in ((theirs, 4), (mine, 8)):
        settings = json.dumps({"train.steps": 100, "measure.batch": batch, "measure.replicates": batch})
        data["run_settings"].values[:] = settings
    mine["variance"].values *= 2  # of a gradient over twice the examples
    text = own_text(theirs, mine)
    assert "(measure.batch 4 | 8), so that their variance and bias are not compared: a, b." in text
    assert "2 numbers of the same estimators: 0 changed" in text


def test_a_new_estimator_is_compared_at_its_own_steps_alone():
    """Those of the committed file are an axis of its grid."""

    def axis(estimators, steps):
        data, attrs = spelled(sweep(1, estimators, 8), steps=steps), {"grid_axis": "train.steps"}
        return data.assign_coords({"train.steps": ("run", [steps] * data.sizes["run"], attrs)})

    parts = [axis(["a", "b"], steps) for steps in (100, 300)]
    parts[1]["heldout_expected_loss"].values -= 50
    theirs = xr.concat(parts, "run", combine_attrs="override")
    theirs = theirs.assign_coords(run=range(theirs.sizes["run"]))
    mine = axis(["a", "b", "late"], 100).isel(run=slice(16, None))
    text = own_text(theirs, mine)
    assert text.count("yours is worse") == 2 and "yours is better" not in text and "train.steps=300" not in text
    assert own_text(theirs.isel(run=slice(16, None)), mine).count("(train.steps 300 | 100), and so not compared") == 1


@pytest.mark.parametrize("part, name", [("model", "m[hidden=9]"), ("task", "t0[hidden=9]")])
def test_a_name_is_not_compared_across_its_changed_default(part, name):
    theirs, mine = spelled(sweep(1, ["a", "b"], 8)), spelled(sweep(1, ["a", "late"], 8))
    mine[f"{part}_settings"].values[:] = '{"hidden": 9, "unit": "lstm", "words": 4}'
    theirs[f"{part}_settings"].values[:] = '{"hidden": 8, "unit": "lstm", "words": 4}'
    text = own_text(theirs, mine)
    said = f"committed | yours ({part}.hidden 8 | 9), and so not compared"
    assert f"with other settings, {said}: a." in text and f"late</code>, run with other settings, {said}." in text
    assert "yours is" not in text
    other = spelled(sweep(1, ["a", "b"], 8), **{part: name})
    other[f"{part}_settings"].values[:] = mine[f"{part}_settings"].values
    both = xr.concat([theirs, other], "run", combine_attrs="override")
    text = own_text(both.assign_coords(run=range(both.sizes["run"])), mine)
    assert (
        "3 numbers of the same estimators: 0 changed" in text
        and text.count("yours is worse") == 1
        and "not compared" not in text
    )


def test_a_network_is_found_by_its_settings_however_it_is_spelled():
    theirs = spelled(sweep(1, ["a", "b"], 8), "t[words=4]", "m[hidden=8]", samples=4)
    mine = spelled(sweep(1, ["a[samples=4]", "b", "late"], 8), "t", "m[unit=lstm,hidden=8]", samples=4)
    text = own_text(theirs, mine.isel(run=slice(0, 16)))
    assert "6 numbers of the same estimators: 0 changed" in text
    assert own_text(theirs, mine.isel(run=slice(16, None))).count("yours is worse") == 2
    other = spelled(sweep(1, ["a"], 8), "t", "m[hidden=9]", samples=4)
    other["model_settings"].values[:] = '{"hidden": 9, "unit": "lstm"}'
    assert "No committed file has this network" in own_text(theirs, other)


ADDED = ("train.parts", "train.threads", "train.start_overlap", "measure.method")  # declared with absent_means


def test_the_program_says_what_programs_without_a_setting_did():
    known = absent_values(os.environ["HARDGRAD_BINARY"])
    assert {name: known[name] for name in ADDED} == dict(zip(ADDED, (1, 0, 0.0, "sampled")))
    assert known["estimator.sparsemax.alpha"] == known["target.sparsemax.alpha"] == 2
    assert "train.reuse" not in known and "model.translator.hidden" not in known, (
        "there from the beginning: not null, but left out"
    )


@pytest.mark.parametrize("name", ["toy_training", "babi_qa1", "translation_tuned"])
def test_a_result_of_today_is_compared_with_an_earlier_one(name):
    """An earlier file lacks settings that were added since. A result with all of them, as programs without them did, and one more."""
    mine = opened(REFERENCE / f"data/{name}.h5.gz")
    settings = [{**one, "measure.method": "sampled"} for one in mine.result.run_settings]
    assert all({*ADDED, "train.reuse"} <= {*one} for one in settings)
    write = lambda each: mine.result.data.assign(run_settings=("run", np.array(list(map(json.dumps, each)), object)))
    later = write([{**one, "train.added": 1} for one in settings])
    earlier = write([{path: value for path, value in one.items() if path not in ADDED} for one in settings])
    absent = absent_values(os.environ["HARDGRAD_BINARY"])
    assert told(earlier, later) == ({}, ["measure.method", "train.added", "train.parts", "train.start_overlap"])
    assert told(earlier, later, absent) == ({}, ["train.added"])
    assert told(earlier, later, {**absent, "train.added": 1}) == ({}, [])
    assert told(earlier, later, {**absent, "train.parts": 2}).differ == {"train.parts": ("2", "1")}
    first = write([{path: value for path, value in one.items() if path != "train.reuse"} for one in settings])
    assert told(first, later, absent) == ({}, ["train.added", "train.reuse"]), "today's default is not its own"
    theirs, own = mine._replace(result=Result(earlier)), Own(study(later, "mine", own=True), [], absent)
    text = own_page(Site.of([theirs, own.study], {"estimators": {}, "models": {}, "tasks": {}}), own)
    compared = re.findall(r"(\d+) numbers? of the same estimators: 0 changed", text)
    assert len(compared) == len(Result(later).panels) and all(map(int, compared)) and "not compared" not in text


ADD = {"estimator.a.new": False, "model.m.new": 0.5, "task.t0.new": "x", "target.soft.new": [1, 2], "train.new": 1}


def renewed(data, changed="", value=None):
    """The result of a newer program, which records an added parameter of each part, in another spelling of the sweep."""
    for part in ("estimator", "model", "task", "target", "run"):
        names, start = data[f"{part}_settings"].values, "train" if part == "run" else part
        added = {path: value if path == changed else absent for path, absent in ADD.items() if path.startswith(start)}
        for run, text in enumerate(names):
            if part == "estimator" and str(data["estimator"].values[run]).split("[")[0] != "a":
                continue
            names[run] = json.dumps(
                {path if part == "run" else path.split(".")[2]: v for path, v in added.items()} | json.loads(text)
            )
    return data


@pytest.mark.parametrize("changed", ["", *ADD])
def test_an_added_parameter_breaks_no_match(changed):
    """Files in other spellings, so that only their settings tell that they are the same."""
    soft = {"trained_target": ("run", np.full(12, "soft", object))}
    theirs = spelled(sweep(1, ["a", "b"], 6), "t0[words=4]", "m[hidden=8]", samples=4).assign(soft)
    mine = renewed(spelled(sweep(1, ["a[samples=4]", "b[samples=4]"], 6), "t0", "m", samples=4).assign(soft), changed, 3)
    path = ".".join(changed.split(".")[::2]) if changed != "train.new" else changed
    text, found = own_text(theirs, mine, ADD), told(theirs, mine, ADD)
    assert found.unknown == []
    if changed in ("", "train.new"):
        assert {*found.differ} == {changed} - {""}
        assert compare(theirs, mine, absent=ADD).settings == {path: (str(ADD[path]), "3") for path in found.differ}
    if not changed:
        assert "6 numbers of the same estimators: 0 changed" in text and "not compared" not in text and "not record" not in text
        assert told(theirs, mine).differ == {} and "No committed file has" in own_text(theirs, mine)
        with pytest.raises(InputError, match="nothing|in common"):
            compare(theirs, mine)
    elif changed in ("model.m.new", "task.t0.new"):
        assert "No committed file has this network" in text
    elif changed == "train.new":
        assert "committed | yours (train.new 1 | 3), and so not compared: a[samples=4], b[samples=4]." in text
    elif changed == "estimator.a.new":
        assert text.count("3 numbers of the same estimators: 0 changed") == 1 and "New: <code>a[samples=4]" in text
    if changed != "":
        same = renewed(spelled(sweep(1, ["a", "b"], 6), "t0", "m", samples=4).assign(soft), changed, 3)
        plain = spelled(sweep(1, ["a", "b"], 6), "t0", "m", samples=4).assign(soft)
        assert told(plain, same, ADD) == ({path: (str(ADD[changed]), "3")}, []), "by their labels"


def test_files_with_an_added_parameter_are_found(tmp_path):
    """Committed files are chosen by the keys of their networks before they are read."""
    for path in ("toy_samples", "babi_qa1"):
        (tmp_path / f"{path}.h5.gz").write_bytes((REFERENCE / f"data/{path}.h5.gz").read_bytes())
    mine = opened(tmp_path / "babi_qa1.h5.gz").result.data
    texts = [json.dumps({**json.loads(text), "new": 1}) for text in mine["model_settings"].values.astype(str)]
    mine = mine.assign(model_settings=("run", np.array(texts, object)))
    spelt = mine.assign_coords(model=("run", ["memory_reader[tying=free_answers]"] * mine.sizes["run"], mine["model"].attrs))
    older = spelt.assign(model_settings=opened(tmp_path / "babi_qa1.h5.gz").result.data["model_settings"])
    names = lambda mine, absent: [one.name for one in committed(tmp_path, Result(mine), absent)]
    assert names(spelt, {"model.memory_reader.new": 1}) == ["babi_qa1"] and names(older, {}) == ["babi_qa1"]
    assert names(spelt, {}) == names(spelt, {"model.memory_reader.new": 2}) == []
    (tmp_path / "babi_qa1.h5.gz").write_bytes(packed(mine))
    assert names(older, {"model.memory_reader.new": 1}) == ["babi_qa1"]
    assert names(older, {}) == names(older, {"model.memory_reader.new": 2}) == []


def test_beside_a_result_only_files_with_its_networks_are_read(monkeypatch):
    every, read = committed(REFERENCE / "data"), []
    monkeypatch.setattr(studies, "load", lambda path, load=studies.load: read.append(path.stem) or load(path))
    whole = next(one for one in every if one.name == "toy_training").result
    wanted = list(whole.panels)[:2]
    mine = whole.of_runs(np.concatenate([group.runs for panel in wanted for group in whole.panels[panel]]))
    found = committed(REFERENCE / "data", mine)
    assert {one.name for one in found} == {one.name for one in every if {*wanted} & {*one.result.panels}} == {*read}
    assert (
        all({*one.result.panels} <= {*wanted} for one in found)
        and committed(REFERENCE / "data", Result(sweep(1, ["a"], 2))) == []
    )
    known = claims.claimed(REFERENCE / "claims.toml")
    assert all(claims.stated(one, every) for one in known) and not any(claims.stated(one, []) for one in known)
    for one in known:
        if claims.stated(one, found):
            assert claims.tested(one, found).verdict == claims.tested(one, every).verdict


def test_a_file_that_is_not_whole_is_refused(tmp_path):
    """Packed by Python, it has a seal that the program and the package read: a byte changed anywhere is noticed by both."""
    program, file = os.environ["HARDGRAD_BINARY"], tmp_path / "mine.h5"
    whole = gzip.decompress((REFERENCE / "data" / "babi_qa1.h5.gz").read_bytes())
    seal = whole.rindex(b"\nHARDGRAD-SEAL packed crc32:")
    places = [8, 48, 5000, *np.linspace(100, seal - 1, 12).astype(int), *range(seal, len(whole))]
    assert len(whole) - seal < 50 < len(places)
    for place in places:
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(InputError):
            load(file)
        checked = subprocess.run([program, "check", file], capture_output=True)
        assert checked.returncode == 3, place
    for content in (whole[:-1000], whole[:-1], whole[:seal], whole + b"\n"):
        file.write_bytes(content)
        with pytest.raises(InputError):
            own_result(file, None, program)
    file.write_bytes(whole)
    (tmp_path / "test.json").write_text("{}")
    with pytest.raises(InputError, match="hardgrad test"):
        own_result(file, tmp_path / "test.json", program)
    own = own_result(file, None, program).study
    assert own.own and own.name == "mine (yours)"  # also of the same sweep as a committed file: both are shown


def test_messages_name_the_file_that_was_given(tmp_path):
    """And not the copy without compression, which is gone."""
    program, whole = os.environ["HARDGRAD_BINARY"], gzip.decompress((REFERENCE / "data" / "babi_qa1.h5.gz").read_bytes())
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file.create_dataset("task", data=["t"])
    wrongs = {"cut": whole[:-1000], "text": b"text", "other": (tmp_path / "plain.h5").read_bytes(), "empty": b""}
    for name, content in wrongs.items():
        path = tmp_path / name / "mine.h5.gz"
        path.parent.mkdir()
        path.write_bytes(gzip.compress(content))
        for read in (opened, lambda path: own_result(path, None, program), lambda path: committed(path.parent),
                     lambda path: committed(path.parent, Result(sweep(1, ["a"], 2)))):  # fmt: skip
            with pytest.raises(InputError) as found:
                read(path)
            text = str(found.value)
            assert text.count("mine.h5") == text.count(str(path)) > 0 and "\n" not in text, text


@pytest.mark.parametrize("text", ["{", "[1]", "3"])
def test_settings_that_cannot_be_read_are_an_error_that_names_the_file(text, tmp_path):
    theirs, mine = spelled(sweep(1, ["a"], 6)), spelled(sweep(1, ["a"], 6))
    mine["model_settings"].values[:] = text
    mine.attrs["path"] = "mine.h5"
    for call in (lambda: own_text(theirs, mine), lambda: network_keys(Result(mine)), lambda: compare(theirs, mine)):
        with pytest.raises(InputError, match=re.escape(f"mine.h5: model_settings is not a JSON object: {text}")):
            call()
    file = tmp_path / "mine.h5.gz"
    file.write_bytes(packed(mine))
    with pytest.raises(InputError, match=re.escape(f"{file}: model_settings is not a JSON object: {text}")):
        committed(tmp_path, Result(theirs))


def test_a_packed_file_is_compared_as_one_of_the_program(tmp_path):
    """With the committed file that it is: every number is the same."""
    path = REFERENCE / "data" / "toy_samples.h5.gz"
    own = own_result(path, None, os.environ["HARDGRAD_BINARY"])
    assert own.study.result.data.attrs["verified"] == "by its seal"
    text = own_page(Site.of([opened(path), own.study], {"estimators": {}, "models": {}, "tasks": {}}), own)
    counts = re.findall(r"(\d+) numbers? of the same estimators: (\d+) changed", text)
    assert counts and all(int(n) > 3 and changed == "0" for n, changed in counts) and "not compared" not in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_committed_file_is_whole_and_says_where_it_comes_from(path, tmp_path):
    plain, one = tmp_path / path.stem, opened(path)
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    checked = subprocess.run([os.environ["HARDGRAD_BINARY"], "check", plain], capture_output=True)
    assert checked.returncode == 0 and one.result.data.attrs["verified"] == "by its seal"
    assert one.name == path.name.split(".")[0] and (REFERENCE.parents[1] / "experiments/configs" / f"{one.name}.toml").exists()
    assert all(one.result.data.attrs[name] for name in ("git_commit", "cpu", "blas_kernel", "compiler", "created_at"))
    assert one.result.data.attrs["status"] == "complete" and len(set(one.result.data["seed"].values.tolist())) >= 1


def test_pages_are_listed_for_search_engines(capsys):
    text = sitemap("https://a.org/x?a&b/", ["index.html", "networks/q.html"])
    assert [one.text for one in ElementTree.fromstring(text).iter() if one.text and one.text.strip()] == [
        "https://a.org/x?a&b/index.html",
        "https://a.org/x?a&b/networks/q.html",
    ]
    assert '<meta name="description" content="A &lt;b&gt;: gradient' in document("A <b>", [])
    for wrong in ("a.org", "https://", "https://a b", "javascript:x"):
        with pytest.raises(SystemExit):
            main(["site", "--url", wrong])
        assert "give an address" in capsys.readouterr().err


def test_other_files_are_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(OutputError, match="holds other files"):
        build(tmp_path, "hardgrad")
    assert list(tmp_path.iterdir()) == [tmp_path / "thesis.tex"]


def test_every_published_claim_has_a_verdict():
    studies, every = committed(REFERENCE / "data"), claims.claimed(REFERENCE / "claims.toml")
    assert len({one["name"] for one in every}) == len(every) >= 10
    assert all(claims.tested(one, studies).verdict in ("reproduced", "not reproduced", "undecided") for one in every)
