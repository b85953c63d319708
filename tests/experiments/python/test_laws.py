"""Distributions of torch.distributions, and probabilities, in the place of logits."""

import pytest

torch = pytest.importorskip("torch")

from torch.distributions import (  # noqa: E402
    Bernoulli,
    Categorical,
    Independent,
    Normal,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    RelaxedOneHotCategorical,
)

import hardgrad  # noqa: E402
from hardgrad.torch import Estimator, expectation, sample  # noqa: E402

INF = torch.inf


def given(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()


def loss(z, *example):
    x = z.flatten(1) @ torch.linspace(-1, 2, z[0].numel(), dtype=z.dtype)
    return x**2 + (example[0] * x if example else 0)


def same(law, logits, leaf, **named):
    """`expectation` of a law and of logits: the same values and gradients at the leaf. Returns the value."""
    weight = torch.linspace(1, 2, 4, dtype=torch.float64)
    found = []
    for spec in ("exact", "rloo[samples=4]", "straight_through", "rebar"):
        pair = []
        for one, way in ((law, {}), (logits, named)):
            value = expectation(one, loss, spec, seed=3, **way)
            cotangent = weight[: value.numel()].reshape(value.shape)
            pair.append((value, torch.autograd.grad((value * cotangent).sum(), leaf, retain_graph=True)[0]))
        for ours, theirs in zip(*pair):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
        found.append(pair[0][0])
    assert len(found) == 4
    return found[0]


@pytest.mark.parametrize("law", [Categorical, OneHotCategorical, OneHotCategoricalStraightThrough])
def test_categories(law):
    x = given(4, 3, 5)
    assert same(Independent(law(logits=x), 1), x, x).shape == (4,)  # [E, D, S]
    assert same(Independent(law(logits=x[0]), 1), x[0], x).shape == ()  # [D, S]
    assert same(law(logits=x[:, 0]), x[:, :1], x).shape == (4,)  # a batch: examples with one choice
    assert same(law(logits=x[0, 0]), x[0, 0], x).shape == ()
    assert same(Independent(law(logits=x[:, 0]), 0), x[:, :1], x).shape == (4,)
    nested = Independent(Independent(law(logits=x[0]), 0), 1)
    assert same(nested, x[0], x).shape == ()


def test_bernoulli():
    x = given(4, 3)
    assert same(Independent(Bernoulli(logits=x), 1), x, x, bits=True).shape == (4,)
    assert same(Independent(Bernoulli(logits=x[0]), 1), x[0], x, bits=True).shape == ()
    assert same(Bernoulli(logits=x[:, 0]), x[:, :1], x, bits=True).shape == (4,)
    assert same(Bernoulli(logits=x[0, 0]), x[0, :1], x, bits=True).shape == ()
    with pytest.raises(hardgrad.UsageError, match="bits=True takes a Bernoulli, not a law of categories"):
        expectation(Categorical(logits=x), loss, bits=True)


def test_probabilities():
    """Also those of distributions: a 0 is a missing option, whose gradient is 0."""
    p = torch.tensor([[0.2, 0.0, 0.5, 0.3], [0.0, 0.7, 0.0, 0.3]], dtype=torch.float64, requires_grad=True)
    logits = torch.where(p > 0, p, torch.ones_like(p)).log().masked_fill(p == 0, -INF)[None]
    f = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    exact = lambda z, *example: ((z @ f).sum(1)) ** 2
    for law, named in ((None, {"probs": p}), (Independent(Categorical(probs=p), 1), {}), (None, {"probs": 3 * p})):
        value = expectation(law, exact, "exact", **named)
        torch.testing.assert_close(value, expectation(logits, exact, "exact")[0], rtol=1e-12, atol=1e-12)
        (slope,) = torch.autograd.grad(value, p, retain_graph=True)
        assert slope.isfinite().all() and (slope[p == 0].abs() < 1e-14).all()
        q = p.detach() / p.detach().sum(1, keepdim=True)
        outcome = (f[:, None] + f[None, :]) ** 2
        of_q = torch.stack([outcome @ q[1], q[0] @ outcome])  # d value / d q
        project = of_q - (q * of_q).sum(1, keepdim=True)  # probabilities are normalised
        torch.testing.assert_close(slope, torch.where(p > 0, project, torch.zeros_like(p)), rtol=1e-10, atol=1e-12)
        seen = []
        expectation(law, lambda z: seen.append(z) or z.sum((1, 2)), "exact", **named)
        assert len(seen[0]) == 3 * 2 and (seen[0][:, p == 0] == 0).all()


def test_probabilities_of_bits():
    p = torch.tensor([0.0, 0.25, 1.0, 0.8], dtype=torch.float64, requires_grad=True)
    f = torch.tensor([5.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    for law, named in ((None, {"probs": p, "bits": True}), (Independent(Bernoulli(probs=p), 1), {})):
        value = expectation(law, lambda z: z @ f, "exact", **named)
        torch.testing.assert_close(value, p.detach() @ f, rtol=1e-12, atol=1e-12)
        (slope,) = torch.autograd.grad(value, p)
        torch.testing.assert_close(slope, f * torch.tensor([0.0, 1, 0, 1]).double(), rtol=1e-10, atol=1e-12)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        short = p.detach().to(dtype)
        value = expectation(None, lambda z: z.float() @ f.float(), "exact", probs=short, bits=True)
        torch.testing.assert_close(value, (p.detach() @ f).float(), rtol=0.03, atol=0.03)


@pytest.mark.parametrize("spec", ["reinmax", "gumbel_softmax"])
def test_samples(spec):
    """z has the shape of the law's logits; a batch's choices are examples, an event's are columns."""
    x = given(2, 4, 3, 5)
    for law, flat in (
        (Categorical(logits=x), x.reshape(-1, 1, 5)),
        (Independent(OneHotCategorical(logits=x), 1), x.reshape(8, 3, 5)),
        (Independent(OneHotCategorical(logits=x), 2), x.reshape(2, 12, 5)),
        (Independent(OneHotCategorical(logits=x[0, 0]), 1), x[0, 0]),
        (Categorical(logits=x[0, 0, 0]), x[0, 0, 0]),
    ):
        z, other = sample(law, spec, seed=3), sample(flat, spec, seed=3)
        torch.testing.assert_close(z.reshape(other.shape), other, rtol=1e-10, atol=1e-12)  # a law's logits are normalised
        weight = torch.linspace(-1, 1, z.numel(), dtype=torch.float64).reshape(z.shape)
        slopes = [torch.autograd.grad((y * weight.reshape(y.shape)).sum(), x, retain_graph=True)[0] for y in (z, other)]
        torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-12)
    assert sample(Categorical(logits=x), spec).shape == x.shape
    bits = Bernoulli(logits=x[..., 0])
    assert torch.equal(sample(bits, spec, seed=3), sample(x[..., 0].reshape(-1, 1), spec, seed=3, bits=True).reshape(2, 4, 3))
    assert sample(Bernoulli(logits=x[0, 0, 0, 0]), spec).shape == ()
    p = x.softmax(-1)
    torch.testing.assert_close(sample(probs=p, estimator=spec, seed=3), sample(x, spec, seed=3), rtol=1e-10, atol=1e-12)
    moved = sample(probs=p.movedim(-1, 0), estimator=spec, seed=3, dim=0)
    torch.testing.assert_close(moved.movedim(0, -1), sample(x, spec, seed=3), rtol=1e-10, atol=1e-12)


def test_separate_columns_and_modules():
    x = given(4, 3, 5)
    f = lambda z, example: z[..., 0] + example[:, None]
    ours = expectation(Categorical(logits=x), f, "exact", columns="separate")
    torch.testing.assert_close(ours, x.softmax(-1)[..., 0] + torch.arange(4)[:, None], rtol=1e-12, atol=1e-12)
    held = Estimator("rloo[samples=4]")
    assert torch.equal(
        held(Independent(Categorical(logits=x), 1), loss, seed=1),
        expectation(Independent(Categorical(logits=x), 1), loss, seed=1),
    )


@pytest.mark.parametrize(
    "law, named, said",
    [
        (None, {}, "there is no law: pass logits, a distribution, or probs="),
        (torch.zeros(3), {"probs": torch.ones(3)}, "logits and probs= are two laws"),
        (None, {"probs": torch.tensor([0.5, -0.1])}, "probs are numbers of at least 0, for each option"),
        (None, {"probs": torch.tensor([0.5, torch.nan])}, "probs are numbers of at least 0"),
        (None, {"probs": torch.tensor([0.5, 1.1]), "bits": True}, "probs are numbers from 0 to 1"),
        (None, {"probs": torch.zeros(2, 3)}, r"all options of entry \[0, 0\] are -inf"),
        (None, {"probs": [0.5, 0.5]}, "probs are of type list, expected a tensor"),
        (None, {"probs": torch.ones(1)}, "have one option"),
        (Normal(0.0, 1.0), {}, "a law is Bernoulli, Categorical, OneHotCategorical .* got Normal"),
        (RelaxedOneHotCategorical(torch.tensor(0.5), torch.ones(3)), {}, "got RelaxedOneHotCategorical"),
        (Categorical(torch.ones(2, 4, 3)), {}, r"batch shape \[2, 4\] and event shape \[3\]: the batch is one axis"),
        (Independent(Bernoulli(torch.ones(2, 4, 3) / 2), 2), {}, r"batch shape \[2\] and event shape \[4, 3\]"),
    ],
)
def test_refusals(law, named, said):
    with pytest.raises(hardgrad.UsageError, match=said) as refusal:
        expectation(law, loss, **named)
    assert "\n" not in str(refusal.value)
