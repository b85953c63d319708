"""An independent PyTorch implementation of `translator`."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from gradient_file import GradientFile
from references.layers import BOS, EOS, bilstm, forward_lstm, picked, posterior_scores, sentence_reward

CASES = (
    [
        ("translation", f"embedding=6,hidden=5,score={score},feed={feed}")
        for score in ("additive", "dot")
        for feed in ("none", "soft", "sampled")
    ]
    + [
        ("translation", f"embedding=6,hidden=6,heads={heads},score={score},feed={feed}")
        for heads in (1, 2, 3)
        for score, feed in (
            ("additive", "none"),
            ("general", "sampled"),
            ("dot", "sampled"),
            ("scaled_dot", "soft"),
            ("scaled_dot", "sampled"),
        )
    ]
    + [
        ("translation", f"embedding=6,hidden=5,encoder={encoder},source={source},feed=sampled,null={null}")
        for encoder, source, null in (
            ("bidirectional", "reversed", "false"),
            ("bidirectional", "twice", "true"),
            ("forward", "forward", "true"),
            ("forward", "reversed", "false"),
            ("forward", "twice", "false"),
        )
    ]
    + [
        ("translation", "embedding=6,hidden=6,heads=2,null=true,score=scaled_dot,feed=sampled"),
        ("translation", "embedding=6,hidden=6,heads=2,null=true,feed=sampled,dropout=0.4"),
    ]
    + [
        ("translation", "embedding=6,hidden=5,encoder=none"),
        ("translation", "embedding=6,hidden=4,heads=2,encoder=none,readout=context,null=true,score=scaled_dot"),
        ("translation", "embedding=6,hidden=5,readout=context,feed=sampled,dropout=0.4"),
    ]
    + [
        ("translation", f"embedding=6,hidden=6,order=context_first,heads={heads},score={score},feed={feed}")
        for heads, score, feed in (
            (1, "additive", "sampled"),
            (1, "additive", "soft"),
            (2, "dot", "sampled"),
            (2, "general", "soft"),
        )
    ]
)

CASES += [
    ("translation", f"embedding=6,hidden=6,score={score},{rest}")
    for score, rest in (
        ("concat", "heads=2"),
        ("plain_dot", "encoder=forward,heads=2,feed=sampled"),
        ("plain_dot", "encoder=none"),
        ("location", "heads=2,feed=sampled"),
        ("location", "local=monotonic,window=2"),
        ("general", "local=monotonic,window=1,feed=soft"),
        ("dot", "local=predictive,window=3,heads=2,feed=sampled"),
        ("general", "local=predictive,window=2,order=context_first,feed=sampled"),
    )
] + [
    ("translation[words=3,max_length=4]", f"embedding=6,hidden=6,words=sampled,reward={reward},{rest}")
    for reward, rest in (
        ("bleu", "feed=sampled"),
        ("edit", "feed=soft,heads=2"),
        ("share", "feed=none,dropout=0.4"),
        ("share", "order=context_first,feed=sampled,null=true"),
        ("share", "local=predictive,window=1"),
        ("edit", "attention=none,feed=soft"),
    )
]

BAHDANAU = "order=context_first,unit=gated,start=backward,readout=maxout"
CASES += [
    ("translation", f"embedding=6,hidden=6,{rest}")
    for rest in (
        f"{BAHDANAU},feed=sampled",
        f"{BAHDANAU},feed=soft,heads=2,dropout=0.4",
        "feed=attentional,readout=state,score=general",
        "feed=attentional,heads=2,null=true",
        "feed=attentional,readout=maxout,dropout=0.4",
        "unit=gated",
        "readout=maxout,feed=sampled",
        "start=backward,source=reversed,feed=attentional,unit=gated,readout=context",
    )
] + [
    ("translation[words=3,max_length=4]", f"embedding=6,hidden=6,words=sampled,reward=edit,{rest}")
    for rest in (f"{BAHDANAU},feed=sampled", "feed=attentional,readout=state,unit=gated")
]

SUBSETS = [
    ("translation", f"embedding=6,hidden=6,picks={picks},{rest}")
    for picks, rest in ((2, "feed=none"), (3, "feed=sampled,null=true"), (2, "feed=sampled,heads=2,score=dot"))
]

BOUNDS = [
    ("translation", f"embedding=6,hidden=6,posterior={posterior},heads={heads}{rest}")
    for posterior, heads, rest in (
        ("word", 1, ""),
        ("word", 2, ",feed=sampled"),
        ("sentence", 1, ",feed=sampled"),
        ("sentence", 2, ",score=dot"),
        ("sentence", 1, ",order=context_first,feed=sampled"),
        ("word", 2, ",local=predictive,window=3,score=dot"),
        ("word", 2, ",feed=attentional"),
        ("word", 1, f",{BAHDANAU},feed=sampled"),
    )
]

FIXED = [
    ("translation", f"embedding=6,hidden=5,attention=none,encoder={encoder},source={source},feed={feed}{rest}")
    for encoder, source, feed, rest in (
        ("bidirectional", "forward", "none", ""),
        ("bidirectional", "forward", "soft", ""),
        ("forward", "reversed", "none", ""),
        ("forward", "twice", "sampled", ",dropout=0.4"),
    )
]


def gated_unit(p, name: str, x, h, more=0):
    """h' of Cho et al. 2014, with the term `more` [3H] of its gates and its candidate."""
    a = F.linear(x, p[f"{name}.input.weight"], p[f"{name}.input.bias"]) + more
    a_r, a_z, a_n = a.split(len(h))
    u_r, u_z = p[f"{name}.gates.weight"].split(len(h))
    z = torch.sigmoid(a_z + u_z @ h)
    return (1 - z) * h + z * torch.tanh(a_n + p[f"{name}.recurrent.weight"] @ (torch.sigmoid(a_r + u_r @ h) * h))


