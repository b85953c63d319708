"""Distributions of estimators, from the papers' equations, in arbitrary precision. Independent of the program.

A problem is D independent choices among S options with logits phi [D][S] (for bits (0, phi)) and the loss |x_d - t_d|^power, x =
option / (S - 1), summed over the choices or averaged. A law is a list of (probability, gradient at the logits [D][S]). For estimators
with a posterior, which initially equals the prior, it is a list of (probability, gradient at the prior's logits, gradient at the
posterior's).
"""

import itertools

import mpmath as mp

mp.mp.dps = 40


class Problem:
    def __init__(self, phi, t, power, averaged=False):
        self.phi = [[mp.mpf(x) for x in row] for row in phi]
        self.D, self.S, self.power = len(phi), len(phi[0]), mp.mpf(power)
        self.t = [mp.mpf(x) for x in t]
        self.share = mp.mpf(1) / self.D if averaged else mp.mpf(1)
        self.p = [self.softmax(row) for row in self.phi]
        self.outcomes = list(itertools.product(range(self.S), repeat=self.D))

    @staticmethod
    def softmax(row):
        e = [mp.exp(x - max(row)) for x in row]
        return [x / mp.fsum(e) for x in e]

    def x(self, option):
        return mp.mpf(option) / (self.S - 1)

    def f_at(self, x):
        return mp.fsum(abs(a - t) ** self.power for a, t in zip(x, self.t)) * self.share

    def f(self, z):
        return self.f_at([self.x(o) for o in z])

    def slope_at(self, x):
        """df/dx [D]"""
        return [self.power * abs(a - t) ** (self.power - 1) * mp.sign(a - t) * self.share for a, t in zip(x, self.t)]

    def slope(self, z):
        """df/dw [D][S] in the weights at an outcome"""
        return [[d * self.x(i) for i in range(self.S)] for d in self.slope_at([self.x(o) for o in z])]

    def prob(self, z):
        return mp.fprod(self.p[d][o] for d, o in enumerate(z))

    def score(self, z):
        return [[(i == o) - self.p[d][i] for i in range(self.S)] for d, o in enumerate(z)]

    def mean_weights(self):
        return [mp.fsum(self.p[d][i] * self.x(i) for i in range(self.S)) for d in range(self.D)]

    def truth(self):
        return combined((self.prob(z) * self.f(z), self.score(z)) for z in self.outcomes)


def zeros(D, S):
    return [[mp.mpf(0)] * S for _ in range(D)]


def combined(terms):
    """sum of factor x gradient"""
    total = None
    for factor, g in terms:
        if total is None:
            total = zeros(len(g), len(g[0]))
        for row, part in zip(total, g):
            for i, v in enumerate(part):
                row[i] += factor * v
    return total


def through(w, x):
    """(diag(w) - w w') x"""
    mean = mp.fsum(a * b for a, b in zip(w, x))
    return [a * (b - mean) for a, b in zip(w, x)]


def of_one(problem, g):
    """The law of a gradient g(z) of one sample."""
    return [(problem.prob(z), g(z)) for z in problem.outcomes]


def tuples(problem, K, g):
    return [(mp.fprod(problem.prob(z) for z in zs), g(zs)) for zs in itertools.product(problem.outcomes, repeat=K)]


def score_less(baseline):
    return lambda q: of_one(q, lambda z: combined([(q.f(z) - baseline(q), q.score(z))]))


def most_probable(q):
    return [max(range(q.S), key=lambda i: q.p[d][i]) for d in range(q.D)]


def rloo(K):
    def g(q, zs):
        f = [q.f(z) for z in zs]
        return combined(((f[k] - (sum(f) - f[k]) / (K - 1)) / K, q.score(z)) for k, z in enumerate(zs))

    return lambda q: tuples(q, K, lambda zs: g(q, zs))


def optimal_baseline(K):
    def g(q, zs):  # |s|^2 of all columns of a choice, or of each column that has a separate cost: here the whole loss
        f, s = [q.f(z) for z in zs], [q.score(z) for z in zs]
        weight = [mp.fsum(v * v for row in x for v in row) for x in s]

        def less(k):
            below = sum(weight) - weight[k]
            return f[k] - (sum(w * y for w, y in zip(weight, f)) - weight[k] * f[k]) / below if below > 0 else f[k]

        return combined((less(k) / K, s[k]) for k in range(K))

    return lambda q: tuples(q, K, lambda zs: g(q, zs))


