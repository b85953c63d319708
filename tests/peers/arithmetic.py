"""The products of matrices in one gradient, counted from the sizes, choices and lengths in its file (`hardgrad gradient --out`).

`needed(file, model, estimator, K)` counts the products without which the equations in the head of the model's file cannot be evaluated:
a value is computed once if it does not depend on a choice, or if two samples have the same earlier choices; a product with a state of
zeros, or with a choice among rows (a gather), is none. `plain=True` counts the code of `plain.py`, `belief.py` and `networks` instead;
`test_arithmetic.py` compares that with a count made while they run.

It adds the exponentials, logarithms and hyperbolic tangents of the forward pass (the backward pass needs no others), one for a
logistic function or a square root. Not counted: sums of word vectors, products of a vector with a vector, all else by element. Models
without a function here have no count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Product:
    name: str
    rows: int
    inner: int
    columns: int
    passes: int = 3  # forward, gradient at the left side, gradient at the right side
    calls: int = 1  # of `rows` in all, forward and at the left side: steps that follow each other

    def flops(self) -> float:
        return 2.0 * self.rows * self.inner * self.columns * self.passes


def needed(file, model: str, estimator: str, K: int, plain: bool = False) -> tuple[list[Product], int]:
    """-> products, and evaluations of functions (not with `plain`)."""
    if model not in COUNTS:
        return [], 0
    sizes = Sizes(file, estimator, K, plain)
    return COUNTS[model](sizes), int(sizes.functions)


def flops(file, model: str, estimator: str, K: int, plain: bool = False) -> float:
    """0 if there is no count."""
    return sum(product.flops() for product in needed(file, model, estimator, K, plain)[0])


class Sizes:
    """Counts of states and layers' products. Rows r of the file have examples b and choices; B examples, R rows, T steps."""

    def __init__(self, file, estimator, K, plain):
        self.file, self.batch, self.estimator, self.K, self.plain = file, file.batch, estimator, K, plain
        self.B = len(file.batch["id"])
        self.R = self.B * K
        self.hard = estimator not in ("soft", "exact", "exact_marginal")
        choices = file.value if file.choices is None else file.choices
        self.choices = None if choices is None else choices.reshape(*choices.shape[:2], -1)  # [T, R, columns]
        self.steps = 0 if choices is None else len(choices)
        self.functions = 0

    def has(self, name) -> bool:
        return f"{name}.weight" in self.file.parameters

    def size(self, name) -> tuple[int, int]:
        """Outputs and inputs of a layer."""
        return tuple(self.file.parameters[f"{name}.weight"].shape)

    def setting(self, name, default) -> int:
        return int(self.file.settings.get(name, default))

    def layer(self, name, rows, passes=3, calls=1) -> Product:
        out, inside = self.size(name)
        return Product(name, rows, inside, out, passes, calls)

    def data(self, name, rows, calls=1) -> Product:
        """A layer of data, which need no gradient."""
        return self.layer(name, rows, 2, calls)

    def distinct(self, t, at) -> np.ndarray:
        """The examples of the different pairs of an example and its first t choices, of rows that choose at step `at`."""
        made = slice(None) if self.file.choices is None else self.choices[at, :, 0] >= 0
        past = np.moveaxis(self.choices[:t], 1, 0).reshape(len(self.file.row_example), -1)
        return np.unique(np.column_stack([self.file.row_example, past])[made], axis=0)[:, 0].astype(int)

    def states(self, t) -> int:
        """States that make choice t = 0, 1, .."""
        return self.R if self.plain else len(self.distinct(t, t))

    def leaves(self, t) -> int:
        """States after t choices."""
        return self.R if self.plain else len(self.distinct(t, t - 1))

    def seen(self, steps=None) -> int:
        """Different pairs of an example and an option that some step chooses, for choices of one column."""
        chosen = self.choices[:steps, :, 0]
        if self.plain:
            return chosen.size
        example = np.broadcast_to(self.file.row_example, chosen.shape)
        return len(np.unique(np.column_stack([example.ravel(), chosen.ravel()])[chosen.ravel() >= 0], axis=0))


