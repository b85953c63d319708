"""Texts in figures are not cut and do not overlap, with any number and length of estimators and networks."""

import io
import json

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from analysis import FIGURES
from analysis.drawing import SIZES, sized
from analysis.intervals import OVER_ALL, intervals
from analysis.result import Result
from analysis.saving import saved
from analysis.statistics import interquartile_mean
from analysis.style import MARKERS
from made_up import sweep

KNOWN = (
    "rloo",
    "reinforce",
    "exact",
    "nvil",
    "moving_baseline",
    "entropy_regularised",
    "variational_bound",
    "straight_through",
    "gumbel_softmax",
    "local_expectation",
)
MODEL = "translator[embedding=64,hidden=128,score=scaled_dot,heads=4,feed=sampled{}]"


def drawn(name, panels, estimators, size):
    labels = [
        f"{KNOWN[i % len(KNOWN)]}[samples={i + 2},target=elbo,reward_to_go=true]" if i % 3 else f"{KNOWN[i % len(KNOWN)]}{i}"
        for i in range(estimators)
    ]
    data = sweep(panels, labels, 2)
    task = np.array(
        [f"translation[source=corpus_of_many_words.de,target=corpus_of_many_words.en,part={t}]" for t in data["task"].values],
        object,
    )
    model = np.array([MODEL.format(f",depth={t[1:]}") for t in data["task"].values], object)
    data = data.assign_coords(task=("run", task, data["task"].attrs), model=("run", model, data["model"].attrs))
    with sized(SIZES[size]):
        return FIGURES[name](data)


def boxes(figure):
    """Boxes outside the panels, by name: titles, labels of axes, ticks and the legend."""
    FigureCanvasAgg(figure).draw()
    found = {"title of the figure": figure.texts[0], "legend": figure.legends[0]}
    for i, ax in enumerate(figure.axes):
        found |= {f"title {i}": ax._left_title, f"x of {i}": ax.xaxis.label, f"y of {i}": ax.yaxis.label}
        for axis in (ax.xaxis, ax.yaxis):  # labels beyond the ends of the axis are not drawn
            low, high = sorted(axis.get_view_interval())
            found |= {
                f"tick {axis.axis_name} {k} of {i}": tick.label1
                for k, tick in enumerate(axis.get_major_ticks())
                if low <= tick.get_loc() <= high
            }
    return {name: artist.get_window_extent() for name, artist in found.items() if name == "legend" or artist.get_text()}


def laid_on_another(box):
    """Pairs that overlap by more than rounding, except ticks, which may touch at the ends of their axis."""
    names = [name for name in box if not name.startswith("tick")]
    return [
        (a, b)
        for i, a in enumerate(names)
        for b in names[i + 1 :]
        if box[a].shrunk(0.98, 0.98).overlaps(box[b].shrunk(0.98, 0.98))
    ]


@pytest.mark.parametrize("estimators", [1, 2, 9, 30])
@pytest.mark.parametrize("name, size", [("bias_variance", "screen"), ("heldout_loss", "paper")])
def test_nothing_is_cut_or_overlaps(name, estimators, size):
    visited = 0
    for panels in range(1, 7):
        figure = drawn(name, panels, estimators, size)
        box = boxes(figure)
        width, height = figure.canvas.get_width_height()
        for what, b in box.items():
            assert b.x0 >= -1 and b.y0 >= -1 and b.x1 <= width + 1 and b.y1 <= height + 1, (panels, what, b, (width, height))
        assert laid_on_another(box) == [], panels
        legend = box["legend"]
        for ax in figure.axes:
            assert not legend.overlaps(ax.get_tightbbox()), panels
        assert len(figure.legends[0].get_texts()) == estimators
        assert "…" not in " ".join(t.get_text() for t in figure.findobj(lambda artist: hasattr(artist, "get_text")))
        visited += 1
    assert visited == 6


def test_a_figure_that_cuts_is_noticed():
    figure = drawn("bias_variance", 1, 2, "screen")
    figure.axes[0]._left_title.set_text("x" * 200)
    width, _ = figure.canvas.get_width_height()
    assert boxes(figure)["title 0"].x1 > width
    figure.texts[0].set_y(0.07)  # on the legend
    assert laid_on_another(boxes(figure))


def test_points_that_coincide_stand_side_by_side():
    """Four estimators with equal bias and variance, and one elsewhere."""
    data = sweep(1, list(KNOWN[:5]), 2)
    data["variance"][:] = np.where(data["estimator"].values == KNOWN[4], 5.0, 2.0)[:, None]
    for name in ("bias_variance", "variance_against_cost"):
        figure = FIGURES[name](data)
        FigureCanvasAgg(figure).draw()
        markers = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1 and line.get_marker() in MARKERS]
        places = [tuple(line.get_transform().transform((line.get_xdata()[0], line.get_ydata()[0]))) for line in markers]
        assert len(places) == 5
        apart = [np.hypot(a[0] - b[0], a[1] - b[1]) * 72 / figure.dpi for i, a in enumerate(places) for b in places[i + 1 :]]
        assert min(apart) > 5  # points; markers are 7.5 across
        together = sorted(x for x, y in places if y == min(q for _, q in places)) if name == "bias_variance" else []
        middle = figure.axes[0].transData.transform((0, 2))[0]
        assert not together or np.mean(together) == pytest.approx(middle)  # their common position


