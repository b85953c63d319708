"""An independent PyTorch implementation of `glimpse_reader`."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import lstm

CASES = [
    ("glimpse", "features=9,hidden=8,glimpses=3,grid=5,patch=6"),
    ("glimpse", "features=9,hidden=8,glimpses=3,grid=4,patch=5,scales=3"),
    ("glimpse", "features=9,hidden=8,glimpses=2,scales=2,core=lstm"),
    ("glimpse", "features=9,hidden=8,glimpses=1"),
    ("glimpse[digits=3,size=8]", "features=9,hidden=8,glimpses=2,grid=3,patch=5"),
    ("glimpse", "features=9,hidden=8,glimpses=3,patch=6,scales=2,scale=0.4,policy=gaussian"),
    ("glimpse", "features=9,hidden=8,glimpses=2,patch=5,core=lstm,policy=gaussian"),
    ("glimpse", "features=9,hidden=8,glimpses=3,grid=4,patch=5,reward=correct,detached=true,locator_units=7,first=random"),
    ("glimpse[digits=2,size=8]", "features=9,hidden=8,glimpses=2,grid=3,patch=5,reward=correct,first=random"),
    ("glimpse", "features=9,hidden=8,glimpses=3,patch=6,scale=0.9,policy=gaussian,clamped=true,place_units=5"),
    (
        "glimpse",
        "features=9,hidden=8,glimpses=3,patch=6,scale=0.9,policy=gaussian,clamped=true,place_units=5,reward=correct,"
        "detached=true,locator_units=7,first=random",
    ),
]


def glimpse_reader(file: GradientFile, example: int, options):
    p = file.parameters
    P, scales = int(file.settings.get("patch", 8)), int(file.settings.get("scales", 1))
    gaussian = file.settings.get("policy") == "gaussian"
    is_set = lambda name: file.settings.get(name) == "true"
    random_first = file.settings.get("first") == "random"
    T = int(file.settings.get("glimpses", 6))
    image = torch.tensor(file.batch["image"][example], dtype=torch.float64)
    labels = [int(label) for label in np.atleast_1d(file.batch["label"][example]) if label >= 0]
    height, width = image.shape
    lin = lambda name, x: F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))

    def windows(top, left):  # top(side), left(side): the first row and column of a window at each scale
        patches = []
        for s in range(scales):
            side = P * 2**s
            rows, cols = top(side) + torch.arange(side), left(side) + torch.arange(side)
            window = weights(rows, height) @ image @ weights(cols, width).T
            patches.append(F.avg_pool2d(window[None, None], 2**s).flatten())
        return torch.cat(patches)

    def weights(points, extent):  # weights of an axis's pixels at each point: linear interpolation between centres
        return torch.clamp(1 - torch.abs(points[:, None] - torch.arange(extent)), min=0).to(torch.float64)

    def located(h):
        h = h.detach() if is_set("detached") else h
        return lin("locator", torch.relu(lin("locator.hidden", h)) if "locator.hidden.weight" in p else h)

    if gaussian:
        scale = float(file.settings.get("scale", 0.2))

        def law(h, place):
            return torch.distributions.Normal(torch.tanh(located(h)), scale).log_prob(place).sum()

        first_law = lambda number: torch.distributions.Normal(0.0, 1.0).log_prob(number).sum()  # and of unread numbers

        def seen_at(t, number):
            if random_first and t == 0:
                return 2 * torch.distributions.Normal(0.0, 1.0).cdf(number) - 1
            return torch.clamp(number, -1, 1) if is_set("clamped") else number

        def look(place):
            row, col = ((place[d] + 1) / 2 * n - 0.5 for d, n in ((0, height), (1, width)))
            return windows(lambda side: row - (side - 1) / 2, lambda side: col - (side - 1) / 2)

        where = lambda l: lin("glimpse.where", torch.relu(lin("glimpse.place", l)) if "glimpse.place.weight" in p else l)
        options = torch.tensor(options)
    else:
        grid = round(p["locator.weight"].shape[0] ** 0.5)

        def law(h, cell):
            return F.log_softmax(located(h), dim=0)[cell]

        first_law = lambda cell: -torch.log(torch.tensor(float(grid * grid), dtype=torch.float64))
        seen_at = lambda t, cell: cell

        def look(cell):
            first = lambda i, extent: lambda side: ((2 * i + 1) * extent - side * grid + grid) // (2 * grid)
            return windows(first(cell // grid, height), first(cell % grid, width))

        where = lambda cell: p["glimpse.where.weight"][cell]

    h = p["core.initial"][0]
    c = torch.zeros_like(h)
    losses, log_probs = [], []
    for t, place in enumerate(options[: T * len(labels)]):
        log_probs.append(first_law(place) if random_first and t == 0 else law(h, place))
        place = seen_at(t, place)
        seen = torch.relu(lin("glimpse.patch", look(place)))
        g = torch.relu(lin("glimpse.what", seen) + where(place))
        if "core.lstm.bias" in p:
            h, c = lstm(p, "core.lstm", g, (h[None], c[None]))
            h, c = h[0], c[0]
        else:
            h = torch.relu(lin("core.recurrent", h) + lin("core.input", g))
        if (t + 1) % T == 0:
            answer, label = F.log_softmax(lin("classifier", h), dim=0), labels[t // T]
            wrong = float(answer.argmax() != label) + answer[label].detach() if file.settings.get("reward") == "correct" else 0
            losses.append(wrong - answer[label])
    if gaussian:  # the batch goes on after this image's last label: numbers that nothing reads
        log_probs.extend(first_law(number) for number in options[T * len(labels) :])
    return losses, log_probs