def straight_through(q):
    return of_one(q, lambda z: [through(q.p[d], x) for d, x in enumerate(q.slope(z))])


def reinmax(temperature):
    def g(q, z):
        rows = []
        for d, x in enumerate(q.slope(z)):
            p_T = q.softmax([v / temperature for v in q.phi[d]])
            half = [(v + (i == z[d])) / 2 for i, v in enumerate(p_T)]
            rows.append([2 * a - b / 2 for a, b in zip(through(half, x), through(q.p[d], x))])
        return rows

    return lambda q: of_one(q, lambda z: g(q, z))


def gapped_st(temperature, gap):
    def g(q, z):
        rows = []
        for d, x in enumerate(q.slope(z)):
            most = max(q.phi[d])
            moved = [most if i == z[d] else min(v, most - gap) for i, v in enumerate(q.phi[d])]
            rows.append([v / temperature for v in through(q.softmax([m / temperature for m in moved]), x)])
        return rows

    return lambda q: of_one(q, lambda z: g(q, z))


def muprop(a=1, b=1):
    def law(q):
        m = q.mean_weights()
        d = q.slope_at(m)
        slope = [[d[c] * q.x(i) for i in range(q.S)] for c in range(q.D)]
        added = [through(q.p[c], slope[c]) for c in range(q.D)]

        def g(z):
            linear = mp.fsum(d[c] * (q.x(z[c]) - m[c]) for c in range(q.D))
            return combined([(q.f(z) - a * q.f_at(m) - b * linear, q.score(z)), (b, added)])

        return of_one(q, g)

    return law


def pairs_of_uniforms(q, g):
    """Pieces of the uniform u of each column, for the bits b = 1[u > sigmoid(-phi)] and b~ = 1[u < sigmoid(phi)]: every combination of the
    intervals between 0, the two breaks and 1, as tuples (low, high, b, b~)."""
    columns = []
    for row in q.phi:
        phi = row[1] - row[0]
        a, b = 1 / (1 + mp.exp(phi)), 1 / (1 + mp.exp(-phi))  # sigmoid(-phi), sigmoid(phi)
        ends = sorted([mp.mpf(0), a, b, mp.mpf(1)])
        pieces = []
        for low, high in zip(ends, ends[1:]):
            u = (low + high) / 2
            pieces.append((low, high, int(u > a), int(u < b)))
        columns.append(pieces)
    return itertools.product(*columns)


def arm_moments(q):
    """Mean [D][2] and E|g|^2 at the second logits: the gradient is a polynomial of u, integrated piece by piece."""
    mean, square = zeros(q.D, 2), mp.mpf(0)
    for pieces in pairs_of_uniforms(q, None):
        weight = mp.fprod(h - l for l, h, _, _ in pieces)
        if weight == 0:
            continue
        difference = q.f([b for *_, b, _ in pieces]) - q.f([b for *_, b in pieces])
        for d, (l, h, _, _) in enumerate(pieces):
            first = ((h - mp.mpf(1) / 2) ** 2 - (l - mp.mpf(1) / 2) ** 2) / 2 / (h - l)
            second = ((h - mp.mpf(1) / 2) ** 3 - (l - mp.mpf(1) / 2) ** 3) / 3 / (h - l)
            mean[d][1] += weight * difference * first
            square += weight * difference**2 * second
    return mean, square


def disarm(q):
    law = []
    for pieces in pairs_of_uniforms(q, None):
        weight = mp.fprod(h - l for l, h, _, _ in pieces)
        b, other = [x for *_, x, _ in pieces], [x for *_, x in pieces]
        half = (q.f(b) - q.f(other)) / 2
        g = zeros(q.D, 2)
        for d in range(q.D):
            phi = abs(q.phi[d][1] - q.phi[d][0])
            if b[d] != other[d]:
                g[d][1] = half * (-1) ** other[d] / (1 + mp.exp(-phi))
        law.append((weight, g))
    return law


