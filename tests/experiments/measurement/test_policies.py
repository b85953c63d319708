"""Policy gradients on 31 sequences: exact means of `measure --exact` against the published losses in PyTorch, summed over all pairs of samples.

The losses are written as their papers have them, with ratios that are differentiated. Nothing here knows how policy_gradient weighs scores.
"""

import itertools
import json
import os
import subprocess

import h5py
import numpy as np
import pytest

torch = pytest.importorskip("torch")

WORDS, LONGEST, END = 2, 4, 2
MODEL = "writer[policy=table,drift={},reference=initial,away=0.5]"
PREFIXES = [words[::-1] for n in range(LONGEST) for words in itertools.product(range(WORDS), repeat=n)]
SEQUENCES = [words[::-1] for n in range(LONGEST + 1) for words in itertools.product(range(WORDS), repeat=n)]


def hardgrad(*arguments, status=0):
    done = subprocess.run([os.environ["HARDGRAD_BINARY"], *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout + (done.stderr if status else "")


class Toy:
    """The policy, its behaviour policy and its reference, by the log probabilities of every step of every sequence [31, 4]; 0 after the end."""

    def __init__(self, tmp_path, drift, seed=3, others=()):
        self.model = MODEL.format(drift) if not others else "writer[policy=table]"
        self.scene = ["--task", "sequences", "--model", self.model, "--seed", str(seed), *others]
        file = str(tmp_path / "gradient.h5")
        hardgrad("gradient", *self.scene, "--estimator", "exact", "--precision", "double", "--out", file)
        with h5py.File(file) as f:
            theta = np.asarray(f["parameters/table.logits"])
            constant = lambda name: np.asarray(f[f"constants/{name}.table.logits"])
            behaviour = theta + drift * constant("behaviour") if drift else constant("older") if others else theta
            reference = constant("reference") if others else constant("initial") + 0.5 * constant("away")
            self.rewards = torch.tensor(np.asarray(f["batch/rewards"])[0], dtype=torch.float64)
        assert theta.shape == (15, 3) and len(SEQUENCES) == 31
        self.behaviour, self.reference = behaviour, reference
        self.theta = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
        self.laws = torch.log_softmax(self.theta, 1)
        self.reference_laws = torch.log_softmax(torch.tensor(reference), 1)
        steps = [[(PREFIXES.index(s[:t]), (s + (END,))[t]) for t in range(min(len(s) + 1, LONGEST))] for s in SEQUENCES]
        self.length = torch.tensor([len(s) for s in steps], dtype=torch.float64)
        self.state = torch.tensor([[s[t][0] if t < len(s) else 0 for t in range(LONGEST)] for s in steps])
        self.word = torch.tensor([[s[t][1] if t < len(s) else 0 for t in range(LONGEST)] for s in steps])
        self.is_step = torch.tensor([[float(t < len(s)) for t in range(LONGEST)] for s in steps], dtype=torch.float64)
        self.p = self.of(self.laws)
        self.q = self.of(torch.log_softmax(torch.tensor(behaviour), 1))
        self.r = self.of(self.reference_laws)

    def of(self, laws):
        return laws[self.state, self.word] * self.is_step

    def truth(self, beta):
        """The gradient of - E[R] + beta KL(p || reference)."""
        kl = (self.laws.exp() * (self.laws - self.reference_laws)).sum(1)
        along = (kl[self.state] * self.is_step).sum(1)
        return self.gradient((self.p.sum(1).exp() * (-self.rewards + beta * along)).sum())

    def gradient(self, loss):
        return torch.autograd.grad(loss, self.theta, retain_graph=True)[0].numpy()

    def mean(self, loss, samples):
        """The mean gradient of a loss of groups of samples, [groups, K] sequences each, drawn by the behaviour policy."""
        group = torch.tensor(list(itertools.product(range(len(SEQUENCES)), repeat=samples)))
        probability = self.q.sum(1)[group].sum(1).exp()
        return self.gradient((probability * loss(self, group)).sum())

    def measured(self, estimators):
        out = json.loads(
            hardgrad("measure", *self.scene, "--exact", "--json", *[x for e in estimators for x in ("--estimator", e)])
        )
        assert not (wrong := [(m["estimator"], m["reason"]) for m in out["results"] if m["status"] != "ok"]), wrong
        return [np.array(m["mean_gradient"]["table.logits"]).reshape(15, 3) for m in out["results"]]


def clipped(ratio, advantage, low=0.8, high=1.2):
    return torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage)


def centred(R):
    return R - R.mean(1, keepdim=True)


def scaled(R):
    return centred(R) / (R.std(1, keepdim=True) + 1e-4)


def per_token(objective, aggregate, advantage=scaled):
    """The loss of objective(ratio, advantage, log p) [groups, K, T] per token."""

    def loss(toy, group):
        p, mask = toy.p[group], toy.is_step[group]
        A = advantage(toy.rewards[group])[..., None]
        return -aggregate(objective((p - toy.q[group]).exp(), A, p) * mask, toy.length[group])

    return loss


def mean_of_sequences(x, n):
    return (x.sum(2) / n).mean(1)


def mean_of_tokens(x, n):
    return x.sum((1, 2)) / n.sum(1)


def sum_of_tokens(x, n):
    return x.sum(2).mean(1)


def grpo(beta):
    def loss(toy, group):
        m = (toy.r - toy.p)[group]
        k3 = (m.exp() - m - 1) * toy.is_step[group]
        policy = per_token(lambda ratio, A, p: clipped(ratio, A), mean_of_sequences)(toy, group)
        return policy + beta * mean_of_sequences(k3, toy.length[group])

    return loss


def gspo(toy, group):
    s = ((toy.p - toy.q)[group].sum(2) / toy.length[group]).exp()
    return -clipped(s, scaled(toy.rewards[group]), 0.9997, 1.0004).mean(1)


def rloo(beta):
    def loss(toy, group):
        R = (toy.rewards - beta * (toy.p - toy.r).sum(1)).detach()[group]
        K = group.shape[1]
        return -clipped((toy.p - toy.q)[group].sum(2).exp(), centred(R) * K / (K - 1)).mean(1)

    return loss


def mis(toy, group):
    w = (toy.p - toy.q)[group].sum(2).exp().detach()
    return -(w * (w <= 2) * centred(toy.rewards[group]) * toy.p[group].sum(2)).mean(1)


def opo(toy, group):
    R, n = toy.rewards[group], toy.length[group]
    return -((R - (n * R).sum(1, keepdim=True) / n.sum(1, keepdim=True)) * toy.p[group].sum(2)).mean(1)


def remax(toy, group):
    """The greedy sequence is the baseline."""
    words = []
    with torch.no_grad():
        while len(words) < LONGEST and (word := int(toy.laws[PREFIXES.index(tuple(words))].argmax())) != END:
            words.append(word)
    return -((toy.rewards[group] - toy.rewards[SEQUENCES.index(tuple(words))]) * toy.p[group].sum(2)).mean(1)


def reinforce_pp(beta):
    """Rewards less the divergence from a token on, normalised over the tokens of the group, which is the whole batch here."""

    def loss(toy, group):
        mask, n = toy.is_step[group], toy.length[group].sum(1)[:, None, None]
        m = (toy.p - toy.r).detach()[group] * mask
        A = (toy.rewards[group][..., None] - beta * m.flip(2).cumsum(2).flip(2)) * mask
        centred_A = (A - A.sum((1, 2), keepdim=True) / n) * mask
        std = (centred_A.square().sum((1, 2), keepdim=True) / (n - 1).clamp(min=1)).sqrt()
        objective = clipped((toy.p - toy.q)[group].exp(), centred_A / (std + 1e-4)) * mask
        return -mean_of_tokens(objective, toy.length[group])

    return loss


def sapo(ratio, A, p):
    """Gao et al. 2025: a sigmoid in place of the clip."""
    tau = torch.where(A > 0, 1.0, torch.tensor(1.05, dtype=A.dtype))
    return torch.sigmoid(tau * (ratio - 1)) * 4 / tau * A


def dppo(ratio, A, p):
    """Qi et al. 2026: words whose probability has moved too far in the direction of their advantage are left out."""
    rise = (p.exp() - p.exp() / ratio).detach()
    return ratio.detach().clamp(max=20) * A * p * torch.where(A > 0, rise <= 0.2, rise >= -0.2)


def gmpo(toy, group):
    """Zhao et al. 2025: the geometric mean of ratios, each clipped in logarithms on the side of the advantage."""
    l, A = (toy.p - toy.q)[group], scaled(toy.rewards[group])
    low, high = np.log(0.67032), np.log(1.49182)
    one_sided = torch.where(A[..., None] > 0, torch.minimum(l, l.clamp(low, high)), torch.maximum(l, l.clamp(low, high)))
    return -((one_sided * toy.is_step[group]).sum(2) / toy.length[group]).exp().mul(A).mean(1)


def luspo(toy, group):
    s = ((toy.p - toy.q)[group].sum(2) / toy.length[group]).exp()
    return -(toy.length[group] * clipped(s, scaled(toy.rewards[group]), 0.998, 1.0025)).mean(1)


def topr(toy, group):
    """Le Roux et al. 2025: good samples as they are, bad ones by a ratio of at most 1."""
    R = toy.rewards[group]
    w = (toy.p - toy.q)[group].sum(2).exp().detach().clamp(0, 1)
    return -(torch.where(R > 0, 1.0, w) * R * toy.p[group].sum(2)).mean(1)


def vespo(toy, group):
    """Shen et al. 2026: w^k exp(lambda (1 - w)) for the ratio w of the sequence."""
    A = scaled(toy.rewards[group])
    w = (toy.p - toy.q)[group].sum(2).exp().detach()
    k, rate = torch.where(A > 0, 2.0, 3.0), torch.where(A > 0, 3.0, 2.0)
    return -(w**k * (rate * (1 - w)).exp() * A * toy.p[group].sum(2)).mean(1)


def ctpo(toy, group):
    """Zhang et al. 2026: the ratio of the words so far is a constant factor, with limits that grow with the word's place."""
    p, A = toy.p[group], scaled(toy.rewards[group])[..., None]
    ratio = ((toy.p - toy.q)[group].cumsum(2).detach() + p - p.detach()).exp()
    grown = torch.arange(1, p.shape[2] + 1, dtype=torch.float64).sqrt()
    low, high = 0.97531**grown, 1.05127**grown
    worst = torch.maximum(-A * ratio, -A * torch.minimum(torch.maximum(ratio, low), high))
    worst = torch.where(A < 0, torch.minimum(worst, -A * high), worst)  # their dual limit is the upper one
    return mean_of_tokens(worst * toy.is_step[group], toy.length[group])


def tpo(toy, group):
    """Kaddour 2026: cross entropy of the group's probabilities to those of the policy that drew, tilted by standardised rewards."""
    R = toy.rewards[group]
    deviation = R.std(1, unbiased=False, keepdim=True)
    u = torch.where(deviation > 0, centred(R) / deviation, torch.zeros_like(R))
    target = torch.softmax(toy.q.detach().sum(1)[group] + u, 1)
    return -(target * torch.log_softmax(toy.p.sum(1)[group], 1)).sum(1)


def of_high_entropy(kept, share=0.2):
    """Wang et al. 2025: DAPO's loss of the words with the highest entropy; kept: divided by their number, not by that of all words."""

    def loss(toy, group):
        mask = toy.is_step[group] > 0
        H = -(toy.laws.exp() * toy.laws).sum(1).detach()[toy.state][group]
        least = torch.nanquantile(torch.where(mask, H, torch.nan).flatten(1), 1 - share, dim=1)
        high = mask & (H >= least[:, None, None])
        objective = clipped((toy.p - toy.q)[group].exp(), scaled(toy.rewards[group])[..., None], 0.8, 1.28)
        return -(objective * high).sum((1, 2)) / (high if kept else mask).sum((1, 2))

    return loss


def masked(toy, group):
    """DPPO's words that are left out are not counted."""
    A, p = scaled(toy.rewards[group])[..., None], toy.p[group]
    ratio = (p - toy.q[group]).exp().detach()
    rise = (p.exp() - toy.q[group].exp()).detach()
    counts = (torch.where(A > 0, rise <= 0.2, rise >= -0.2) & (toy.is_step[group] > 0)).double()
    return -(ratio.clamp(max=20) * A * p * counts).sum((1, 2)) / counts.sum((1, 2)).clamp(min=1)


PRESETS = {
    "preset=ctpo": ctpo,
    "preset=tpo": tpo,
    "preset=high_entropy": of_high_entropy(kept=False),
    "preset=high_entropy,denominator=kept": of_high_entropy(kept=True),
    "preset=high_entropy,top_entropy=0.5": of_high_entropy(kept=False, share=0.5),
    "preset=dppo,denominator=kept": masked,
    "preset=bnpo": per_token(lambda ratio, A, p: clipped(ratio, A), mean_of_tokens),  # the batch is one group here
    "preset=sapo": per_token(sapo, mean_of_sequences),
    "preset=dppo": per_token(dppo, mean_of_tokens),
    "preset=gmpo": gmpo,
    "preset=luspo": luspo,
    "preset=topr": topr,
    "preset=vespo": vespo,
    "preset=grpo,beta=0.3": grpo(0.3),
    "preset=dr_grpo": per_token(lambda ratio, A, p: clipped(ratio, A), lambda x, n: x.sum(2).mean(1) / LONGEST, centred),
    "preset=dapo": per_token(lambda ratio, A, p: clipped(ratio, A, 0.8, 1.28), mean_of_tokens),
    "preset=gspo": gspo,
    "preset=cispo": per_token(lambda ratio, A, p: ratio.detach().clamp(0, 1.2) * A * p, mean_of_tokens),
    "preset=tis": per_token(lambda ratio, A, p: ratio.detach().clamp(max=2) * A * p, sum_of_tokens, centred),
    "preset=gpg": per_token(lambda ratio, A, p: A * p, mean_of_tokens, centred),
    "preset=remax": remax,
    "preset=reinforce_pp,beta=0.3": reinforce_pp(0.3),
    "preset=mis": mis,
    "preset=opo": opo,
    "preset=rloo,beta=0.3": rloo(0.3),
}


def divergence(kind, where, beta=0.7):
    """One sample, without a reward's baseline, weighted by the ratio of its sequence."""

    def loss(toy, group):
        log_ratio = (toy.p - toy.q)[group].sum(2)
        m, mask = (toy.p - toy.r)[group], toy.is_step[group]
        d = {
            "k1": m,
            "k2": m**2 / 2,
            "k3": (-m).exp() - 1 + m,
            "exact": (toy.laws.exp() * (toy.laws - toy.reference_laws)).sum(1)[toy.state][group],
        }[kind] * mask
        cost = -toy.rewards[group]
        if where == "reward":
            cost = cost + beta * d.detach().sum(2)
        score = (log_ratio.exp().detach() * cost * toy.p[group].sum(2)).mean(1)
        token = (toy.p - toy.q)[group].exp()
        if kind == "exact" and where == "reward":  # its own gradient, by the ratio of the steps before
            before = ((toy.p - toy.q)[group].cumsum(2) - (toy.p - toy.q)[group]).exp().detach()
            return score + beta * (before * d).sum(2).mean(1)
        return score + (0 if where == "reward" else beta * (d * (token if where == "weighted" else 1)).sum(2).mean(1))

    return loss


def test_every_preset_of_the_program_has_a_loss_here():
    presets = {p["name"] for p in json.loads(hardgrad("describe", "policy_gradient", "--json"))["presets"]}
    alone = {"ppo", "maxrl"}  # in tests of their own: with a critic, and with rewards 0 and 1
    assert presets == {settings.split(",")[0].removeprefix("preset=") for settings in PRESETS} | alone and len(presets) >= 24


@pytest.mark.parametrize("drift", [0, 0.5])
def test_presets_equal_their_losses_in_pytorch(tmp_path, drift):
    toy = Toy(tmp_path, drift)
    measurement = toy.measured([f"policy_gradient[samples=2,{settings}]" for settings in PRESETS])
    for (settings, loss), ours in zip(PRESETS.items(), measurement):
        theirs = toy.mean(loss, 2)
        assert np.abs(ours - theirs).max() < 1e-10, settings
        assert np.abs(theirs).max() > 1e-3, settings


def gae(value, decay, aggregate, low=0.8, high=1.2):
    """The clipped loss with generalised advantages of a critic that has one value in every state: A_t = decay^(n - 1 - t) (R - value)."""

    def loss(toy, group):
        left = (toy.length[:, None] - 1 - torch.arange(LONGEST)).clamp(min=0)[group]
        A = decay**left * (toy.rewards[group] - value)[..., None]
        return -aggregate(clipped((toy.p - toy.q)[group].exp(), A, low, high) * toy.is_step[group], toy.length[group])

    return loss


def test_ppo_equals_its_loss_in_pytorch(tmp_path):
    """A table has the same state everywhere, so that its critic has one value, which is read from another gradient, linear in it."""
    toy = Toy(tmp_path, 0.5)
    linear, ours, whole = toy.measured(
        [
            f"policy_gradient[samples={n},{settings}]"
            for n, settings in (
                (1, "advantage=critic,ratio=token,aggregation=sequences"),
                (2, "preset=ppo"),
                (2, "preset=ppo,lambda=1"),
            )
        ]
    )
    at = lambda value: toy.mean(gae(value, 1, mean_of_sequences, 0, 1e9), 1)
    slope = at(1.0) - at(0.0)
    value = ((linear - at(0.0)) * slope).sum() / (slope**2).sum()
    assert abs(value) > 1e-3 and np.abs(at(value) - linear).max() < 1e-10
    assert np.abs(ours - toy.mean(gae(value, 0.95, mean_of_tokens), 2)).max() < 1e-10
    assert np.abs(whole - toy.mean(gae(value, 1, mean_of_tokens), 2)).max() < 1e-10
    assert np.abs(ours - whole).max() > 1e-4


def test_divergences_equal_their_losses_in_pytorch(tmp_path):
    toy = Toy(tmp_path, 0.5)
    cases = [
        (kind, where)
        for kind in ("k1", "k2", "k3", "exact")
        for where in ("reward", "loss", "weighted")
        if (kind, where) != ("exact", "weighted")
    ]
    measurement = toy.measured(
        [f"policy_gradient[samples=1,advantage=none,divergence={k},where={w},beta=0.7]" for k, w in cases]
    )
    truth = toy.truth(0.7)
    for (kind, where), ours in zip(cases, measurement):
        assert np.abs(ours - toy.mean(divergence(kind, where), 1)).max() < 1e-10, (kind, where)
        unbiased = where == "reward" and kind in ("k1", "exact")
        assert (np.abs(ours - truth).max() < 1e-10) == unbiased, (kind, where)


@pytest.mark.parametrize("seed", [1, 4])  # at others a ratio itself overflows, which is reported
def test_a_divergence_whose_exponentials_overflow_cancels_them(seed):
    """The drawn words have probability 0 in double under the policy: exp(l) (D + dD) is exp(l) m, although D alone overflows."""
    model = [
        "--task",
        "sequences",
        "--model",
        "writer[policy=table,scale=900,drift=3,reference=uniform]",
        "--seed",
        str(seed),
        "--json",
        "--sampled",
    ]
    out = json.loads(
        hardgrad(
            "measure",
            *model,
            "--replicates",
            "64",
            "--most-replicates",
            "64",
            "--precision",
            "double",
            "--estimator",
            "policy_gradient[samples=1,advantage=none,divergence=k3,where=weighted,beta=0.7]",
        )
    )
    (found,) = out["results"]
    assert found["status"] == "ok" and all(np.isfinite(x) for x in found["mean_gradient"]["table.logits"]), found["reason"]


def test_the_exact_gradient_and_finite_differences(tmp_path):
    toy = Toy(tmp_path, 0.5)
    exact = toy.measured(["exact"])[0]
    assert np.abs(exact - toy.truth(0)).max() < 1e-12
    theta, h = toy.theta.detach().numpy(), 1e-5
    value = lambda x: -float((toy.of(torch.log_softmax(torch.tensor(x), 1)).sum(1).exp() * toy.rewards).sum())
    for i in range(45):
        step = np.zeros(45)
        step[i] = h
        slope = (value(theta + step.reshape(15, 3)) - value(theta - step.reshape(15, 3))) / (2 * h)
        assert abs(slope - exact.ravel()[i]) < 1e-9


BINARY = ["--task", "sequences[rewards=binary]", "--model", "writer[policy=table]", "--seed", "5", "--exact", "--json"]


def binary(tmp_path, *estimators):
    """Results of `measure` with rewards 0 and 1, and the gradient of the probability of success and this probability."""
    file = str(tmp_path / "gradient.h5")
    hardgrad("gradient", *BINARY[:6], "--estimator", "exact", "--precision", "double", "--out", file)
    with h5py.File(file) as f:
        gradient, rewards = -np.asarray(f["gradient/table.logits"]), np.asarray(f["batch/rewards"])[0]
        laws = torch.log_softmax(torch.tensor(np.asarray(f["parameters/table.logits"], float)), 1)
    steps = [[(PREFIXES.index(s[:t]), (s + (END,))[t]) for t in range(min(len(s) + 1, LONGEST))] for s in SEQUENCES]
    success = sum(float(r) * np.exp(sum(float(laws[i]) for i in s)) for r, s in zip(rewards, steps))
    out = json.loads(hardgrad("measure", *BINARY, *[x for e in estimators for x in ("--estimator", e)]))["results"]
    assert 0.05 < success < 0.95
    return out, gradient, success


def test_pass_at_k_and_its_estimator(tmp_path):
    """1 - (1 - p)^k; the gradient is k (1 - p)^(k-1) grad p."""
    out, gradient, p = binary(tmp_path, *[f"best_of[best={k},samples={n}]" for k, n in ((1, 2), (2, 3), (3, 4))])
    for k, found in zip((1, 2, 3), out):
        mean = np.array(found["mean_gradient"]["table.logits"]).reshape(gradient.shape)
        assert np.abs(mean + k * (1 - p) ** (k - 1) * gradient).max() < 1e-12
        assert found["target"] == "best_of" and found["squared_bias"] < 1e-24


def test_maxrl_follows_the_first_terms_of_the_likelihood_of_success(tmp_path):
    """-log p; K samples give its gradient times 1 - (1 - p)^(K-1). As K grows, the bias against the target vanishes."""
    samples = (2, 3, 4)
    out, gradient, p = binary(tmp_path, *[f"policy_gradient[preset=maxrl,samples={K}]" for K in samples])
    for K, found in zip(samples, out):
        mean = np.array(found["mean_gradient"]["table.logits"]).reshape(gradient.shape)
        assert np.abs(mean + (1 - (1 - p) ** (K - 1)) * gradient / p).max() < 1e-12
        off = (1 - p) ** (K - 1) * np.linalg.norm(gradient) / p
        assert found["target"] == "success_likelihood" and abs(found["squared_bias"] - off**2) < 1e-12


TRAINED = """
[grid]
task = "sequences"
model = "{}"
estimator = "{}"
seed = [3, 4]

[train]
steps = 4
learning_rate = 0.5
optimizer = "sgd"
checkpoint = true
"""


def trained(folder, model, estimator="exact", more="", name="s"):
    """The checkpoints of two seeds."""
    (folder / f"{name}.toml").write_text(TRAINED.format(model, estimator) + more)
    for seed in (3, 4):
        hardgrad("run", str(folder / f"{name}.toml"), "--only", f"seed={seed}", "--out", str(folder / name / str(seed)))
    return [str(next((folder / name / str(seed)).rglob("*.checkpoint.h5"))) for seed in (3, 4)]


def test_checkpoints_as_older_and_as_reference_policy(tmp_path):
    """Samples of one trained network, near another: exact means and the truth against this file's enumeration."""
    older, reference = trained(tmp_path, "writer[policy=table]")
    toy = Toy(tmp_path, 0, others=["--older", older, "--reference", reference])
    assert not np.allclose(toy.q.detach(), toy.p.detach()) and not np.allclose(toy.q.detach(), toy.r.detach())
    sequence = lambda toy, group: ((toy.p.sum(1) - toy.q.sum(1).detach()).exp() * -toy.rewards)[group].mean(1)
    cases = {
        "samples=2,preset=grpo": (per_token(lambda ratio, A, p: clipped(ratio, A), mean_of_sequences), 2),
        "samples=1,advantage=none": (sequence, 1),
        "samples=1,advantage=none,divergence=k3,where=loss,beta=0.7": (divergence("k3", "loss"), 1),
        "samples=1,advantage=none,divergence=exact,beta=0.7": (divergence("exact", "reward"), 1),
    }
    measurement = toy.measured(["exact", "exact[target=near_reference,near=0.7]", *[f"policy_gradient[{c}]" for c in cases]])
    assert np.abs(measurement[0] - toy.truth(0)).max() < 1e-10 and np.abs(measurement[1] - toy.truth(0.7)).max() < 1e-10
    for ours, (case, (loss, samples)) in zip(measurement[2:], cases.items()):
        assert np.abs(ours - toy.mean(loss, samples)).max() < 1e-10, case
    assert np.abs(measurement[3] - toy.truth(0)).max() < 1e-10 < np.abs(measurement[2] - toy.truth(0)).max()
    assert np.abs(measurement[5] - toy.truth(0.7)).max() < 1e-10


def test_other_policies_that_do_not_fit_are_refused_in_one_line(tmp_path):
    scene = ["measure", "--task", "sequences", "--estimator", "policy_gradient", "--model"]
    file = trained(tmp_path, "writer[hidden=4]")[0]
    for option in ("--older", "--reference"):
        refused(*scene, "writer[hidden=4]", option, str(tmp_path / "none.h5"), status=3)
        assert "the model needs" in refused(*scene, "writer[hidden=5]", option, file, status=3)
        assert "the checkpoint is of writer" in refused("measure", "--task", "translation", option, file)
        own = f"writer[hidden=4,{'drift=1' if option == '--older' else 'reference=uniform'}]"
        assert "has such a policy of its own" in refused(*scene, own, option, file)
    (tmp_path / "text.h5").write_text("no checkpoint")
    refused(*scene, "writer[hidden=4]", "--older", str(tmp_path / "text.h5"), status=3)


def test_training_near_a_checkpoint(tmp_path):
    """With a large weight of the divergence, training from another start goes to the reference policy; without, it goes to the policy
    that both learn, as the data are the reference's."""
    reference = trained(tmp_path, "writer[policy=table]")[0]
    near, free = (
        trained(tmp_path, "writer[policy=table]", f"exact[target={target}]", f'reference = "{reference}"\n', target[:4])[1]
        for target in ("near_reference,near=6", "expected_loss")
    )

    def apart(checkpoint):  # of the first word's law
        file = str(tmp_path / "apart.h5")
        hardgrad("gradient", "--checkpoint", checkpoint, "--reference", reference, "--estimator", "exact", "--out", file)
        with h5py.File(file) as f:
            a, b = (
                torch.softmax(torch.tensor(np.asarray(f[name], float))[0], 0)
                for name in ("parameters/table.logits", "constants/reference.table.logits")
            )
        return float((a - b).abs().sum())

    assert apart(near) < 0.5 * apart(free), (apart(near), apart(free))
    own = (
        TRAINED.format("writer[policy=table,reference=uniform]", "rloo[target=near_reference]") + f'reference = "{reference}"\n'
    )
    (tmp_path / "own.toml").write_text(own)
    assert "has a reference policy of its own" in hardgrad(
        "run", str(tmp_path / "own.toml"), "--out", str(tmp_path / "own"), status=1
    )
    (tmp_path / "none.toml").write_text(TRAINED.format("writer", "rloo") + 'reference = "none.h5"\n')
    refused("run", str(tmp_path / "none.toml"), "--out", str(tmp_path / "none"), status=3)


def test_a_wrong_loss_is_noticed(tmp_path):
    """Off policy, GRPO without ratios differs, and so does the wrong side of the clip."""
    toy = Toy(tmp_path, 0.5)
    ours = toy.measured(["policy_gradient[samples=2,preset=grpo]"])[0]
    wrong = (
        per_token(lambda ratio, A, p: A * p, mean_of_sequences),
        per_token(lambda ratio, A, p: torch.maximum(ratio * A, ratio.clamp(0.8, 1.2) * A), mean_of_sequences),
    )
    for loss in wrong:
        assert np.abs(ours - toy.mean(loss, 2)).max() > 1e-2


def test_gradients_at_the_logits_are_those_of_the_policy():
    """Off policy, the logits of the behaviour policy receive none."""
    model = ["--task", "sequences", "--model", MODEL.format(0.5), "--json", "--replicates", "4096", "--most-replicates", "4096"]
    found = json.loads(hardgrad("measure", *model, "--at-logits", "--estimator", "policy_gradient"))["results"][0]
    assert found["bias_p_value"] > 1e-4 and found["bias_p_value_plain"] > 1e-4


def refused(*arguments, status=2):
    done = subprocess.run([os.environ["HARDGRAD_BINARY"], *arguments], capture_output=True, text=True)
    assert done.returncode == status and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "estimator, model, line",
    [
        (
            "policy_gradient[samples=1]",
            "writer",
            "advantage=leave_one_out compares an example's samples: take samples of at least 2",
        ),
        ("policy_gradient[divergence=k3,beta=1]", "writer", "the model has no reference policy"),
        ("policy_gradient[bound=clip,low=2]", "writer", "low is above high"),
        ("policy_gradient[preset=grop]", "writer", "preset"),
        ("policy_gradient[preset=maxrl]", "writer", "the model has no rewards of at least 0"),
        ("best_of[best=5]", "writer", "best must be at most samples"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_line(estimator, model, line):
    assert line in refused("measure", "--task", "sequences", "--model", model, "--estimator", estimator)


def test_tables_beyond_the_cap_are_refused_in_one_line():
    assert "the table would have" in refused("measure", "--task", "sequences[words=50,longest=8]", "--estimator", "exact")
    task = "answers[symbols=10,size=5]"
    assert "take fewer words, shorter sequences, or policy=gru" in refused(
        "measure", "--task", task, "--model", "writer[policy=table]", "--estimator", "exact"
    )


def test_equal_rewards_give_no_signal_and_no_division_by_zero():
    out = json.loads(
        hardgrad(
            "measure",
            "--task",
            "sequences[rewards=binary,success=0]",
            "--exact",
            "--json",
            "--estimator",
            "policy_gradient[samples=2,preset=grpo]",
        )
    )
    assert all(x == 0 for x in out["results"][0]["mean_gradient"]["table.logits"])


def test_ratios_far_beyond_the_range_of_numbers_stay_bounded():
    """The behaviour policy is nearly deterministic, so that log ratios are in the thousands."""
    model = ["--task", "sequences", "--model", "writer[policy=table,drift=900]", "--exact", "--json"]
    out = json.loads(
        hardgrad("measure", *model, "--estimator", "policy_gradient[samples=2,ratio=sequence,bound=truncate,low=0,high=2]")
    )
    assert np.isfinite(out["results"][0]["variance"])
