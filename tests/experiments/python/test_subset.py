"""subset=k in `hardgrad.torch`: against sums over all subsets in PyTorch, and the program's gradients."""

import itertools
import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hardgrad  # noqa: E402
from hardgrad.torch import Site, compare, episode, expectation  # noqa: E402
from problem import program, write_gradient  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "peers"))
import gradient_file  # noqa: E402

N, K = 5, 2
SETS = torch.zeros(10, N, dtype=torch.double)
for place, picked in enumerate(itertools.combinations(range(N), K)):
    SETS[place, list(picked)] = 1


def leaf(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double).requires_grad_()


def log_p(logits):
    """[..., 10] of all subsets, from logits [..., N]."""
    return torch.log_softmax(logits @ SETS.T, -1)


def marginals(logits):
    return log_p(logits).exp() @ SETS


def smooth(theta):
    """Losses [R] of z [R, D, N], not linear in it, with parameters theta [N]."""

    def f(z, *example):
        x = (z * torch.arange(1, z.shape[1] + 1)[:, None]).sum(1)
        return (x @ theta + x[:, 0] * x[:, 3] - 1) ** 2 + (torch.sin(x[:, 2]) * example[0] if example else 0)

    return f


def test_exact_is_the_sum_over_all_subsets():
    theta = leaf(0, N)
    f = smooth(theta)
    one, two, batch = leaf(1, N), leaf(2, 2, N), leaf(3, 3, 1, N)
    pairs = torch.stack([torch.stack([a, b]) for a in SETS for b in SETS])
    theirs = [
        log_p(one).exp() @ f(SETS[:, None]),
        (log_p(two[0])[:, None] + log_p(two[1])).reshape(-1).exp() @ f(pairs),
        (log_p(batch[:, 0]).exp() * torch.stack([f(SETS[:, None], torch.full((10,), e)) for e in range(3)])).sum(1),
    ]
    for logits, expected in zip((one, two, batch), theirs):
        ours = expectation(logits, f, "exact", subset=K)
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-12)
        for mine, other in zip(
            torch.autograd.grad(ours.sum(), (logits, theta)), torch.autograd.grad(expected.sum(), (logits, theta))
        ):
            torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10)


def test_missing_options():
    """Of five options the first and the third are missing for one example, so that it has three subsets; with two options left nothing is
    chosen."""
    f, few = smooth(leaf(0, N)), leaf(4, 3)
    logits = torch.full((2, 1, N), -np.inf, dtype=torch.double)
    logits[0, 0, [1, 3, 4]], logits[1, 0, [0, 2]] = few, leaf(5, 2).detach()
    z = torch.zeros(3, 1, N, dtype=torch.double)
    for row, (i, j) in enumerate(((1, 3), (1, 4), (3, 4))):
        z[row, 0, [i, j]] = 1
    p = torch.softmax(torch.stack([few[0] + few[1], few[0] + few[2], few[1] + few[2]]), 0)
    expected = p @ f(z, torch.zeros(3))
    ours = expectation(logits, f, "exact", subset=K)
    torch.testing.assert_close(ours[0], expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        torch.autograd.grad(ours.sum(), few)[0], torch.autograd.grad(expected, few)[0], rtol=1e-10, atol=1e-12
    )
    seen = []
    expectation(
        logits,
        lambda options, example: seen.append((options, example)) or options.double().sum((1, 2)),
        "rloo[samples=50]",
        subset=K,
        takes="options",
        seed=1,
    )
    ((options, example),) = seen
    assert options.shape == (100, 1, K) and options.dtype == torch.int64 and (options[..., 0] < options[..., 1]).all()
    assert set(options[example == 0].flatten().tolist()) == {1, 3, 4} and (options[example == 1] == torch.tensor([0, 2])).all()


