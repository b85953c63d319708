"""`glimpse_reader` with policy=gaussian: windows at real places, by linear interpolation. `plain.py` has the grid."""

from __future__ import annotations

from networks import layer
from surrogates import sampled


def prepare(file):
    setting = lambda name, default: float(file.settings.get(name, default))
    return {
        "image": file.batch["image"],
        "label": file.batch["label"],
        "glimpses": int(setting("glimpses", 6)),
        "patch": int(setting("patch", 8)),
        "scale": setting("scale", 0.2),
    }


def glimpse_reader(x, p, data, K, estimator):
    image, P = x.repeat(data["image"], K), data["patch"]
    R, height, width = image.shape

    def weights(centre, extent):  # of an axis's pixels at the window's points [R, P, extent]
        points = ((centre + 1) / 2 * extent - 0.5 - (P - 1) / 2)[:, None] + x.arange(P)
        return x.relu(1 - abs(points[:, :, None] - x.arange(extent)))

    h, log_prob = x.broadcast(p["core.initial"], (R, p["core.initial"].shape[1])), 0
    for t in range(data["glimpses"]):
        place = data["value"][t]
        log_prob = log_prob - (((place - x.tanh(layer(x, p, "locator", h))) / data["scale"]) ** 2).sum(1) / 2
        window = x.bmm(x.bmm(weights(place[:, 0], height), image), weights(place[:, 1], width).swapaxes(1, 2))
        seen = x.relu(layer(x, p, "glimpse.patch", window.reshape(R, P * P)))
        g = x.relu(layer(x, p, "glimpse.what", seen) + layer(x, p, "glimpse.where", place))
        h = x.relu(layer(x, p, "core.recurrent", h) + layer(x, p, "core.input", g))
    return sampled(x, estimator, log_prob, x.cross_entropy(layer(x, p, "classifier", h), x.repeat(data["label"], K)), K)
