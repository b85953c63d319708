// ugc: unbiased gradient combination: DisARM for uncertain bits, the flipped bit for nearly certain ones.
//
//   g_phi_i = 1/2 (f(b) - f(b~)) (b_i - b~_i) sig(|phi_i|)                      if 2 T min(p_i, 1 - p_i) >= 1   (disarm)
//             T [i = j] p_i (1 - p_i) (f(b_i = 1, rest) - f(b_i = 0, rest))     else                            (bitflip)
//
// Kunes, Yin, Land, Haviv, Pe'er & Tavare 2022, Gradient estimation for binary latent variables via gradient variance clipping.
// T is the number of choices. With m = min(p, 1 - p) the two have the second moments m (1 - m)^2 / 2 E D^2 and
// T m^2 (1 - m)^2 E D'^2. D is the difference of losses in the antithetic pair, D' that of the flip. The moments are equal at
// 2 T m = 1 if E D^2 = E D'^2. The threshold depends on p only, so the combination is unbiased.
// Target: expected loss. Bias: none. Variance: not above disarm's if the loss is a sum over bits (then E D^2 >= E D'^2). For
// general losses no threshold on p can ensure that: with f(1, rest) = f(0, rest~), disarm has no variance at all.
// Cost: 3 rows per sample: the pair, and the flipped row beside its first member.
// Departures: written at the logits; the threshold is derived from the moments above. Only for choices that do not change each
// other's distribution, as in the paper.
#include <algorithm>

#include "core/estimator/coupling/flipping.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::ugc {
namespace {

struct Config {
  int samples = 1;

  void declare(Fields& field) { field(samples, "samples", 1, 1e6, "antithetic pairs per example, each with a flipped row"); }
};

template <class T>
class Ugc final : public FlippingEstimator<T> {
 public:
  Ugc(const Config& config, const Structure&, Key) : FlippingEstimator<T>(config.samples, true) {}

 private:
  double derivative(const FlippedBit& bit) const override {
    const double rarer = std::min(bit.p[0], bit.p[1]), larger = std::max(bit.p[0], bit.p[1]);  // larger: sig(|phi|)
    if (2 * bit.choices * rarer < 1) return bit.by_flip();
    return (bit.f - bit.f_antithetic) * (bit.option - bit.antithetic) * larger / 2;
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "ugc",
    .summary = "DisARM for uncertain bits, one flipped bit for nearly certain ones",
    .paper = "Kunes et al. 2022, Gradient estimation for binary latent variables via gradient variance clipping",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "3 K",
    .parameters = declared<Config>(),
    .needs = {need::bits},
    .promises = {promise::less_variance("disarm", "samples=1", Promise::Loss::sum), promise::variance(1.649235329)},
    .why_unsupported = [](const Config&, const Structure& structure) -> std::string {
      return structure.independent() ? ""
                                     : "its pairs run side by side, but here choices feed later ones: take disarm or bitflip";
    },
};
HARDGRAD_ESTIMATOR(Ugc, entry)

}  // namespace hardgrad::estimators::ugc
