"""Layers that several twins share."""

from __future__ import annotations

import torch

BOS = 2  # of every task with sentences: <pad> <unk> <bos> <eos>


def lstm(p, name: str, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """One step of the LSTM of that name: its next state (h, c), [1, H] each."""
    return torch.lstm_cell(x[None], state, p[f"{name}.input.weight"], p[f"{name}.recurrent.weight"], p[f"{name}.bias"],
                           torch.zeros_like(p[f"{name}.bias"]))


def bilstm(p, name: str, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """States [words, 2H] of a bidirectional LSTM, and [its last forward state; its first backward state]."""
    def sweep(direction, inputs):
        zero = torch.zeros(1, p[f"{name}.{direction}.recurrent.weight"].shape[1], dtype=torch.float64)
        state, out = (zero, zero), []
        for x in inputs:
            state = lstm(p, f"{name}.{direction}", x, state)
            out.append(state[0][0])
        return out

    ahead, back = sweep("forward", words), sweep("backward", words.flip(0))[::-1]
    return torch.cat([torch.stack(ahead), torch.stack(back)], dim=1), torch.cat([ahead[-1], back[0]])
