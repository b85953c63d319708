"""An independent PyTorch implementation of `programmer`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import bilstm

CASES = [
    ("tables", "steps=2,hidden=6,embedding=5"),
    ("tables[steps=1,columns=10,lists=false]", "steps=1,hidden=5,embedding=4"),
    ("tables[steps=4,shuffle=true,columns=2,min_rows=1,range=2]", "steps=6,hidden=6,embedding=5"),
    ("tables[steps=4,columns=4,range=3]", "hidden=6,embedding=5,delta=3"),
]
SOFT = True  # nearly as published

OPERATIONS = ("sum", "count", "difference", "greater", "lesser", "and", "or", "assign", "reset")


def programmer(file: GradientFile, example: int, options):
    """`options` [T, 2]: operation and column; None: the soft programmer."""
    p, of = file.parameters, lambda name: file.batch[name][example]
    T, delta = int(file.settings.get("steps", 4)), float(file.settings.get("delta", 1))
    R, C, N = int(of("table_rows")), int(of("table_columns")), int(of("numbers"))
    U, embedding = p["operation.weight"], p["embedding.weight"]
    lin = lambda name, v: F.linear(v, p[f"{name}.weight"], p[f"{name}.bias"])
    y, q = bilstm(p, "question", embedding[torch.as_tensor(of("question")[: of("question_length")], dtype=torch.long)])
    P = embedding[torch.as_tensor(of("column_name")[:C], dtype=torch.long)]
    x = torch.tensor(of("table")[:R, :C], dtype=torch.float64)
    compared = {"greater": torch.zeros(R, C, dtype=torch.float64), "lesser": torch.zeros(R, C, dtype=torch.float64)}
    if N:
        asked = y[torch.as_tensor(of("number_place")[:N], dtype=torch.long)] @ p["pivot.weight"].T @ U.T  # [N, 9]
        beta = F.softmax(asked, dim=0)
        for n, v in enumerate(of("number")[:N]):
            compared["greater"] = compared["greater"] + beta[n, OPERATIONS.index("greater")] * (x > v)
            compared["lesser"] = compared["lesser"] + beta[n, OPERATIONS.index("lesser")] * (x < v)

    h = torch.zeros(p["history.bias"].shape[0], dtype=torch.float64)
    r = [torch.ones(R, dtype=torch.float64)] * 2  # r_{t-2}, r_{t-1}
    s = [torch.zeros((), dtype=torch.float64)] * 3
    log_probs = []
    for t in range(T):
        known = torch.cat([q, h])
        scores = (U @ torch.tanh(lin("score.operation", known)), P @ torch.tanh(lin("score.column", known)))
        if options is None:
            a, c = (F.softmax(e, dim=0) for e in scores)
        else:
            a, c = (F.one_hot(torch.tensor(int(options[t][d])), len(e)).double() for d, e in enumerate(scores))
            log_probs += [F.log_softmax(e, dim=0)[int(options[t][d])] for d, e in enumerate(scores)]
        a = dict(zip(OPERATIONS, a))
        number = a["count"] * r[-1].sum() + a["difference"] * (s[-3] - s[-1]) + a["sum"] * (c @ (r[-1] @ x))
        cells = a["assign"] * torch.outer(r[-1], c)
        r.append(
            a["and"] * torch.minimum(r[-1], r[-2])
            + a["or"] * torch.maximum(r[-1], r[-2])
            + a["reset"]
            + a["greater"] * (compared["greater"] @ c)
            + a["lesser"] * (compared["lesser"] @ c)
        )
        s.append(number)
        h = torch.tanh(lin("history", torch.cat([torch.stack([a[o] for o in OPERATIONS]) @ U, c @ P, h])))
    if of("asks_cells"):
        wanted = torch.as_tensor(of("wanted")[:R])[:, None] == torch.arange(1, C + 1)
        loss = -torch.log(0.01 + 0.99 * torch.where(wanted, cells, 1 - cells)).sum() + 0 * h[0]
    else:
        loss = F.huber_loss(number, torch.tensor(of("answer"), dtype=torch.float64), delta=delta) / delta
    return [loss], log_probs
