"""An independent PyTorch implementation of `writer`."""

from __future__ import annotations

from itertools import product

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import likeness

CASES = [
    ("answers[symbols=2,size=2]", "hidden=5,embedding=4"),
    ("answers[kind=sum,symbols=3,size=2]", "hidden=4,embedding=3,reward=share"),
    ("answers[kind=sort,symbols=2,size=3]", "hidden=6,embedding=2,reward=share,drift=0.5,reference=initial"),
    ("sequences[words=3,longest=2]", "hidden=5,embedding=3"),
    ("answers[kind=sum,symbols=3,size=2]", "policy=attention,hidden=5"),
    ("answers[kind=sort,symbols=2,size=3]", "policy=attention,hidden=4,reward=share,drift=0.5,reference=initial"),
    ("sequences[words=3,longest=2]", "policy=attention,hidden=4"),
    ("sequences[longest=3,rewards=binary]", "policy=table,scale=0.7"),
]
SOFT = True  # words as mixtures
HARD = [("countdown[largest=2,most=6]", "hidden=4,embedding=3")]


def gru(p, x, h):
    a = F.linear(x, p["core.input.weight"], p["core.input.bias"]).chunk(3, -1)
    b = F.linear(h, p["core.recurrent.weight"], p["core.recurrent.bias"]).chunk(3, -1)
    r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
    return (1 - z) * torch.tanh(a[2] + r * b[2]) + z * h


def attention(p, tokens):
    """The newest of the tokens [S, H] reads all of them."""
    H = tokens.shape[1]
    q, k, v = (F.linear(x, p[f"core.{name}.weight"]) for x, name in ((tokens[-1], "query"), (tokens, "key"), (tokens, "value")))
    c = tokens[-1] + F.softmax(k @ q / H**0.5, 0) @ v
    inner = torch.tanh(F.linear(c, p["core.inner.weight"], p["core.inner.bias"]))
    return c + F.linear(inner, p["core.outer.weight"], p["core.outer.bias"])


def place(t: int, H: int):
    angles = torch.tensor([t / 10000 ** (2 * (i // 2) / H) for i in range(H)], dtype=torch.float64)
    return torch.where(torch.arange(H) % 2 == 0, angles.sin(), angles.cos())


def solves(words, wanted) -> bool:
    """Python's own arithmetic on `words`: 0 +, 1 -, 2 *, and w is the number w - 2."""
    if sorted(w for w in words if w > 2) != sorted(int(w) for w in wanted[1:]) or any(
        (w > 2) != (i % 2 == 0) for i, w in enumerate(words)
    ):
        return False
    return eval("".join("+-*"[w] if w < 3 else str(w - 2) for w in words)) == wanted[0]


def sequences(words: int, longest: int):
    """All sequences in the order of their rewards: by length, the first word fastest."""
    for n in range(longest + 1):
        for reversed_words in product(range(words), repeat=n):
            yield reversed_words[::-1]


def writer(file: GradientFile, example: int, options):
    """`options` [T]: the words, up to the end mark; None: every word is the mean under its probabilities."""
    p = file.parameters
    rewards = file.batch.get("rewards")
    tabular = "table.logits" in p
    end, longest = file.dimensions["words"], file.dimensions["longest"]
    attends = "core.query.weight" in p
    prompt = [] if rewards is not None else [int(x) for x in file.batch["prompt"][example] if x >= 0]
    h, tokens = None, []
    if attends:
        H = p["core.query.weight"].shape[0]
        tokens = [p["prompt.weight"][x] + place(i, H) for i, x in enumerate(prompt)] + [p["word.weight"][end] + place(0, H)]
        h = attention(p, torch.stack(tokens))
    elif not tabular:
        h = torch.zeros(p["core.recurrent.weight"].shape[1], dtype=torch.float64)
        for symbol in prompt:
            h = gru(p, p["prompt.weight"][symbol], h)
    prefixes = {(): torch.ones((), dtype=torch.float64)}  # the weight of each
    numbers = {words: i for i, words in enumerate(sequences(end, longest))}
    chosen, log_probs = [], []  # the weights of each step; of the drawn words
    for t in range(longest):
        if tabular:
            logits = sum(weight * p["table.logits"][numbers[words]] for words, weight in prefixes.items())
        else:
            logits = F.linear(h, p["output.weight"], p["output.bias"])
        if options is None:
            w = F.softmax(logits, -1)
        else:
            word = int(options[t])
            w = F.one_hot(torch.tensor(word), end + 1).double()
            log_probs.append(F.log_softmax(logits, -1)[word])
        chosen.append(w)
        if options is not None and word == end:
            break
        prefixes = {words + (v,): weight * w[v] for words, weight in prefixes.items() for v in range(end)}
        if attends:
            tokens.append(w[:end] @ p["word.weight"][:end] + place(t + 1, H))
            h = attention(p, torch.stack(tokens))
        elif not tabular:
            h = gru(p, w[:end] @ p["word.weight"], h)

    def weight_of(words):  # of exactly this sequence
        steps = list(words) + ([end] if len(words) < longest else [])
        if len(steps) > len(chosen):
            return torch.zeros((), dtype=torch.float64)
        result = torch.ones((), dtype=torch.float64)
        for t, word in enumerate(steps):
            result = result * chosen[t][word]
        return result

    if rewards is not None:
        paid = sum(float(rewards[example][i]) * weight_of(words) for words, i in numbers.items())
        return [-paid], log_probs
    if "wanted" in file.batch:  # hard words only
        wanted = [int(w) for w in file.batch["wanted"][example]]
        return [-sum(weight_of(words) for words in numbers if solves(words, wanted))], log_probs
    answer = [int(a) for a in file.batch["answer"][example] if a >= 0]
    if file.settings.get("reward", "exact") == "exact":
        return [-weight_of(tuple(answer))], log_probs
    if (kind := file.settings.get("reward", "exact")) not in ("exact", "share"):  # hard words only
        said = [int(w) for w in options][: len(chosen)]
        return [
            torch.tensor(-likeness(kind, said[: said.index(end)] if end in said else said, answer), dtype=torch.float64)
        ], log_probs
    wanted = answer + ([end] if len(answer) < longest else [])
    losses, writing = [torch.zeros((), dtype=torch.float64)], torch.ones((), dtype=torch.float64)
    for w, a in zip(chosen, wanted):
        losses.append(-writing * w[a] / len(wanted))
        writing = writing * (1 - w[end])
    return losses, log_probs
