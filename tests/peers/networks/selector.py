"""`selector` with one pick."""

from __future__ import annotations

from networks import layer
from surrogates import sampled


def prepare(file):
    return {"x": file.batch["x"], "label": file.batch["label"], "choice": file.choices[0].reshape(-1)}


def selector(x, p, data, K, estimator):
    inputs, choice = data["x"], data["choice"]
    log_p = x.repeat(x.log_softmax(layer(x, p, "selector", x.relu(layer(x, p, "selector.hidden", inputs))), 1), K)
    kept = x.one_hot(choice, inputs.shape[1]) * x.repeat(inputs, K)
    o = layer(x, p, "predictor", x.relu(layer(x, p, "predictor.hidden", kept)))
    loss = x.cross_entropy(o, x.repeat(data["label"], K))
    return sampled(x, estimator, x.gather(log_p, choice), loss, K)
