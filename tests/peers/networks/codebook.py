"""`codebook`: the encoder runs once for each image, the distances are one product."""

from __future__ import annotations

from networks import layer
from surrogates import sampled


def prepare(file):
    image = file.batch["image"]
    return {"image": image.reshape(len(image), -1), "choice": file.choices[0].reshape(len(file.row_example), -1)}


def codebook(x, p, data, K, estimator):
    y, choice, codes = data["image"], data["choice"], p["codes.weight"]  # choice [R, D]
    h = layer(x, p, "encoder", x.relu(layer(x, p, "encoder.hidden", 2 * y - 1)))
    h = h.reshape(len(y), choice.shape[1], codes.shape[1])
    distance = (h * h).sum(2)[:, :, None] - 2 * h @ codes.T + (codes * codes).sum(1)  # [B, D, S]
    log_p = x.log_softmax(-distance, 2)
    example = x.repeat(x.arange(len(y)), K)
    row, vector = example[:, None], x.arange(choice.shape[1])[None]
    v = codes[choice].reshape(len(choice), -1)
    pixels = layer(x, p, "decoder", x.relu(layer(x, p, "decoder.hidden", v)))
    loss = x.bernoulli_loss(pixels, x.repeat(y, K)).sum(1) + 0.25 * distance[row, vector, choice].sum(1)
    return sampled(x, estimator, log_p[row, vector, choice].sum(1), loss, K)
