"""Estimators with one error each. `hardgrad test`, the only check available to the author of a plugin, must reject each."""
import os

import pytest

from mutants import ROOT, changed, judged, plugin, side_by_side

BUILD = os.environ["HARDGRAD_BUILD"]
TWINS = {
    "reinmax": [("T{0.5}", "T{1.5}"), ("- move[i];", "+ move[i];")],
    "straight_through": [("asked.draw(forward_)", "asked.draw()"), ("asked.softmax(backward_)", "asked.softmax()"),
                         ("asked.softmax(backward_)", "asked.softmax(1 / backward_)")],
    "group_normalised": [("(squares / (K - 1)) + epsilon", "(squares / K) + epsilon"), ("a *= (K - 1) / K", "a *= K / (K - 1)")],
    "maxrl": [("1 - samples_ * v", "1 + samples_ * v"), ("push_back(v / examples)", "push_back(v)"),
              ("log_mean_exp(of_example) / examples", "log_mean_exp(of_example)")],
    "reinmax_rao": [("2.0 / rao_samples", "1.0 / rao_samples"), ("halfway(asked, option)", "asked.log_p()")],
    "reinmax_cv": [("soft = subtract(soft, affine(drawn_", "soft = add(soft, affine(drawn_"), ("add(made, moved_to(asked, theta))", "made"),
                   ("gumbels_given(option, 1 + m * options_, theta)", "gumbels_given(option, 1 + m * options_)")],
    "james_stein": [(".couples_examples = true", ".couples_examples = false"), ("if (c == example) continue;", ""),
                    ("(1 - lambda) * own", "own"), ("(b * K + k) * columns + d", "(b * K + k) / columns + d")],
    "implicit_mle": [("-lambda_ * of", "lambda_ * of")],
    "disarm_iw": [("p[a] < p[b]", "p[a] > p[b]")],
    "local_disarm": [("(half == 0 ? 1 : -1)", "1")],
    "gapped_st": [("-std::max(0.0, move[i] + gap_ - most)", "std::max(0.0, move[i] + gap_ - most)"), ("most - move[i]", "most + move[i]"),
                  ("move[i] + gap_ - most", "move[i] - gap_ - most")],
    "gumbel_rao": [("1.0 / rao_samples", "2.0 / rao_samples")],
    "wsram": [("u[k] - v[k]", "u[k] + v[k]"), ("1.0 / samples_ - v[k]", "2.0 / samples_ - v[k]"), ("slope.loss[k] = v[k]", "slope.loss[k] = -v[k]")],
    "optimal_baseline": [("above += weight[j] *", "above += 2 * weight[j] *")],
    "muprop": [("z - m)", "z + m)"), ("/ samples_ * columns", "/ samples_ / columns"), ("columns > 1 ? i % D", "columns > 2 ? i % D")],
    "wake_sleep": [("sleep->log_probability(t), -share", "sleep->log_probability(t), share")],
    "tvo": [("samples_ / (samples_ - 1.0)", "samples_ / (samples_ + 1.0)"), ("(1 + b[j] * covariance)", "(1 - b[j] * covariance)"),
            ("(1 - b[j]) * covariance - 1", "(1 + b[j]) * covariance - 1"), ("value -= width * mean", "value += width * mean")],
    "arm": [("(2 * v - 1)", "(2 * v + 1)")],
    "antithetic": [("sum += all[r] - all[other]", "sum += all[r] + all[other]")],
    "nvil": [("scale = normalise_ ? 1 / std::max", "scale = normalise_ ? 1 * std::max"), ("/ (scale * scale)", "* (scale * scale)"),
             ("returns[i] -= this->average", "returns[i] += this->average"), ("square(subtract(predicted", "square(add(predicted"),
             ("returns[i] - static_cast<double>(predicted", "returns[i] + static_cast<double>(predicted")],
    "rodeo": [("d.value[i] + rest.value[c]", "d.value[i] - rest.value[c]")],
    "rebar": [("(f - a) * score", "(f + a) * score"), ("share * eta * total", "share / eta * total")],
    "local_expectation": [("double loss = 0;", "double loss = 1;")],
    "relax": [("share = 1 / static_cast", "share = 1 * static_cast")],
    "double_cv": [("2 * samples.product(g, second)", "-2 * samples.product(g, second)")],
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """One plugin. Each of its sources has an estimator, unchanged, and all its wrong twins."""
    sources = {}
    for name, changes in TWINS.items():
        path = f"estimators/{name}.cpp"
        texts = {"right": (ROOT / path).read_text()}
        texts.update({f"twin{i}": changed(texts["right"], old, new) for i, (old, new) in enumerate(changes)})
        sources[path] = side_by_side(path, texts)
    return plugin(BUILD, tmp_path_factory.mktemp("twins"), sources)


def judge(library, name):
    (verdict,) = judged(BUILD, library, name, timeout=None)  # CTest has a timeout; under the thread sanitizer some take long
    return verdict["passed"], [c for c in verdict["checks"] if c["outcome"] == "failed"]


@pytest.mark.parametrize("name", ["reinmax", "tvo", "wsram", "optimal_baseline"])
def test_the_right_one_passes(name, library):
    passed, failed = judge(library, f"{name}_right")
    assert passed, failed


@pytest.mark.parametrize("name,number", [(name, i) for name, changes in TWINS.items() for i in range(len(changes))])
def test_a_wrong_one_fails(name, number, library):
    passed, failed = judge(library, f"{name}_twin{number}")
    assert not passed and failed, TWINS[name][number]
