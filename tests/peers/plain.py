"""Three networks as people write them: one tensor row per sample, no Python loop over the batch, the library's LSTM where possible.
Choices are given, so their times exclude sampling; without `data["choices"]`, a hard network draws them. `networks` has the others.

Each network takes the operations `x` of a library, parameters `p` (name -> float array), `data` (see `problem.py`), K samples per
example and the name of an estimator. It returns the surrogate to differentiate."""

from __future__ import annotations

from surrogates import enumerated, sampled


def translator(x, p, data, K, estimator):
    source, target, choices = data["source"], data["target"], data.get("choices")
    B, T = target.shape
    hard = estimator in ("reinforce", "rloo")
    copies = K if hard else 1
    fed = "decoder.context.weight" in p
    a, ends = x.bilstm(p, "encoder", x.embedding(p["encoder.embedding.weight"], source), data.get("length"))
    beyond = x.repeat(data["beyond"], copies) if "beyond" in data else None
    keys = x.linear(a, p["attention.key.weight"], p["attention.key.bias"])
    a, keys = x.repeat(a, copies), x.repeat(keys, copies)  # [R, L, .]
    R = B * copies
    rows = x.arange(R)
    h = x.repeat(x.tanh(x.linear(ends, p["decoder.initial.weight"], p["decoder.initial.bias"])), copies)
    c = x.zeros(*h.shape)
    z = x.zeros(R, a.shape[2])
    previous = x.repeat(x.pad(target[:, :-1] - 2, 1, 0) + 2, copies)  # 2 begins a sentence
    weight = p["decoder.lstm.input.weight"]
    if fed:
        weight = x.cat([weight, p["decoder.context.weight"]], 1)
    states, seen, words, scores, picked = [], [], [], [], []
    for t in range(T):
        y = x.embedding(p["decoder.embedding.weight"], previous[:, t])
        h, c = x.lstm_cell(
            x.cat([y, z], 1) if fed else y, (h, c), weight, p["decoder.lstm.recurrent.weight"], p["decoder.lstm.bias"]
        )
        mixed = x.tanh(x.linear(h, p["attention.query.weight"])[:, None] + keys)
        score = mixed @ p["attention.score.weight"][0]
        log_p = x.log_softmax(score if beyond is None else score + beyond, 1)  # [R, L]
        if hard:
            picked.append(x.categorical(log_p) if choices is None else choices[t])
            z = a[rows, picked[-1]]
            seen.append(z)
        elif estimator == "soft":
            z = x.bmm(x.exp(log_p)[:, None], a)[:, 0]
            seen.append(z)
        states.append(h)
        words.append(y)
        scores.append(log_p)
    s, y, log_p = x.stack(states), x.stack(words), x.stack(scores)  # [T, R, .]
    from_context = x.linear(x.stack(seen) if seen else a, p["readout.context.weight"])
    u = x.linear(s, p["readout.state.weight"], p["readout.state.bias"]) + x.linear(y, p["readout.word.weight"])
    truth = x.repeat(target, copies).T  # [T, R]
    if not seen:  # every position: [T, B, L, H]
        u, truth = u[:, :, None] + from_context, x.broadcast(truth[:, :, None], (T, B, a.shape[1]))
    else:
        u = u + from_context
    logits = x.linear(x.tanh(u), p["output.weight"], p["output.bias"])
    loss = x.cross_entropy(logits.reshape(-1, logits.shape[-1]), truth.reshape(-1)).reshape(truth.shape)
    chosen = x.gather(log_p, x.stack(picked)) if hard else None
    if "said" in data:  # no choice and no loss after the last word
        said = x.repeat(data["said"].T, copies).T
        chosen = chosen * said if hard else None
        loss = loss * (said[:, :, None] if loss.ndim == 3 else said)
    if hard:
        return sampled(x, estimator, chosen.sum(0), loss.sum(0), K)
    if estimator == "soft":
        return loss.sum() / B
    return enumerated(x, estimator, log_p, loss, B)