def gated_states(p, name: str, words: torch.Tensor) -> torch.Tensor:
    """[words, H]"""
    states = [torch.zeros(p[f"{name}.recurrent.weight"].shape[1], dtype=torch.float64)]
    for x in words:
        states.append(gated_unit(p, name, x, states[-1]))
    return torch.stack(states[1:])


def translator(file: GradientFile, example: int, options):
    p = file.parameters
    feed, kind = file.settings.get("feed", "none"), file.settings.get("score", "additive")
    heads, picks = int(file.settings.get("heads", 1)), int(file.settings.get("picks", 1))
    source = torch.tensor(file.batch["source"][example][: file.batch["source_length"][example]], dtype=torch.long)
    target = file.batch["target"][example][: file.batch["target_length"][example]]

    hidden = len(p["decoder.initial.bias"])
    gated = file.settings.get("unit") == "gated"
    order = file.settings.get("source", "forward")
    read = source.flip(0) if order == "reversed" else source.repeat(2) if order == "twice" else source
    words = p["encoder.embedding.weight"][read]
    if gated and "encoder.forward.gates.weight" in p:
        a = gated_states(p, "encoder.forward", words)  # [L, C]
        ends = a[-1]
        if "encoder.backward.gates.weight" in p:
            back = gated_states(p, "encoder.backward", words.flip(0))
            a, ends = torch.cat([a, back.flip(0)], dim=1), torch.cat([ends, back[-1]])
    elif "encoder.backward.bias" in p:
        a, ends = bilstm(p, "encoder", words)
    elif "encoder.forward.bias" in p:
        a, ends = forward_lstm(p, "encoder.forward", words)
    else:
        a, ends = words, words.mean(0)
    if order == "reversed":
        a = a.flip(0)
    a = a[-len(source) :]  # the states of the last pass
    if "attention.null.weight" in p:
        a = torch.cat([a, p["attention.null.weight"]])
    attends = file.settings.get("attention", "source") == "source"
    if attends:
        a = file.kept("annotation", example, a)

    begin = ends[hidden:] if file.settings.get("start") == "backward" else ends
    s = torch.tanh(F.linear(begin, p["decoder.initial.weight"], p["decoder.initial.bias"]))
    state = (s[None], torch.zeros(1, hidden, dtype=torch.float64))
    fed = p["decoder.context.weight"].shape[1] if feed != "none" else heads * len(ends)
    z = torch.zeros(fed, dtype=torch.float64) if attends else ends

    def windowed(e, head, s, t):  # probability within the window only, and around the predicted place more
        local, size = file.settings.get("local", "none"), int(file.settings.get("window", 10))
        i = torch.arange(1, len(source) + 1, dtype=torch.float64)
        if local == "monotonic":
            place = torch.tensor(float(min(t + 1, len(source))))
        elif local == "predictive":
            seen = torch.tanh(F.linear(s, p["attention.place.weight"]))
            place = len(source) * torch.sigmoid(p["attention.place.score.weight"][head] @ seen)
            gaussian = torch.distributions.Normal(place, size / 2).log_prob(i)
            e = e + gaussian
        else:
            return e
        return torch.where((i - place).abs() > size, torch.tensor(-np.inf, dtype=torch.float64), e)

    def score(head, s, t):
        return windowed(score_of_all(head, s), head, s, t)

    def score_of_all(head, s):  # the scores of all positions
        width = hidden // heads
        mine = slice(head * width, (head + 1) * width)
        if kind == "location":
            most = file.dimensions["source_length"]
            return (p["attention.position.weight"][head * most : (head + 1) * most] @ s)[: len(source)]
        if kind == "plain_dot":
            return a[:, mine] @ s[mine]
        key = p["attention.key.weight"]
        if kind == "general":
            return torch.stack([s @ key[head * hidden : (head + 1) * hidden] @ a_i for a_i in a])
        if kind == "dot":
            return torch.stack([s[mine] @ (key[mine] @ a_i) for a_i in a])
        query = p["attention.query.weight"][mine] @ s
        if kind == "scaled_dot":
            return torch.stack([query @ (key[mine] @ a_i) / width**0.5 for a_i in a])
        bias = p["attention.key.bias"][mine] if kind == "additive" else None
        mixed = torch.tanh(query + F.linear(a, key[mine], bias))
        return mixed @ p["attention.score.weight"][0, mine]

    def choose(t, s):  # -> log p of every head, the contexts of its choices
        chosen = np.reshape(options[t], (heads, -1) if picks > 1 else heads)
        b, log_p = zip(*(picked(chosen[head], score(head, s, t), picks) for head in range(heads)))
        log_p_of = sum(log_p)
        if "posterior.key.weight" in p:  # choices of the posterior, and log q - log p as a loss
            terms = posterior_scores(p, a, "key", s, target, t).reshape(len(a), heads, -1).sum(2)
            log_q = sum(picked(chosen[head], windowed(terms[:, head], head, s, t), picks)[1] for head in range(heads))
            log_probs.append(log_q)
            losses.append(log_q - log_p_of)
        else:
            log_probs.append(log_p_of)
        seen = torch.cat([of @ a / of.sum() for of in b])
        return seen, torch.cat([F.softmax(score(head, s, t), dim=0) @ a for head in range(heads)]) if feed == "soft" else seen

    context_first = file.settings.get("order", "state_first") == "context_first"
    previous, losses, log_probs = BOS, [], []
    writes = file.settings.get("words") == "sampled"  # then every second choice, or all without attention, is a word
    if writes:
        words = [int(np.atleast_1d(word)[0]) for word in options[1 if attends else 0 :: 2 if attends else 1]]
        words = words[: words.index(EOS) + 1] if EOS in words else words
        options = options[::2]
        losses = [torch.tensor(-sentence_reward(file.settings.get("reward", "bleu"), words, target), dtype=torch.float64)]
    for t, word in enumerate(words if writes else target):
        y = p["decoder.embedding.weight"][previous]
        if context_first:
            s = state[0][0]  # of the step before
            seen, z = choose(t, s)
        scored, fed = state[0][0], F.linear(z, p["decoder.context.weight"]) if feed != "none" else 0
        if gated:
            s = gated_unit(p, "decoder.gated", y, state[0][0], fed)
            state = (s[None], None)
        else:
            gates = F.linear(y, p["decoder.lstm.input.weight"]) + p["decoder.lstm.bias"] + fed
            i, f, g, o = (gates + F.linear(state[0][0], p["decoder.lstm.recurrent.weight"])).split(hidden)
            c = torch.sigmoid(f) * state[1][0] + torch.sigmoid(i) * torch.tanh(g)
            s = torch.sigmoid(o) * torch.tanh(c)
            state = (s[None], c[None])

        if not context_first:
            scored = s
            seen, z = choose(t, s) if attends else (ends, z)

        u = F.linear(seen, p["readout.context.weight"], p.get("readout.context.bias"))
        maxout = file.settings.get("readout") == "maxout"
        if "readout.state.weight" in p:
            u = u + F.linear(scored if maxout else s, p["readout.state.weight"], p["readout.state.bias"])
        if "readout.word.weight" in p:
            u = u + F.linear(y, p["readout.word.weight"])
        u = torch.stack([u[0::2], u[1::2]]).amax(0) if maxout else torch.tanh(u)
        z = u if feed == "attentional" else z
        logits = F.linear(file.kept("readout", example, u), p["output.weight"], p["output.bias"])
        log_p_of_word = F.log_softmax(logits, dim=0)[int(word)]
        if writes:
            log_probs.append(log_p_of_word)
        else:
            losses.append(-log_p_of_word)
        previous = int(word)
    return losses, log_probs
