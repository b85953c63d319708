"""An independent PyTorch implementation of `captioner`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import BOS, EOS, picked, posterior_scores, sentence_reward

CASES = [
    ("caption", "embedding=6,hidden=5,channels=4,features=7"),
    ("caption[grid=3,objects=1]", "embedding=6,hidden=5,channels=4,features=7,gate=true"),
    ("caption", "embedding=6,hidden=5,channels=4,features=7,gate=true,doubly_stochastic=0.8"),
    ("{features}", "embedding=6,hidden=5,gate=true"),
    ("{features}", "embedding=6,hidden=5,dropout=0.4"),
    ("{features}", "embedding=6,hidden=5,words=sampled,reward=bleu,gate=true"),
    ("caption[grid=3,objects=1]", "embedding=6,hidden=5,channels=4,features=7,words=sampled,reward=share"),
]
SUBSETS = [
    ("{features}", "embedding=6,hidden=5,gate=true,picks=2"),
    ("caption", "embedding=6,hidden=5,channels=4,features=7,picks=3"),
]
BOUNDS = [("{features}", f"embedding=6,hidden=5,gate=true,posterior={posterior}") for posterior in ("word", "sentence")]
BOUNDS += [("{features}", "embedding=6,hidden=5,picks=2")]


def captioner(file: GradientFile, example: int, options: list[int]):
    p = file.parameters
    lin = lambda name, x: F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))
    if "image" in file.batch:

        def convolve(name, x, side):
            weight = p[f"{name}.weight"]
            kernel = weight.reshape(len(weight), side, side, -1).permute(0, 3, 1, 2)
            return F.conv2d(x, kernel, p[f"{name}.bias"], stride=side)

        image = torch.tensor(file.batch["image"][example], dtype=torch.float64).permute(2, 0, 1)[None]
        maps = convolve("encoder.second", torch.relu(convolve("encoder.first", image, 4)), 2)
        a = torch.relu(maps[0].flatten(1).T + p["encoder.place.weight"])  # [L, D]
    else:
        a = torch.tensor(file.batch["features"][example], dtype=torch.float64)
    target = [int(w) for w in file.batch["target"][example][: file.batch["target_length"][example]]]
    h, c = torch.tanh(lin("decoder.h", a.mean(0))), torch.tanh(lin("decoder.c", a.mean(0)))
    picks = int(file.settings.get("picks", 1))
    previous, losses, log_probs, covered = BOS, [], [], torch.zeros(len(a), dtype=torch.float64)
    writes = file.settings.get("words") == "sampled"  # then every second choice is a word
    if writes:
        words = [int(word) for word in options[1::2]]
        words = words[: words.index(EOS) + 1] if EOS in words else words
        options = options[::2]
        losses = [torch.tensor(-sentence_reward(file.settings.get("reward", "bleu"), words, target), dtype=torch.float64)]
    for t, word in enumerate(words if writes else target):
        e = torch.tanh(lin("attention.cell", a) + lin("attention.query", h)) @ p["attention.score.weight"][0]
        b, log_p = picked(options[t], e, picks)
        if "posterior.cell.weight" in p:  # choices of the posterior, and log q - log p as a loss
            log_q = picked(options[t], posterior_scores(p, a, "cell", h, target, t).sum(1), picks)[1]
            log_probs.append(log_q)
            losses.append(log_q - log_p)
        else:
            log_probs.append(log_p)
        covered = covered + F.softmax(e, dim=0)
        z = b @ a / b.sum()
        if "decoder.gate.weight" in p:
            z = torch.sigmoid(lin("decoder.gate", h)) * z
        y = p["decoder.embedding.weight"][previous]
        gates = lin("decoder.context", z) + F.linear(y, p["decoder.lstm.input.weight"], p["decoder.lstm.bias"])
        i, f, g, o = (gates + F.linear(h, p["decoder.lstm.recurrent.weight"])).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        said = file.kept("readout", example, y + lin("readout.state", h) + lin("readout.context", z))
        logits = lin("output", said)
        log_p_of_word = F.log_softmax(logits, dim=0)[word]
        if writes:
            log_probs.append(log_p_of_word)
        else:
            losses.append(-log_p_of_word)
        previous = word
    losses.append(float(file.settings.get("doubly_stochastic", 0)) * ((1 - covered) ** 2).sum())
    return losses, log_probs
