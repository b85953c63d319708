"""`memory_reader` in PyTorch, for a whole batch: compares `hardgrad.torch` with the program."""

import numpy as np
import torch
import torch.nn.functional as F


class Reader:
    """A reader of the batch of a `hardgrad gradient` file, with the parameters of the file."""

    def __init__(self, file):
        self.p, batch = file.parameters, file.batch
        tables = sum(name.startswith("memory.") for name in self.p)
        first = file.dimensions["answer_word"]
        self.answers = self.p[f"memory.{tables - 1}.weight"][first : first + file.dimensions["answers"]]
        self.tokens = torch.as_tensor(batch["story"], dtype=torch.long)
        self.question = torch.as_tensor(batch["question"], dtype=torch.long)
        self.answer = torch.as_tensor(batch["answer"], dtype=torch.long).reshape(-1)
        length = torch.as_tensor(batch["story_length"], dtype=torch.long)[:, None]
        place = torch.arange(self.tokens.shape[1])
        self.there, self.age = place < length, (length - 1 - place).clamp(min=0)

    def represent(self, tokens, table):
        width = table.shape[1]
        J = (tokens != 0).sum(-1, keepdim=True)[..., None].clamp(min=1).double()
        j = torch.arange(1, tokens.shape[-1] + 1, dtype=torch.double)[:, None]
        d = torch.arange(1, width + 1, dtype=torch.double) / width
        encoding = (1 - j / J) - d * (1 - 2 * j / J)
        return torch.where((tokens != 0)[..., None], encoding * table[tokens], torch.zeros((), dtype=torch.double)).sum(-2)

    def memory(self, k):
        """[E, sentences, width]"""
        rows = self.represent(self.tokens, self.p[f"memory.{k}.weight"]) + self.p[f"temporal.{k}.weight"][self.age]
        return torch.where(self.there[..., None], rows, torch.zeros((), dtype=torch.double))

    def start(self):
        """[E, width] the question."""
        return self.represent(self.question, self.p["memory.0.weight"])

    def scores(self, u, k, example):
        """[rows, sentences] of hop k, -inf where there is no sentence."""
        return torch.einsum("rsd,rd->rs", self.memory(k - 1)[example], u).masked_fill(~self.there[example], -np.inf)

    def loss(self, u, example):
        return F.cross_entropy(u @ self.answers.T, self.answer[example], reduction="none")