def unordered_pairs(q):
    p, f, s = ([h(z) for z in q.outcomes] for h in (q.prob, q.f, q.score))
    law = []
    for a, b in itertools.combinations(range(len(p)), 2):
        after_a, after_b = p[b] / (1 - p[a]), p[a] / (1 - p[b])  # probability of the other one as the second draw
        both = p[a] * after_a + p[b] * after_b
        share = {a: p[a] * after_a / both, b: p[b] * after_b / both}  # p(s) R(S, s)

        def less(k, other, after):  # f(s) - sum_s' p(s') R(S, s, s') f(s'), and R(S, s, s) = 1
            return f[k] - p[k] * f[k] - p[other] / after * f[other]

        law.append((both, combined([(share[a] * less(a, b, after_a), s[a]), (share[b] * less(b, a, after_b), s[b])])))
    return law


def sum_and_sample(q):
    p, f, s = ([h(z) for z in q.outcomes] for h in (q.prob, q.f, q.score))
    top = max(range(len(p)), key=lambda i: p[i])
    rest = mp.fsum(v for i, v in enumerate(p) if i != top)
    return [(p[i] / rest, combined([(p[top] * f[top], s[top]), (rest * f[i], s[i])])) for i in range(len(p)) if i != top]


# The posterior equals the prior: log w = -f, and both scores are the same.
def importance(K, rule):
    """rule(f) -> derivatives of the objective in log p and log q of each of K samples."""

    def law(q):
        result = []
        for zs in itertools.product(q.outcomes, repeat=K):
            in_p, in_q = rule([q.f(z) for z in zs])
            scores = [q.score(z) for z in zs]
            result.append((mp.fprod(q.prob(z) for z in zs), combined(zip(in_p, scores)) + combined(zip(in_q, scores))))
        return result

    return law


def normalised(f, power=1):
    w = [mp.exp(-power * x) for x in f]
    return [x / mp.fsum(w) for x in w]


def bound(f):
    return -mp.log(mp.fsum(mp.exp(-x) for x in f) / len(f))


def iwae_reinforce(f):
    v = normalised(f)
    return [-x for x in v], [bound(f) + x for x in v]


def vimco(f):
    v, signal = normalised(f), []
    for k in range(len(f)):
        others = f[:k] + f[k + 1 :]
        signal.append(bound(f) - bound(others + [sum(others) / len(others)]) + v[k])
    return [-x for x in v], signal


def wake_wake(f):
    v = normalised(f)
    return [-x for x in v], [-x for x in v]


def wsram(f):
    v, K = normalised(f), len(f)
    return [mp.mpf(1) / K - x for x in v], [mp.mpf(1) / K - x for x in v]


def tvo(beta):
    def rule(f):
        K = len(f)
        in_p, in_q = [mp.mpf(0)] * K, [mp.mpf(0)] * K
        for b, width in ((mp.mpf(0), beta), (beta, 1 - beta)):
            pi = normalised(f, b)
            mean = -mp.fsum(w * x for w, x in zip(pi, f))
            for k in range(K):
                covariance = (-f[k] - mean) * K / (K - 1)
                in_p[k] -= width * pi[k] * (1 + b * covariance)
                in_q[k] -= width * pi[k] * ((1 - b) * covariance - 1)
        return in_p, in_q

    return rule


def marginal(keep):
    """-grad log sum_z p exp(-f) over the `keep` most probable options of each column; columns have separate costs."""

    def law(q):
        g = zeros(q.D, q.S)
        for d in range(q.D):
            order = sorted(range(q.S), key=lambda i: -q.p[d][i])[:keep]
            joint = [
                q.p[d][i] * mp.exp(-(abs(q.x(i) - q.t[d]) ** q.power) * q.share) if i in order else mp.mpf(0)
                for i in range(q.S)
            ]
            g[d] = [a - b / mp.fsum(joint) for a, b in zip(q.p[d], joint)]
        return [(mp.mpf(1), g)]

    return law


def soft(q):
    d = q.slope_at(q.mean_weights())
    return [(mp.mpf(1), [through(q.p[c], [d[c] * q.x(i) for i in range(q.S)]) for c in range(q.D)])]