def test_formulas_by_hand():
    """The draws are ours, the rest is PyTorch's: SIMPLE's backward pass through the marginals (Ahmed et al. 2023, eq. 7), and leave-one-out."""
    theta, logits, drawn = leaf(0, N), leaf(1, N), []
    f = smooth(theta)

    def seen(z):
        drawn.append(z)
        return f(z)

    ours = torch.autograd.grad(expectation(logits, seen, "simple[samples=3]", subset=K, seed=2), (logits, theta))
    mu = marginals(logits)
    theirs = torch.autograd.grad(f(drawn[0].detach() + (mu - mu.detach())).mean(), (logits, theta))
    for mine, other in zip(ours, theirs):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10)
    assert (drawn[0].sum(-1) == K).all() and ((drawn[0] == 0) | (drawn[0] == 1)).all()

    ours = torch.autograd.grad(expectation(logits, seen, "rloo[samples=4]", subset=K, seed=2), (logits, theta))
    z, losses = drawn[1][:, 0], f(drawn[1])
    others = (losses.sum() - losses) / 3
    log = z @ logits - torch.logsumexp(logits @ SETS.T, 0)
    theirs = torch.autograd.grad(((losses - others).detach() * log + losses).mean(), (logits, theta))
    for mine, other in zip(ours, theirs):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10)


TOY = f"subsets[options={N},picks={K},function=pairs,logit_spread=1]"


def test_every_estimator_has_the_programs_gradient(tmp_path):
    """On the program's toy of subsets, with the same seed. Those of a posterior are left out."""
    works = [
        row["estimator"]
        for row in json.loads(program("list", "matrix", "--json"))
        if row["network"] == "subsets" and row["works"]
    ]
    out, compared = tmp_path / "gradient.h5", []
    for seed, spec in enumerate([*works, "gumbel_top_k[hard=true,samples=2]", "rloo[samples=4]", "implicit_mle[central=true]"]):
        logits, held = leaf(0, 1, N), hardgrad.Estimator(spec, seed)
        try:
            expectation(logits, lambda z: (z**2).sum((1, 2)), held, subset=K, seed=seed)
        except hardgrad.UsageError as refusal:
            assert "posterior" in str(refusal), (spec, refusal)
            continue
        write_gradient(out, "subsets", TOY, spec, seed, batch=1)
        file = gradient_file.load(str(out))
        with h5py.File(out) as more:
            q = torch.from_numpy(more["constants/subsets.q"][()])
        logits = file.parameters["subsets.logits"]
        expectation(
            logits,
            lambda z: torch.einsum("ri,rj,ij->r", z[:, 0], z[:, 0], q),
            hardgrad.Estimator(spec, seed),
            subset=K,
            seed=seed,
        ).backward()
        np.testing.assert_allclose(logits.grad.numpy(), file.gradient["subsets.logits"], rtol=1e-6, atol=1e-9, err_msg=spec)
        compared.append(spec.split("[")[0])
    assert {"exact", "simple", "gumbel_top_k", "implicit_mle", "unordered_set", "sum_and_sample", "rloo", "reinforce"} <= set(
        compared
    )
    assert len(compared) >= 18, compared


def test_compare_finds_the_biased_ones():
    theta, w, x = leaf(0, N), leaf(1, 3, N), leaf(2, 4, 3).detach()
    f = smooth(theta)
    comparison = compare(
        lambda estimator: expectation((x @ w)[:, None], f, estimator, subset=K).mean(),
        {"choice": w, "loss": theta},
        ["rloo[samples=4]", "unordered_set[samples=4]", "simple", "gumbel_top_k", "rebar"],
        replicates=1000,
    )
    assert comparison.reference == "exact, without noise"
    for name, biased in (
        ("rloo[samples=4]", False),
        ("unordered_set[samples=4]", False),
        ("simple", True),
        ("gumbel_top_k", True),
    ):
        assert comparison.biased(name) == biased, (name, str(comparison))
    assert "`choice` picks 2 of 5 options" in comparison["rebar"].reason


