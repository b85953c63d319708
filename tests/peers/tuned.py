"""The three networks in PyTorch with Hardgrad's algebra. Values that depend only on an example are computed once per example, hard
choices are gathers, no tensor is copied per sample, and one product gives the weight gradients of all steps. The arguments are those
of `plain.py`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

import plain
import torch_ops
from fused import AdditiveScores, Cell, Classify, Shared
from surrogates import enumerated, sampled


def projected(p, name, table, tokens):
    """x W' + b of embedded tokens [N]. If the table is smaller than that, all of its rows are multiplied."""
    weight, bias = p[f"{name}.input.weight"], p[f"{name}.bias"]
    if len(table) <= tokens.numel():
        return F.embedding(tokens, F.linear(table, weight, bias))
    return F.linear(F.embedding(tokens, table), weight, bias)


def one_way(p, name, table, tokens):
    """tokens [L, B] -> states, a list of L [B, H]."""
    gates = projected(p, name, table, tokens)
    recurrent = Shared(p[f"{name}.recurrent.weight"])
    c, states = gates.new_zeros(tokens.shape[1], recurrent.x.shape[1]), []
    for x in gates.unbind(0):
        h, c = Cell.apply(x + recurrent.linear(states[-1]) if states else x, c)
        states.append(h)
    return states


