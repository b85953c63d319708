"""`measure --exact` against moments from the papers' equations in arbitrary precision (mpmath), on random problems."""

import json
import os
import random
import subprocess

import mpmath as mp
import pytest

mp.mp.dps = 25
BINARY = os.environ.get("HARDGRAD_BINARY", "build/release/hardgrad")


def measured(model, estimator):
    done = subprocess.run(
        [BINARY, "measure", "--task", "bits", "--model", model, "--exact", "--estimator", estimator, "--json"],
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["results"][0]


class Bit:
    """One bit with logit phi and loss |x - t|^power."""

    def __init__(self, phi, t, power):
        self.phi, self.t, self.power = mp.mpf(phi), mp.mpf(t), mp.mpf(power)
        self.p = 1 / (1 + mp.exp(-self.phi))

    def f(self, x):
        return abs(x - self.t) ** self.power

    def slope(self, x):
        return self.power * abs(x - self.t) ** (self.power - 1) * mp.sign(x - self.t)

    def truth(self):
        return self.p * (1 - self.p) * (self.f(1) - self.f(0))

    def of_option(self, g):
        """Mean and mean square of g(b)."""
        return tuple((1 - self.p) * g(0) ** k + self.p * g(1) ** k for k in (1, 2))

    def of_logistic(self, g, kinks):
        """The same for g(z), z = phi + L with logistic L; g has kinks at `kinks`."""
        ends = sorted({mp.mpf(0), *kinks, *(self.phi + s for s in (-60, -10, 0, 10, 60))})

        def density(z):
            return 1 / (2 * mp.cosh((z - self.phi) / 2)) ** 2

        return tuple(mp.quad(lambda z: g(z) ** k * density(z), [-mp.inf, *ends, mp.inf]) for k in (1, 2))


def gumbel(bit, temperature, hard):
    """gumbel_softmax, or (hard) st_gumbel: Jang, Gu & Poole 2017."""

    def g(z):
        w = 1 / (1 + mp.exp(-z / temperature))
        return bit.slope(mp.mpf(z > 0) if hard else w) * w / (1 + mp.exp(z / temperature)) / temperature

    return bit.of_logistic(g, [] if hard else [temperature * mp.log(bit.t / (1 - bit.t))])


MOMENTS = {
    "reinforce": lambda bit: bit.of_option(lambda b: bit.f(b) * (b - bit.p)),
    "straight_through": lambda bit: bit.of_option(lambda b: bit.slope(b) * bit.p * (1 - bit.p)),
    "gumbel_softmax": lambda bit: gumbel(bit, mp.mpf("0.5"), False),
    "gumbel_softmax[temperature=1]": lambda bit: gumbel(bit, mp.mpf(1), False),
    "st_gumbel": lambda bit: gumbel(bit, mp.mpf("0.5"), True),
}


@pytest.mark.parametrize("estimator", MOMENTS)
def test_moments_of_a_bit(estimator):
    draw = random.Random(estimator)
    good = 0
    for problem in range(12):
        most = 3 if problem % 2 == 0 else 30 if "gumbel" in estimator else 8
        phi, t = round(draw.uniform(-most, most), 3), round(draw.uniform(0.05, 0.95), 3)
        power = ["square", "1", "1.5", "3"][problem // 2 % 4]
        bit = Bit(str(phi), str(t), 2 if power == "square" else power)
        function = "function=square" if power == "square" else f"function=norm,power={power}"
        model = f"bits[{function},t={t},logit={phi}]"
        got = measured(model, estimator)
        mean, square = MOMENTS[estimator](bit)
        variance = square - mean**2
        low, high = got["intervals"]["variance"]
        assert low - 1e-9 * variance <= variance <= high + 1e-9 * variance, (model, got["variance"], variance)
        assert got["variance"] >= 0 and all(end is not None for end in (low, high))
        bias = abs(mean - bit.truth())
        ends = [mp.sqrt(end) for end in got["intervals"]["squared_bias"]]
        scale = abs(mean) + mp.sqrt(variance)
        assert ends[0] - 1e-9 * scale <= bias <= ends[1] + 1e-9 * scale, (model, got["squared_bias"], bias)
        (found,) = got["mean_gradient"]["bits.logits"]
        assert abs(found - mean) <= 1e-9 * scale + (ends[1] - ends[0])
        good += high - low <= 2e-9 * variance
    assert good == 12
