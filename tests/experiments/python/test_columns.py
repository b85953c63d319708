"""expectation(columns="separate"): each column is a choice with its own loss, as an example with one choice is."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hardgrad  # noqa: E402
from hardgrad.torch import Estimator, Site, expectation  # noqa: E402

E, T, S = 3, 4, 5
SPECS = [
    "reinforce",
    "rloo[samples=4]",
    "disarm_tree",
    "carms[samples=4]",
    "unordered_set[samples=3]",
    "sum_and_sample",
    "local_expectation",
    "arsm",
    "exact",
    "straight_through",
    "gumbel_softmax[samples=2]",
    "rebar",
    "muprop",
    "nvil",
    "self_critic",
]
TARGET = torch.randn(E, T, S, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def given(*shape, missing=True):
    logits = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    if missing:  # the columns of an example have 5, 4, 3 and 5 options
        logits[0, 1, 2] = logits[0, 2, 0] = logits[0, 2, 4] = logits[2, 3, 1] = -torch.inf
    return logits.requires_grad_()


def gradients(value, weight, *inputs):
    """With a cotangent that differs by entry."""
    return torch.autograd.grad((value * weight).sum(), inputs)


@pytest.mark.filterwarnings("ignore:.* learns, but given by name")
def test_equal_to_examples_with_one_choice():
    weight, theta = (
        torch.linspace(-1, 2, E * T, dtype=torch.float64),
        torch.tensor(0.7, dtype=torch.float64, requires_grad=True),
    )
    column = torch.arange(E * T)
    compared = 0
    for seed, spec in enumerate(SPECS):
        logits = given(E, T, S)

        def separate(z, example):
            assert z.shape[1:] == (T, S)
            return ((z * TARGET[example]).sum(2) + theta) ** 2 + torch.sin(theta) * z[..., 1]

        def flat(z, example):
            z, target = z[:, 0], TARGET.reshape(E * T, S)[column[example]]
            return ((z * target).sum(1) + theta) ** 2 + torch.sin(theta) * z[:, 1]

        ours = expectation(logits, separate, spec, columns="separate", seed=seed)
        theirs = expectation(logits.reshape(E * T, 1, S), flat, spec, seed=seed)
        assert ours.shape == (E, T)
        torch.testing.assert_close(ours.reshape(-1), theirs, rtol=1e-12, atol=1e-12)
        for one, two in zip(gradients(ours.reshape(-1), weight, logits, theta), gradients(theirs, weight, logits, theta)):
            torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12, msg=spec)
        compared += 1
    assert compared == len(SPECS) == 15


def test_the_exact_gradient_of_each_column():
    """d/dlogits sum_s p_s L_s = p (L - p . L), where only the column's own losses count."""
    logits, weight = given(E, T, S), torch.linspace(-1, 2, E * T, dtype=torch.float64).reshape(E, T)
    losses = TARGET**2
    rows = []

    def f(z, example):
        rows.append(len(z))
        return (z * losses[example]).sum(2)

    value = expectation(logits, f, "exact", columns="separate")
    assert rows == [5 + 5 + 5]  # of all columns at once; those with fewer options repeat
    p = logits.detach().softmax(-1)
    mean = (p * losses).sum(-1)
    torch.testing.assert_close(value, mean, rtol=1e-12, atol=1e-12)
    (ours,) = gradients(value, weight, logits)
    torch.testing.assert_close(ours, weight[..., None] * p * (losses - mean[..., None]), rtol=1e-12, atol=1e-12)
    shared = expectation(logits, lambda z, example: (z * losses[example]).sum((1, 2)), "exact")
    torch.testing.assert_close(shared, mean.sum(1), rtol=1e-12, atol=1e-12)


def test_one_loss_does_not_reach_another_column():
    """A score function shows it: with the shared loss every column gets all losses."""
    logits = given(1, 2, 3, missing=False)
    big = torch.tensor([0.0, 1e6], dtype=torch.float64)
    value = expectation(logits, lambda z, example: z[..., 0] + big, "reinforce", columns="separate", seed=1)
    assert value.shape == (1, 2) and value[0, 0] < 2 and value[0, 1] >= 1e6
    (slope,) = torch.autograd.grad(value.sum(), logits)
    assert slope[0, 0].abs().max() < 2 and slope[0, 1].abs().max() > 1e4