def memory_reader(x, p, data, K, estimator):
    story, place, mask = data["story"], data["story_place"], data["mask"]  # [B, N, W], [B, N, W, D], [B, N]
    hops = sum(k.startswith("memory.") for k in p) - 1
    hard, choices = estimator in ("reinforce", "rloo"), data.get("choices")
    copies = K if hard else 1
    memory = []
    for k in range(hops + 1):
        m = (x.embedding(p[f"memory.{k}.weight"], story) * place).sum(2)
        m = m + x.embedding(p[f"temporal.{k}.weight"], data["age"]) * mask[:, :, None]
        memory.append(x.repeat(m, copies))
    u = x.repeat((x.embedding(p["memory.0.weight"], data["question"]) * data["question_place"]).sum(1), copies)
    gone = x.repeat(data["gone"], copies)  # [R, N]
    answer = x.repeat(data["answer"], copies)
    if hard or estimator == "soft":
        log_prob, rows = 0, x.arange(len(u))
        for k in range(hops):
            log_p = x.log_softmax(x.bmm(memory[k], u[:, :, None])[:, :, 0] + gone, 1)
            if hard:
                choice = x.categorical(log_p) if choices is None else choices[k]
                log_prob = log_prob + log_p[rows, choice]
                u = u + memory[k + 1][rows, choice]
            else:
                u = u + x.bmm(x.exp(log_p)[:, None], memory[k + 1])[:, 0]
        loss = x.cross_entropy(x.linear(u, p["answer.weight"]), answer)
        return sampled(x, estimator, log_prob, loss, K) if hard else loss.mean()
    return memory_tree(x, p, memory, u, gone, answer, hops, estimator)


def memory_tree(x, p, memory, u, gone, answer, hops, estimator):
    """Every path of choices: leaves [B, N ^ hops]; padded sentences have probability 0."""
    B, N = gone.shape
    u, log_path = u[:, None], x.zeros(B, 1)
    for k in range(hops):
        log_p = x.log_softmax(x.bmm(u, memory[k].swapaxes(1, 2)) + gone[:, None], 2)  # [B, paths, N]
        log_path = (log_path[:, :, None] + log_p).reshape(B, -1)
        u = (u[:, :, None] + memory[k + 1][:, None]).reshape(B, -1, u.shape[2])
    label = x.broadcast(answer[:, None], (B, N**hops)).reshape(-1)
    loss = x.cross_entropy(x.linear(u, p["answer.weight"]).reshape(len(label), -1), label).reshape(B, -1)
    return enumerated(x, estimator, log_path[None], loss[None], B)


def glimpse_reader(x, p, data, K, estimator):
    pixels, table = data["pixels"], data["table"]  # [B, padded pixels], [cells, P P]
    B, cells = len(pixels), len(table)
    hard, choices = estimator in ("reinforce", "rloo"), data.get("choices")
    copies = K if hard else 1
    linear = lambda name, a: x.linear(a, p[f"{name}.weight"], p.get(f"{name}.bias"))
    example = x.repeat(x.arange(B), copies)
    label = x.repeat(data["label"], copies)
    where = p["glimpse.where.weight"]

    def step(h, patch, place):
        g = x.relu(linear("glimpse.what", x.relu(linear("glimpse.patch", patch))) + place)
        return x.relu(linear("core.recurrent", h) + linear("core.input", g))

    h = x.broadcast(p["core.initial"], (B * copies, p["core.initial"].shape[1]))
    if not hard:
        every = pixels[:, table]  # [B, cells, P P]
    if hard or estimator == "soft":
        log_prob, rows = 0, x.arange(B * copies)
        for t in range(data["glimpses"]):
            log_p = x.log_softmax(linear("locator", h), 1)
            if hard:
                choice = x.categorical(log_p) if choices is None else choices[t]
                log_prob = log_prob + log_p[rows, choice]
                h = step(h, pixels[example[:, None], table[choice]], where[choice])
            else:
                w = x.exp(log_p)
                h = step(h, x.bmm(w[:, None], every)[:, 0], w @ where)
        loss = x.cross_entropy(linear("classifier", h), label)
        return sampled(x, estimator, log_prob, loss, K) if hard else loss.mean()
    h, log_path = h[:, None], x.zeros(B, 1)  # every path: [B, cells ^ t, H]
    for t in range(data["glimpses"]):
        log_p = x.log_softmax(linear("locator", h), 2)
        log_path = (log_path[:, :, None] + log_p).reshape(B, -1)
        paths, H = h.shape[1:]
        h = step(
            x.broadcast(h[:, :, None], (B, paths, cells, H)), x.broadcast(every[:, None], (B, paths, *every.shape[1:])), where
        )
        h = h.reshape(B, paths * cells, H)
    label = x.broadcast(label[:, None], (B, h.shape[1])).reshape(-1)
    loss = x.cross_entropy(linear("classifier", h).reshape(len(label), -1), label).reshape(B, -1)
    return enumerated(x, estimator, log_path[None], loss[None], B)
