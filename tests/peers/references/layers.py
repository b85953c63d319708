"""Layers and rewards shared by several references."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import lru_cache

import torch
import torch.nn.functional as F

BOS, EOS = 2, 3  # in every task with sentences: <pad> <unk> <bos> <eos>


def sentence_reward(kind: str, words: list[int], target) -> float:
    """The reward of written words for a target; both with their end marks, which words at the limit may lack."""
    target = [int(word) for word in target]
    if kind == "exact":
        return float(words == target)
    if kind == "share":
        return sum(a == b for a, b in zip(words, target)) / len(target)
    return likeness(kind, [w for w in words if w != EOS], target[:-1])


def likeness(kind: str, said: list[int], right: list[int]) -> float:
    """The metric of two sentences without end marks."""
    if kind == "edit":

        @lru_cache(None)
        def distance(i: int, j: int) -> int:
            if i == 0 or j == 0:
                return i + j
            return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (said[i - 1] != right[j - 1]))

        longer = max(len(said), len(right))
        return 1 - distance(len(said), len(right)) / longer if longer else 1.0
    grams = lambda x, n: Counter(tuple(x[i : i + n]) for i in range(len(x) - n + 1))
    if kind in ("chrf", "f1"):  # F of the mean precision and the mean recall of n-grams
        if not said or not right:
            return float(not said and not right)
        beta, orders = (2, range(1, min(6, len(said), len(right)) + 1)) if kind == "chrf" else (1, [1])
        shared = [(grams(said, n) & grams(right, n)).total() for n in orders]
        P, R = (sum(s / (len(of) - n + 1) for s, n in zip(shared, orders)) / len(shared) for of in (said, right))
        return (1 + beta**2) * P * R / (beta**2 * P + R) if P else 0.0
    precision = []
    for n in range(1, 5):
        matches, all_of_them = (grams(said, n) & grams(right, n)).total(), grams(said, n).total()
        precision.append((matches + (n > 1)) / (all_of_them + (n > 1)) if all_of_them + (n > 1) else 0)
    if not said or not precision[0]:
        return 0.0
    return math.prod(precision) ** 0.25 * min(1, math.exp(1 - len(right) / len(said)))


def lstm(p, name: str, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """One step of the named LSTM: the next state (h, c), each [1, H]."""
    return torch.lstm_cell(
        x[None],
        state,
        p[f"{name}.input.weight"],
        p[f"{name}.recurrent.weight"],
        p[f"{name}.bias"],
        torch.zeros_like(p[f"{name}.bias"]),
    )


def forward_lstm(p, name: str, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """States [words, H] of the named LSTM, and its last state."""
    zero = torch.zeros(1, p[f"{name}.recurrent.weight"].shape[1], dtype=torch.float64)
    state, out = (zero, zero), []
    for x in words:
        state = lstm(p, name, x, state)
        out.append(state[0][0])
    return torch.stack(out), out[-1]


def bilstm(p, name: str, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """States [words, 2H] of a bidirectional LSTM, and [its last forward state; its first backward state]."""
    ahead, last = forward_lstm(p, f"{name}.forward", words)
    back, first = forward_lstm(p, f"{name}.backward", words.flip(0))
    return torch.cat([ahead, back.flip(0)], dim=1), torch.cat([last, first])


def picked(
    options, logits: torch.Tensor, picks: int, law: str = "conditional_poisson", subset: bool | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Indicators [S] of a choice among the options with these logits [S], and its log probability, by enumeration. `options`: the
    chosen one, or of a subset (by default for picks > 1) the indicators [at least S] themselves."""
    b = torch.zeros(len(logits), dtype=torch.float64)
    if not (picks > 1 if subset is None else subset):
        b[int(options)] = 1
        return b, F.log_softmax(logits, dim=0)[int(options)]
    b += torch.tensor(options[: len(logits)], dtype=torch.float64)
    if law == "plackett_luce":
        orders = itertools.permutations(torch.nonzero(b).flatten().tolist())
        left = lambda drawn: torch.stack([x for i, x in enumerate(logits) if i not in drawn])
        return b, torch.logsumexp(
            torch.stack(
                [sum(logits[i] - torch.logsumexp(left(order[:j]), 0) for j, i in enumerate(order)) for order in orders]
            ),
            dim=0,
        )
    subsets = itertools.combinations(range(len(logits)), min(picks, len(logits)))
    return b, b @ logits - torch.logsumexp(torch.stack([logits[list(s)].sum() for s in subsets]), dim=0)


def posterior_scores(p, a: torch.Tensor, key: str, s: torch.Tensor, target, t: int) -> torch.Tensor:
    """Terms v (.) tanh(W_s s + W_y r_t + W_k a_i + b) [items, H] of a posterior that reads the word or the sentence `target`."""
    words = p["posterior.embedding.weight"][torch.tensor([int(word) for word in target])]
    read = bilstm(p, "posterior.sentence", words)[0] if "posterior.sentence.forward.bias" in p else words
    query = p["posterior.state.weight"] @ s + p["posterior.word.weight"] @ read[t]
    keys = a @ p[f"posterior.{key}.weight"].T + p[f"posterior.{key}.bias"]
    return torch.tanh(query + keys) * p["posterior.score.weight"][0]
