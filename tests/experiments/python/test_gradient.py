"""One estimate: equals the program's with the same seed, and agrees with its samples."""

import numpy as np
import pytest

import hardgrad
from problem import LOGITS, dumped, probabilities, table

TEN = [
    "reinforce",
    "rloo[samples=4]",
    "arsm",
    "disarm_tree",
    "unordered_set",
    "sum_and_sample",
    "straight_through",
    "gumbel_softmax",
    "rebar",
    "reinmax",
    "relax",
    "double_cv[alpha=0.5]",
    "stratified[samples=4]",
    "exact",
]


def test_the_estimates_are_the_programs(tmp_path):
    losses = table(tmp_path)
    compared = 0
    for seed, spec in enumerate(TEN):
        theirs = dumped(tmp_path, spec, seed)
        ours = hardgrad.gradient(LOGITS, losses, spec, seed)
        np.testing.assert_allclose(ours.value, theirs["gradient"], rtol=1e-13, atol=1e-15, err_msg=spec)
        if "choices" in theirs and ours.runs[0].options is not None:
            np.testing.assert_array_equal(ours.runs[0].options, theirs["choices"])
            np.testing.assert_allclose(ours.runs[0].losses, theirs["loss"], rtol=1e-15)
        compared += 1
    assert compared == len(TEN) >= 10


def test_functions_and_tables_give_the_same():
    i, j = np.indices((3, 3))
    losses = (i - 0.4) ** 2 - 0.5 * i * j

    def of_options(options):
        return losses[options[:, 0], options[:, 1]]

    def of_weights(w):  # multilinear, like a table
        return (np.einsum("ri,rj,ij->r", w[:, 0], w[:, 1], losses), np.stack([w[:, 1] @ losses.T, w[:, 0] @ losses], axis=1))

    for spec in TEN:
        by_table = hardgrad.gradient(LOGITS, losses, spec, 3)
        by_weights = hardgrad.gradient(LOGITS, of_weights, spec, 3, takes="weights")
        np.testing.assert_allclose(by_weights.value, by_table.value, rtol=1e-12, atol=1e-14, err_msg=spec)
        if by_table.runs[0].weights is None:
            np.testing.assert_array_equal(hardgrad.gradient(LOGITS, of_options, spec, 3).value, by_table.value)
        else:
            with pytest.raises(hardgrad.UsageError, match='takes="weights"'):
                hardgrad.gradient(LOGITS, of_options, spec, 3)


def test_all_rows_are_asked_at_once():
    calls = []

    def f(options, example):
        calls.append((options.shape, example.tolist()))
        return options.sum(axis=1).astype(float)

    of = hardgrad.gradient(np.stack([LOGITS] * 3), f, "rloo[samples=4]", 1)
    assert calls == [((12, 2), [0] * 4 + [1] * 4 + [2] * 4)]
    assert of.rows == 12 and of.value.shape == (3, 2, 3)
    np.testing.assert_allclose(of.runs[0].share, 0.25)


def test_leave_one_out_written_down():
    """With two samples: (f_1 - f_2) (score_1 - score_2) / 2 for every example, with independent draws."""
    rng = np.random.default_rng(5)
    logits, weights = rng.normal(size=(5, 2, 3)), rng.normal(size=(5, 6))

    def f(options, example):
        return weights[example, options[:, 0] * 2 + options[:, 1] % 2]

    of = hardgrad.gradient(logits, f, "rloo[samples=2]", 9)
    (run,) = of.runs
    one_hot = np.eye(3)[run.options].reshape(5, 2, 2, 3)
    losses = run.losses.reshape(5, 2)
    by_hand = (losses[:, 0] - losses[:, 1])[:, None, None] * (one_hot[:, 0] - one_hot[:, 1]) / 2
    np.testing.assert_allclose(of.value, by_hand, atol=1e-14)
    assert len({tuple(row) for row in run.options.reshape(5, 4)}) > 1


def test_shares_make_the_expected_loss():
    p, q = probabilities(LOGITS)
    losses = np.arange(9.0).reshape(3, 3)
    of = hardgrad.gradient(LOGITS, losses, "exact", 0)
    np.testing.assert_allclose((of.runs[0].share * of.runs[0].losses).sum(), p @ losses @ q)


def test_seeds_and_the_batch_around_decide():
    losses = np.arange(9.0).reshape(3, 3)
    one, same, other = (hardgrad.gradient(LOGITS, losses, "rloo[samples=4]", seed) for seed in (1, 1, 2))
    assert np.array_equal(one.value, same.value) and not np.array_equal(one.value, other.value)
    batch = hardgrad.gradient(np.stack([LOGITS, LOGITS]), losses, "rloo[samples=4]", 1)
    assert np.array_equal(batch.value[0], one.value)


def test_examples_draw_by_their_names():
    logits, losses = np.stack([LOGITS, LOGITS]), np.arange(9.0).reshape(3, 3)
    both = hardgrad.gradient(logits, losses, "rloo[samples=4]", 1, ids=[7, 3])
    for e, name in enumerate((7, 3)):
        assert np.array_equal(hardgrad.gradient(logits[:1], losses, "rloo[samples=4]", 1, ids=[name]).value[0], both.value[e])
    assert not np.array_equal(both.value[0], both.value[1])
    for wrong in ([1], [1, -1], [0.5, 1], [1, 1 << 32]):
        with pytest.raises(hardgrad.UsageError, match="ids are 2 whole numbers"):
            hardgrad.gradient(logits, losses, "rloo", ids=wrong)


def test_states_reach_learned_baselines():
    with pytest.raises(hardgrad.UsageError, match="state has shape"):
        hardgrad.gradient(LOGITS, np.eye(3), "nvil", state=np.ones((2, 2)))
    one, two = (hardgrad.gradient(LOGITS, np.eye(3), "relax", 4, state=state).value for state in ([1.0, 2.0], [1.0, -2.0]))
    assert not np.array_equal(one, two)
