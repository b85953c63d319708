"""The networks once more, from the equations at the head of each model's source, in PyTorch: one example at a
time, without padding, batching or branching. Each twin returns the losses and log probabilities of one row's run."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from gradient_file import GradientFile

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


def translator(file: GradientFile, example: int, options):
    p = file.parameters
    feed, kind = file.settings.get("feed", "none"), file.settings.get("score", "additive")
    heads = int(file.settings.get("heads", 1))
    source = torch.tensor(file.batch["source"][example][: file.batch["source_length"][example]], dtype=torch.long)
    target = file.batch["target"][example][: file.batch["target_length"][example]]

    hidden = p["decoder.lstm.recurrent.weight"].shape[1]
    a, ends = bilstm(p, "encoder", p["encoder.embedding.weight"][source])  # [L, 2H]

    s = torch.tanh(F.linear(ends, p["decoder.initial.weight"], p["decoder.initial.bias"]))
    state = (s[None], torch.zeros(1, hidden, dtype=torch.float64))
    z = torch.zeros(heads * 2 * hidden, dtype=torch.float64)

    def score(head, s):  # of every position
        width = hidden // heads
        mine = slice(head * width, (head + 1) * width)
        key = p["attention.key.weight"]
        if kind == "general":
            return torch.stack([s @ key[head * hidden: (head + 1) * hidden] @ a_i for a_i in a])
        if kind == "dot":
            return torch.stack([s[mine] @ (key[mine] @ a_i) for a_i in a])
        query = p["attention.query.weight"][mine] @ s
        if kind == "scaled_dot":
            return torch.stack([query @ (key[mine] @ a_i) / width ** 0.5 for a_i in a])
        mixed = torch.tanh(query + F.linear(a, key[mine], p["attention.key.bias"][mine]))
        return mixed @ p["attention.score.weight"][0, mine]

    previous, losses, log_probs = BOS, [], []
    for t, word in enumerate(target):
        y = p["decoder.embedding.weight"][previous]
        gates = F.linear(y, p["decoder.lstm.input.weight"]) + p["decoder.lstm.bias"]
        gates = gates + F.linear(state[0][0], p["decoder.lstm.recurrent.weight"])
        if feed != "none":
            gates = gates + F.linear(z, p["decoder.context.weight"])
        i, f, g, o = gates.split(hidden)
        c = torch.sigmoid(f) * state[1][0] + torch.sigmoid(i) * torch.tanh(g)
        s = torch.sigmoid(o) * torch.tanh(c)
        state = (s[None], c[None])

        log_p = [F.log_softmax(score(head, s), dim=0) for head in range(heads)]
        chosen = np.atleast_1d(options[t])
        log_probs.append(sum(log_p[head][i] for head, i in enumerate(chosen)))
        seen = torch.cat([a[i] for i in chosen])
        z = torch.cat([log_p[head].exp() @ a for head in range(heads)]) if feed == "soft" else seen

        u = torch.tanh(F.linear(s, p["readout.state.weight"], p["readout.state.bias"]) +
                       F.linear(seen, p["readout.context.weight"]) + F.linear(y, p["readout.word.weight"]))
        logits = F.linear(u, p["output.weight"], p["output.bias"])
        losses.append(-F.log_softmax(logits, dim=0)[int(word)])
        previous = int(word)
    return losses, log_probs


def memory_reader(file: GradientFile, example: int, options: list[int]):
    p = file.parameters
    hops = sum(k.startswith("memory.") for k in p) - 1
    width = p["memory.0.weight"].shape[1]
    encode = file.settings.get("position_encoding", "true") == "true"
    temporal = "temporal.0.weight" in p
    story = file.batch["story"][example][: file.batch["story_length"][example]]

    def represent(tokens, table):
        words = [int(w) for w in tokens if w != 0]
        J, total = len(words), torch.zeros(width, dtype=torch.float64)
        for j, w in enumerate(words, start=1):
            d = torch.arange(1, width + 1, dtype=torch.float64)
            l = (1 - j / J) - d / width * (1 - 2 * j / J) if encode else torch.ones(width, dtype=torch.float64)
            total = total + l * table[w]
        return total

    def memory(k):
        rows = []
        for i, sentence in enumerate(story):
            m = represent(sentence, p[f"memory.{k}.weight"])
            rows.append(m + p[f"temporal.{k}.weight"][len(story) - 1 - i] if temporal else m)
        return torch.stack(rows)

    u = represent(file.batch["question"][example], p["memory.0.weight"])
    log_probs = []
    for k in range(1, hops + 1):
        log_p = F.log_softmax(memory(k - 1) @ u, dim=0)
        log_probs.append(log_p[options[k - 1]])
        u = u + memory(k)[options[k - 1]]
    answer = int(file.batch["answer"][example])
    return [-F.log_softmax(p["answer.weight"] @ u, dim=0)[answer]], log_probs


def glimpse_reader(file: GradientFile, example: int, options: list[int]):
    p = file.parameters
    cells, hidden = p["locator.weight"].shape
    grid = round(cells ** 0.5)
    P, scales = int(file.settings.get("patch", 8)), int(file.settings.get("scales", 1))
    image = torch.tensor(file.batch["image"][example], dtype=torch.float64)
    height, width = image.shape

    def look(cell):
        patches = []
        for s in range(scales):
            side = P * 2 ** s
            top = ((2 * (cell // grid) + 1) * height - side * grid + grid) // (2 * grid)
            left = ((2 * (cell % grid) + 1) * width - side * grid + grid) // (2 * grid)
            padded = F.pad(image, (side, side, side, side))
            window = padded[top + side: top + 2 * side, left + side: left + 2 * side]
            patches.append(F.avg_pool2d(window[None, None], 2 ** s).flatten())
        return torch.cat(patches)

    lin = lambda name, x: F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))
    h, c = p["core.initial"][0], torch.zeros(hidden, dtype=torch.float64)
    log_probs = []
    for cell in options:
        log_probs.append(F.log_softmax(lin("locator", h), dim=0)[cell])
        seen = torch.relu(lin("glimpse.patch", look(cell)))
        g = torch.relu(lin("glimpse.what", seen) + p["glimpse.where.weight"][cell])
        if "core.lstm.bias" in p:
            h, c = lstm(p, "core.lstm", g, (h[None], c[None]))
            h, c = h[0], c[0]
        else:
            h = torch.relu(lin("core.recurrent", h) + lin("core.input", g))
    return [-F.log_softmax(lin("classifier", h), dim=0)[int(file.batch["label"][example])]], log_probs


def attentive_reader(file: GradientFile, example: int, options: list[int]):
    p = file.parameters
    words = {name: torch.as_tensor(file.batch[name][example][: file.batch[f"{name}_length"][example]], dtype=torch.long)
             for name in ("document", "question")}
    y_d, _ = bilstm(p, "document", p["embedding.weight"][words["document"]])
    y_q, u = bilstm(p, "question", p["embedding.weight"][words["question"]])
    w = p["attention.score.weight"][0]
    keys, asked = y_d @ p["attention.document.weight"].T, p["attention.question.weight"]
    log_probs = []
    if "read.initial" in p:
        r = p["read.initial"][0]
        for i, y in enumerate(y_q):
            m = torch.tanh(keys + p["attention.read.weight"] @ r + asked @ y)
            log_probs.append(F.log_softmax(m @ w, dim=0)[options[i]])
            r = y_d[options[i]] + torch.tanh(p["read.recurrent.weight"] @ r)
    else:
        log_probs.append(F.log_softmax(torch.tanh(keys + asked @ u) @ w, dim=0)[options[0]])
        r = y_d[options[0]]
    g = torch.tanh(p["answer.read.weight"] @ r + p["answer.question.weight"] @ u)
    return [-F.log_softmax(p["answer.entity.weight"] @ g, dim=0)[int(file.batch["answer"][example])]], log_probs


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
    previous, losses, log_probs, covered = BOS, [], [], torch.zeros(len(a), dtype=torch.float64)
    for t, word in enumerate(target):
        e = torch.tanh(lin("attention.cell", a) + lin("attention.query", h)) @ p["attention.score.weight"][0]
        log_p = F.log_softmax(e, dim=0)
        log_probs.append(log_p[options[t]])
        covered = covered + log_p.exp()
        z = a[options[t]]
        if "decoder.gate.weight" in p:
            z = torch.sigmoid(lin("decoder.gate", h)) * z
        y = p["decoder.embedding.weight"][previous]
        gates = lin("decoder.context", z) + F.linear(y, p["decoder.lstm.input.weight"], p["decoder.lstm.bias"])
        i, f, g, o = (gates + F.linear(h, p["decoder.lstm.recurrent.weight"])).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        logits = lin("output", y + lin("readout.state", h) + lin("readout.context", z))
        losses.append(-F.log_softmax(logits, dim=0)[word])
        previous = word
    losses.append(float(file.settings.get("doubly_stochastic", 0)) * ((1 - covered) ** 2).sum())
    return losses, log_probs


def belief_network(file: GradientFile, example: int, options):
    """With a posterior among the parameters the choices are its own, and the divergence log q - log p is a loss too."""
    p = file.parameters
    S = int(file.settings.get("options", 2))
    image = torch.tensor(file.batch["image"][example], dtype=torch.float64)
    height = image.shape[0] // 2 if file.settings.get("conditional") == "true" else 0
    y = image[height:].flatten()

    def network(name, x, also=0):
        k = 1
        v = p[f"{name}.1.weight"] @ x + p[f"{name}.1.bias"] + also
        while f"{name}.{k + 1}.weight" in p:
            k += 1
            v = p[f"{name}.{k}.weight"] @ F.leaky_relu(v, 0.3) + p[f"{name}.{k}.bias"]
        return v

    def log_probability(logits, z):
        if S == 2:
            return -F.binary_cross_entropy_with_logits(logits, z.double(), reduction="sum")
        return -F.cross_entropy(logits.reshape(-1, S), z, reduction="sum")

    x, losses, log_probs = None, [], []
    for l, chosen in enumerate(options, start=1):
        z = torch.tensor(np.atleast_1d(chosen))
        if l == 1:
            logits = network("prior.layer1", 2 * image[:height].flatten() - 1) if height else p["prior.logits"][0]
        else:
            logits = network(f"prior.layer{l}", x)
        log_p = log_probability(logits, z)
        if "posterior.layer1.1.weight" in p:
            below = p[f"posterior.layer{l}.below.weight"] @ x if l > 1 else 0
            log_q = log_probability(network(f"posterior.layer{l}", 2 * image.flatten() - 1, below), z)
            losses.append(log_q - log_p)
            log_probs.append(log_q)
        else:
            log_probs.append(log_p)
        x = 2 * z.double() - 1 if S == 2 else F.one_hot(z, S).double().flatten()
    losses.append(F.binary_cross_entropy_with_logits(network("decoder", x), y, reduction="sum"))
    return losses, log_probs


def turing_machine(file: GradientFile, example: int, options):
    """`options` [T, H]; None: the published soft machine."""
    p = file.parameters
    x, y = file.batch["input"][example], file.batch["answer"][example]
    setting = lambda name, default: int(file.settings.get(name, default))
    N, readers, heads = setting("cells", 128), setting("reads", 1), setting("reads", 1) + setting("writes", 1)
    width = p["memory.initial.weight"].shape[1]
    lin = lambda name, v: F.linear(v, p[f"{name}.weight"], p[f"{name}.bias"])
    lengths = lambda v: torch.sqrt((v * v).sum(-1) + 1e-8)
    hidden = p["controller.bias"].shape[0] // (4 if "controller.recurrent.weight" in p else 1)

    M = p["memory.initial.weight"].expand(N, width)
    w = [F.one_hot(torch.tensor(0), N).double() for _ in range(heads)]
    s = c = torch.zeros(hidden, dtype=torch.float64)
    read = lambda: torch.cat([w[h] @ M for h in range(readers)])
    r = read()
    losses, log_probs = [], []
    for t in range(int(file.batch["length"][example])):
        given = torch.cat([torch.tensor(x[t], dtype=torch.float64), r])
        if "controller.recurrent.weight" in p:
            s, c = lstm(p, "controller", given, (s[None], c[None]))
            s, c = s[0], c[0]
        else:
            s = torch.tanh(lin("controller", given))
        asked = lin("head.address", s).reshape(heads, width + 6)
        for h in range(heads):
            k, (b, g, sharp) = asked[h, :width], (asked[h, width + j] for j in (0, 1, 5))
            cosine = (M @ k) / (lengths(M) * lengths(k))
            content = F.softmax(F.softplus(b) * cosine, dim=0)
            gated = torch.sigmoid(g) * content + (1 - torch.sigmoid(g)) * w[h]
            back, stay, on = F.softmax(asked[h, width + 2: width + 5], dim=0)
            shifted = back * torch.roll(gated, -1) + stay * gated + on * torch.roll(gated, 1)
            log_p = F.log_softmax((1 + F.softplus(sharp)) * torch.log(shifted + 1e-12), dim=0)
            if options is None:
                w[h] = log_p.exp()
            else:
                log_probs.append(log_p[options[t][h]])
                w[h] = F.one_hot(torch.tensor(int(options[t][h])), N).double()
        uv = lin("head.write", s).reshape(heads - readers, 2 * width)
        kept, added = torch.ones(N, width, dtype=torch.float64), 0
        for h in range(readers, heads):
            u, v = uv[h - readers].split(width)
            kept = kept * (1 - torch.outer(w[h], torch.sigmoid(u)))
            added = added + torch.outer(w[h], torch.tanh(v))
        M = M * kept + added
        r = read()
        if y[t][0] >= 0:
            losses.append(F.binary_cross_entropy_with_logits(lin("output", torch.cat([s, r])),
                                                             torch.tensor(y[t], dtype=torch.float64), reduction="sum"))
    return losses, log_probs


def ponderer(file: GradientFile, example: int, options):
    """`options` [T]: of ask=bits 1 to go on, 0 to halt; of ask=step the step. None: the deterministic network."""
    p = file.parameters
    setting = lambda name, default: type(default)(file.settings.get(name, default))
    N, rate, beta, tau = setting("steps", 10), setting("prior", 0.2), setting("beta", 0.01), setting("tau", 0.0)
    act, at_once = setting("law", "geometric") == "act", setting("ask", "bits") == "step"
    x, label = torch.tensor(file.batch["x"][example], dtype=torch.float64), file.batch["label"][example]
    hidden = p["core.recurrent.weight"].shape[1]
    state = (torch.zeros(1, hidden, dtype=torch.float64),) * 2
    s, halt = [], []
    for _ in range(N):
        state = lstm(p, "core", x, state)
        s.append(state[0][0])
        halt.append(torch.sigmoid(F.linear(s[-1], p["halt.weight"], p["halt.bias"])[0]))
    law = []  # p_n
    for n in range(N):
        left = 1 - sum(law) if law else torch.ones((), dtype=torch.float64)
        last = n + 1 == N or (act and left - halt[n] <= 0.01)
        law.append(left if last else halt[n] if act else left * halt[n])
        if last:
            break
    law, K = torch.stack(law), len(law)
    mixed, log_probs, stop = sum(a * b for a, b in zip(law, s)), [], None
    if options is not None and at_once:
        stop = int(options[0])
        log_probs = [law[stop].log()]
    elif options is not None:
        stop = next((n for n in range(K - 1) if options[n] == 0), K - 1)
        log_probs = [law[stop].log()]
    if stop is not None:
        mixed = s[stop]
    losses = [tau * (K + law[-1])] if act else []
    if not act:
        prior = torch.tensor([rate * (1 - rate) ** n for n in range(N - 1)] + [(1 - rate) ** (N - 1)], dtype=torch.float64)
        if at_once:
            losses.append(beta * (law * (law / prior).log()).sum())
        else:  # of the steps that this row got to; the mean over the steps it may stop at is the divergence of the laws
            got = [1 - sum(law[:n], torch.zeros((), dtype=torch.float64)) for n in range(N - 1)]
            for n in range(N - 1):
                chance, there = halt[n], got[n] if stop is None else float(n <= stop)
                losses.append(beta * there * (chance * (chance / rate).log() + (1 - chance) * ((1 - chance) / (1 - rate)).log()))
        taken = (law * torch.arange(1, K + 1)).sum() if stop is None else stop + 1
        losses.append(tau * taken + 0 * mixed[0])
    logits = F.linear(mixed, p["answer.weight"], p["answer.bias"]).reshape(len(label), -1)
    losses += [-F.log_softmax(logits[i], dim=0)[a] for i, a in enumerate(label.tolist()) if a >= 0]
    return losses, log_probs
