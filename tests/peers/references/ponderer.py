"""An independent PyTorch implementation of `ponderer`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import lstm

CASES = [
    (f"puzzle[kind={kind},size={size}]", f"hidden=6,{settings}")
    for kind, size, settings in (
        ("parity", 5, "steps=4,tau=0.03"),
        ("parity", 4, "steps=5,ask=step,beta=0.5,prior=0.4,tau=0.1"),
        ("addition", 3, "steps=3,beta=2"),
        ("sort", 4, "steps=6,law=act,tau=0.2"),
        ("addition", 2, "steps=7,law=act,ask=step,tau=0.3"),
        ("sort", 4, "steps=6,law=act,tau=0.2,epsilon=0.3,first_flag=true"),
        ("parity", 5, "steps=4,first_flag=true"),
    )
] + [
    (f"puzzle[kind={kind},size=2,length=3]", f"hidden=6,{settings}")
    for kind, settings in (
        ("logic", "steps=4,law=act,tau=0.2,epsilon=0.3,first_flag=true"),
        ("logic", "steps=3,beta=0.5,tau=0.1"),
        ("sums", "steps=4,law=act,ask=step,tau=0.2"),
        ("sums", "steps=3,ask=step,beta=0.5"),
    )
]
SOFT = True  # the soft form is a published network, too


def ponderer(file: GradientFile, example: int, options):
    """`options` [T']: for ask=bits, N - 1 per input, 1 continues and 0 halts; for ask=step, the step. None: the deterministic
    network."""
    p = file.parameters
    x, label = torch.tensor(file.batch["x"][example], dtype=torch.float64), file.batch["label"][example]
    inputs, labels = (x[: file.batch["length"][example]], label) if x.ndim == 2 else (x[None], label[None])
    questions = 1 if file.settings.get("ask") == "step" else int(file.settings.get("steps", 10)) - 1
    state = (torch.zeros(1, p["core.recurrent.weight"].shape[1], dtype=torch.float64),) * 2
    losses, log_probs = [], []
    for t, (x_t, label_t) in enumerate(zip(inputs, labels)):
        choices = None if options is None else options[t * questions : (t + 1) * questions]
        state, of_step, log_p = outer_step(file, x_t, label_t, choices, state)
        losses, log_probs = losses + of_step, log_probs + log_p
    return losses, log_probs


def outer_step(file: GradientFile, x: torch.Tensor, label, options, state):
    """-> the state after halting, the losses, the log probabilities"""
    p = file.parameters
    setting = lambda name, default: type(default)(file.settings.get(name, default))
    N, rate, beta, tau = setting("steps", 10), setting("prior", 0.2), setting("beta", 0.01), setting("tau", 0.0)
    act, at_once = setting("law", "geometric") == "act", setting("ask", "bits") == "step"
    s, cells, halt = [], [], []
    for n in range(N):
        flag = torch.tensor([float(n == 0)] if file.settings.get("first_flag") == "true" else [], dtype=torch.float64)
        state = lstm(p, "core", torch.cat([x, flag]), state)
        s.append(state[0][0])
        cells.append(state[1][0])
        halt.append(torch.sigmoid(F.linear(s[-1], p["halt.weight"], p["halt.bias"])[0]))
    law = []  # p_n
    for n in range(N):
        left = 1 - sum(law) if law else torch.ones((), dtype=torch.float64)
        last = n + 1 == N or (act and left - halt[n] <= setting("epsilon", 0.01))
        law.append(left if last else halt[n] if act else left * halt[n])
        if last:
            break
    law, K = torch.stack(law), len(law)
    mixed, cell = (sum(a * b for a, b in zip(law, of)) for of in (s, cells))
    log_probs, stop = [], None
    if options is not None and at_once:
        stop = int(options[0])
        log_probs = [law[stop].log()]
    elif options is not None:
        stop = next((n for n in range(K - 1) if options[n] == 0), K - 1)
        log_probs = [law[stop].log()]
    if stop is not None:
        mixed, cell = s[stop], cells[stop]
    losses = [tau * (K + law[-1])] if act else []
    if not act:
        prior = torch.tensor([rate * (1 - rate) ** n for n in range(N - 1)] + [(1 - rate) ** (N - 1)], dtype=torch.float64)
        if at_once:
            losses.append(beta * (law * (law / prior).log()).sum())
        else:  # of the steps reached by this row; the mean over its last step is the divergence of the laws
            got = [1 - sum(law[:n], torch.zeros((), dtype=torch.float64)) for n in range(N - 1)]
            for n in range(N - 1):
                chance, there = halt[n], got[n] if stop is None else float(n <= stop)
                losses.append(
                    beta * there * (chance * (chance / rate).log() + (1 - chance) * ((1 - chance) / (1 - rate)).log())
                )
        taken = (law * torch.arange(1, K + 1)).sum() if stop is None else stop + 1
        losses.append(tau * taken + 0 * mixed[0])
    logits = F.linear(mixed, p["answer.weight"], p["answer.bias"]).reshape(len(label), -1)
    losses += [-F.log_softmax(logits[i], dim=0)[a] for i, a in enumerate(label.tolist()) if a >= 0]
    return (mixed[None], cell[None]), losses, log_probs