def test_without_a_batch_bits_options_and_subsets():
    one = given(T, S, missing=False)
    value = expectation(one, lambda z: z[..., 0], "rloo[samples=4]", columns="separate", seed=1)
    batch = expectation(one[None], lambda z, example: z[..., 0], "rloo[samples=4]", columns="separate", seed=1)
    assert value.shape == (T,) and torch.equal(value, batch[0])

    bits = given(E, T, missing=False)
    exact = expectation(bits, lambda z, example: 2 * z + example[:, None], "exact", bits=True, columns="separate")
    torch.testing.assert_close(exact, 2 * bits.sigmoid() + torch.arange(E)[:, None])
    assert expectation(bits[0], lambda z: 2 * z, "exact", bits=True, columns="separate").shape == (T,)

    logits = given(E, T, S)
    seen = []
    f = lambda options, example: seen.append(options) or options.double()
    value = expectation(logits, f, "exact", columns="separate", takes="options")
    torch.testing.assert_close(value, (logits.softmax(-1) * torch.arange(S)).sum(-1))
    assert seen[0].shape == (15, T)
    seen = []
    f = lambda options, example: seen.append(options) or options.double().sum(2)
    value = expectation(logits, f, "exact", columns="separate", takes="options", subset=2)
    assert seen[0].shape[1:] == (T, 2) and value.shape == (E, T)
    flat = expectation(
        logits.reshape(-1, 1, S), lambda options, example: options.double().sum((1, 2)), "exact", takes="options", subset=2
    )
    torch.testing.assert_close(value.reshape(-1), flat)
    for shape in (0, T, S), (E, 0, S):
        assert expectation(torch.zeros(shape), lambda z, example: z[..., 0], columns="separate").shape == shape[:2]


def test_ids_and_states():
    """The parts of a batch draw as the whole does; a learned baseline has the state of its example."""
    logits, f = given(E, T, S), lambda z, example: (z * torch.arange(S)).sum(2)
    draw = lambda rows, **named: expectation(logits[rows], f, "rloo[samples=4]", columns="separate", seed=3, **named)
    whole = draw(slice(None))
    assert torch.equal(draw(slice(1, 3), ids=[1, 2]), whole[1:])
    assert torch.equal(draw(slice(None), ids=range(E)), whole)
    with pytest.raises(hardgrad.UsageError, match="ids of 4 separate columns are below 2\\^32 / 4, got 4294967295"):
        draw(slice(None), ids=[0, 1, 2**32 - 1])
    held = Estimator("nvil[samples=2]", Site(options=S, state=2), dtype=torch.float64)
    state = torch.randn(E, 2, dtype=torch.float64)
    ours = held(logits, f, columns="separate", state=state, seed=4)
    again = Estimator("nvil[samples=2]", Site(options=S, state=2), dtype=torch.float64)
    flat = again(
        logits.reshape(-1, 1, S),
        lambda z, example: (z * torch.arange(S)).sum((1, 2)),
        state=state.repeat_interleave(T, 0),
        seed=4,
    )
    assert torch.equal(ours.reshape(-1), flat)
    assert all(torch.equal(x, y) for x, y in zip(held.parameters(), again.parameters()))


def test_the_rows_of_estimators_that_group_them_otherwise():
    """Rows may come in any order, and columns may have unequal numbers of them."""
    from hardgrad.torch.columns import Separate

    each = Separate(torch.zeros(2, 3, 4), False)
    example = np.array([5, 0, 3, 0, 1, 2, 2, 2, 4, 5, 3])
    place, of, row, column = each._places(example)
    assert of.tolist() == [0, 0, 0, 1, 1] and place.shape == (5, 3)
    assert (place[row, column] == np.arange(len(example))).all()  # each is seen where its loss is read
    assert (example[place] == of[:, None] * 3 + np.arange(3)).all()


@pytest.mark.parametrize(
    "named, f, said",
    [
        ({}, lambda z, example: z[..., 0], r'shape \[12, 4\], one for each row and column: pass columns="separate"'),
        ({"columns": "separate"}, lambda z, example: z[:, 0, 0], r"f returns losses \[12, 4\]: .*; got \[12\]"),
        ({"columns": "separate"}, lambda z, example: 1.0, "got float"),
        ({"columns": "each"}, None, 'columns is "shared" or "separate", got \'each\''),
    ],
)
def test_wrong_losses(named, f, said):
    with pytest.raises(hardgrad.UsageError, match=said):
        expectation(torch.zeros(E, T, S), f, "rloo[samples=4]", **named)


def test_wrong_shapes():
    with pytest.raises(hardgrad.UsageError, match=r"takes logits \[columns, options\], alone or of a batch .* shape \[5\]"):
        expectation(torch.zeros(S), None, columns="separate")
    with pytest.raises(hardgrad.NotFinite, match="the loss of row 1 is nan"):
        expectation(torch.zeros(2, 3), lambda z: z[..., 0] + torch.tensor([0.0, np.nan]), "reinforce", columns="separate")
