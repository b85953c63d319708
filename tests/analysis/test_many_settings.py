"""A report of hundreds of settings shows the best ones first, and its figures say how many."""

import json
import re

import numpy as np
import pytest

from analysis.answer import answer
from analysis.figures import MOST_LINES, draw_all
from analysis.report import report
from analysis.result import Result
from analysis.table import MOST_SETTINGS, foremost, leading, table
from made_up import sweep


SHOWN = 4


def settings(count):
    return sweep(1, [f"rloo[samples={i + 2}]" for i in range(count)], 2)


@pytest.fixture(scope="module")
def pages():
    return report(settings(SHOWN), most=SHOWN), report(settings(100), most=SHOWN)


def ranked(page):
    """The rows of the sortable ranking table."""
    return re.search(r'id="ranking-table">.*?</table>', page, re.DOTALL).group().count("<tr>") - 1


def test_the_best_are_shown_and_the_others_folded(pages):
    few, many = pages
    assert ranked(few) == ranked(many) == SHOWN and many.count("<img") == few.count("<img") > 0
    assert "The other 96 settings" in many and "rloo[samples=101]" in many and "The other" not in few
    assert f"{SHOWN} of 100 settings" in many and "--settings 100" in many
    assert many.index('id="ranking"') < many.index('id="answer"') < many.index("The other 96 settings")


def test_thirty_are_shown_by_default():
    frame = table(settings(40))
    assert leading(frame).sum() == MOST_SETTINGS == 30 and leading(frame)[:30].all()


def test_a_setting_that_is_not_shown_costs_a_row(pages):
    few, many = pages
    assert (len(many) - len(few)) / 96 < 400  # bytes


def test_of_every_estimator_the_best_is_shown():
    data = sweep(2, ["a", "b"], 2)
    rate = np.where(data["seed"].values == 0, "0.1", "1")
    data = data.assign_coords(
        rate=("run", rate, {"grid_axis": "train.learning_rate"}), seed=("run", np.zeros(8, int), data["seed"].attrs)
    )
    frame = table(data)
    assert frame["estimator"].tolist()[:4] == ["a", "a", "b", "b"] or frame["estimator"].tolist()[4:] == ["a", "a", "b", "b"]
    two = frame[leading(frame, 2)]
    assert two["estimator"].tolist() == ["a", "b"] * 2 and leading(frame, 3).sum() == 6 and leading(frame, 4).all()


def labels(figure):
    """Of the legend, or of the rows."""
    if figure.legends:
        return {text.get_text() for text in figure.legends[0].get_texts()}
    return {label.get_text().replace("\n", "") for ax in figure.axes[:2] for label in ax.get_yticklabels()}


@pytest.mark.parametrize("most", [None, 40])
def test_figures_show_the_same_best_settings_on_every_network_and_say_so(most):
    """The best of t0 are e00, e01, ..., those of t1 e39, e38, ..."""
    data = sweep(2, [f"e{i:02}" for i in range(40)], 3)
    other = data["task"].values == "t1"
    data["heldout_expected_loss"].values[other] *= -1
    data["work_normalised_variance"] = 4 * data["variance"]
    result = Result(data)
    order = foremost(result, len(result.groups))
    assert {*order[:2]} == {"e00", "e39"} and {*order[:12]} == {f"e{i:02}" for i in (*range(6), *range(34, 40))}
    figures = dict(draw_all(result, most=most, names=("heldout_loss", "bias_variance", "final_scores", "heat_map")))
    for name, figure in figures.items():
        shown = most or (MOST_SETTINGS if name in ("final_scores", "heat_map") else MOST_LINES)
        if name == "heat_map":
            assert {*labels(figure)} >= {*order[:shown]} and not {*labels(figure)} & {*order[shown:]}
            assert sum(text.get_text() not in ("", "0") for text in figure.axes[0].texts) >= 2 * shown - 2, "no blank cell"
        else:
            assert labels(figure) == {*order[:shown]}
        words = " ".join(text.get_text() for text in figure.texts).replace("\n", " ")
        assert (f"the best {shown} of 40 settings" in words) == (most is None)


def test_the_best_setting_of_every_network_is_shown():
    """16 networks, each with another best setting: no figure leaves a network out."""
    data = sweep(16, [f"e{i:02}" for i in range(16)], 2)
    network = np.array([int(name[1:]) for name in data["task"].values])
    place = (np.array([int(name[1:]) for name in data["estimator"].values]) - network) % 16
    data["heldout_expected_loss"].values[:] = 1 + place[:, None]
    result = Result(data)
    assert {*foremost(result, 12)} == {f"e{i:02}" for i in range(16)} and len(foremost(result, 1)) == 16
    ((_, figure),) = draw_all(result, names=["heldout_loss"])
    assert labels(figure) == {f"e{i:02}" for i in range(16)}


def test_labels_are_those_of_the_whole_result():
    """The best settings have one learning rate."""
    data = sweep(1, [f"e{i:02}" for i in range(30)], 2)
    data = data.assign_coords(
        rate=("run", np.where(np.arange(60) < 26, "0.1", "1"), {"grid_axis": "train.learning_rate"}),
    )
    ((_, figure),) = draw_all(Result(data), names=["heldout_loss"])
    assert labels(figure) == {f"e{i:02} rate=0.1" for i in range(12)}


def test_a_family_against_a_parameter_stays_whole():
    names = [f"{name}[samples={k}]" for name in ("a", "b", "c") for k in range(2, 12)]
    data = sweep(1, names, 2)
    settings = [json.dumps({"samples": int(name[10:-1])}) for name in data["estimator"].values]
    data = data.assign(estimator_settings=("run", np.array(settings, object)))
    ((_, figure),) = draw_all(Result(data), names=["variance_against_samples"], most=12)
    lines = [len(line.get_xdata()) for line in figure.axes[0].lines]
    assert labels(figure) == {"a", "b"} and lines == [10, 10], "a[samples=2] ... b[samples=3]"


def test_a_report_of_many_settings_is_small():
    page = report(sweep(3, [f"rloo[samples={i + 2}]" for i in range(100)], 2))
    assert "the best 12 of 100 settings" in page and page.count("<img") == 5 and "--figure loss_by_rows" in page
    assert len(page) < 600_000


def test_the_answer_is_made_once_and_given_away_as_a_copy():
    result = Result(settings(3))
    first = answer(result)
    first["score"] = 0.0
    assert (answer(result)["score"] != 0).all() and (table(result)["variance"] > 0).all()
    table(result)["variance"] = 0.0
    assert (table(result)["variance"] > 0).all()
