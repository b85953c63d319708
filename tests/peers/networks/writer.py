"""`writer` with policy=gru and reward=share on prompts of one length. The rewards of the given words are computed beforehand."""

from __future__ import annotations

import numpy as np

from networks import layer
from surrogates import sampled


def prepare(file):
    assert file.settings.get("reward") == "share" and (file.batch["prompt"] >= 0).all()
    end, longest = file.dimensions["words"], file.dimensions["longest"]
    words, writing = file.choices.T, file.choices.T >= 0  # [R, T]
    loss = np.zeros(len(words))
    for r, b in enumerate(file.row_example):
        answer = [a for a in file.batch["answer"][b] if a >= 0]
        wanted = np.array(answer + [end] * (len(answer) < longest))
        loss[r] = -(words[r, : len(wanted)] == wanted).mean()
    return {
        "prompt": file.batch["prompt"],
        "loss": loss,
        "writing": writing.astype("float32"),
        "words": np.maximum(words, 0),
        "before": np.where((words >= 0) & (words < end), words, 0)[:, :-1],
    }


def writer(x, p, data, K, estimator):
    prompt, words = data["prompt"], data["words"]
    R, T = words.shape
    h = x.zeros(len(prompt), p["core.recurrent.weight"].shape[1])
    h = x.repeat(x.gru(p, "core", x.embedding(p["prompt.weight"], prompt), h)[:, -1], K)
    s = x.cat([h[:, None], x.gru(p, "core", x.embedding(p["word.weight"], data["before"]), h)], 1)  # [R, T, H]
    log_p = -x.cross_entropy(layer(x, p, "output", s).reshape(R * T, -1), words.reshape(-1)).reshape(R, T)
    return sampled(x, estimator, (log_p * data["writing"]).sum(1), data["loss"], K)