def translator(s):
    b, plain, hard = s.batch, s.plain, s.hard
    length, said = b["source_length"].astype(int), b["target_length"].astype(int)
    L, T, B = int(length.max()), int(said.max()), s.B
    H = s.size("attention.query")[0]
    source = [w for row, n in zip(b["source"], length) for w in row[:n]]
    before = [w for row, n in zip(b["target"], said) for w in [-1, *row[: n - 1]]]
    tokens, positions = len(source), B * L if plain else len(source)
    words = tokens if plain else len(set(source))
    states = [s.states(t) if hard else int((said > t).sum()) if not plain else B for t in range(T)]
    pairs = B * T * L if plain else int((length * said).sum())  # a step and a position
    out = [s.layer("attention.key", positions), s.layer("decoder.initial", B)]
    for way in ("forward", "backward"):
        out += [s.layer(f"encoder.{way}.input", words)]
        zeros = int((length == L).sum()) if plain and way == "backward" else B  # of a first step
        out += [s.layer(f"encoder.{way}.recurrent", tokens - zeros, calls=L - 1)]
        out += [s.data(f"encoder.{way}.recurrent", zeros)] if plain else []
    fed = s.has("decoder.context")
    after = sum(states) if plain else len(set(before))
    out += [s.layer("decoder.lstm.input", after), s.layer("readout.word", after)]
    out += [s.layer("decoder.context", s.seen() if plain else s.seen(T - 1))] if fed else []
    out += [
        s.layer("decoder.lstm.recurrent", sum(states), calls=T),
        s.layer("attention.query", sum(states), calls=T if fed else 1),
        s.layer("readout.state", sum(states)),
    ]
    scores = sum(int(length[s.distinct(t, t)].sum()) for t in range(T)) if hard else pairs
    rows = sum(states) if s.estimator == "soft" else sum(s.leaves(t + 1) for t in range(T)) if hard else pairs
    s.functions = (2 * tokens + sum(states)) * 5 * H + scores * (H + 1) + rows * (H + s.size("output")[0])
    if s.estimator == "soft":
        out += [
            Product("mixture", pairs, 2 * H if plain else H, 1),
            s.layer("readout.context", sum(states) if plain else positions),
        ]
        return out + [s.layer("output", rows)]
    out += [s.layer("readout.context", s.seen() if hard else positions)]
    return out + [s.layer("output", rows)]


def memory_reader(s):
    length, D = s.batch["story_length"].astype(int), s.size("memory.0")[1]
    hops, N = s.setting("hops", 3), int(length.max())
    if s.plain:
        length = np.full(s.B, N)
    out = []
    for k in range(hops):
        if s.estimator == "soft":
            out += [Product("scores", int(length.sum()), D, 1), Product("mixture", int(length.sum()), 1, D)]
        elif s.hard:
            out += [Product("scores", s.R * N if s.plain else int(length[s.distinct(k, k)].sum()), D, 1)]
        else:
            out += [Product("scores", int((length.astype(float) ** (k + 1)).sum()), D, 1)]
    paths = [int((length.astype(float) ** k).sum()) for k in (hops - 1, hops)]
    leaves = s.leaves(hops) if s.hard else s.B if s.estimator == "soft" else paths[1]
    s.functions = sum(p.rows for p in out if p.name == "scores") + leaves * s.size("answer")[0]
    # W u_K = W u_{K-1} + W m_K of the paths before the last choice, and of the sentences
    exact = not s.plain and not s.hard and s.estimator != "soft"
    return out + [s.layer("answer", min(leaves, paths[0] + int(length.sum())) if exact else leaves)]


def glimpse_reader(s):
    T, P = s.setting("glimpses", 6), s.setting("patch", 8)
    cells, calls = s.size("locator")[0], 1  # without choices, all cells are one product
    if s.file.settings.get("policy") == "gaussian":
        looks, calls, states = s.R * T, T, [1 if t == 0 and not s.plain else s.R for t in range(T)]
        height, width = s.batch["image"].shape[1:]
        out = [s.data("glimpse.where", looks, T), s.data("glimpse.patch", looks, T)]
        if s.plain:  # windows as products of their weights with the image
            out += [Product("rows", looks * P, height, width, 1), Product("columns", looks * P, width, P, 1)]
        leaves = s.R
    elif s.estimator == "soft":
        looks, leaves, calls, states = s.B * T, s.B, T, [1 if t == 0 and not s.plain else s.B for t in range(T)]
        out = [
            Product("patches", looks, cells, P * P, 2),
            Product("places", sum(states), cells, s.size("glimpse.where")[1]),
            s.layer("glimpse.patch", looks, calls=T),
        ]
    elif s.hard:
        looks, leaves, states = s.seen(), s.leaves(T), [1 if t == 0 and not s.plain else s.states(t) for t in range(T)]
        out = [s.data("glimpse.patch", looks)]
    else:
        paths = [s.B * cells**t for t in range(T + 1)]
        leaves = paths[T]
        looks = sum(paths[1:]) if s.plain else paths[1]
        states = paths[:T] if s.plain else [1, *paths[1:T]]
        out = [s.data("glimpse.patch", looks), s.layer("locator", sum(states))]
        recurrent = looks if s.plain else sum(states)
        s.functions = sum(states) * cells + leaves * s.size("classifier")[0]
        return out + [
            s.layer("glimpse.what", looks),
            s.layer("core.input", looks),
            s.layer("core.recurrent", recurrent),
            s.layer("classifier", leaves),
        ]
    s.functions = sum(states) * cells + leaves * s.size("classifier")[0]
    return out + [
        s.layer("glimpse.what", looks, calls=calls),
        s.layer("core.input", looks, calls=calls),
        s.layer("core.recurrent", sum(states), calls=T),
        s.layer("locator", sum(states), calls=T),
        s.layer("classifier", leaves),
    ]


