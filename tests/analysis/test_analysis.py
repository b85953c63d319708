"""Tables and figures show the right numbers."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from analysis import FIGURES, InputError, bias_variance, format_table, load, loss_curves, metric_curves, select, table
from analysis.against import families, variance_against_samples
from analysis.curves import entropy_over_training
from analysis.drawing import MOST_PANELS, broken, width_of
from analysis.errors import NotApplicable
from analysis.frames import per_run, tidy
from analysis.groups import titles
from analysis.heatmap import heat_map
from analysis.moments import variance_against_cost
from analysis.result import Result
from analysis.statistics import mean_interval
from analysis.style import COLOURS, MARKERS, line_styles
from analysis.table import with_interval
from made_up import made_up, stated, sweep


@pytest.fixture(scope="module")
def data(sample):
    return load(sample / "result.h5")


def test_mean_interval_is_students():
    x = np.array([1.0, 2.0, 4.0, np.nan])
    mean = mean_interval(x)
    low, high = stats.t.interval(0.95, 2, loc=7 / 3, scale=stats.sem(x[:3]))
    assert mean.count == 3 and np.allclose(mean[:3], [7 / 3, low, high])
    assert np.isnan(mean_interval([5.0])[1]) and mean_interval([5.0]).mean == 5
    assert mean_interval([]).count == 0 and np.isnan(mean_interval([np.nan]).mean)
    assert np.isclose(mean_interval([1.0, 100.0, 0.0, -1.0], log=True).mean, 10)


def test_interval_covers_the_truth_as_often_as_it_says():
    noise = np.random.default_rng(1).normal(size=(4000, 4))
    hits = sum(m.low < 0 < m.high for m in map(mean_interval, noise))
    assert abs(hits / 4000 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 4000)
    narrow = sum(m.low < 0 < m.high for m in (mean_interval(row, level=0.8) for row in noise))
    assert narrow / 4000 < 0.9  # a wrong level would be detected


def test_table_of_known_numbers():
    frame = table(made_up())
    assert frame["estimator"].tolist() == ["soft", "rloo"]  # by final loss: 1 against 3
    rloo = frame.set_index("estimator").loc["rloo"]
    assert rloo["variance"] == 2 and rloo["squared_bias"] == -2 and rloo["final_loss"] == 3
    assert frame["rank"].tolist() == [1, 2] and frame["letters"].tolist() == ["", ""]  # two seeds give no test
    half = stats.t.ppf(0.975, 1) * 1
    assert np.isclose(rloo["variance_high"], 2 + half)
    assert table(made_up(), "last")["variance"].tolist() == [9, 9]
    assert table(made_up(), 5)["variance"].tolist() == [9, 9]
    with pytest.raises(InputError, match="nothing was measured at step 3"):
        table(made_up(), 3)


def test_a_bound_drawn_from_the_posterior_ranks_before_losses_drawn_from_the_prior():
    drawn = {
        "heldout_" + name: (("run", "evaluation_step"), np.full((4, 2), value))
        for name, value in (("greedy_loss", 50.0), ("sampled_loss", 60.0), ("sampled_elbo", 40.0), ("sampled_bound", 35.0))
    }
    assert set(table(made_up(**drawn).drop_vars("heldout_expected_loss"))["loss_name"]) == {"sampled_elbo"}
    assert set(table(made_up(**drawn))["loss_name"]) == {"expected_loss"}
    del drawn[
        "heldout_sampled_elbo"
    ]  # without a posterior, and with too many outcomes for an expected loss, the loss of a sample ranks
    assert set(table(made_up(**drawn).drop_vars("heldout_expected_loss"))["loss_name"]) == {"sampled_loss"}


def test_failed_runs_and_nan_are_counted_not_averaged():
    ds = made_up()
    ds["status"][1] = 1
    ds["variance"][1] = np.nan
    rloo = table(ds).set_index("estimator").loc["rloo"]
    assert rloo["variance"] == 1 and rloo["failed"] == 1 and rloo["ok"] == 1 and np.isnan(rloo["variance_low"])
    assert "1 ok 1 failed" in format_table(table(ds))


def test_further_axes_set_groups_apart():
    ds = made_up().assign_coords(temperature=("run", ["0.5", "1", "0.5", "1"], {"grid_axis": "temperature"}))
    frame = table(ds)
    assert len(frame) == 4 and set(frame["temperature"]) == {"0.5", "1"}


def test_table_of_a_file(data):
    frame = table(data)
    assert len(frame) == 24 and frame.attrs["measured_at"] == "step 0"
    soft = frame[(frame.task == "qa") & (frame.estimator == "soft")].iloc[0]
    assert soft["relative_bias"] == pytest.approx(np.sqrt(0.2), rel=1e-6)
    text = format_table(frame)
    assert "3 skipped" in text and "2 ok 1 failed" in text and "step 0" in text


def test_with_interval_reads_well():
    assert with_interval(1.234, 1.2, 1.268) == "1.234 ± 0.034"
    assert with_interval(0.66, 0.65919, 0.66081) == "0.66000 ± 0.00081"
    assert with_interval(1.83e-6, 1.83e-6 - 1.6e-5, 1.83e-6 + 1.6e-5) == "(0.2 ± 1.6)e-05"
    assert with_interval(123456, 123000, 123912) == "(1.2346 ± 0.0046)e+05"
    assert with_interval(1.3e-4, 1.3e-4 - 9.96e-4, 1.3e-4 + 9.96e-4) == "0.0001 ± 0.0010"
    assert with_interval(-1e-9, -1e-9 - 9e-4, -1e-9 + 9e-4) == "(0.0 ± 9.0)e-04"
    assert with_interval(1, 0.5, 2.5) == "1 [0.5, 2.5]"
    assert with_interval(0.7574431, 0.7574431, 0.7574431) == "0.757443" and with_interval(0.7574431, np.nan, np.nan) == "0.757"
    assert with_interval(0, 0, 0) == "0"
    assert with_interval(np.nan, 0, 1) == "–"
    assert with_interval(2, np.nan, np.nan) == "2"
    assert with_interval(0.9, 0.9 - 3e-16, 0.9 + 3e-16) == "0.9"


#: Figures of a parameter that the sample's sweep does not vary.
OTHERS = ("variance_against_samples", "variance_against_temperature", "bias_against_temperature")


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in (*OTHERS, "heat_map", "final_scores")])
def test_every_figure_has_a_panel_per_task_and_a_legend_outside_them(data, name):
    figure = FIGURES[name](data)
    assert len(figure.axes) == 4
    assert {t.get_text() for t in figure.legends[0].get_texts()} == set(data["estimator"].values)
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    width, height = figure.canvas.get_width_height()
    assert 0 <= legend.x0 and legend.x1 <= width and 0 <= legend.y0
    for ax in figure.axes:
        assert not legend.overlaps(ax.get_window_extent())
        title = ax.title if ax.title.get_text() else ax._left_title
        assert title.get_window_extent().x1 <= width


def test_bias_variance_shows_negative_bias_where_it_is():
    ax = bias_variance(made_up()).axes[0]
    points = sorted(float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() in MARKERS)
    assert points == [-2, 4] and ax.get_xscale() == "symlog"
    assert ax.get_xlim()[0] < -2


def test_variance_against_cost_is_where_the_numbers_are():
    ax = variance_against_cost(made_up(rows=(("run", "measurement_step"), [[4.0, 4], [4, 4], [16, 4], [16, 4]]))).axes[0]
    points = {(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in ax.lines if line.get_marker() in MARKERS}
    assert points == {(4, 2), (16, 0)} and ax.get_xscale() == "log"
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert dotted and all(
        np.allclose(line.get_xdata() * line.get_ydata(), line.get_xdata()[0] * line.get_ydata()[0]) for line in dotted
    )


def test_curves_by_cost_stand_at_what_was_spent():
    """100 rows and 10 s for the first two runs, unevenly spread, twice that for the others; the second run stopped half-way."""
    loss = np.array([[4.0, 3, 2], [4, 3, np.nan], [2, 2, 2], [2, 2, 2]])
    data = made_up(
        train_loss=(("run", "step"), loss),
        train_rows=(("run", "step"), np.array([[10.0, 50, 100], [10, 50, np.nan], [50, 100, 200], [50, 100, 200]])),
        train_cpu_seconds=(("run", "step"), np.array([[2.0, 5, 10], [2, 5, np.nan], [4, 10, 20], [4, 10, 20]])),
    )
    data = data.assign_coords(step=[2, 4, 8], evaluation_step=[0, 4])
    lines = {tuple(line.get_xdata()): line.get_ydata().tolist() for line in loss_curves(data, against="rows").axes[0].lines}
    assert lines == {(10, 50, 100): [4, 3, 2], (50, 100, 200): [2, 2, 2]}
    lines = [line.get_xdata().tolist() for line in loss_curves(data, against="cpu_seconds").axes[0].lines]
    assert lines == [[2, 5, 10], [4, 10, 20]]
    held_out = loss_curves(data, "heldout_expected_loss", "cpu_seconds").axes[0].lines[0]
    assert held_out.get_xdata().tolist() == [5]  # the cost before the first step is 0, which a logarithmic axis cannot show
    with pytest.raises(InputError, match="has no variable train_attention_values"):
        loss_curves(data, against="attention_values")


def test_losses_of_different_targets_are_not_silently_in_one_panel():
    loss = (("run", "step"), np.array([[4.0, 3], [4, 3], [2, 2], [2, 2]]))
    aims = np.array([["expected_loss"] * 2] * 2 + [["elbo"] * 2] * 2, object)
    data = made_up(train_loss=loss, own_target=(("run", "measurement_step"), aims)).assign_coords(step=[2, 4])
    words = [text.get_text().replace("\n", " ") for text in loss_curves(data).axes[0].texts]
    assert words == ["losses of different targets: elbo, expected loss"]
    data["own_target"][:] = "elbo"
    assert not loss_curves(data).axes[0].texts and not loss_curves(data.drop_vars("own_target")).axes[0].texts


def test_entropy_over_training_is_drawn_from_zero():
    entropy = np.array([[0.6, 0.2], [0.4, 0.1], [0.3, 0.3], [0.3, 0.3]])
    ax = entropy_over_training(made_up(attention_entropy=(("run", "measurement_step"), entropy))).axes[0]
    assert [np.round(line.get_ydata(), 12).tolist() for line in ax.lines] == [[0.5, 0.15], [0.3, 0.3]]
    assert ax.get_ylim()[0] == 0 and ax.get_ylabel() == "entropy (nat)"
    with pytest.raises(InputError, match="earlier versions did not record it"):
        entropy_over_training(made_up())


def test_rounding_is_no_bias():
    """At a gradient norm of 1, single precision has an error of about 1e-7, double precision 1e-16."""
    bias = (("run", "measurement_step"), [[3e-14, 9], [-2e-14, 9], [1e-9, 9], [1e-34, 9]])
    ends = (("run", "measurement_step", "bound"), np.full((4, 2, 2), 1e-14))
    data = made_up(squared_bias=bias, squared_bias_interval=ends, estimand_norm=(("run", "measurement_step"), np.ones((4, 2))))
    data["variance"][:] = 0
    assert per_run(Result(data), "squared_bias").tolist() == [0, 0, 1e-9, 0]
    frame = table(data).set_index("estimator")
    assert frame.loc["rloo", ["squared_bias", "squared_bias_low", "squared_bias_high"]].tolist() == [0, 0, 0]
    assert "1e-34" not in format_table(table(data)) and tidy(data)["squared_bias"].iloc[0] == 3e-14  # the data are unchanged
    one = table(data.isel(run=[0]))
    assert one.loc[0, ["squared_bias", "squared_bias_low", "squared_bias_high"]].tolist() == [0, 0, 0]
    precise = Result(stated(data, "double"))
    assert per_run(precise, "squared_bias").tolist() == [3e-14, -2e-14, 1e-9, 0]
    del data.attrs["rounding"]
    with pytest.raises(
        InputError, match="^result: has no attribute rounding, so what rounding explains is unknown: an earlier version"
    ):
        table(data)


def test_too_many_networks_are_refused_or_turned_over():
    data = sweep(30, ["rloo", "nvil"], 1)
    with pytest.raises(InputError, match="30 networks are too many for one figure"):
        bias_variance(data)
    second, pages = Result(data).page(2, MOST_PANELS)
    assert pages == 2 and sorted(task for task, _ in second.panels) == [f"t{i}" for i in range(24, 30)]
    assert len(bias_variance(second).axes) == 6
    with pytest.raises(InputError, match="has no page 3: 30 networks fill 2"):
        Result(data).page(3, MOST_PANELS)


def test_heat_map_says_why_there_is_nothing(data):
    figure = heat_map(data)
    cells = [text.get_text() for text in figure.axes[0].texts]
    assert len(cells) == 24 and cells.count("1") == 4  # the minimum of every column
    assert "soft: bits has no relaxed choices" in figure.texts[-1].get_text()
    assert "more than the cap" in figure.texts[-1].get_text()
    shown = heat_map(made_up(), "first", quantity="variance")
    assert [text.get_text() for text in shown.axes[0].texts] == ["1", "0"]


def test_titles_are_as_short_as_they_may_be():
    assert titles([("qa[stories=9]", "memory_reader[hops=2]"), ("bits", "bits[bits=3]")]) == ["qa · memory_reader", "bits"]
    assert titles([("bits", "bits[bits=3,t=1]"), ("bits", "bits[bits=4,t=1]")]) == ["bits[bits=3]", "bits[bits=4]"]


def test_text_is_broken_where_it_fits():
    assert broken("one two three", 99, 10) == "one two three"
    text = "translator[embedding=6,hidden=5,score=scaled_dot,feed=sampled] and more of it"
    for inches in (0.6, 1, 2, 3):
        lines = broken(text, inches, 10).split("\n")
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")  # no text is lost
        assert all(width_of(line, 10) <= inches for line in lines) and len(lines) >= width_of(text, 10) / inches
    assert broken("", 1, 10) == ""


def test_looks_are_distinct_and_steady():
    for many in (6, 12):
        for start in range(40):
            styles = line_styles([f"estimator_{k}" for k in range(start, start + many)])
            assert len({style.colour for style in styles.values()}) == many, "no two of up to twelve share a colour"
    labels = [f"rloo[samples={k}]" for k in range(2, 62)] + [f"other_{k}" for k in range(60)]
    assert len({(style.colour, style.marker) for style in line_styles(labels).values()}) == len(labels)
    assert len(set(COLOURS)) == 12 and line_styles(["soft", "exact"]) == line_styles(["exact", "soft"])
    assert line_styles(["exact"])["exact"] == line_styles(["exact", "rloo[samples=4]"])["exact"], (
        "a name prefers its own colour"
    )


def test_samples_are_named_of_all_or_of_none():
    settings = np.array(['{"samples": 4}', '{"samples": 4}', '{"samples": 2, "credit": true}', "{}"], object)
    data = made_up(estimator_settings=("run", settings))
    data = data.assign_coords(
        estimator=("run", ["rloo", "rloo[samples=8]", "vimco[credit=true]", "soft"], data["estimator"].attrs)
    )
    assert Result(data).estimators == ["rloo[samples=4]", "rloo[samples=8]", "vimco[credit=true,samples=2]", "soft"]
    assert Result(data.isel(run=[0, 2, 3])).estimators == ["rloo", "vimco[credit=true]", "soft"]
    assert select(data, estimator="rloo[samples=4]").sizes["run"] == 1 and "rloo[samples=4]" in format_table(table(data))


def test_bands_are_the_intervals_of_the_tables():
    random = np.random.default_rng(1)
    data = made_up(train_loss=(("run", "step"), random.normal(size=(4, 2)))).assign_coords(step=[1, 2])
    band = loss_curves(data).axes[0].collections[0].get_paths()[0].vertices
    mean = mean_interval(data["train_loss"].values[:2, 0])
    at_one = band[band[:, 0] == 1, 1]
    assert at_one.min() == pytest.approx(mean.low) and at_one.max() == pytest.approx(mean.high)


def test_each_task_shows_its_own_metric():
    data = sweep(2, ["a", "b"], 2)
    own = np.array([str(task) == "t0" for task in data["task"].values])[:, None]
    data["metric_accuracy"] = data["heldout_expected_loss"].where(xr.DataArray(own, dims=("run", "one")).isel(one=0))
    data["metric_exact_match"] = data["heldout_expected_loss"].where(xr.DataArray(~own, dims=("run", "one")).isel(one=0))
    data["metric_nothing"] = data["heldout_expected_loss"] * np.nan
    words = [[text.get_text() for text in ax.texts] for ax in metric_curves(data).axes]
    assert words == [["accuracy"], ["exact match"]]
    assert len(metric_curves(data, "metric_accuracy").axes) == 1, "a network without the metric has no empty panel"
    with pytest.raises(InputError, match="metric_nothing has no finite value"):
        metric_curves(data, "metric_nothing")


def test_one_seed_and_odd_files_draw(sample):
    one = load(sample / "one_seed.h5")
    for name, draw in FIGURES.items():
        if name not in OTHERS:
            draw(one, "last").canvas.draw()
    frame = table(one).set_index(["task", "estimator"])
    row = frame.loc[("qa", "nvil")]  # one seed: the measurement's own interval
    assert row["variance_low"] == pytest.approx(0.85 * row["variance"]) and np.isnan(row["final_loss_low"])
    failed = load(sample / "all_failed.h5")
    with pytest.raises(InputError, match="has no variable train_loss"):
        loss_curves(failed)
    with pytest.raises(InputError, match="has no metric"):
        metric_curves(failed)
    ds = made_up()
    ds["variance"][:] = np.nan
    with pytest.raises(InputError, match="has no finite value"):
        bias_variance(ds)


def test_families_differ_in_one_parameter_only():
    settings = ['{"samples": 2, "credit": false}', '{"samples": 8, "credit": false}', '{"samples": 4}', "{}"]
    data = made_up(estimator_settings=("run", np.array(settings, object)))
    data = data.assign_coords(
        estimator=("run", ["rloo[samples=2]", "rloo[samples=8]", "vimco", "soft"], data["estimator"].attrs)
    )
    found = families(Result(data), "samples")
    assert list(found) == [("t", "m")]
    assert [(f.label, f.values) for f in found["t", "m"]] == [("rloo", [2.0, 8.0])]  # vimco has one value, soft has none
    figure = variance_against_samples(data)
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == [2, 8] and line.get_ydata().tolist() == [1, 3]
    with pytest.raises(NotApplicable):
        families(Result(data), "temperature")