def exactly(q):
    return [(mp.mpf(1), q.truth())]


def untouched(q):  # choices are constants, and nothing else depends on the logits
    return [(mp.mpf(1), zeros(q.D, q.S))]


# spec -> (law, most outcomes S^D to enumerate)
LAWS = {
    "exact": (exactly, 1024),
    "soft": (soft, 1024),
    "exact_marginal": (marginal(99), 1024),
    "kmax_marginal[k=2]": (marginal(2), 1024),
    "local_expectation": (exactly, 1024),
    "reinforce": (score_less(lambda q: 0), 700),
    "reinforce[baseline=0.3]": (score_less(lambda q: mp.mpf("0.3")), 700),
    "moving_baseline": (score_less(lambda q: 0), 700),
    "self_critic": (score_less(lambda q: q.f(most_probable(q))), 700),
    "soft_baseline": (score_less(lambda q: q.f_at(q.mean_weights())), 700),
    "rloo[samples=2]": (rloo(2), 27),
    "rloo[samples=3]": (rloo(3), 8),
    "double_cv[samples=2]": (rloo(2), 27),
    "rodeo[samples=2]": (rloo(2), 27),
    "optimal_baseline[samples=2]": (optimal_baseline(2), 27),
    "straight_through": (straight_through, 700),
    "reinmax": (reinmax(1), 700),
    "reinmax[temperature=1.7]": (reinmax(mp.mpf("1.7")), 700),
    "gapped_st": (gapped_st(1, 1), 700),
    "gapped_st[temperature=0.6,gap=0.5]": (gapped_st(mp.mpf("0.6"), mp.mpf("0.5")), 700),
    "muprop": (muprop(), 700),
    "muprop[level=0.4,slope=1.3]": (muprop(mp.mpf("0.4"), mp.mpf("1.3")), 700),
    "disarm": (disarm, 16),
    "unordered_set": (unordered_pairs, 64),
    "sum_and_sample": (sum_and_sample, 700),
    "iwae_reinforce": (importance(2, iwae_reinforce), 16),
    "vimco": (importance(2, vimco), 16),
    "wake_wake[samples=2]": (importance(2, wake_wake), 16),
    "wsram[samples=2]": (importance(2, wsram), 16),
    "tvo[samples=2]": (importance(2, tvo(mp.mpf("0.1"))), 16),
    "tvo[samples=2,beta1=0.4]": (importance(2, tvo(mp.mpf("0.4"))), 16),
    "mvd": (exactly, 16),
    "path_only": (untouched, 700),
    "path_only[hard_threshold=true]": (untouched, 1024),
}
BITS_ONLY = {"disarm", "mvd", "arm"}
# Only the mean of these is checked: it is the truth. (Biased estimators are among the laws.)
UNBIASED = [
    "nvil",
    "muprop[learned=true]",
    "stratified[samples=2]",
    "systematic[samples=2]",
    "arms[samples=2]",
    "ars",
    "arsm",
    "carms[samples=2]",
    "disarm_tree",
    "disarm_stick",
    "relax",
    "relax[relaxed_model=false]",
    "rebar[coupled=true]",
    "wor_importance[samples=2,baseline=false]",
    "wor_importance",
    "rodeo[samples=2,alpha=0.3,beta=0.4]",
    "double_cv[samples=2,alpha=-0.7]",
    "unordered_set[samples=3]",
    "sum_and_sample[samples=3,set=sampled]",
    "mvd",
    "arm[samples=4]",
]


def moments(problem, spec):
    """Mean [P] and trace of the variance; for bits at their single logit."""
    if spec == "arm":
        mean, square = arm_moments(problem)
        flat = [row[1] for row in mean]
        return flat, square - mp.fsum(x * x for x in flat)
    law = LAWS[spec][0](problem)

    def flat(g):
        return [row[1] for row in g] if problem.S == 2 else [v for row in g for v in row]

    mean = [mp.fsum(w * x for w, x in zip((w for w, _ in law), column)) for column in zip(*(flat(g) for _, g in law))]
    return mean, mp.fsum(w * mp.fsum((x - m) ** 2 for x, m in zip(flat(g), mean)) for w, g in law)
