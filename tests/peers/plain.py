"""The three networks in ordinary PyTorch: one tensor row per sample, no Python loop over the batch, the library's LSTM where
possible. Choices are given, not drawn, so PyTorch's times exclude sampling.

Each network takes parameters `p` (name -> float tensor), `data` (see `problem.py`), K samples per example and the name of an
estimator. It returns the surrogate to differentiate."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from surrogates import enumerated, sampled


def bidirectional(p, x, length):
    """x [B, L, E] -> states [B, L, 2H] and ends [B, 2H]; length [B], or None if there is no padding."""
    hidden = p["encoder.forward.recurrent.weight"].shape[1]
    weights = []
    for way in ("forward", "backward"):
        bias = p[f"encoder.{way}.bias"]
        weights += [p[f"encoder.{way}.input.weight"], p[f"encoder.{way}.recurrent.weight"], bias, torch.zeros_like(bias)]
    zero = x.new_zeros(2, len(x), hidden)
    if length is None:
        states, ends, _ = torch._VF.lstm(x, (zero, zero), weights, True, 1, 0.0, True, True, True)
        return states, ends.transpose(0, 1).flatten(1)
    packed = pack_padded_sequence(x, length, batch_first=True, enforce_sorted=False)
    states, ends, _ = torch._VF.lstm(packed.data, packed.batch_sizes, (zero, zero), weights, True, 1, 0.0, True, True)
    states, _ = pad_packed_sequence(packed._replace(data=states), batch_first=True)
    return states, ends[:, packed.unsorted_indices].transpose(0, 1).flatten(1)


def translator(p, data, K, estimator):
    source, target, choices = data["source"], data["target"], data.get("choices")
    B, T = target.shape
    hard = estimator in ("reinforce", "rloo")
    copies = K if hard else 1
    fed = "decoder.context.weight" in p
    a, ends = bidirectional(p, F.embedding(source, p["encoder.embedding.weight"]), data.get("length"))
    beyond = data["beyond"].repeat_interleave(copies, 0) if "beyond" in data else None
    keys = F.linear(a, p["attention.key.weight"], p["attention.key.bias"])
    a, keys = a.repeat_interleave(copies, 0), keys.repeat_interleave(copies, 0)  # [R, L, .]
    R, rows = B * copies, torch.arange(B * copies)
    h = torch.tanh(F.linear(ends, p["decoder.initial.weight"], p["decoder.initial.bias"])).repeat_interleave(copies, 0)
    c = torch.zeros_like(h)
    z = a.new_zeros(R, a.shape[2])
    previous = torch.cat([torch.full((B, 1), 2), target[:, :-1]], 1).repeat_interleave(copies, 0)
    weight = p["decoder.lstm.input.weight"]
    if fed:
        weight = torch.cat([weight, p["decoder.context.weight"]], 1)
    bias = p["decoder.lstm.bias"]
    none = torch.zeros_like(bias)
    states, seen, words, scores = [], [], [], []
    for t in range(T):
        y = F.embedding(previous[:, t], p["decoder.embedding.weight"])
        h, c = torch.lstm_cell(torch.cat([y, z], 1) if fed else y, (h, c), weight, p["decoder.lstm.recurrent.weight"],
                               bias, none)
        mixed = torch.tanh(F.linear(h, p["attention.query.weight"])[:, None] + keys)
        score = mixed @ p["attention.score.weight"][0]
        log_p = F.log_softmax(score if beyond is None else score + beyond, dim=1)  # [R, L]
        if hard:
            z = a[rows, choices[t]]
            seen.append(z)
        elif estimator == "soft":
            z = torch.bmm(log_p.exp()[:, None], a)[:, 0]
            seen.append(z)
        states.append(h)
        words.append(y)
        scores.append(log_p)
    s, y, log_p = torch.stack(states), torch.stack(words), torch.stack(scores)  # [T, R, .]
    from_context = F.linear(torch.stack(seen) if seen else a, p["readout.context.weight"])
    u = F.linear(s, p["readout.state.weight"], p["readout.state.bias"]) + F.linear(y, p["readout.word.weight"])
    truth = target.repeat_interleave(copies, 0).t()  # [T, R]
    if not seen:  # every position: [T, B, L, H]
        u, truth = u[:, :, None] + from_context, truth[:, :, None].expand(T, B, a.shape[1])
    else:
        u = u + from_context
    logits = F.linear(torch.tanh(u), p["output.weight"], p["output.bias"])
    loss = F.cross_entropy(logits.flatten(0, -2), truth.flatten(), reduction="none").view(truth.shape)
    chosen = log_p.gather(2, choices[:, :, None])[:, :, 0] if hard else None
    if "said" in data:  # no choice and no loss after the last word
        said = data["said"].repeat_interleave(copies, 1)
        chosen = chosen * said if hard else None
        loss = loss * (said[:, :, None] if loss.dim() == 3 else said)
    if hard:
        return sampled(estimator, chosen.sum(0), loss.sum(0), K)
    if estimator == "soft":
        return loss.sum() / B
    return enumerated(estimator, log_p, loss, B)


def memory_reader(p, data, K, estimator):
    story, place, mask = data["story"], data["story_place"], data["mask"]  # [B, N, W], [B, N, W, D], [B, N]
    B, N = mask.shape
    hops = sum(k.startswith("memory.") for k in p) - 1
    hard = estimator in ("reinforce", "rloo")
    copies = K if hard else 1
    memory = []
    for k in range(hops + 1):
        m = (F.embedding(story, p[f"memory.{k}.weight"]) * place).sum(2)
        m = m + F.embedding(data["age"], p[f"temporal.{k}.weight"]) * mask[:, :, None]
        memory.append(m.repeat_interleave(copies, 0))
    u = (F.embedding(data["question"], p["memory.0.weight"]) * data["question_place"]).sum(1).repeat_interleave(copies, 0)
    gone = torch.where(mask.bool(), 0.0, float("-inf")).repeat_interleave(copies, 0)  # [R, N]
    answer = data["answer"].repeat_interleave(copies, 0)
    if hard or estimator == "soft":
        log_prob, rows = 0, torch.arange(len(u))
        for k in range(hops):
            log_p = F.log_softmax(torch.bmm(memory[k], u[:, :, None])[:, :, 0] + gone, dim=1)
            if hard:
                choice = data["choices"][k]
                log_prob = log_prob + log_p[rows, choice]
                u = u + memory[k + 1][rows, choice]
            else:
                u = u + torch.bmm(log_p.exp()[:, None], memory[k + 1])[:, 0]
        loss = F.cross_entropy(F.linear(u, p["answer.weight"]), answer, reduction="none")
        return sampled(estimator, log_prob, loss, K) if hard else loss.mean()
    return memory_tree(p, memory, u, gone, answer, hops, estimator)


def memory_tree(p, memory, u, gone, answer, hops, estimator):
    """Every path of choices: leaves [B, N ^ hops]; padded sentences have probability 0."""
    B, N = gone.shape
    u, log_path = u[:, None], u.new_zeros(B, 1)
    for k in range(hops):
        log_p = F.log_softmax(torch.bmm(u, memory[k].transpose(1, 2)) + gone[:, None], dim=2)  # [B, paths, N]
        log_path = (log_path[:, :, None] + log_p).flatten(1)
        u = (u[:, :, None] + memory[k + 1][:, None]).flatten(1, 2)
    loss = F.cross_entropy(F.linear(u, p["answer.weight"]).flatten(0, 1),
                           answer[:, None].expand(B, N ** hops).flatten(), reduction="none").view(B, -1)
    return enumerated(estimator, log_path[None], loss[None], B)


def glimpse_reader(p, data, K, estimator):
    pixels, table = data["pixels"], data["table"]  # [B, padded pixels], [cells, P P]
    B, cells = len(pixels), len(table)
    hard = estimator in ("reinforce", "rloo")
    copies = K if hard else 1
    linear = lambda name, x: F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))
    example = torch.arange(B).repeat_interleave(copies)
    label = data["label"].repeat_interleave(copies, 0)
    where = p["glimpse.where.weight"]

    def step(h, patch, place):
        g = torch.relu(linear("glimpse.what", torch.relu(linear("glimpse.patch", patch))) + place)
        return torch.relu(linear("core.recurrent", h) + linear("core.input", g))

    h = p["core.initial"].expand(B * copies, -1)
    if not hard:
        every = pixels[:, table]  # [B, cells, P P]
    if hard or estimator == "soft":
        log_prob, rows = 0, torch.arange(B * copies)
        for t in range(data["glimpses"]):
            log_p = F.log_softmax(linear("locator", h), dim=1)
            if hard:
                choice = data["choices"][t]
                log_prob = log_prob + log_p[rows, choice]
                h = step(h, pixels[example[:, None], table[choice]], where[choice])
            else:
                w = log_p.exp()
                h = step(h, torch.bmm(w[:, None], every)[:, 0], w @ where)
        loss = F.cross_entropy(linear("classifier", h), label, reduction="none")
        return sampled(estimator, log_prob, loss, K) if hard else loss.mean()
    h, log_path = h[:, None], h.new_zeros(B, 1)  # every path: [B, cells ^ t, H]
    for t in range(data["glimpses"]):
        log_p = F.log_softmax(linear("locator", h), dim=2)
        log_path = (log_path[:, :, None] + log_p).flatten(1)
        paths = h.shape[1]
        h = step(h[:, :, None].expand(B, paths, cells, -1), every[:, None].expand(B, paths, cells, -1), where)
        h = h.flatten(1, 2)
    loss = F.cross_entropy(linear("classifier", h).flatten(0, 1), label[:, None].expand(B, h.shape[1]).flatten(),
                           reduction="none").view(B, -1)
    return enumerated(estimator, log_path[None], loss[None], B)
