"""Twins of estimators with one thing wrong: `hardgrad test`, all that the author of a plugin has, must call each wrong."""
import os

import pytest

from mutants import ROOT, judged, plugin, renamed

BUILD = os.environ["HARDGRAD_BUILD"]
TWINS = {
    "reinmax": [("T{0.5}", "T{1.5}"), ("(static_cast<int>(i) == option[r])) / 2", "(static_cast<int>(i) == option[r])) / 3"),
                ("- move[i];", "+ move[i];")],
    "gapped_st": [("-std::max(0.0, move[i] + gap_ - most)", "std::max(0.0, move[i] + gap_ - most)"), ("most - move[i]", "most + move[i]"),
                  ("move[i] + gap_ - most", "move[i] - gap_ - most")],
    "gumbel_rao": [("1.0 / rao_samples_", "2.0 / rao_samples_")],
    "wsram": [("u[k] - v[k]", "u[k] + v[k]"), ("1.0 / samples_ - v[k]", "2.0 / samples_ - v[k]"), ("slope.loss[k] = v[k]", "slope.loss[k] = -v[k]")],
    "optimal_baseline": [("above += weight[j] *", "above += 2 * weight[j] *"), ("below += weight[j]", "below += 1")],
    "tvo": [("samples_ / (samples_ - 1.0)", "samples_ / (samples_ + 1.0)"), ("(1 + b[j] * covariance)", "(1 - b[j] * covariance)"),
            ("(1 - b[j]) * covariance - 1", "(1 + b[j]) * covariance - 1")],
    "muprop": [("z - m)", "z + m)")],
    "double_cv": [("2 * samples.product(g, second)", "-2 * samples.product(g, second)")],
}


def twin(name, old, new):
    text = (ROOT / "estimators" / f"{name}.cpp").read_text()
    assert text.count(old) == 1, (name, old)
    return text.replace(old, new)


def judge(name, text, tmp_path):
    library = plugin(BUILD, tmp_path, {f"estimators/{name}.cpp": renamed(text, "twin")})
    verdicts = judged(BUILD, library)
    assert verdicts is not None and len(verdicts) == 1
    return verdicts[0]


@pytest.mark.parametrize("name", ["reinmax", "tvo"])
def test_the_right_one_passes(name, tmp_path):
    assert judge(name, (ROOT / "estimators" / f"{name}.cpp").read_text(), tmp_path)["passed"]


@pytest.mark.parametrize("name,old,new", [(name, old, new) for name, changes in TWINS.items() for old, new in changes])
def test_a_wrong_one_fails(name, old, new, tmp_path):
    verdict = judge(name, twin(name, old, new), tmp_path)
    assert not verdict["passed"]
    assert [c for c in verdict["checks"] if c["outcome"] == "failed"]
