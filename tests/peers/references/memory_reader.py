"""An independent PyTorch implementation of `memory_reader`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import picked

SOFT = True
CASES = [
    ("qa", "embedding=7,hops=1"),
    ("qa", "embedding=7,hops=2,position_encoding=false"),
    ("qa", "embedding=7,hops=3"),
    ("qa", "embedding=7,hops=3,temporal=false"),
    ("qa", "embedding=7,hops=3,tying=layerwise"),
    ("qa", "embedding=7,hops=1,tying=layerwise,temporal=false"),
    ("qa", "embedding=7,hops=2,tying=free_answers"),
    ("qa", "embedding=7,hops=2,dropout=0.4"),
    ("qa", "embedding=7,hops=3,between_hops=relu"),
    ("qa", "embedding=7,hops=2,tying=layerwise,between_hops=relu"),
]
SUBSETS = [("qa", "embedding=7,hops=1,picks=2"), ("qa", "embedding=7,hops=2,picks=3")]


def memory_reader(file: GradientFile, example: int, options: list[int] | None | str):
    """`options`: the chosen ones, one per hop, or the indicators of those that a hop reads. None: the soft network. "linear": its linear start."""
    p = file.parameters
    hops = int(file.settings.get("hops", 3))
    layerwise = "hop.weight" in p
    width = p["memory.0.weight"].shape[1]
    encode = file.settings.get("position_encoding", "true") == "true"
    temporal = "temporal.0.weight" in p
    story = file.batch["story"][example][: file.batch["story_length"][example]]

    def represent(tokens, table):
        words = [int(w) for w in tokens if w != 0]
        J, total = len(words), torch.zeros(width, dtype=torch.float64)
        for j, w in enumerate(words, start=1):
            d = torch.arange(1, width + 1, dtype=torch.float64)
            l = (1 - j / J) - d / width * (1 - 2 * j / J) if encode else torch.ones(width, dtype=torch.float64)
            total = total + l * table[w]
        return total

    def memory(k):
        rows = []
        for i, sentence in enumerate(story):
            m = represent(sentence, p[f"memory.{k}.weight"])
            rows.append(m + p[f"temporal.{k}.weight"][len(story) - 1 - i] if temporal else m)
        return torch.stack(rows)

    u = represent(file.batch["question"][example], p["question.weight" if layerwise else "memory.0.weight"])
    log_probs = []
    for k in range(1, hops + 1):
        scores = memory(0 if layerwise else k - 1) @ u
        values = memory(1 if layerwise else k)
        if options is None or isinstance(options, str):
            o = (F.softmax(scores, dim=0) if options is None else scores) @ values
        else:
            b, log_p = picked(options[k - 1], scores, int(file.settings.get("picks", 1)))
            log_probs.append(log_p)
            o = b @ values
        u = (p["hop.weight"] @ u if layerwise else u) + o
        if file.settings.get("between_hops") == "relu" and k < hops:
            u = torch.relu(u)
    answer = int(file.batch["answer"][example])
    if "answer.weight" in p:
        W = p["answer.weight"]
    else:
        first, count = file.dimensions["answer_word"], file.dimensions["answers"]
        W = p[f"memory.{hops}.weight"][first : first + count]
    u = file.kept("readout", example, u)
    return [-F.log_softmax(W @ u, dim=0)[answer]], log_probs
