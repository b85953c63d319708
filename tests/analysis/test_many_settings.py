"""A report of hundreds of settings shows the best ones first."""

import re

import numpy as np
import pytest

from analysis.report import report
from analysis.table import MOST_SETTINGS, leading, table
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
