"""Choices that feed later ones, in PyTorch: the program's gradients, explicit sums, and errors."""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hardgrad  # noqa: E402
from hardgrad.torch import Site, episode  # noqa: E402
from problem import write_gradient  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "peers"))
import gradient_file  # noqa: E402
from reader import Reader  # noqa: E402


def answered(reader, hops, weights):
    """The network's run: every look depends on the earlier ones."""

    def network(e):
        u, example = reader.start(), torch.arange(len(reader.answer))
        for k in range(1, hops + 1):
            look = e.choose("sentence", reader.scores(u, k, example), state=u)
            example = look.example
            memory = reader.memory(k)[example]
            read = (
                torch.einsum("rs,rsd->rd", look.weights[:, 0], memory)
                if weights
                else memory[torch.arange(len(example)), look.options[:, 0]]
            )
            u = u[look.parent] + read
        e.cost(reader.loss(u, example))

    return network


HARD = [
    "reinforce[samples=2]",
    "rloo[samples=4]",
    "self_critic",
    "disarm_tree",
    "unordered_set",
    "sum_and_sample",
    "local_expectation",
    "stratified[samples=3]",
    "optimal_baseline",
    "systematic",
    "exact",
]
RELAXED = [
    "straight_through[samples=2]",
    "gumbel_softmax",
    "st_gumbel",
    "reinmax",
    "gapped_st",
    "rebar[samples=2]",
    "muprop",
    "double_cv[alpha=-0.5]",
    "rloo[samples=3]",
    "sum_and_sample",
    "exact",
]


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("specs", [HARD, RELAXED], ids=["options", "weights"])
def test_a_memory_reader_has_the_programs_gradients(tmp_path, hops, specs):
    """With options, and with weights, in which relaxations differentiate the network."""
    compared, out = 0, tmp_path / "gradient.h5"
    for seed, spec in enumerate(specs):
        write_gradient(out, "qa", f"memory_reader[embedding=5,hops={hops}]", spec, seed, batch=4)
        file = gradient_file.load(str(out))
        reader = Reader(file)
        sites = {"sentence": Site(options=reader.there.shape[1], times=hops, state=5)}
        loss = episode(4, sites, spec, dtype=torch.float64, ids=file.batch["id"], seed=seed).run(
            answered(reader, hops, specs == RELAXED)
        )
        loss.mean().backward()
        for name, theirs in file.gradient.items():
            ours = file.parameters[name].grad
            ours = np.zeros_like(theirs) if ours is None else ours.numpy()
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=f"{spec}: {name}")
        compared += 1
    assert compared == len(specs) >= 10


FIRST, SECOND = torch.tensor([[0.4, -0.3]], dtype=torch.double), torch.tensor([[0.1, 0.9], [-0.6, 0.2]], dtype=torch.double)
LOSS = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.double)


def two(first, second, loss, posterior=None):
    """Two bits, the second depending on the first, and a loss of both. With a posterior, which has the same number of logits."""

    def network(e):
        p, q = (first, second), posterior or (None, None)
        a = e.choose("bit", p[0].expand(3, 2), posterior=None if posterior is None else q[0].expand(3, 2))
        b = e.choose("bit", a.weights[:, 0] @ p[1], posterior=None if posterior is None else a.weights[:, 0] @ q[1])
        e.cost(torch.einsum("ri,ij,rj->r", a.weights[b.parent, 0], loss, b.weights[:, 0]))

    return network


def leaves(*tensors):
    return [tensor.clone().requires_grad_() for tensor in tensors]


SITES = {"bit": Site(options=2, times=2)}


def test_enumerations_are_differentiated_as_sums():
    mine, theirs = leaves(FIRST, SECOND, LOSS), leaves(FIRST, SECOND, LOSS)
    value = episode(3, SITES, "exact", dtype=torch.double).run(two(*mine))
    p = theirs[0].softmax(1).T * theirs[1].softmax(1)
    torch.testing.assert_close(value, (p * theirs[2]).sum().expand(3))
    weight = torch.tensor([1.0, -2.0, 0.5], dtype=torch.double)
    ours = torch.autograd.grad((weight * value).sum(), mine)
    for one, other in zip(ours, torch.autograd.grad(weight.sum() * (p * theirs[2]).sum(), theirs)):
        torch.testing.assert_close(one, other)