def translator(p, data, K, estimator):
    source, target = data["source"], data["target"]
    (B, L), T = source.shape, target.shape[1]
    hard = estimator in ("reinforce", "rloo")
    table = p["encoder.embedding.weight"]
    ahead = one_way(p, "encoder.forward", table, source.t())
    if "turned" in data:
        turned, rows, last = data["turned"], torch.arange(B), data["length"] - 1
        forth = torch.stack(ahead, 1)
        back = torch.stack(one_way(p, "encoder.backward", table, source.gather(1, turned).t()), 1)[rows[:, None], turned]
        a, ends = torch.cat([forth, back], 2), torch.cat([forth[rows, last], back[:, 0]], 1)
    else:
        back = one_way(p, "encoder.backward", table, source.t().flip(0))[::-1]
        a = torch.cat([torch.stack(ahead, 1), torch.stack(back, 1)], 2)  # [B, L, 2H]
        ends = torch.cat([ahead[-1], back[0]], 1)
    beyond = data["beyond"][:, None] if "beyond" in data else None
    keys = F.linear(a, p["attention.key.weight"], p["attention.key.bias"])
    readout = F.linear(a, p["readout.context.weight"]).flatten(0, 1)  # [B L, H]
    fed = "decoder.context.weight" in p and hard
    context = Shared(F.linear(a, p["decoder.context.weight"]).flatten(0, 1)) if fed else None

    previous = torch.cat([torch.full((1, B), 2), target.t()[:-1]])  # [T, B]
    words = p["decoder.embedding.weight"]
    gates = projected(p, "decoder.lstm", words, previous)  # [T, B, 4H]
    y = F.embedding(previous, words)
    recurrent, query = Shared(p["decoder.lstm.recurrent.weight"]), Shared(p["attention.query.weight"])
    h = torch.tanh(F.linear(ends, p["decoder.initial.weight"], p["decoder.initial.bias"]))
    c, states, scores, picked, mixed = torch.zeros_like(h), [], [], [], []
    before = None  # positions of the last choice [B K]
    for t, x in enumerate(gates.unbind(0)):
        g = recurrent.linear(h)
        if fed and before is not None:
            g = g + context.rows(before)
            copies = len(g) // B
            g = (g.view(B, copies, -1) + x[:, None]).flatten(0, 1)
        else:
            g = g + x
        h, c = Cell.apply(g, c)
        copies = len(h) // B
        score = AdditiveScores.apply(query.linear(h).view(B, copies, -1), keys, p["attention.score.weight"])
        log_p = F.log_softmax(score if beyond is None else score + beyond, 2)
        states.append(h)
        scores.append(log_p)
        if hard:
            picked.append(data["places"][t])  # [B K] in the rows of `context`
            if fed:
                before = picked[-1]
                if copies < K:
                    h, c = (v.repeat_interleave(K, 0) for v in (h, c))  # the samples differ from here on
        elif estimator == "soft":
            mixed.append(torch.bmm(log_p.exp(), readout.view(B, L, -1))[:, 0])
    s = [
        F.linear(torch.cat(part), p["readout.state.weight"], p["readout.state.bias"])
        for part in ((states[:1], states[1:]) if hard and K > 1 and fed else (states,))
        if part
    ]
    said = F.linear(y, p["readout.word.weight"])  # [T, B, H]
    if hard:
        s = torch.cat(
            [
                v.view(-1, B, len(v) // B // n, v.shape[1]).expand(-1, B, K, -1)
                for v, n in zip(s, (1, T - 1) if len(s) > 1 else (T,))
            ]
        )
        u = s + said[:, :, None] + F.embedding(torch.stack(picked), readout).view(T, B, K, -1)
    elif estimator == "soft":
        u = (s[0].view(T, B, 1, -1) + said[:, :, None]) + torch.stack(mixed)[:, :, None]
    else:
        u = (s[0].view(T, B, 1, -1) + said[:, :, None]) + readout.view(B, L, -1)
    truth = target.t()[:, :, None].expand(u.shape[:3])
    layer, said = (p["output.weight"], p["output.bias"]), None
    if "said" in data:  # no choice and no loss after the last word, or at padded positions
        said = data["said"][:, :, None]
        asked = (said > 0).expand(u.shape[:3])
        if not hard and estimator != "soft":
            asked = asked & (data["beyond"] == 0)
        loss = torch.zeros(u.shape[:3]).masked_scatter(asked, Classify.apply(torch.tanh_(u[asked]), *layer, truth[asked]))
    else:
        loss = Classify.apply(torch.tanh_(u).flatten(0, 2), *layer, truth.reshape(-1)).view(u.shape[:3])
    if hard:
        log_p = torch.cat([v.expand(B, K, L) for v in scores]).view(T, B * K, L)
        chosen = log_p.gather(2, data["choices"][:, :, None]).view(T, B, K)
        return sampled(
            torch_ops, estimator, (chosen if said is None else chosen * said).sum(0).flatten(), loss.sum(0).flatten(), K
        )
    if estimator == "soft":
        return loss.sum() / B
    return enumerated(torch_ops, estimator, torch.stack(scores)[:, :, 0], loss, B)


def glimpse_reader(p, data, K, estimator):
    pixels, table = data["pixels"], data["table"]
    (B, cells), T = (len(pixels), len(table)), data["glimpses"]
    hard = estimator in ("reinforce", "rloo")
    linear = lambda name, x: F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))
    where = p["glimpse.where.weight"]

    def seen(patch, place):  # a glimpse's contribution to the core
        return linear("core.input", torch.relu_(linear("glimpse.what", torch.relu_(linear("glimpse.patch", patch))) + place))

    if estimator == "soft":
        return plain.glimpse_reader(torch_ops, p, data, K, estimator)
    recurrent, locator = Shared(p["core.recurrent.weight"]), Shared(p["locator.weight"])
    h, log_prob = p["core.initial"], 0
    once = not hard or B * cells < B * K * T  # all cells are computed once
    if once:
        every = seen(pixels[:, table].flatten(0, 1), where.repeat(B, 1))  # [B cells, H]
    if hard:
        shared = Shared(every) if once else None
        example = torch.arange(B).repeat_interleave(K)
        for t in range(T):
            log_p = F.log_softmax(locator.linear(h) + p["locator.bias"], 1)  # [1 or B K, cells]
            choice = data["choices"][t]
            log_prob = log_prob + log_p.expand(B * K, cells).gather(1, choice[:, None])[:, 0]
            look = shared.rows(data["places"][t]) if once else seen(pixels[example[:, None], table[choice]], where[choice])
            h = torch.relu_(recurrent.linear(h) + look)
        label = data["label"].repeat_interleave(K, 0)
        return sampled(
            torch_ops, estimator, log_prob, Classify.apply(h, p["classifier.weight"], p["classifier.bias"], label), K
        )
    every = every.view(B, 1, cells, -1)
    h, log_path = h.expand(B, -1), h.new_zeros(B, 1)
    for t in range(T):
        log_p = F.log_softmax(locator.linear(h) + p["locator.bias"], 1).view(B, -1, cells)
        log_path = (log_path[:, :, None] + log_p).flatten(1)
        h = torch.relu_(recurrent.linear(h).view(B, -1, 1, h.shape[1]) + every).flatten(0, 2)
    label = data["label"][:, None].expand(B, len(h) // B).reshape(-1)
    loss = Classify.apply(h, p["classifier.weight"], p["classifier.bias"], label).view(B, -1)
    return enumerated(torch_ops, estimator, log_path[None], loss[None], B)
