"""The closed forms of `expert.py` equal the slopes of the losses in `vectors.py` at the same noise."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import expert
import torch_ops
import vectors


def with_noise(seed):
    """The operations of `torch_ops.py` with numbers from one stream, in double."""
    rng = np.random.default_rng(seed)
    uniform = lambda *shape: torch.tensor(rng.uniform(1e-3, 1 - 1e-3, shape))
    drawn = {
        "uniform": uniform,
        "exponential": lambda *shape: -torch.log(uniform(*shape)),
        "bernoulli": lambda p: (uniform(*p.shape) < p).double(),
        "single": lambda a: a.double(),
    }
    return SimpleNamespace(**{k: v for k, v in vars(torch_ops).items() if not k.startswith("_")} | drawn)


@pytest.mark.parametrize("estimator", ["reinforce", "rloo", "disarm", "arms", "straight_through", "rebar"])
@pytest.mark.parametrize("K", [2, 4])
def test_a_closed_form_is_the_slope_of_the_loss(estimator, K):
    phi = torch.tensor(np.random.default_rng(1).normal(size=30)).requires_grad_()
    t = torch.tensor(np.random.default_rng(3).uniform(size=30))
    getattr(vectors, estimator)(with_noise(2), phi, t, K).backward()
    closed = getattr(expert, estimator)(with_noise(2), phi.detach(), t, K)
    assert phi.grad.norm() > 1e-3
    assert (closed - phi.grad).norm() < 1e-12 * phi.grad.norm()


@pytest.mark.parametrize("K", [2, 4])
def test_columns_have_the_slope_of_their_loss(K):
    logits = torch.tensor(np.random.default_rng(1).normal(size=(30, 4))).requires_grad_()
    data = {"t": torch.tensor(np.random.default_rng(3).uniform(size=30))}
    x = with_noise(2)
    x.draws = lambda p, K: (x.uniform(K, len(p), 1) > p.cumsum(-1)[:, :-1]).sum(-1)
    vectors.columns(x, {"bits.logits": logits}, data, K, "rloo").backward()
    closed = expert.columns(with_noise(2), {"bits.logits": logits.detach()}, data, K, "rloo")["bits.logits"]
    assert logits.grad.norm() > 1e-3
    assert (closed - logits.grad).norm() < 1e-12 * logits.grad.norm()


def test_counts_of_words_give_the_position_encoding():
    from problem import _places

    texts, width = np.array([[[1, 2, 3, 0], [2, 2, 0, 0]], [[1, 2, 3, 0], [0, 0, 0, 0]]]), 5
    counts, slopes, of = expert.counted(texts, 4)
    assert len(counts) == 3 and of[0, 0] == of[1, 0]
    table = np.random.default_rng(1).normal(size=(4, width))
    sums = counts @ table - (slopes @ table) * np.arange(1, width + 1) / width
    by_hand = (table[texts] * _places(torch.tensor(texts), width).numpy()).sum(2)
    assert np.abs(sums[of] - by_hand).max() < 1e-6