def test_a_subset_that_feeds_a_later_choice():
    """Two of five items, then one of the two; with options, and with weights, in which relaxations differentiate the network."""
    first, second, worth = leaf(1, N), leaf(2, N, N), leaf(3, N)
    sites = {"items": Site(options=N, subset=K), "one": Site(options=N)}

    def estimate(spec, weights):
        with episode(2, sites, spec, dtype=torch.double, seed=5) as e:
            items = e.choose("items", first.expand(2, N))
            chosen = (
                items.weights[:, 0] if weights else SETS.new_zeros(len(items.parent), N).scatter(1, items.options[:, 0], 1.0)
            )
            one = e.choose("one", chosen @ second)
            e.cost(
                ((one.weights[:, 0] if weights else torch.eye(N, dtype=torch.double)[one.options[:, 0]]) * chosen[one.parent])
                @ worth
            )
        return e.expected_loss.mean()

    p = log_p(first).exp()[:, None] * torch.softmax(SETS @ second, -1)
    expected = torch.autograd.grad((p * SETS * worth).sum(), (first, second, worth))
    for weights in (False, True):
        for mine, other in zip(torch.autograd.grad(estimate("exact", weights), (first, second, worth)), expected):
            torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-10)
    for spec in ("rloo[samples=4]", "simple[samples=2]", "gumbel_top_k", "implicit_mle"):
        assert all(slope.isfinite().all() for slope in torch.autograd.grad(estimate(spec, True), (first, second, worth)))
    comparison = compare(
        lambda estimator: estimate(estimator, True), [first, second, worth], ["rloo[samples=4]"], replicates=20
    )
    assert comparison.reference == "exact, without noise"


def test_a_learner_is_made_for_subsets():
    estimator = hardgrad.torch.Estimator("nvil", Site(options=N, subset=K))
    estimator(torch.zeros(N), smooth(leaf(0, N).float()), subset=K).backward()
    with pytest.raises(hardgrad.UsageError, match="was made for"):
        estimator(torch.zeros(N), smooth(leaf(0, N).float()))


@pytest.mark.parametrize(
    "logits, named, said",
    [
        (torch.zeros(5), {"subset": 6}, "from 1 to the 5 that there are, got 6"),
        (torch.zeros(5), {"subset": 0}, "from 1 to the 5 that there are, got 0"),
        (torch.zeros(5), {"subset": -1}, "got -1"),
        (torch.zeros(5), {"subset": 2.5}, "got 2.5"),
        (torch.zeros(5), {"subset": 2, "bits": True}, "bits=True has none"),
        (
            torch.tensor([[0.0, 1.0, 2.0], [0.0, -np.inf, -np.inf]]),
            {"subset": 2},
            r"entry \[1, 0\] has 1 options that are not -inf, fewer than the 2",
        ),
        (torch.tensor([0.0, np.nan, 1.0]), {"subset": 2}, r"entry \[1\] is nan"),
        (torch.zeros(5), {"subset": 2, "estimator": "gumbel_softmax"}, "picks 2 of 5 options: take a score function"),
        (torch.zeros(5), {"subset": 2, "estimator": "disarm_tree"}, "picks 2 of 5 options"),
        (torch.zeros(5), {"subset": 2, "estimator": "simple", "takes": "options"}, 'takes="weights"'),
    ],
)
def test_refusals(logits, named, said):
    with pytest.raises(hardgrad.UsageError, match=said):
        expectation(logits, lambda z: z.double().flatten(1).sum(1), **named)


def test_refused_sites():
    with pytest.raises(hardgrad.UsageError, match="from 1 to the 3"):
        Site(options=3, subset=4)
    with episode(1, {"s": Site(options=3, subset=2)}) as e:
        with pytest.raises(hardgrad.UsageError, match="the site has subsets"):
            e.choose("s", torch.zeros(1, 3), bits=True)
        with pytest.raises(hardgrad.UsageError, match="fewer than the 2"):
            e.choose("s", torch.tensor([[0.0, -np.inf, -np.inf]]))
        e.cost(e.choose("s", torch.zeros(1, 3)).weights[:, 0, 0])