def three(first, second, third, loss):
    """Two names for two sites and three choices: a bit, two columns of three options, some missing, and a bit again."""

    def network(e):
        a = e.choose("bit", first.expand(2, 1), bits=True)
        b = e.choose("colour", (second + 0.3 * a.weights[:, :1]).reshape(-1, 2, 3))
        read = torch.einsum("rds,ds->r", b.weights, torch.tensor([[1.0, -2.0, 0.5], [0.3, 0.7, -1.0]], dtype=torch.double))
        c = e.choose("bit", third * (read + a.weights[b.parent, 0])[:, None], bits=True)
        e.cost(read[c.parent] ** 2)
        e.cost(loss * c.weights[:, 0] * read[c.parent] + torch.sin(c.weights[:, 0] - loss * a.weights[b.parent[c.parent], 0]))

    return network


NAMED = {"bit": Site(options=2, times=2), "colour": Site(options=3, columns=2)}
INF = float("inf")
THREE = (
    torch.tensor([[0.3]], dtype=torch.double),
    torch.tensor([0.2, -INF, 0.9, -INF, -0.5, 0.4], dtype=torch.double),
    torch.tensor([0.8], dtype=torch.double),
    torch.tensor(0.7, dtype=torch.double),
)


def summed(first, second, third, loss):
    """E[f] of `three` as an explicit sum."""
    value, worth = 0, [[1.0, -2.0, 0.5], [0.3, 0.7, -1.0]]
    for a in (0, 1):
        logits = (second + 0.3 * a).reshape(2, 3)
        p = [torch.sigmoid(first[0, 0] if a else -first[0, 0]), logits[0].softmax(0), logits[1].softmax(0)]
        for i in (0, 2):
            for j in (1, 2):
                read = worth[0][i] + worth[1][j]
                for c in (0, 1):
                    x = third[0] * (read + a)
                    value += (
                        p[0]
                        * p[1][i]
                        * p[2][j]
                        * torch.sigmoid(x if c else -x)
                        * (read**2 + loss * c * read + torch.sin(c - loss * a))
                    )
    return value


def test_bits_missing_options_and_three_choices_at_two_sites():
    mine, theirs = leaves(*THREE), leaves(*THREE)
    value = episode(2, NAMED, "exact", dtype=torch.double).run(three(*mine))
    torch.testing.assert_close(value, summed(*theirs).expand(2))
    exact = torch.autograd.grad(value.mean(), mine)
    for one, other in zip(exact, torch.autograd.grad(summed(*theirs), theirs)):
        torch.testing.assert_close(one, torch.nan_to_num(other))
    for spec in ("rloo[samples=2000]", "rebar[samples=2000]", "muprop[samples=2000]"):  # unbiased, far within their noise
        found = torch.autograd.grad(
            episode(2, NAMED, hardgrad.Estimator(spec), dtype=torch.double, seed=3).run(three(*mine)).mean(), mine
        )
        assert found[1][1] == found[1][3] == 0
        for one, other in zip(found, exact):
            torch.testing.assert_close(one, other, atol=0.25, rtol=0.1)


