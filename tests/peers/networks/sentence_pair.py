"""`sentence_pair` with one layer and attention=bottom: hard partners of all tokens at once."""

from __future__ import annotations

import numpy as np

from networks import layer, within
from surrogates import sampled


def prepare(file):
    b, data = file.batch, {"label": file.batch["label"], "window": int(file.settings.get("window", 3))}
    for side in ("first", "second"):
        longest = int(b[f"{side}_length"].max())
        data |= {side: b[side][:, :longest], f"{side}_real": within(b[f"{side}_length"], longest).astype("float32")}
    # A row's choices are those of the first sentence's tokens, then those of the second's.
    first = b["first_length"][file.row_example][:, None]
    options = np.maximum(file.choices[0], 0)  # [R, tokens]
    data["first_choice"] = options[:, : data["first"].shape[1]]
    at = np.minimum(first + np.arange(data["second"].shape[1]), options.shape[1] - 1)
    data["second_choice"] = np.take_along_axis(options, at, 1)
    return data


def sentence_pair(x, p, data, K, estimator):
    a = {
        side: x.embedding(p["embedding.weight"], data[side]) * data[f"{side}_real"][:, :, None] for side in ("first", "second")
    }
    real = {side: data[f"{side}_real"] for side in a}
    w = data["window"]
    square = ((a["first"][:, :, None] - a["second"][:, None]) ** 2).sum(3)
    apart = square > 0  # the distance of equal words is 0 and not differentiable
    match = 1 / (1 + x.sqrt(x.where(apart, square, 1.0)) * apart) * real["first"][:, :, None] * real["second"][:, None]
    log_prob, features = 0, []
    means = {side: x.repeat(a[side].sum(1) / real[side].sum(1)[:, None], K) for side in a}
    pooled = {}
    for side, A in (("first", match), ("second", match.swapaxes(1, 2))):
        total = A.sum(2)  # [B, s]
        log_p = x.repeat(x.log(x.where(A > 0, A, 1.0)) - x.log(x.where(total > 0, total, 1.0))[:, :, None], K)
        choice, here = data[f"{side}_choice"], x.repeat(real[side], K)
        log_prob = log_prob + (x.gather(log_p, choice) * here).sum(1)
        met = x.embedding(p["attention.place.weight"], choice) * x.repeat(total, K)[:, :, None]
        seen = x.cat([x.repeat(a[side], K), met], 2)  # 0 past the sentence's end
        padded, n = x.pad(seen, w - 1, w - 1), seen.shape[1] + w - 1
        f = x.tanh(layer(x, p, "block1", x.cat([padded[:, u : u + n] for u in range(w)], 2)))
        words = sum(f[:, u : u + seen.shape[1]] for u in range(w)) / w
        pooled[side] = (words * here[:, :, None]).sum(1) / here.sum(1)[:, None]
    for r, t in ((means["first"], means["second"]), (pooled["first"], pooled["second"])):
        features += [r, t, r * t]
    loss = x.cross_entropy(layer(x, p, "classifier", x.cat(features, 1)), x.repeat(data["label"], K))
    return sampled(x, estimator, log_prob, loss, K)
