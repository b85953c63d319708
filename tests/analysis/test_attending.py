"""A report says where attention does not depend on what is asked."""

import numpy as np

from analysis.attending import collapsed
from analysis.report import report
from made_up import made_up

EVALUATED = ("run", "evaluation_step")


def test_collapsed_attention_is_named_by_its_last_evaluation():
    used = [[0.9, 0.05], [0.9, 0.1], [0.0, 0.8], [0.0, np.nan]]  # rloo ends collapsed, soft began so
    assert collapsed(made_up(metric_positions_used=(EVALUATED, used))) == {("t", "m"): ["rloo"]}
    assert collapsed(made_up(metric_positions_used=(EVALUATED, [[0.5, np.nan]] * 4))) == {}
    assert collapsed(made_up()) == {}


def test_the_report_warns():
    said = "<strong>Attention has collapsed</strong> on"
    page = report(made_up(metric_positions_used=(EVALUATED, [[0.9, 0.0]] * 4)))
    assert said in page and "with rloo, soft:" in page
    assert said not in report(made_up(metric_positions_used=(EVALUATED, [[0.9, 0.5]] * 4)))