def test_lower_bounds_with_a_learned_posterior():
    """-ELBO by enumeration, at the logits of prior and posterior; and importance-weighted estimators run."""
    tensors = FIRST, SECOND, LOSS, 0.5 * FIRST + 0.1, SECOND.flip(0)
    mine, theirs = leaves(*tensors), leaves(*tensors)
    value = episode(3, SITES, "exact[target=elbo]", posterior=True, dtype=torch.double).run(two(*mine[:3], posterior=mine[3:]))
    p, q = (first.softmax(1).T * second.softmax(1) for first, second in (theirs[:2], theirs[3:]))
    bound = (q * (theirs[2] + q.log() - p.log())).sum()
    torch.testing.assert_close(value, bound.expand(3))
    for one, other in zip(torch.autograd.grad(value.mean(), mine), torch.autograd.grad(bound, theirs)):
        torch.testing.assert_close(one, other)
    run = 0
    for spec in (
        "vimco[samples=3]",
        "iwae_reinforce[samples=2]",
        "wake_wake[samples=4]",
        "vargrad[samples=2]",
        "rloo[target=elbo,kl=sampled]",
    ):
        value = episode(3, SITES, spec, posterior=True, dtype=torch.double, seed=1).run(two(*mine[:3], posterior=mine[3:]))
        slopes = torch.autograd.grad(value.mean(), mine)
        assert all(slope.isfinite().all() for slope in slopes) and any(slope.abs().sum() > 0 for slope in slopes[3:])
        run += 1
    assert run == 5


def test_seeds_decide_and_estimators_learn():
    def drawn(seed, estimator="reinforce"):
        mine = leaves(FIRST, SECOND, LOSS)
        return torch.autograd.grad(episode(3, SITES, estimator, dtype=torch.double, seed=seed).run(two(*mine)).sum(), mine[0])[
            0
        ]

    assert torch.equal(drawn(1), drawn(1)) and not torch.equal(drawn(1), drawn(2))
    held = hardgrad.Estimator("moving_baseline")
    before = drawn(1, held)
    assert torch.equal(before, drawn(1)) and not torch.equal(drawn(1, held), before)


@pytest.mark.parametrize(
    "network, named, said",
    [
        (lambda e: e.choose("word", torch.zeros(3, 2)), {}, "site `word` is asked, but not declared"),
        (lambda e: e.choose("bit", torch.zeros(2, 2)), {}, "bit: got 2 rows, expected 3"),
        (lambda e: e.choose("bit", torch.zeros(3, 4)), {}, "site `bit` has too many options: 4, declared 2"),
        (lambda e: e.choose("bit", torch.full((3, 2), np.nan)), {}, r"logits: entry \[0, 0, 0\] is nan"),
        (lambda e: e.choose("bit", torch.zeros(3)), {}, r"logits have shape \[3\]; they are"),
        (lambda e: e.cost(torch.zeros(2)), {}, r"losses of shape \[2\], expected \[3\]"),
        (
            lambda e: e.choose("bit", torch.zeros(3, 2), state=torch.zeros(2, 1)),
            {},
            r'choice "bit": state has shape \[2, 1\]; it is \[3, numbers\]',
        ),
        (
            lambda e: e.choose("bit", torch.zeros(3, 2), posterior=torch.zeros(3, 2)),
            {},
            "a posterior is given, but the episode has none",
        ),
        (
            lambda e: e.choose("bit", torch.zeros(3, 2)),
            {"posterior": True, "estimator": "exact[target=elbo]"},
            "a posterior is required",
        ),
        (
            lambda e: e.choose("bit", torch.zeros(3, 2)).options,
            {"estimator": "gumbel_softmax"},
            "gumbel_softmax replaces choices by weights: the network reads choice.weights instead of choice.options",
        ),
        (
            lambda e: e.cost(e.choose("bit", torch.zeros(3, 2)).weights.detach()[:, 0, 0]),
            {"estimator": "gumbel_softmax"},
            'gumbel_softmax differentiates the network in the weights of choice "bit", but no cost and no later logits depend on',
        ),
        (
            lambda e: e.choose("bit", torch.zeros(3), bits=True),
            {},
            r"logits have shape \[3\]; with bits=True they are \[rows, columns\]",
        ),
        (lambda e: e.choose("bit", torch.zeros(3, 2)), {"estimator": "vimco"}, "vimco: the model has no learned posterior"),
        (
            lambda e: e.choose("bit", torch.zeros(3, 2)),
            {"posterior": True, "estimator": "rloo[samples=2]"},
            r"rloo draws from the prior, and the posterior would have no gradient: take rloo\[target=elbo\], or leave out posterior=True",
        ),
        (
            lambda e: e.choose("bit", torch.zeros(3, 2)),
            {"posterior": True, "estimator": "disarm_iw"},
            r"take disarm_iw\[target=elbo\]",
        ),
        (lambda e: e.choose("bit", torch.zeros(3, 2)) and None, {}, "the network has no cost"),
        (lambda e: None, {"dtype": torch.float16}, "dtype is float32 or float64"),
        (lambda e: None, {"sites": {}}, "an episode needs at least one site"),
    ],
)
def test_refusals(network, named, said):
    with pytest.raises(hardgrad.UsageError, match=said):
        episode(3, **{"sites": SITES, "estimator": "rloo", **named}).run(network)
    before = threading.active_count()
    with pytest.raises(hardgrad.UsageError, match=said):
        with episode(3, **{"sites": SITES, "estimator": "rloo", **named}) as e:
            network(e)
    assert threading.active_count() == before


