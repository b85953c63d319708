"""A report warns if attention does not depend on the query."""

import numpy as np

from analysis.attending import certain, collapsed
from analysis.report import report
from analysis.result import Result
from made_up import made_up

EVALUATED = ("run", "evaluation_step")
MEASURED = ("run", "measurement_step")


def test_collapsed_attention_is_named_by_its_last_evaluation():
    used = [[0.9, 0.05], [0.9, 0.1], [0.0, 0.8], [0.3, np.nan]]  # rloo ends collapsed, soft starts collapsed
    assert collapsed(Result(made_up(metric_positions_used=(EVALUATED, used)))) == {("t", "m"): ["rloo"]}
    assert collapsed(Result(made_up(metric_positions_used=(EVALUATED, [[0.5, np.nan]] * 4)))) == {}
    assert collapsed(Result(made_up(metric_positions_used=(EVALUATED, [[0.9, 0.6], [0.9, 0.05], [0, 0.8], [0, 0.8]])))) == {
        ("t", "m"): ["rloo"]
    }  # one seed
    assert collapsed(Result(made_up())) == {}


def test_what_is_sure_of_every_choice_is_named_by_its_last_measurement():
    entropy = [[0.7, 0.5], [0.7, 0.0009], [0.0, 0.5], [0.0, 0.7]]  # a run of rloo ends deterministic, soft starts deterministic
    assert certain(Result(made_up(attention_entropy=(MEASURED, entropy)))) == {("t", "m"): ["rloo"]}
    assert certain(Result(made_up(attention_entropy=(MEASURED, [[0.7, 0.0011]] * 4)))) == {}
    assert certain(Result(made_up(attention_entropy=(MEASURED, [[0.7, -0.0011]] * 4)))) == {}, (
        "a differential entropy, which may be negative"
    )
    assert certain(Result(made_up(attention_entropy=(MEASURED, [[0.7, -1e-17]] * 4)))) == {("t", "m"): ["rloo", "soft"]}
    assert certain(Result(made_up())) == {}
    said = "<strong>The policy is deterministic</strong> on"
    assert said in report(made_up(attention_entropy=(MEASURED, entropy)))
    assert said not in report(made_up(attention_entropy=(MEASURED, [[0.0, 0.7]] * 4)))


def test_the_report_warns():
    said = "<strong>Attention has collapsed</strong> on"
    page = report(made_up(metric_positions_used=(EVALUATED, [[0.9, 0.0]] * 4)))
    assert said in page and "with rloo, soft:" in page
    assert said not in report(made_up(metric_positions_used=(EVALUATED, [[0.9, 0.5]] * 4)))
