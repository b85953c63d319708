"""Views of attention: the numbers behind them; every model, built in or new, has one."""

import itertools
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
import xarray as xr

from analysis import InputError
from analysis.load import load_gradient
from analysis.views import Attention, VIEWS, load_attention, view, view_of_several, views_of
from analysis.views.attention import Numbers, of_subsets
from analysis.views.captions import grid_of, on_light_ground
from analysis.views.documents import placed
from analysis.views.glimpses import corner, window
from analysis.views.pondering import laws, mean_steps, stops
from analysis.views.programs import OPERATIONS, asked, words_of_columns
from analysis.views.sentences import read_at_once
from analysis.views.tapes import paths


def attention(model="translator", soft=None, choices=None, rows=None, **fields) -> Attention:
    """Two examples, two steps, three options; the second example has only two options and one step."""
    if soft is None:
        soft = np.array([[[0.5, 0.25, 0.25], [0, 1, 0]], [[0.5, 0.5, np.nan], [np.nan] * 3]])
    hard = np.where(np.isfinite(soft), (soft == np.nanmax(np.nan_to_num(soft), axis=2, keepdims=True)).astype(float), np.nan)
    batch = xr.Dataset(
        {name: (["example", *(f"{name}_{i}" for i in range(np.ndim(value) - 1))], value) for name, value in fields.items()}
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.nansum(np.where(soft > 0, -soft * np.log(soft), 0), axis=2)
    return Attention(
        model,
        {"grid": 2, "patch": 4},
        "rloo",
        soft,
        hard,
        choices if choices is not None else np.array([[0, 1], [1, -1]]),
        np.arange(2) if rows is None else rows,
        entropy,
        batch,
    )


SENTENCES = {
    "source": [[4, 5, 6], [4, 5, 0]],
    "source_text": np.array([["the", "grüne", "n1"], ["a", "b", ""]], object),
    "source_length": [3, 2],
    "target": [[7, 3], [3, 0]],
    "target_text": np.array([["N1", "<eos>"], ["<eos>", ""]], object),
    "target_length": [2, 1],
    "alignment": [[2, -1], [-1, -1]],
}


def test_attention_in_a_file_is_averaged_over_an_examples_rows(sample):
    attention = load_attention(sample / "gradient.h5")
    assert attention.model == "memory_reader" and attention.soft.shape == (2, 2, 3) and list(attention.rows(1)) == [2, 3]
    assert np.allclose(attention.soft, 1 / 3) and np.allclose(attention.entropy, np.log(3))
    assert attention.hard.tolist() == [
        [[0.5, 0.5, 0], [0, 1, 0]],
        [[0.5, 0, 0.5], [1, 0, 0]],
    ]  # the last row had no second choice
    assert attention.field("source_text")[0].tolist() == ["the", "grüne", "n1"] and attention.field("nothing") is None


def test_heads_are_averaged_as_rows_are(sample, monkeypatch):
    data, batch = load_gradient(sample / "gradient.h5")
    one, two = load_attention(sample / "gradient.h5"), data.copy()
    for name in ("choices", "logits"):  # two columns of each row; the second always chooses option 0
        values = np.repeat(data[name].values[:, :, None], 2, axis=2)
        if name == "choices":
            values[:, :, 1] = np.minimum(values[:, :, 1], 0)
        two[name] = (("step", "row", "column", *data[name].dims[2:]), values)
    monkeypatch.setattr("analysis.views.attention.load_gradient", lambda path, unverified: (two, batch))
    attention = load_attention("heads.h5")
    assert np.array_equal(attention.soft, one.soft) and np.array_equal(attention.entropy, one.entropy)
    assert list(attention.rows(1)) == [4, 5, 6, 7]
    assert attention.of_columns().shape == (2, 2, 2, 3) and np.array_equal(attention.of_columns()[:, :, 0], one.soft)
    assert one.of_columns().shape == (2, 2, 1, 3)
    assert np.array_equal(attention.hard[:, :, 1:], one.hard[:, :, 1:] / 2) and np.allclose(attention.hard.sum(axis=2), 1)


def test_subsets_have_the_probability_of_being_picked_and_their_own_entropy(sample, monkeypatch):
    """Against the sum over all subsets; one choice of two options of four, one of one of three, one that picks all it has."""
    logits = np.array([[0.3, -1.0, 2.0, 0.1], [1.0, 0.0, -2.0, -np.inf], [0.5, 0.2, -np.inf, -np.inf]])
    sizes = np.array([2, 1, 2])
    picked, entropy = of_subsets(logits, sizes, 2, "conditional_poisson")
    for row, size, mine, own in zip(logits, sizes, picked, entropy[:, 0]):
        subsets = list(itertools.combinations(np.flatnonzero(np.isfinite(row)), size))
        p = np.array([np.exp(row[list(each)].sum()) for each in subsets])
        p /= p.sum()
        truth = [sum(q for q, each in zip(p, subsets) if i in each) if np.isfinite(row[i]) else np.nan for i in range(4)]
        np.testing.assert_allclose(mine, truth, rtol=1e-12)
        assert abs(own + (p * np.log(p)).sum()) < 1e-12
    assert np.isnan(of_subsets(logits, sizes, 2, "plackett_luce")[0]).all()
    data, batch = load_gradient(sample / "gradient.h5")
    weights = np.zeros_like(data["logits"].values)  # every row picks its first two options
    weights[..., :2] = 1
    subsets = data.drop_vars("choices").assign(weights=(data["logits"].dims, weights))
    monkeypatch.setattr("analysis.views.attention.load_gradient", lambda path, unverified: (subsets, batch))
    attention = load_attention("subsets.h5")
    assert np.allclose(attention.soft, 2 / 3) and np.allclose(attention.entropy, np.log(3)) and not attention.relaxed


def test_files_without_attention_are_refused(sample):
    with pytest.raises(InputError, match="is a result file, not a gradient; `analysis report` shows it"):
        load_attention(sample / "result.h5")
    with pytest.raises(InputError, match="is a checkpoint file, not a gradient"):
        load_attention(sample / "checkpoint.h5")
    with pytest.raises(InputError, match="the batch has no field story, which the view of memory_reader needs"):
        views_of("memory_reader")[0](load_attention(sample / "gradient.h5"))


def test_alignments_name_the_words_and_outline_the_truth():
    figure = views_of("translator")[0](attention(**SENTENCES))
    soft, other, hard, _ = figure.axes
    assert [t.get_text() for t in soft.get_xticklabels()] == ["the", "grüne", "n1"]
    assert [t.get_text() for t in soft.get_yticklabels()] == ["N1", "<eos>"]
    assert soft.images[0].get_array().tolist() == [[0.5, 0.25, 0.25], [0, 1, 0]]  # above
    assert hard.images[0].get_array().tolist() == [[1, 0, 0], [0, 1, 0]]  # below
    assert [box.get_xy() for box in soft.patches] == [(1.5, -0.5)] and len(other.patches) == 0
    assert [t.get_text() for t in other.get_xticklabels()] == ["a", "b"] and other.images[0].get_array().shape == (1, 2)
    assert not any(t.get_text() for t in hard.get_xticklabels())  # the words stand above the first row
    figure.canvas.draw()
    null = views_of("translator")[0](replace(attention(**SENTENCES | {"source_length": [2, 1]}), settings={"null": True})).axes[
        0
    ]
    assert [t.get_text() for t in null.get_xticklabels()] == ["the", "grüne", "(none)"]
    numbers = {name: value for name, value in SENTENCES.items() if not name.endswith("_text")}  # a file without words
    soft = views_of("translator")[0](attention(**numbers)).axes[0]
    assert [t.get_text() for t in soft.get_xticklabels()] == ["4", "5", "6"]


def test_source_words_that_are_read_at_once_have_dots():
    assert read_at_once(np.array([[0.4, 0.35, 0.25], [0.2, 0.6, 0.2], [0.24, 0.24, 0.52], [0.5, 0.5, np.nan]])) == [
        [0, 1, 2],
        [],
        [],
        [0, 1],
    ]
    soft = np.array([[[0.55, 0.05, 0.4], [0, 1, 0]], [[0.9, 0.1, np.nan], [np.nan] * 3]])
    figure = views_of("translator")[0](attention(soft=soft, **SENTENCES))
    above, other, below, _ = figure.axes
    assert [line.get_xydata().tolist() for line in above.lines if len(line.get_xdata())] == [
        [[0, 0], [2, 0]]
    ]  # the first word reads two
    assert not any(len(line.get_xdata()) for ax in (other, below) for line in ax.lines)
    assert "dots: read at once" in figure._suptitle.get_text()
    figure.canvas.draw()
    certain = attention(soft=np.array([[[1, 0, 0], [0, 1, 0]], [[1, 0, np.nan], [np.nan] * 3]]), **SENTENCES)
    assert "dots" not in views_of("translator")[0](certain)._suptitle.get_text()


def test_hops_go_over_the_sentences():
    story = np.zeros((2, 3, 2), int)
    text = np.array([[["mary", "walks"], ["john", "sleeps"], ["mary", "sits"]], [["a", ""], ["b", ""], ["", ""]]], object)
    figure = views_of("memory_reader")[0](
        attention(
            "memory_reader",
            story=story,
            story_text=text,
            story_length=[3, 2],
            question=[[1, 2]] * 2,
            question_text=np.array([["where", "mary"]] * 2, object),
            answer=[0, 0],
            answer_text=np.array(["here", "there"], object),
            support=[[0, 0, 1], [0, 0, 0]],
        )
    )
    soft, hard = figure.axes[:2]
    assert [t.get_text() for t in soft.get_yticklabels()] == ["mary walks   ", "john sleeps   ", "mary sits  ★"]
    assert soft.images[0].get_array().T.tolist() == [[0.5, 0.25, 0.25], [0, 1, 0]]
    assert hard.lines[0].get_ydata().tolist() == [0, 1]  # row 0: option 0, then 1
    assert any("where mary – here" in text.get_text() for text in figure.texts)
    figure.canvas.draw()


def test_documents_are_shaded_marked_and_numbered():
    text = np.array([["@entity1", "met", "@entity0"], ["@entity2", "slept", ""]], object)
    asked = np.array([["who", "@placeholder"], ["@placeholder", ""]], object)
    soft = np.array([[[0.5, 0.25, 0.25], [0, 1, 0]], [[0.25, 0.75, np.nan], [np.nan] * 3]])
    figure = views_of("attentive_reader")[0](
        attention(
            "attentive_reader",
            soft,
            np.array([[2, 1], [1, -1]]),
            document=np.zeros((2, 3), int),
            document_text=text,
            document_length=[3, 2],
            question=np.zeros((2, 2), int),
            question_text=asked,
            question_length=[2, 1],
            answer=[1, 2],
            answer_text=np.array(["@entity1", "@entity2"], object),
            support=[[1, 1, 0], [0, 0, 0]],
        )
    )
    first, second = figure.axes
    shade = matplotlib.colormaps["Blues"]
    drawn = {t.get_text(): t for t in first.texts}
    assert list(drawn) == ["@entity1", "met", "2", "@entity0", "1"]  # read 2 was of "met", read 1 of "@entity0"
    assert drawn["met"].get_bbox_patch().get_facecolor() == shade(0.55) and drawn[
        "@entity1"
    ].get_bbox_patch().get_facecolor() == shade(0.0)
    assert [t.get_text() for t in first.texts if t.get_fontweight() == "bold" and t.get_text().isalpha()] == ["met"]
    assert [t.get_text() for t in second.texts] == ["@entity2", "slept", "1"]  # the question's one token: one read
    assert second.texts[1].get_bbox_patch().get_facecolor() == shade(0.55 * 0.75)
    assert first.get_title(loc="left") == "who @placeholder – @entity1"
    figure.canvas.draw()
    assert placed(["aa", "bbb", "c"], 6) == [(0, 0), (0, 3), (1, 0)] and placed(["long" * 9, "a"], 6) == [(0, 0), (1, 0)]


def test_words_stand_over_the_cells_that_were_looked_at():
    soft = np.full((2, 2, 4), 0.2)
    soft[0, 0] = [0.1, 0.2, 0.6, 0.1]
    soft[1, 1] = np.nan
    figure = views_of("captioner")[0](
        attention(
            "captioner",
            soft,
            np.array([[2, 1], [1, -1]]),
            image=np.zeros((2, 16, 16, 3)),
            target=[[7, 3], [3, 0]],
            target_text=np.array([["red", "<eos>"], ["<eos>", ""]], object),
            target_length=[2, 1],
            gold=[[3, -1], [-1, -1]],
        )
    )
    first, second = figure.axes[:2]
    assert [ax.get_title() for ax in figure.axes if ax.get_title()] == ["red", "<eos>", "<eos>"]
    ground = matplotlib.colormaps["Blues"](0.6 * soft[0, 0].reshape(2, 2))  # darker is more probable
    assert np.array_equal(first.images[0].get_array(), ground) and ground[1, 0].sum() == ground.sum(axis=2).min()
    true, chosen = first.patches
    assert chosen.get_xy() == (-0.5, 0.5) and true.get_xy() == pytest.approx((0.58, 0.58))  # cells 2 and 3 of 2 x 2
    assert true.get_linestyle() in (":", "dotted") and all(
        box.get_linestyle() == "solid" or box.get_linestyle() == "-" for box in second.patches
    )
    figure.canvas.draw()
    assert figure.texts[-1].get_text() == "darker: more probable; outlined: chosen by one sample; dotted: true cell"
    relaxed = replace(
        attention(
            "captioner",
            soft,
            np.array([[2, 1], [1, -1]]),
            image=np.zeros((2, 16, 16, 3)),
            target=[[7, 3], [3, 0]],
            target_length=[2, 1],
        ),
        choices=None,
    )
    plain = views_of("captioner")[0](relaxed)  # soft attention chooses no cell
    assert "chosen" not in plain.texts[-1].get_text() and not any(ax.patches for ax in plain.axes)
    features = {"target": [[7, 3], [3, 0]], "target_length": [2, 1], "features": np.zeros((2, 4, 3))}
    views_of("captioner")[0](attention("captioner", soft, **features)).canvas.draw()  # without pixels, words and gold
    light = np.full((2, 16, 16, 3), 0.5)
    light[:, :8] = 1  # a photograph: it fades where improbable
    veil = views_of("captioner")[0](replace(relaxed, batch=relaxed.batch.assign(image=(relaxed.batch.image.dims, light))))
    photograph, white = veil.axes[0].images
    assert np.array_equal(photograph.get_array(), light[0]) and on_light_ground(light[0]) is None
    assert np.allclose(white.get_array()[..., 3], 0.8 * (1 - soft[0, 0].reshape(2, 2) / 0.6))
    assert (
        grid_of(16, 32, 32) == (4, 4)
        and grid_of(8, 16, 32) == (2, 4)
        and grid_of(6, 0, 0) == (2, 3)
        and grid_of(7, 0, 0) == (1, 7)
    )


def test_one_networks_row_of_cells_stands_above_the_others():
    soft = np.zeros((2, 2, 4))
    soft[:, :, 1] = 1
    fields = {
        "image": np.zeros((2, 16, 16, 3)),
        "target": [[7, 3], [3, 0]],
        "target_length": [2, 1],
        "gold": [[3, -1], [-1, -1]],
        "target_text": np.array([["red", "<eos>"], ["<eos>", ""]], object),
    }
    flat = replace(attention("captioner", np.full((2, 2, 4), 0.25), **fields), choices=None, estimator="soft")
    sharp = attention("captioner", soft, np.array([[1, 1], [1, -1]]), **fields)
    figure = view_of_several(flat, sharp)(flat, sharp)
    first, second = figure.axes[:4], figure.axes[4:]  # two captions of two words and one, two rows each
    assert [ax.get_title() for ax in figure.axes] == ["red", "<eos>", "", "", "<eos>", ""]
    blues = matplotlib.colormaps["Blues"]
    above, below = (ax.images[0].get_array().reshape(4, 4) for ax in (first[0], first[2]))
    assert np.array_equal(above, blues(np.full(4, 0.6 * 0.25))) and np.array_equal(below, blues(0.6 * soft[0, 0]))
    boxes = [[box.get_linestyle() for box in ax.patches] for ax in (first[0], first[2], *second)]
    assert [len(of) for of in boxes] == [1, 2, 0, 1]  # a choice is outlined, the true cell is dotted
    assert [text.get_text() for text in figure.texts[:2]] == ["soft", "rloo"]
    figure.canvas.draw()
    other = replace(sharp, batch=sharp.batch.isel(example=[1, 0]))
    with pytest.raises(InputError, match="have other examples; compute all with the same task, --batch and --seed"):
        view_of_several(flat, other)
    with pytest.raises(
        InputError, match="captioner and translator: several files are drawn together for .* alone; give one file"
    ):
        view_of_several(attention(**SENTENCES), sharp)


def test_objects_stand_out_from_light_ground():
    """Of a picture with a dark ground: the ground is transparent, a white object light grey, a red one red."""
    image = np.zeros((8, 8, 3))
    image[1, 1], image[2, 2] = 1, [0.8, 0, 0]
    found = on_light_ground(image)
    assert found[0, 0, 3] == 0 and found[1, 1].tolist() == [0.9, 0.9, 0.9, 1] and found[2, 2].tolist() == [0.9, 0, 0, 1]


def test_several_translators_are_rows_named_by_their_estimators():
    one, other = attention(**SENTENCES), attention(**SENTENCES)
    rows = [replace(one, estimator="soft"), replace(other, estimator="exact_marginal", soft=1 - one.soft), replace(other)]
    figure = view_of_several(*rows)(*rows)
    assert [ax.get_ylabel() for ax in figure.axes[::2]] == ["soft", "exact\nmarginal", "rloo"]
    assert figure.axes[2].images[0].get_array().tolist() == [[0.5, 0.75, 0.75], [1, 0, 1]]
    figure.canvas.draw()
    more = np.pad(one.soft, [(0, 0), (0, 0), (0, 1)], constant_values=0.5)
    nulls = [replace(rows[0], settings={"null": True}, soft=more), rows[1]]
    for order in (nulls, nulls[::-1]):  # the column is there, and blank for the network without it
        panels = dict(zip((network.estimator for network in order), view_of_several(*order)(*order).axes[::2]))
        assert [t.get_text() for t in next(iter(panels.values())).get_xticklabels()] == ["the", "grüne", "n1", "(none)"]
        shown = {name: np.ma.filled(ax.images[0].get_array(), np.nan)[:, 3].tolist() for name, ax in panels.items()}
        assert shown["soft"] == [0.5, 0.5] and np.isnan(shown["exact_marginal"]).all()
    twice = [replace(one, estimator="rloo[samples=2]"), replace(one, estimator="rloo[samples=4]")]
    assert [ax.get_ylabel().replace("\n", "") for ax in view_of_several(*twice)(*twice).axes[::2]] == [
        "rloo[samples=2]",
        "rloo[samples=4]",
    ]


def test_examples_are_chosen_with_their_rows():
    soft = np.arange(18.0).reshape(3, 2, 3)
    every = replace(
        attention("memory_reader", soft, np.arange(8).reshape(2, 4), np.array([0, 0, 1, 2]), label=[5, 6, 7]),
        columns=soft[:, :, None],
        numbers=Numbers(*(np.arange(8.0).reshape(2, 4, 1) for _ in range(3))),
    )
    some = every.of([2, 0])
    assert some.row_example.tolist() == [0, 1, 1] and some.choices.tolist() == [[3, 0, 1], [7, 4, 5]]
    assert np.array_equal(some.soft, soft[[2, 0]]) and np.array_equal(some.columns[:, :, 0], soft[[2, 0]])
    assert some.need("label").tolist() == [7, 5] and some.numbers.mean[0, :, 0].tolist() == [3, 0, 1]
    assert np.array_equal(some.hard, every.hard[[2, 0]]) and some.entropy.tolist() == every.entropy[[2, 0]].tolist()
    for wrong in ([3], [-1]):
        with pytest.raises(InputError, match=rf"there is no example {wrong[0]} \(of 0 to 2\)"):
            every.of(wrong)


def test_windows_stand_where_the_sensor_looks():
    """By the sensor's formula: floor(((2 i + 1) height - side grid + grid) / (2 grid))."""
    assert [window(c, 3, 4, 12, 12) for c in (0, 4, 8, 2)] == [(0, 0), (4, 4), (8, 8), (0, 8)]
    assert window(0, 6, 8, 28, 28) == (-2, -2)  # beyond the edge: (28 - 48 + 6) / 12, rounded down


def test_glimpse_paths_are_on_the_picture():
    soft = np.full((2, 2, 4), 0.25)
    figure = views_of("glimpse_reader")[0](
        attention("glimpse_reader", soft, np.array([[0, 3], [3, 1]]), image=np.zeros((2, 8, 8)), label=[3, 7])
    )
    path, other = figure.axes
    assert [box.get_xy() for box in path.patches] == [(-0.5, -0.5), (3.5, 3.5)]  # cells 0 and 3 of a 2 x 2 grid
    assert [text.get_text() for text in path.texts] == ["1", "2"] and path.get_title() == "label 3"
    assert path.lines[0].get_xydata().tolist() == [[1.5, 1.5], [5.5, 5.5]]
    assert other.lines[0].get_xydata().tolist() == [[5.5, 5.5], [5.5, 1.5]]
    figure.canvas.draw()
    thrice = attention("glimpse_reader", np.full((1, 4, 4), 0.25), np.array([[3], [3], [0], [3]]), image=np.zeros((1, 8, 8)))
    assert [text.get_text() for text in views_of("glimpse_reader")[0](thrice).axes[0].texts] == ["1–2, 4", "3"]
    grid = attention("glimpse_reader", soft, np.array([[0, 3], [3, 1]]), image=np.zeros((2, 8, 8)), label=[3, 7])
    places = replace(grid, settings=grid.settings | {"policy": "gaussian"})
    two = view_of_several(grid, places)(replace(grid, settings=grid.settings | {"policy": "grid"}), places)
    assert [ax.get_ylabel() for ax in two.axes[::2]] == ["grid", "gaussian"]
    views_of("glimpse_reader")[0](replace(grid, choices=None)).canvas.draw()
    assert views_of("glimpse_reader")[1](grid).axes[0].get_ylabel() == "label 3"


def test_glimpses_anywhere_are_where_the_numbers_say():
    """Places are (row, column) in [-1, 1]^2. With 8 x 8 pixels and a window of 4, (0, 0) begins at pixel 2, (1, -1) at (6, -2)."""
    assert corner(np.array([0, 0]), 4, 8, 8) == (2, 2) and corner(np.array([1, -1]), 4, 8, 8) == (6, -2)
    value = np.zeros((2, 2, 2))
    value[1, 0] = [1, -1]
    found = replace(
        attention("glimpse_reader", np.ones((2, 2, 1)), image=np.zeros((2, 8, 8)), label=[[3, 10], [10, -1]]),
        choices=None,
        soft=np.zeros((2, 2, 0)),
        numbers=Numbers(value, np.full((2, 2, 2), 0.5), np.full((2, 2, 2), [0.25, 0.125])),
    )
    figure = views_of("glimpse_reader")[1](found)
    (ellipse,), path = figure.axes[0].patches, views_of("glimpse_reader")[0](found).axes[0]
    assert ellipse.get_center() == (5.5, 5.5)  # pixel i of an image has its centre at i, and (0.5 + 1) / 2 8 - 0.5 = 5.5
    assert (ellipse.get_height(), ellipse.get_width()) == (4, 2)  # +- 2 deviations of 0.25 and 0.125 of half an image of 8
    assert [box.get_xy() for box in path.patches] == [(1.5, 1.5), (-2.5, 5.5)]
    assert [figure.axes[i].get_ylabel() for i in (0, 2)] == ["label 3, 10", "label 10"]
    for draw in views_of("glimpse_reader"):
        draw(found).canvas.draw()
    with pytest.raises(InputError, match="are numbers, which a heat map cannot show"):
        views_of("gaussians")[0](replace(found, model="gaussians"))


def test_choices_that_are_numbers_in_a_file(sample, monkeypatch):
    data, batch = load_gradient(sample / "gradient.h5")
    example = data["row_example"].values
    numbers = data.drop_vars(["logits", "choices"])
    for name, number in (("value", 0.3), ("mean", 0.1), ("log_scale", np.log(0.2))):
        numbers[name] = (("step", "row", "column"), np.full((data.sizes["step"], len(example), 2), number))
    monkeypatch.setattr("analysis.views.attention.load_gradient", lambda path, unverified: (numbers, batch))
    attention = load_attention("numbers.h5")
    assert attention.numbers is not None and np.allclose(attention.numbers.deviation, 0.2) and attention.choices is None
    assert attention.soft.shape == (example.max() + 1, data.sizes["step"], 0)
    assert np.allclose(
        attention.entropy, 2 * (np.log(0.2) + np.log(2 * np.pi * np.e) / 2)
    )  # entropy of a normal distribution (Shannon 1948)


def test_windows_stand_on_the_canvas():
    soft = np.array([[[0.1, 0.2, 0.6, 0.1]], [[0.25] * 4]])
    figure = views_of("pixel_attention")[0](
        attention("pixel_attention", soft, np.array([[2, 0]]), image=np.zeros((2, 8, 8)), box=[[1, 2, 5, 6], [4, 4, 8, 8]])
    )
    first, second = figure.axes
    veil = first.images[1].get_array()[..., 3]
    assert np.allclose(veil, 0.8 * soft[0, 0].reshape(2, 2) / 0.6)
    assert first.get_title() == "≤ 0.6, 1.1 nat"
    chosen, true = first.patches
    assert chosen.get_xy() == (-0.5, 3.5) and chosen.get_width() == 4  # cell 2 of 2 x 2, a window of 4 pixels
    assert true.get_xy() == (1.5, 0.5) and true.get_linestyle() in (":", "dotted")
    assert [box.get_xy() for box in second.patches] == [(-0.5, -0.5), (3.5, 3.5)]
    figure.canvas.draw()
    with pytest.raises(InputError, match="no field box"):
        views_of("pixel_attention")[0](attention("pixel_attention", soft, image=np.zeros((2, 8, 8))))


def test_partners_stand_in_matching_matrices():
    columns = np.full((2, 1, 5, 3), np.nan)  # the pairs (a b, c d e) and (a, d): a column for each token, two and one without
    columns[0, 0, :2] = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
    columns[0, 0, 2:, :2] = [[0.25, 0.75], [1, 0], [0.5, 0.5]]
    choices = np.array([[2, 0, 1, 0, 1, 2, 0, 0, 0, 1, -1, -1, -1, -1, -1]])  # two rows of the first, one of the second
    pair = replace(
        attention(
            "sentence_pair",
            columns.mean(axis=2),
            choices,
            np.repeat([0, 0, 1], 5),
            first_text=np.array([["a", "b"], ["a", ""]], object),
            first=[[4, 5], [4, 0]],
            first_length=[2, 1],
            second_text=np.array([["c", "d", "e"], ["d", "", ""]], object),
            second=[[6, 7, 8], [7, 0, 0]],
            second_length=[3, 1],
            label_text=np.array(["same", "other"], object),
        ),
        columns=columns,
        settings={},
    )
    figure = views_of("sentence_pair")[0](pair)
    axes = np.reshape(figure.axes, (2, 2))
    assert axes[0, 0].images[0].get_array().tolist() == [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
    assert axes[1, 0].images[0].get_array().tolist() == [[0.25, 0.75], [1, 0], [0.5, 0.5]]
    assert [t.get_text() for t in axes[1, 0].get_xticklabels()] == ["a", "b"] and axes[0, 0].get_title() == "same"
    dots = axes[0, 0].collections
    assert dots[0].get_offsets().tolist() == [[2, 0]] and dots[0].get_sizes().tolist() == [30]  # both rows
    assert axes[1, 0].collections[0].get_offsets().tolist() == [[0, 0], [1, 0]] and axes[1, 0].collections[
        0
    ].get_sizes().tolist() == [15, 15]
    assert axes[0, 1].collections[0].get_offsets().size == 0  # with one word there is no choice
    figure.canvas.draw()
    top = views_of("sentence_pair")[0](replace(pair, settings={"attention": "top", "window": 2}))
    assert [t.get_text() for t in top.axes[0].get_xticklabels()] == ["unit 1", "unit 2"]
    views_of("sentence_pair")[0](replace(pair, choices=None)).canvas.draw()


def test_heads_of_a_machine_stand_in_their_cells():
    soft = np.full((2, 2, 3), 1 / 3)
    by_head = np.stack([soft, np.array([[[0.5, 0.25, 0.25], [0, 1, 0]], [[1, 0, 0], [np.nan] * 3]])], axis=2)
    given = np.array([[[1.0, 0], [0, 1]], [[1, 1], [0, 0]]])
    machine = replace(
        attention(
            "turing_machine",
            soft,
            np.array([[0, 2, 1, 0], [1, 1, -1, -1]]),
            np.array([0, 0, 1, 1]),
            input=given,
            answer=[[[-1], [1]], [[0], [-1]]],
            length=[2, 1],
        ),
        columns=by_head,
        settings={"reads": 1, "writes": 1},
    )
    figure = views_of("turing_machine")[0](machine)
    axes = np.reshape(figure.axes, (4, 2))
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["input", "wanted", "head 1 reads", "head 1 writes"]
    assert axes[0, 0].images[0].get_array().tolist() == [[1, 0], [0, 1]] and axes[0, 1].images[0].get_array().tolist() == [
        [1],
        [1],
    ]
    assert axes[1, 0].images[0].get_array().filled(-1).tolist() == [[-1, 1]]
    assert axes[3, 0].images[0].get_array().T.tolist() == [[0.5, 0.25, 0.25], [0, 1, 0]]
    assert axes[2, 0].lines[0].get_ydata().tolist() == [0, 1] and axes[3, 0].lines[0].get_ydata().tolist() == [2, 1]
    assert axes[3, 1].lines[0].get_ydata().tolist() == [0]  # its one step
    figure.canvas.draw()


def test_a_ponderer_halts_when_its_law_says():
    soft = np.array(
        [[[0.25, 0.75], [0.5, 0.5]], [[0.6, 0.4], [np.nan, np.nan]]]
    )  # halt, go on; no row reached the last of these
    bits = attention("ponderer", soft, np.array([[1, 0, 0], [0, -1, -1]]), np.array([0, 1, 1]), difficulty=[2, 7])
    assert np.allclose(laws(bits)[0], [0.25, 0.375, 0.375])
    assert laws(bits)[1, 0] == 0.6 and np.isnan(laws(bits)[1, 1:]).all()
    assert stops(bits).tolist() == [1, 0, 0]
    assert stops(replace(bits, choices=np.array([[1, 1, 0], [1, 0, -1]]))).tolist() == [2, 1, 0]
    certain = replace(bits, choices=np.array([[1, 1, 0], [0, -1, -1]]))  # a row of the second reached this step, where all halt
    assert np.allclose(laws(certain)[1], [0.6, 0.4, 0]) and stops(certain).tolist() == [1, 1, 0]
    at_once = attention("ponderer", np.array([[[0.2, 0.3, 0.5]], [[0.6, 0.4, np.nan]]]), np.array([[2, 0]]), difficulty=[2, 7])
    at_once = replace(at_once, settings={"ask": "step"})
    assert laws(at_once).tolist() == [[0.2, 0.3, 0.5], [0.6, 0.4, 0]] and stops(at_once).tolist() == [2, 0]
    for case in (bits, at_once, replace(bits, choices=None)):
        figure = views_of("ponderer")[0](case)
        assert figure.axes[0].get_title().startswith("difficulty 2, ")
        figure.canvas.draw()
        views_of("ponderer")[1](case).canvas.draw()
    assert mean_steps(bits).tolist() == [2, 1] and mean_steps(replace(bits, row_example=np.array([0, 0, 1]))).tolist() == [
        1.5,
        1,
    ]
    by_law = replace(at_once, choices=None)
    assert np.allclose(mean_steps(by_law), [0.2 + 2 * 0.3 + 3 * 0.5, 0.6 + 2 * 0.4])
    line = views_of("ponderer")[1](by_law).axes[0].lines[0]
    assert line.get_xdata().tolist() == [2, 7] and np.allclose(np.asarray(line.get_ydata(), float), [2.3, 1.4])
    first = views_of("ponderer")[0](bits).axes[0]
    assert [bar.get_height() for bar in first.patches[:3]] == pytest.approx([0.25, 0.375, 0.375])
    assert first.lines[0].get_xdata().tolist() == [2] and first.lines[0].get_ydata().tolist() == [1]


def test_a_programmers_program_stands_beside_its_own():
    soft = np.full((2, 3, 2, 9), np.nan)  # three steps of a network, two of the longest program
    soft[:, :, 0], soft[0, :, 1, :2], soft[1, :, 1, :3] = 1 / 9, [0.25, 0.75], 1 / 3
    choices = np.array([[8, 0, 1, 2], [3, 1, 8, 0], [0, 0, 7, 2]])  # [T, R D]
    fields = {
        "question": [[1, 2, 3, 2], [4, 5, 0, 0]],
        "question_length": [4, 2],
        "question_text": np.array([["sum", "a", "over", "<number>"], ["list", "c", "", ""]], object),
        "number": [[2.5, 0], [0, 0]],
        "numbers": [1, 0],
        "number_place": [[3, 0], [0, 0]],
        "table": np.arange(18.0).reshape(2, 3, 3),
        "table_rows": [3, 2],
        "table_columns": [2, 3],
        "column_name": [[6, 7, 0], [6, 7, 8]],
        "column_name_text": np.array([["a", "b", ""], ["a", "b", "c"]], object),
        "asks_cells": [0, 1],
        "answer": [4.5, 0],
        "wanted": [[0, 0, 0], [3, 3, 0]],
        "gold_operation": [[3, 0], [8, 7]],
        "gold_column": [[1, 0], [-1, 2]],
    }
    case = replace(attention("programmer", soft[:, :, 0], choices, np.repeat([0, 1], 2), **fields), columns=soft)
    assert asked(case, 0) == "sum a over 2.5? 4.5" and asked(case, 1) == "list c? the shaded cells"
    assert words_of_columns(case, 0) == ["a", "b"] and len(OPERATIONS) == 9
    for shown in (case, replace(case, choices=None)):
        figure = views_of("programmer")[0](shown)
        figure.canvas.draw()
    table, operations, columns = views_of("programmer")[0](case).axes[3:]
    assert len([patch for patch in table.patches if patch.get_y() in (-0.5, 0.5)]) == 2  # the cells of the answer
    assert [tuple(patch.get_xy()) for patch in operations.patches] == [(7.5, 0.5), (6.5, 1.5)]
    assert [tuple(patch.get_xy()) for patch in columns.patches] == [(1.5, 1.5)]
    assert operations.lines[0].get_xdata().tolist() == [1, 8, 7] and columns.lines[0].get_xdata().tolist() == [2, 0, 2]


def test_heads_go_along_their_tapes_and_write_in_time():
    bits = np.zeros((2, 4, 2))
    answer = np.array([[[-1, -1], [-1, -1], [1, 0], [0, 1]], [[-1, -1], [1, 1], [0, 0], [-1, -1]]])
    soft = np.full((2, 3, 3), 1 / 3)
    # Example 1 waits, then must write twice after its head moved right, left; example 2 writes and ends after two steps.
    choices = np.array([[1, 2, 1, 0, 1, 0], [1, 0, 1, -1, -1, 0], [2, 0, -1, -1, -1, -1]])
    case = attention("tape_machine", soft, choices, np.repeat([0, 1], 3), input=bits, answer=answer, length=[4, 3])
    at_input, at_memory, writes = paths(case, 0)
    assert at_input.tolist() == [0, 1, 2, 1, 1] and at_memory.tolist() == [0, -1, -1, -1, -1]
    assert writes.tolist() == [False, False, True, True]
    assert [p.tolist() for p in paths(case, 1)] == [[0, 0, 0], [0, 1, 1], [True, True]]
    for shown in (case, replace(case, choices=None)):
        figure = views_of("tape_machine")[0](shown)
        figure.canvas.draw()
    below = views_of("tape_machine")[0](case).axes[2]
    assert below.lines[1].get_xdata().tolist() == [0, 1, 2, 1] and below.lines[2].get_ydata().tolist() == [3, 4]


def test_entropy_is_drawn_for_every_model():
    figure = views_of("translator")[-1](attention(**SENTENCES))
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    assert lines["example 1"][0] == pytest.approx(1.5 * np.log(2)) and lines["example 1"][1] == 0


def test_a_model_to_come_is_drawn_plainly_or_by_its_own_view():
    plain = views_of("median_reader")
    assert [draw.__name__ for draw in plain] == ["attention_maps", "attention_entropy"]
    for draw in plain:
        draw(attention("median_reader")).canvas.draw()
        draw(replace(attention("median_reader"), hard=None, choices=None)).canvas.draw()
    try:

        @view("median_reader")
        def medians(attention):
            return plain[0](attention)

        assert views_of("median_reader")[0] is medians
    finally:
        del VIEWS["median_reader"]
