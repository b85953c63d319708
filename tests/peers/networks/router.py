"""`router` with one expert an example, weighed with its probability. All experts run once for each example."""

from __future__ import annotations

from networks import layer
from surrogates import sampled


def prepare(file):
    return {
        "x": file.batch["x"],
        "label": file.batch["label"],
        "choice": file.choices[0].reshape(-1),
        "experts": int(file.settings.get("experts", 4)),
    }


def router(x, p, data, K, estimator):
    inputs, choice = data["x"], data["choice"]
    log_p = x.log_softmax(layer(x, p, "gate", inputs), 1)
    answers = x.stack([x.relu(layer(x, p, f"expert.{i + 1}", inputs)) for i in range(data["experts"])], 1)  # [B, n, H]
    weighed = answers * x.exp(log_p)[:, :, None]
    example = x.repeat(x.arange(inputs.shape[0]), K)
    loss = x.cross_entropy(layer(x, p, "readout", weighed[example, choice]), x.repeat(data["label"], K))
    return sampled(x, estimator, log_p[example, choice], loss, K)