def test_what_a_network_raises_comes_out_and_an_episode_ends():
    class Ours(Exception):
        pass

    left = []

    def network(e):
        left.append(e)
        raise Ours

    with pytest.raises(Ours):
        episode(3, SITES).run(network)
    with pytest.raises(Ours):
        with episode(3, SITES) as e:
            network(e)
    assert len(left) == 2
    for run in left:
        over(run)
        with pytest.raises(hardgrad.UsageError, match="expected_loss is known once the `with` block has ended"):
            run.expected_loss


def over(run):
    with pytest.raises(hardgrad.UsageError, match="this episode has ended"):
        run.choose("bit", torch.zeros(3, 2))


def test_a_block_is_a_function():
    """Block and function give the same numbers for every estimator that fits; those that run the network again raise an error."""
    blocks, again, unfit = [], [], 0
    for spec in hardgrad.estimators():
        mine, theirs = leaves(FIRST, SECOND, LOSS), leaves(FIRST, SECOND, LOSS)
        of = {"sites": SITES, "estimator": hardgrad.Estimator(spec), "dtype": torch.double, "seed": 5}
        try:
            value = episode(3, **of).run(two(*theirs))
        except hardgrad.UsageError:  # estimators that need a posterior, or another structure
            unfit += 1
            continue
        expected = torch.autograd.grad(value.sum(), theirs, allow_unused=True)
        of["estimator"] = hardgrad.Estimator(spec)
        try:
            with episode(3, **of) as e:
                two(*mine)(e)
        except hardgrad.UsageError as refusal:
            assert (
                str(refusal)
                == f"{spec} runs the network more than once: make it a function, and call episode(...).run(network)"
            )
            again.append(spec)
            continue
        assert torch.equal(e.expected_loss, value)
        for one, other in zip(torch.autograd.grad(e.expected_loss.sum(), mine, allow_unused=True), expected):
            assert torch.equal(one, other) if other is not None else one is None
        over(e)
        blocks.append(spec)
    assert threading.active_count() == 1
    assert (
        len(blocks) >= 45
        and again == ["muprop", "self_critic", "soft_baseline"]
        and len(blocks) + len(again) + unfit == len(hardgrad.estimators())
    ), (blocks, again, unfit)


def test_blocks_may_be_within_each_other_and_repeated():
    of = episode(3, SITES, "exact", dtype=torch.double)
    with of as outer:
        with pytest.raises(hardgrad.UsageError, match="has begun already"):
            with of:
                pass
        with episode(3, SITES, "exact", dtype=torch.double) as inner:
            two(FIRST, SECOND, LOSS)(inner)
        two(FIRST, SECOND, LOSS)(outer)
    with of as later:
        two(FIRST, SECOND, LOSS)(later)
    assert torch.equal(outer.expected_loss, inner.expected_loss) and torch.equal(outer.expected_loss, later.expected_loss)
