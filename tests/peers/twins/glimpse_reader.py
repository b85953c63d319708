"""`glimpse_reader` once more, in PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from twins.layers import lstm

CASES = [
    ("glimpse", "features=9,hidden=8,glimpses=3,grid=5,patch=6"),
    ("glimpse", "features=9,hidden=8,glimpses=3,grid=4,patch=5,scales=3"),
    ("glimpse", "features=9,hidden=8,glimpses=2,scales=2,core=lstm"),
    ("glimpse", "features=9,hidden=8,glimpses=1"),
]


def glimpse_reader(file: GradientFile, example: int, options: list[int]):
    p = file.parameters
    cells, hidden = p["locator.weight"].shape
    grid = round(cells ** 0.5)
    P, scales = int(file.settings.get("patch", 8)), int(file.settings.get("scales", 1))
    image = torch.tensor(file.batch["image"][example], dtype=torch.float64)
    height, width = image.shape

    def look(cell):
        patches = []
        for s in range(scales):
            side = P * 2 ** s
            top = ((2 * (cell // grid) + 1) * height - side * grid + grid) // (2 * grid)
            left = ((2 * (cell % grid) + 1) * width - side * grid + grid) // (2 * grid)
            padded = F.pad(image, (side, side, side, side))
            window = padded[top + side: top + 2 * side, left + side: left + 2 * side]
            patches.append(F.avg_pool2d(window[None, None], 2 ** s).flatten())
        return torch.cat(patches)

    lin = lambda name, x: F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))
    h, c = p["core.initial"][0], torch.zeros(hidden, dtype=torch.float64)
    log_probs = []
    for cell in options:
        log_probs.append(F.log_softmax(lin("locator", h), dim=0)[cell])
        seen = torch.relu(lin("glimpse.patch", look(cell)))
        g = torch.relu(lin("glimpse.what", seen) + p["glimpse.where.weight"][cell])
        if "core.lstm.bias" in p:
            h, c = lstm(p, "core.lstm", g, (h[None], c[None]))
            h, c = h[0], c[0]
        else:
            h = torch.relu(lin("core.recurrent", h) + lin("core.input", g))
    return [-F.log_softmax(lin("classifier", h), dim=0)[int(file.batch["label"][example])]], log_probs