def sentence_pair(s):
    b, (D, inside) = s.batch, s.size("block1")
    lengths = [b[f"{side}_length"].astype(int) for side in ("first", "second")]
    w = inside // (2 * D)
    if s.plain:
        out = [Product("block1", s.R * (int(n.max()) + w - 1), inside, D) for n in lengths]
    else:  # words and places once, before samples choose
        tokens, places = sum(int(n.sum()) for n in lengths), s.size("attention.place")[0]
        out = [Product("block1 of words", tokens, D, w * D), Product("block1 of places", places, D, w * D)]
    matches = int((lengths[0] * lengths[1]).sum())
    s.functions = 3 * matches + s.K * sum(int((n + w - 1).sum()) for n in lengths) * D  # the distance's root, two logarithms
    return out + [s.layer("classifier", s.R)]


def turing_machine(s):
    b, C = s.batch, s.size("controller.recurrent")[1]
    length, width, N = b["length"].astype(int), s.size("memory.initial")[1], s.setting("cells", 128)
    reads, writes = s.setting("reads", 1), s.setting("writes", 1)
    T, inputs, copies = int(length.max()), b["input"].shape[2], s.K if s.hard else 1
    asked = int((b["answer"][:, :, 0] >= 0).sum()) * copies
    states = [s.states(t) if s.hard else s.B if s.plain else int((length > t).sum()) for t in range(T)]
    heads, mixed = (reads + writes) * width, reads * width
    layers = [s.layer("head.address", sum(states), calls=T), s.layer("head.write", sum(states), calls=T)]
    s.functions = sum(states) * (5 * C + (reads + writes) * 3 * N + writes * 2 * width) + asked * s.size("output")[0]
    if not s.plain:
        later = sum(states[1:])  # the first state, reads and memory are the same for all, or 0
        out = layers + [
            Product("inputs", int(length.sum()), inputs, 4 * C, 2),
            Product("reads", later, mixed, 4 * C, 3, T - 1),
            s.layer("controller.recurrent", later, calls=T - 1),
            Product("contents", later, heads, N),
            s.layer("output", asked),
        ]
        return out + ([] if s.hard else [Product("mixture", sum(states), N, mixed)])
    every, first = sum(states), states[0]
    later = every - first
    out = layers + [
        s.layer("controller.input", every),
        s.layer("controller.recurrent", later),
        s.data("controller.recurrent", first),
        Product("contents", every, heads, N),
        s.layer("output", every),
    ]
    chosen = 2 if s.hard else 3  # choices have no gradient, nor have the first weights
    return out + [
        Product("mixture", every + later, N, mixed, chosen),
        Product("first mixture", first, N, mixed, 2),  # twice a step
        Product("writing", every * writes, N, width, chosen),
    ]


def tape_machine(s):
    b, width, C = s.batch, s.size("write")[0] // 2, s.size("controller.recurrent")[1]
    inputs, outputs = b["input"].shape[2], s.size("output")[0]
    asked = b["answer"][:, :, 0] >= 0
    if not s.plain:
        states = [s.states(t) for t in range(s.steps)]
        shown = sum(int(n) for n in b["length"]) - int(asked.sum())
        written = int(asked.sum())  # in each sample, when samples differ in all of them; at least once
        T = s.steps
        s.functions = sum(states) * (5 * C + 2 * width + 8) + written * outputs
        return [
            Product("inputs", shown, inputs, 4 * C, 2),
            Product("reads", sum(states[1:]), width, 4 * C, 3, T - 1),
            s.layer("controller.recurrent", sum(states[1:]), calls=T - 1),
            s.layer("move", sum(states), calls=T),
            s.layer("write", sum(states), calls=T),
            Product("output", written, C, outputs),
        ]
    every = s.R * int(b["length"].max())
    later = every - s.R
    return [
        s.layer("controller.input", later),
        s.data("controller.input", s.R),
        s.layer("controller.recurrent", later),
        s.data("controller.recurrent", s.R),
        s.layer("move", every),
        s.layer("write", later),
        s.layer("write", s.R, 1),
        s.layer("output", every),
    ]


