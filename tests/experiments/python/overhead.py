"""The overhead of hardgrad.torch, compared with the same estimators written by hand in PyTorch, as in their papers; with a trivial loss
and one of 1 ms, and with 50 bits.

    PYTHONPATH=build/release/python /usr/bin/python3 tests/experiments/python/overhead.py
"""

import time

import torch
import torch.nn.functional as F

import hardgrad
from hardgrad.torch import Site, episode, expectation

E, D, S, K = 8, 2, 10, 4


def rloo(logits, f):
    """Kool, van Hoof & Welling 2019, by a surrogate, as usually written."""
    choice = torch.distributions.Categorical(logits=logits)
    options = choice.sample((K,))  # [K, E, D]
    losses = f(F.one_hot(options, S).to(logits.dtype).flatten(0, 1)).reshape(K, E)
    others = (losses.sum(0) - losses) / (K - 1)
    return ((losses - others).detach() * choice.log_prob(options).sum(-1) + losses).mean(0)


def straight_through(logits, f):
    p = torch.softmax(logits, -1)[None].expand(K, E, D, S)
    options = torch.distributions.Categorical(probs=p.detach()).sample()
    z = F.one_hot(options, S).to(p.dtype) + p - p.detach()
    return f(z.flatten(0, 1)).reshape(K, E).mean(0)


def reinmax(logits, f):
    """Liu et al. 2023, Algorithm 2, line by line."""
    p = torch.softmax(logits, -1)[None].expand(K, E, D, S)
    z = F.one_hot(torch.distributions.Categorical(probs=p.detach()).sample(), S).to(p.dtype)
    middle = torch.softmax((((p + z) / 2).log() - logits).detach() + logits, -1)
    second = 2 * middle - p / 2
    return f((second - second.detach() + z).flatten(0, 1)).reshape(K, E).mean(0)


def of_milliseconds(milliseconds):
    """A loss with a network; forward and backward take about this time."""
    weight = torch.randn(D * S, 1, requires_grad=True) if milliseconds == 0 else None
    network = None
    if milliseconds:
        width = 32
        while True:
            network = torch.nn.Sequential(
                torch.nn.Linear(D * S, width),
                torch.nn.Tanh(),
                torch.nn.Linear(width, width),
                torch.nn.Tanh(),
                torch.nn.Linear(width, 1),
            )
            z = torch.randn(K * E, D * S)
            if median(lambda: network(z).sum().backward(), 20) > 1e-3 * milliseconds:
                break
            width = int(width * 1.4)
    return lambda z, *_: (network(z.flatten(1)) if network else z.flatten(1) @ weight)[:, 0]


