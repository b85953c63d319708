"""What gradient does GRPO follow? Its loss, written by hand for a small language model, beside estimators of the exact gradient.

    /usr/bin/python3 experiments/python/examples/language_model.py
"""
import torch
from torch import nn

import hardgrad.torch

WORDS, LONGEST = 3, 3  # word 0 ends a sentence; the reward is 1 for the prompt's word, once, and the end
torch.manual_seed(1)
embed, cell, head, prompts = nn.Embedding(WORDS, 8), nn.GRUCell(8, 8), nn.Linear(8, WORDS), torch.arange(1, WORDS)


def write(choose, example):
    """choose(logits) draws a word for each row; returns it, the row that each continues, and its example. -> rewards, words"""
    state, ended, said = torch.tanh(embed(prompts[example])), torch.zeros(len(example), dtype=torch.bool), torch.zeros(len(example), 0).long()
    for _ in range(LONGEST):
        logits = head(state).masked_fill(ended[:, None] & (torch.arange(WORDS) > 0), -torch.inf)
        word, parent, example = choose(logits)
        state, said = cell(embed(word), state[parent]), torch.cat([said[parent], word[:, None]], 1)
        ended = ended[parent] | (word == 0)
    return ((said[:, 0] == prompts[example]) & (said[:, 1] == 0)).float(), said


def loss(estimator):
    with hardgrad.torch.episode(len(prompts), {"word": hardgrad.torch.Site(options=WORDS, times=LONGEST)}, estimator) as e:
        def choose(logits):
            choice = e.choose("word", logits)
            return choice.options[:, 0], choice.parent, choice.example
        e.cost(-write(choose, torch.arange(len(prompts)))[0])
    return e.expected_loss.mean()


def grpo(samples=4):
    log_p, example = [], torch.arange(len(prompts)).repeat_interleave(samples)
    def choose(logits):
        law = torch.distributions.Categorical(logits=logits)
        log_p.append(law.log_prob(word := law.sample()))
        return word, torch.arange(len(word)), example
    reward, said = write(choose, example)
    reward, length = reward.view(-1, samples), 1 + (said[:, :-1] != 0).cumprod(1).sum(1)
    advantage = (reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)
    return -(advantage.view(-1) * torch.stack(log_p).sum(0) / length).mean()


def compared(replicates):
    parameters = {"network": [*embed.parameters(), *cell.parameters(), *head.parameters()]}
    return hardgrad.torch.compare(loss, parameters, {"rloo": "rloo[samples=4]", "GRPO by hand": grpo}, replicates=replicates)


if __name__ == "__main__":
    print(compared(1000))