def ponderer(s):
    N, B = s.setting("steps", 10), s.B
    if s.plain:
        return [
            s.data("core.input", B * N),
            s.layer("core.recurrent", B * (N - 1)),
            s.data("core.recurrent", B),
            s.layer("halt", B * N),
            s.layer("answer", s.R),
        ]
    halted = s.file.choices == 0
    stop = np.where(halted.any(0), halted.argmax(0), N - 1)
    stops = len(np.unique(np.column_stack([s.file.row_example, stop]), axis=0))
    s.functions = B * N * 5 * s.size("core.recurrent")[1] + B * (N - 1) * 2 + stops * s.size("answer")[0]
    return [
        s.data("core.input", B),
        s.layer("core.recurrent", B * (N - 1), calls=N - 1),
        s.layer("halt", B * (N - 1)),
        s.layer("answer", stops),
    ]


def writer(s):
    """A GRU on prompts, then on words; the prompts' last states are the samples' first."""
    (_, E), H, (B, n), T = s.size("prompt"), s.size("core.recurrent")[1], s.batch["prompt"].shape, s.steps
    if s.plain:
        return [
            s.layer("core.input", B * n + s.R * (T - 1)),
            s.layer("core.recurrent", B * (n - 1) + s.R * (T - 1)),
            s.data("core.recurrent", B),
            s.layer("output", s.R * T),
        ]
    prompts, words = (len(np.unique(a[a >= 0])) for a in (s.batch["prompt"], s.choices[: T - 1]))
    states = [s.states(t) for t in range(T)]
    s.functions = (B * n + sum(states[1:])) * 3 * H + sum(states) * s.size("output")[0]
    return [
        s.layer("core.input", prompts + words),
        s.layer("core.recurrent", B * (n - 1) + sum(states[1:]), calls=n + T - 2),
        s.layer("output", sum(states)),
    ]


def belief_network(s):
    def rest(name, rows):
        return [s.layer(f"{name}.{k}", rows) for k in range(2, 10) if s.has(f"{name}.{k}")]

    def of_choices(name):  # categories are gathers
        return [] if s.setting("options", 2) > 2 else [s.data(name, R)]

    B, R = s.B, s.R
    out = [
        s.data("posterior.layer1.1", B),
        *of_choices("decoder.1"),
        *rest("posterior.layer1", R if s.plain else B),
        *rest("decoder", R),
    ]
    for l in range(2, s.setting("layers", 1) + 1):
        out += [
            s.data(f"posterior.layer{l}.1", B),
            *of_choices(f"posterior.layer{l}.below"),
            *rest(f"posterior.layer{l}", R),
            *of_choices(f"prior.layer{l}.1"),
            *rest(f"prior.layer{l}", R),
        ]
    last = max(name for name in s.file.parameters if name.startswith("decoder.") and name.endswith(".bias"))
    pixels, bits = s.file.parameters[last].numel(), s.size("posterior.layer1.1")[0]
    s.functions = R * pixels * 2 * (3 if s.estimator == "rebar" else 1) + B * bits * s.setting("layers", 1)
    if s.estimator in ("rebar", "relax"):  # of a bit: noise, noise given the bit, weights
        s.functions += R * bits * 6
    if s.estimator == "rebar":  # two relaxed evaluations, whose gradient goes to the bits alone
        out.append(s.layer("decoder.1", 2 * R, 2))
    if s.estimator == "relax":  # the control network has 10 units; it learns by other means
        s.functions += 2 * R * bits * 10
        out += [
            Product("control of the image", B, s.size("posterior.layer1.1")[1], 10, 1),
            Product("control", 2 * R * bits, 10, 1, 2),
        ]
    return out


COUNTS = {
    f.__name__: f
    for f in (
        translator,
        memory_reader,
        glimpse_reader,
        sentence_pair,
        turing_machine,
        tape_machine,
        ponderer,
        writer,
        belief_network,
    )
}