def median(run, count=300):
    seconds = []
    for _ in range(count):
        start = time.thread_time()
        run()
        seconds.append(time.thread_time() - start)
    return sorted(seconds)[count // 2]


def block_and_function(spec, count=1000):
    """Two choices of one column, in an episode: processor time [s] as a `with` block and as a function, drawn in turns."""
    weight = torch.randn(S, S, requires_grad=True)
    sites = {"z": Site(options=S, times=2)}

    def network(e):
        first = e.choose("z", weight[:1].expand(E, S))
        second = e.choose("z", first.weights[:, 0] @ weight)
        e.cost(((second.weights - first.weights[second.parent]) @ weight[0]).square().sum(1))

    def as_block():
        with episode(E, sites, spec) as e:
            network(e)
        e.expected_loss.mean().backward()

    def as_function():
        episode(E, sites, spec).run(network).mean().backward()

    both = [(median(as_block, 1), median(as_function, 1)) for _ in range(count)]
    return tuple(sorted(times)[count // 2] for times in zip(*both))


def reinforce_of_bits(logits, f):
    law = torch.distributions.Bernoulli(logits=logits)
    bits = law.sample()
    losses = f(bits)
    return losses.detach() * law.log_prob(bits).sum(-1) + losses


def rloo_of_bits(logits, f):
    law = torch.distributions.Bernoulli(logits=logits)
    bits = law.sample((K,))
    losses = f(bits.flatten(0, 1)).reshape(K, -1)
    others = (losses.sum(0) - losses) / (K - 1)
    return ((losses - others).detach() * law.log_prob(bits).sum(-1) + losses).mean(0)


def disarm(logits, f):
    """Dong, Mnih & Tucker 2020, eq. 6."""
    p = torch.sigmoid(logits).detach()
    u = torch.rand_like(p)
    bits = torch.stack([u < p, 1 - u < p]).to(p.dtype)
    losses = f(bits.flatten(0, 1)).reshape(2, -1)
    weight = (losses[0] - losses[1]).detach()[:, None] * (bits[0] - bits[1]) * torch.maximum(p, 1 - p) / 2
    return (weight * logits).sum(1) + losses.mean(0)


def arm(logits, f):
    """Yin & Zhou 2019, theorem 1."""
    p = torch.sigmoid(logits).detach()
    u = torch.rand_like(p)
    losses = f(torch.stack([u > 1 - p, u < p]).to(p.dtype).flatten(0, 1)).reshape(2, -1)
    return (((losses[0] - losses[1]).detach()[:, None] * (u - 0.5)) * logits).sum(1) + losses.mean(0)


def straight_through_of_bits(logits, f):
    p = torch.sigmoid(logits)
    return f(torch.bernoulli(p.detach()) + p - p.detach())


def reinmax_of_bits(logits, f):
    p = torch.sigmoid(logits)
    bits = torch.bernoulli(p.detach())
    middle = torch.sigmoid((torch.logit((p + bits) / 2) - logits).detach() + logits)
    second = 2 * middle - p / 2
    return f(second - second.detach() + bits)


def gapped_st_of_bits(logits, f):
    """Fan et al. 2022, of the two logits (0, logits)."""
    both = torch.stack([torch.zeros_like(logits), logits], -1)
    bits = torch.bernoulli(torch.sigmoid(logits.detach()))
    with torch.no_grad():
        z = torch.stack([1 - bits, bits], -1)
        top = both.amax(-1, keepdim=True)
        moved = torch.where(z > 0, top, torch.minimum(both, top - 1)) - both
    w = torch.softmax(both + moved, -1)[..., 1]
    return f(w - w.detach() + bits)


def logistic_like(logits):
    u = torch.rand_like(logits).clamp_(1e-7, 1 - 1e-7)
    return u.log() - torch.log1p(-u)


def gumbel_softmax(logits, f):
    """Of two options: one logistic number each (Maddison, Mnih & Teh 2017, eq. 17)."""
    return f(torch.sigmoid((logits + logistic_like(logits)) / 0.5))


def st_gumbel(logits, f):
    w = torch.sigmoid((logits + logistic_like(logits)) / 0.5)
    return f((w > 0.5).to(w.dtype) + w - w.detach())


def soft(logits, f):
    return f(torch.sigmoid(logits))


#: Estimators of bits by their spec, as good users of PyTorch write them.
OF_BITS = {
    "reinforce": reinforce_of_bits,
    f"rloo[samples={K}]": rloo_of_bits,
    "disarm": disarm,
    "arm": arm,
    "straight_through": straight_through_of_bits,
    "reinmax": reinmax_of_bits,
    "gapped_st[temperature=1]": gapped_st_of_bits,
    "gumbel_softmax": gumbel_softmax,
    "st_gumbel": st_gumbel,
    "soft": soft,
}


def of_bits(spec, by_hand, examples, bits, count):
    """A small network of bits: medians [s] of both, drawn in turns, and of the ratio pair by pair."""
    weights = [torch.randn(bits, 200, requires_grad=True), torch.randn(200, requires_grad=True)]
    logits, held = torch.randn(examples, bits, requires_grad=True), hardgrad.Estimator(spec)

    def f(z, *_):
        return torch.tanh(z @ weights[0]) @ weights[1]

    pairs = [
        (
            median(lambda: by_hand(logits, f).mean().backward(), 1),
            median(lambda: expectation(logits, f, held, bits=True).mean().backward(), 1),
        )
        for _ in range(count)
    ]
    hand, ours, ratio = (sorted(numbers)[count // 2] for numbers in zip(*((a, b, b / a) for a, b in pairs)))
    return hand, ours, ratio


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{E} examples, {D} columns of {S} options, {K} samples; medians of processor time in ms")
    for milliseconds in (0, 1):
        f = of_milliseconds(milliseconds)
        for name, by_hand in (("rloo", rloo), ("straight_through", straight_through), ("reinmax", reinmax)):
            logits = torch.randn(E, D, S, requires_grad=True)
            hand = median(lambda: by_hand(logits, f).mean().backward())
            ours = median(lambda: expectation(logits, f, f"{name}[samples={K}]").mean().backward())
            print(
                f"loss of about {milliseconds} ms, {name:17} by hand {1e3 * hand:.3f}  hardgrad {1e3 * ours:.3f}  ratio {ours / hand:.2f}"
            )
    for examples, bits, count in ((100, 50, 600), (512, 200, 100)):
        for spec, by_hand in OF_BITS.items():
            hand, ours, ratio = of_bits(spec, by_hand, examples, bits, count)
            print(
                f"{examples} examples, {bits} bits, {spec:24} by hand {1e3 * hand:.3f}  hardgrad {1e3 * ours:.3f}  ratio {ratio:.2f}"
            )
    for spec in ("rloo[samples=4]", "straight_through[samples=4]"):
        block, function = block_and_function(spec)
        print(
            f"two choices in an episode, {spec}: block {1e3 * block:.3f}  function {1e3 * function:.3f}  ratio {block / function:.3f}"
        )


if __name__ == "__main__":
    main()