def test_what_evaluations_are_of():
    """If the last evaluation uses another split than the earlier ones, curves over both name neither split."""

    def result(*settings):
        texts = [json.dumps({f"train.{key}": value for key, value in one.items()}) for one in settings]
        return Result(xr.Dataset({"run_settings": ("run", texts)}))

    chosen = result({"evaluate_split": "heldout", "final_split": "test"}, {"evaluate_split": "heldout", "final_split": "test"})
    assert chosen.evaluated_on == "test" and chosen.evaluated_along == "evaluated"
    plain = result({"evaluate_split": "heldout", "final_split": "same"}, {})
    assert plain.evaluated_on == plain.evaluated_along == "held-out"
    assert result({"evaluate_split": "test"}).evaluated_on == "test"
    assert result({"final_split": "test"}, {}).evaluated_on == "evaluated"


@pytest.mark.parametrize("size", SIZES)
def test_final_scores_name_every_estimator_once(size):
    """Means, intervals and the interquartile mean are those of the numbers; labels stay within the figure."""
    data = sweep(3, ["a", "b", "c"], 5)
    found = intervals(Result(data))
    assert list(found)[-1] == OVER_ALL and [one.label for one in found[OVER_ALL]] == ["a", "b", "c"]
    losses = data["heldout_expected_loss"].values[:5, 0]
    assert found["t0", "m"][0].mean.mean == pytest.approx(losses.mean())
    runs = {
        one: [
            (data["heldout_expected_loss"].values[(data["task"].values == t) & (data["estimator"].values == one), 0])
            for t in ("t0", "t1", "t2")
        ]
        for one in "abc"
    }
    ends = [(min(runs[e][k].min() for e in "abc"), max(runs[e][k].max() for e in "abc")) for k in range(3)]
    scaled = np.sort(np.concatenate([(high - values) / (high - low) for values, (low, high) in zip(runs["b"], ends)]))
    assert found[OVER_ALL][1].mean.mean == pytest.approx(interquartile_mean(scaled))
    with sized(SIZES[size]):
        figure = FIGURES["final_scores"](data)
    FigureCanvasAgg(figure).draw()
    width, height = figure.canvas.get_width_height()
    for ax in figure.axes:
        assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
        for text in (*ax.get_yticklabels(), ax.xaxis.label, ax._left_title):
            box = text.get_window_extent()
            assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, text


def test_a_bias_that_is_known_to_be_none_is_drawn_as_none():
    data = sweep(1, ["a", "b"], 3)
    data["squared_bias"][:] = 0.25
    data["known_unbiased"] = ("run", "measurement_step"), np.array([["yes"]] * 3 + [["no"]] * 3, object)
    ax = FIGURES["bias_variance"](data).axes[0]
    assert sorted({float(container[0].get_xdata()[0]) for container in ax.containers}) == [0.0, 0.25]


def test_a_held_out_loss_on_a_logarithmic_axis_is_within_it():
    data = sweep(1, ["a", "b"], 3)
    values = np.geomspace(0.05, 14, 6)[:, None]
    data["heldout_expected_loss"] = ("run", "evaluation_step"), values
    low, high = FIGURES["heldout_loss"](data).axes[0].get_ylim()
    assert 0 < low <= values.min() and high >= values.max() and high / low < 1000


def test_long_labels_of_final_scores_do_not_overlap():
    long = "an_estimator[samples=8,reward_to_go=true,target=elbo,lambda_e=0.1,cap=100000]"
    figure = FIGURES["final_scores"](sweep(1, [f"{long}{i}" for i in range(9)] + ["b"], 3))
    FigureCanvasAgg(figure).draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert len(boxes) == 10 and all(above.y0 >= below.y1 - 1 for above, below in zip(boxes, boxes[1:]))


@pytest.mark.parametrize("estimators", [1, 40])
def test_a_long_run_is_a_line_with_few_markers_and_a_small_file(estimators):
    """5,000 logged steps of noise: markers stand evenly along the axis, at other places for every estimator."""
    data, random, steps = sweep(1, [f"e{i:02}" for i in range(estimators)], 2), np.random.default_rng(0), np.arange(1, 5001)
    noisy = np.exp(-steps / 1500) + random.normal(size=(data.sizes["run"], len(steps)))
    data = data.assign(train_loss=(("run", "step"), noisy)).assign_coords(step=steps)
    figure = FIGURES["loss_curves"](data, "half")
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 12]
    assert len(lines) == estimators
    starts = set()
    for line in lines:
        x, marks = line.get_xdata(), line.get_markevery()
        gaps = np.diff(x[marks])
        assert len(x) <= 200 and x[0] == 1 and x[-1] == 5000 and 4 <= len(marks) <= 8 and gaps.max() < 1.2 * gaps.min()
        starts.add(int(x[marks[0]]))
    assert len(starts) >= min(estimators, 20)
    content = io.BytesIO()
    figure.savefig(content, format="svg")
    assert len(content.getvalue()) < 60_000 + 25_000 * estimators


def test_the_layout_is_that_of_tight_layout_and_measures_a_panel_once(monkeypatch):
    measured, before = [], Axes.get_tightbbox
    monkeypatch.setattr(Axes, "get_tightbbox", lambda ax, *more, **named: measured.append(ax) or before(ax, *more, **named))
    ours = drawn("bias_variance", 3, 4, "screen")
    assert len(measured) == len(ours.axes) == 3 and "get_tightbbox" not in vars(ours.axes[0])
    monkeypatch.setattr("analysis.drawing._lay_out", lambda figure, within: figure.tight_layout(rect=within))
    theirs = drawn("bias_variance", 3, 4, "screen")
    assert [ax.get_position().bounds for ax in ours.axes] == [ax.get_position().bounds for ax in theirs.axes]


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_equal_figures_give_equal_bytes(kind):
    assert saved(drawn("heldout_loss", 1, 2, "screen"), kind) == saved(drawn("heldout_loss", 1, 2, "screen"), kind)
