"""An independent PyTorch implementation of `attentive_reader`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import bilstm, picked

CASES = [
    ("cloze", "embedding=6,hidden=5"),
    ("cloze", "embedding=6,hidden=5,kind=impatient"),
    ("cloze", "embedding=6,hidden=5,kind=impatient,dropout=0.4"),
]
SUBSETS = [("cloze", "embedding=6,hidden=5,picks=2"), ("cloze", "embedding=6,hidden=5,kind=impatient,picks=3")]
FIXED = [("cloze", "embedding=6,hidden=5,kind=uniform"), ("cloze", "embedding=6,hidden=5,kind=uniform,dropout=0.4")]


def attentive_reader(file: GradientFile, example: int, options: list[int]):
    p = file.parameters
    words = {
        name: torch.as_tensor(file.batch[name][example][: file.batch[f"{name}_length"][example]], dtype=torch.long)
        for name in ("document", "question")
    }
    y_d, _ = bilstm(p, "document", p["embedding.weight"][words["document"]])
    y_q, u = bilstm(p, "question", p["embedding.weight"][words["question"]])
    log_probs = []

    def read(chosen, scores):  # the mean of the tokens picked
        b, log_p = picked(chosen, scores, int(file.settings.get("picks", 1)))
        log_probs.append(log_p)
        return b @ y_d / b.sum()

    if "attention.score.weight" in p:
        w = p["attention.score.weight"][0]
        keys, asked = y_d @ p["attention.document.weight"].T, p["attention.question.weight"]
    if "attention.score.weight" not in p:
        r = y_d.mean(0)
    elif "read.initial" in p:
        r = p["read.initial"][0]
        for i, y in enumerate(y_q):
            m = torch.tanh(keys + p["attention.read.weight"] @ r + asked @ y)
            r = read(options[i], m @ w) + torch.tanh(p["read.recurrent.weight"] @ r)
    else:
        r = read(options[0], torch.tanh(keys + asked @ u) @ w)
    g = torch.tanh(p["answer.read.weight"] @ r + p["answer.question.weight"] @ u)
    g = file.kept("readout", example, g)
    return [-F.log_softmax(p["answer.entity.weight"] @ g, dim=0)[int(file.batch["answer"][example])]], log_probs
