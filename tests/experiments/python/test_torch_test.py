"""hardgrad.torch.test: right and wrong estimators written in PyTorch."""

import re

import pytest

torch = pytest.importorskip("torch")

import hardgrad.torch  # noqa: E402

torch.set_num_threads(1)


def law_of(logits):
    return torch.distributions.OneHotCategorical(logits=logits)


def leave_one_out(logits, f, samples=4, others=True):
    """Independent samples. others=False: the baseline wrongly includes the sample itself."""
    law, examples = law_of(logits), len(logits)
    z = law.sample((samples,))
    losses = f(z.flatten(0, 1), torch.arange(examples).repeat(samples)).reshape(samples, examples)
    baseline = (losses.sum(0) - losses) / (samples - 1) if others else losses.mean(0)
    return ((losses - baseline).detach() * law.log_prob(z).sum(-1) + losses).mean(0)


def arms_of_two(logits, f):
    """Coupled: the losses of two draws with u and 1 - u, by the ratio of joint and independent probabilities (Dimitriev & Zhou 2021, ARMS),
    for bits; two independent draws for other options."""
    if logits.shape[-1] > 2:
        return leave_one_out(logits, f, 2)
    on = logits[..., 1] - logits[..., 0]
    p = torch.sigmoid(on)
    u = torch.rand(p.shape, dtype=p.dtype)
    b = torch.stack([(u < p), (1 - u < p)]).to(p.dtype)
    q = torch.where(p > 0.5, 1 - p, p).detach()  # of the less probable value: never both
    rho = -q / (1 - q)
    losses = f(torch.stack([1 - b, b], -1).flatten(0, 1), torch.arange(len(p)).repeat(2)).reshape(2, -1)
    signal = (losses[0] - losses[1])[:, None].detach() / (1 - rho) / 2
    return (signal * (b[0] - b[1]) * on).sum(1) + losses.mean(0)


def augmented(logits, f, at_all=True):
    """Further evaluations: local expectations, S of each column with the others as drawn."""
    z, p, example = law_of(logits).sample(), torch.softmax(logits, -1), torch.arange(len(logits))
    total = f(z, example)
    for column in range(logits.shape[1]):
        for option in range(logits.shape[2] if at_all else logits.shape[2] - 1):
            other = z.clone()
            other[:, column] = torch.eye(logits.shape[2], dtype=z.dtype)[option]
            total = total + p[:, column, option] * f(other, example).detach()
    return total.mean()


class Baseline(torch.nn.Module):
    """Parameters of its own: a baseline of the logits. biased: it sees the sample, too."""

    def __init__(self, biased=False):
        super().__init__()
        self.weight, self.biased = torch.nn.Parameter(torch.tensor(0.3)), biased
        self.register_buffer("mean", torch.tensor(0.0))

    def forward(self, logits, f):
        law = law_of(logits)
        z = law.sample()
        losses = f(z, torch.arange(len(z)))
        if self.training:
            self.mean += 0.1 * (losses.mean() - self.mean)
        seen = (z if self.biased else logits)[:, 0, 0]
        return losses + (losses - self.mean - self.weight * seen).detach() * law.log_prob(z).sum(-1)


def straight_through(logits, f):
    p = torch.softmax(logits, -1)
    return f(law_of(logits).sample() + p - p.detach(), torch.arange(len(p)))


def enumerated(logits, f):
    """Without noise."""
    return hardgrad.torch.expectation(logits, f, "exact")


RIGHT = [leave_one_out, arms_of_two, augmented, Baseline(), enumerated]


@pytest.mark.parametrize("estimator", RIGHT, ids=lambda e: getattr(e, "__name__", "baseline"))
def test_right_ones_pass(estimator):
    verdict = hardgrad.torch.test(estimator)
    assert verdict.passed and verdict.claims_unbiased, str(verdict)
    assert len(verdict.checks) == 12 + isinstance(estimator, torch.nn.Module) and {check.check for check in verdict.checks} >= {
        "mean",
        "shift",
    }


def with_itself(logits, f):
    return leave_one_out(logits, f, others=False)


def mean_of_the_batch(logits, f, samples=2):
    """The baseline is the mean over the batch and its samples, this one included: a large batch hides the bias."""
    law, examples = law_of(logits), len(logits)
    z = law.sample((samples,))
    losses = f(z.flatten(0, 1), torch.arange(examples).repeat(samples)).reshape(samples, examples)
    return ((losses - losses.mean()).detach() * law.log_prob(z).sum(-1) + losses).mean(0)


def missing_one(logits, f):
    return augmented(logits, f, at_all=False)


def doubled(logits, f):
    return 1.1 * leave_one_out(logits, f)


def no_path(logits, f):
    law = law_of(logits)
    z = law.sample()
    return f(z, torch.arange(len(z))).detach() * law.log_prob(z).sum(-1)


@pytest.mark.parametrize(
    "estimator, said",
    [
        (with_itself, "logits: off by 2[0-9.]+% of the length"),
        (mean_of_the_batch, "logits: off by 2[0-9.]+% of the length"),
        (missing_one, "logits: off by"),
        (doubled, "off by [89]|off by 1[0-9.]+%"),
        (no_path, "no gradient reaches the loss's parameters"),
        (Baseline(biased=True), "logits: off by"),
        (straight_through, "logits: off by"),
    ],
    ids=lambda e: getattr(e, "__name__", None),
)
def test_wrong_ones_are_found(estimator, said):
    verdict = hardgrad.torch.test(estimator, first_failure=True)
    assert not verdict.passed and verdict.count("failed") == 1 and "FAILED" in str(verdict)
    assert re.search(said, verdict.checks[-1].detail), verdict.checks[-1].detail


def test_a_biased_one_that_says_so_passes_with_its_bias():
    verdict = hardgrad.torch.test(straight_through, unbiased=False)
    assert verdict.passed and not verdict.claims_unbiased and all("off by" in check.detail for check in verdict.checks)


def test_a_module_keeps_its_state():
    module = Baseline(biased=True)
    before = {name: x.clone() for name, x in module.state_dict().items()}
    state = torch.get_rng_state()
    hardgrad.torch.test(module, first_failure=True)
    assert module.training and all(
        torch.equal(x, before[name]) and x.dtype == torch.float32 for name, x in module.state_dict().items()
    )
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    "estimator, said",
    [
        (lambda logits, f: 1 / 0, "ZeroDivisionError"),
        (lambda logits, f: 3.0, "type float, expected"),
        (lambda logits, f: logits, r"shape \[8, 1, 2\], expected \[8\]"),
        (lambda logits, f: f(logits[:, 0], torch.arange(len(logits))), r"called f with z of shape \[8, 2\]"),
        (lambda logits, f: logits.sum((1, 2)) * float("nan"), "not finite"),
        (lambda logits, f: logits.sum((1, 2)).detach(), "without a gradient"),
        (lambda logits, f: logits.sum((1, 2)) * next(COUNTER), "not deterministic"),
    ],
)
def test_what_does_not_work_fails_in_a_sentence(estimator, said):
    verdict = hardgrad.torch.test(estimator, first_failure=True)
    assert not verdict.passed and re.search(said, verdict.checks[0].detail), verdict.checks[0].detail


COUNTER = iter(range(1, 10**6))
