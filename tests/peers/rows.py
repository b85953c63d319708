"""The benchmark's rows: networks, sizes and estimators."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

SIZES = {"small": (100, 32, 1, 10), "mid": (2000, 64, 8, 20), "large": (4000, 256, 8, 20)}  # V, H, K, L = T
QUICK = {"tiny": (24, 8, 2, 4)}


@dataclass
class Row:
    name: str
    task: str
    model: str
    estimator: str
    samples: int = 1
    batch: int = 32
    replicates: str = ""  # empty: one gradient; else many, of all "parameters" or at the "logits"
    training: int = 0  # examples of the data: whole training steps; choices are drawn
    noise: bool = False  # the peers draw different noise: means are compared
    small: str = ""  # the network of that comparison, if the row's has too many outcomes
    own: str = ""  # settings of this estimator alone
    target: str = ""  # settings of the target

    def spec(self):
        settings = [f"samples={self.samples}"] if self.samples > 1 or self.estimator in ("reinforce", "rloo") else []
        settings += [some for some in (self.own, self.target) if some]
        return f"{self.estimator}[{','.join(settings)}]" if settings else self.estimator


def write_texts(folder: Path, name: str, V: int, length: int, shortest: int = 0) -> str:
    """Parallel texts with a vocabulary of V words, including four special words. Sentences have one length, or lengths from `shortest`
    to it."""
    rng, words = random.Random(V), [f"w{i}" for i in range(V - 4)]
    lines = max(64, 2 * V // length)
    for side, most in (("source", length), ("target", length - 1)):  # the end mark counts as a word
        pool, sentences = [], []
        for _ in range(lines):
            n = rng.randint(shortest, most) if shortest else most
            while len(pool) < n:
                pool += rng.sample(words, len(words))
            sentences.append(" ".join(pool[:n]))
            del pool[:n]
        (folder / f"{name}.{side}").write_text("\n".join(sentences) + "\n")
    return (
        f"translation[data=text,path={folder / name}.source,target_path={folder / name}.target,vocabulary={V},"
        f"max_length={length},heldout=0,test=0]"
    )


def rows(folder: Path, quick: bool):
    for name, (V, H, K, L) in (QUICK if quick else SIZES).items():
        task = write_texts(folder, name, V, L)
        for estimator in ("reinforce", "rloo", "exact", "exact_marginal", "soft"):
            hard, B = estimator in ("reinforce", "rloo"), 4 if quick else 32
            k = max(K, 2) if estimator == "rloo" else K
            model = f"translator[embedding={H},hidden={H},feed={'sampled' if hard else 'none'}]"
            yield Row(f"translator {name}", task, model, estimator, k if hard else 1, B)
            if estimator == "reinforce" and name != "large":
                for of in ("parameters", "logits"):
                    yield Row(f"{name}: 64, {of}", task, model, estimator, k, B, replicates=of)
            if estimator == ("rloo" if name == "mid" else "reinforce") and name != "large":
                yield Row(f"{name}: training", task, model, estimator, k, B, training=max(64, 2 * V // L))
    for bits in (8, 17) if quick else (200, 20000):  # of the larger ones, means are compared on a small network
        small = "" if bits in (8, 200) else f"bits[bits={8 if quick else 200}]"
        for estimator in ("reinforce", "rloo", "disarm", "arms", "straight_through") + (("rebar",) if not small else ()):
            yield Row(f"{bits:,} bits", "bits", f"bits[bits={bits}]", estimator, 2, 1, noise=True, small=small)
    columns, small = (8, "") if quick else (20000, "bits[bits=200,options=3]")
    yield Row(f"{columns:,} of 3 options", "bits", f"bits[bits={columns},options=3]", "rloo", 2, 1, noise=True, small=small)
    B, units, side = (4, 6, 8) if quick else (50, 200, 28)
    for estimator in ("rloo", "disarm", "rebar", "relax", "reinforce"):
        row = Row(
            f"belief, {units} bits",
            f"images[size={side},examples=200]",
            f"belief_network[units={units}]",
            estimator,
            2,
            B,
            noise=True,
            small="belief_network[units=4]",
            own="relaxed_model=false" if estimator == "relax" else "",
            target="target=elbo",
        )
        yield row
        if estimator == "rloo":
            task = f"images[size={side},examples=200,binarise=static]"
            yield replace(row, name=f"belief, {units} bits: training", task=task, training=200)
    for options in (3,) if quick else (64, 256):
        yield Row(
            f"belief, {options} options",
            f"images[size={side},examples=200]",
            f"belief_network[units={4 if quick else 20},options={options}]",
            "rloo",
            4,
            B,
            noise=True,
            small="belief_network[units=3,options=4]",
            target="target=elbo",
        )
    B = 4 if quick else 32
    V, H, K, L = QUICK["tiny"] if quick else SIZES["mid"]
    task = write_texts(folder, "ragged", V, L, max(1, L // 6))
    for estimator in ("rloo", "exact", "exact_marginal", "soft"):
        feed = "sampled" if estimator == "rloo" else "none"
        yield Row(
            "translator ragged",
            task,
            f"translator[embedding={H},hidden={H},feed={feed}]",
            estimator,
            K if estimator == "rloo" else 1,
            B,
        )
    for estimator in ("reinforce", "rloo", "exact", "exact_marginal", "soft"):
        k = {"reinforce": 1, "rloo": 4}.get(estimator, 1)
        model = f"memory_reader[embedding={8 if quick else 50},hops={2 if quick else 3},tying=free_answers]"
        yield Row("memory reader", "qa", model, estimator, k, B)
        if estimator == "rloo":
            stories = 12 if quick else 200
            yield Row(
                "memory reader: training",
                f"qa[stories={stories},heldout=0,test=0]",
                model,
                estimator,
                k,
                B,
                training=5 * stories,
            )
    for estimator in ("reinforce", "rloo", "soft"):
        k = {"reinforce": 1, "rloo": 4}.get(estimator, 1)
        model = "glimpse_reader[features=8,hidden=8,glimpses=2]" if quick else "glimpse_reader"
        yield Row("glimpse reader", "glimpse", model, estimator, k, B)
        if estimator == "rloo":
            images = 40 if quick else 500
            yield Row("glimpse reader: training", f"glimpse[examples={images}]", model, estimator, k, B, training=images)
    for estimator in ("exact", "exact_marginal"):
        yield Row(
            "glimpse reader, 2",
            "glimpse",
            "glimpse_reader[features=8,hidden=8,grid=3,glimpses=2]" if quick else "glimpse_reader[glimpses=2]",
            estimator,
            1,
            B,
        )
    yield from other_networks(quick, B)


def other_networks(quick: bool, B: int):
    """One row of each network in `networks`, or two."""
    small = lambda settings: f"[{settings}]" if quick else ""
    sequence = "algorithm[bits=3,min_length=1,max_length=3]" if quick else "algorithm"
    bits, maps = ("units=6", "hidden=5") if quick else ("units=200", "hidden=200")
    pictures = "images[size=8]" if quick else "images"
    recall = "recall[pairs=2,queries=2,length=6,vocabulary=6]" if quick else "recall"
    for name, task, model, estimator, K in (
        ("captioner", "caption", "captioner" + small("embedding=6,hidden=5,channels=4,features=7"), "rloo", 4),
        ("attentive reader", "cloze", "attentive_reader" + small("embedding=6,hidden=5"), "rloo", 4),
        (
            "impatient reader",
            "cloze",
            f"attentive_reader[kind=impatient{',embedding=6,hidden=5' if quick else ''}]",
            "rloo",
            4,
        ),
        ("sentence pair", "pairs", "sentence_pair" + small("width=5"), "rloo", 4),
        (
            "pixel attention",
            "canvas[size=8,canvas=14,noise=3]" if quick else "canvas",
            "pixel_attention" + small("layers=2,channels=3,hidden=6,code=3"),
            "rloo",
            4,
        ),
        ("Turing machine", sequence, "turing_machine" + small("cells=5,width=4,hidden=6"), "rloo", 4),
        ("Turing machine", sequence, "turing_machine" + small("cells=5,width=4,hidden=6"), "soft", 1),
        ("tape machine", sequence, "tape_machine" + small("cells=4,width=3,hidden=5"), "rloo", 4),
        ("ponderer", "puzzle", "ponderer" + small("hidden=6,steps=4"), "rloo", 4),
        ("programmer", "tables", "programmer" + small("hidden=6,embedding=5"), "rloo", 4),
        ("selector", "features", "selector" + small("hidden=5"), "rloo", 4),
        ("router", "features[kind=regimes]", "router" + small("hidden=4"), "rloo", 4),
        ("transformer", recall, "transformer" + small("width=8,inner=6"), "rloo", 4),
        ("codebook", pictures, "codebook" + small("vectors=2,codes=4,width=3,hidden=5"), "rloo", 4),
        (
            "Gaussian glimpses",
            "glimpse",
            f"glimpse_reader[policy=gaussian{',features=9,hidden=8,glimpses=2' if quick else ''}]",
            "rloo",
            4,
        ),
        ("belief, two layers", pictures, f"belief_network[layers=2,hidden_layers=1,{bits},{maps}]", "rloo", 2),
        ("belief, K samples", pictures, f"belief_network[{bits}]", "vimco", 5),
    ):
        yield Row(
            name,
            task,
            model,
            estimator,
            K,
            max(B, 16),
            target="target=elbo,kl=sampled" if name == "belief, two layers" else "",
        )
    symbols, size, prompts, widths = (5, 3, 16, "embedding=6,hidden=5") if quick else (50, 30, 64, "embedding=64,hidden=64")
    yield Row(
        "writer",
        f"answers[symbols={symbols},least={size},size={size}]",
        f"writer[reward=share,{widths}]",
        "rloo",
        2 if quick else 8,
        prompts,
    )
