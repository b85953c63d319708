// disarm: antithetic pairs of bits with the uniform number that coupled them integrated out.
//
//   g_phi = 1/2 (f(b) - f(b~)) (b - b~) sig(|phi|)          per pair and choice, phi the logit of b = 1
//
// Dong, Mnih & Tucker 2020, DisARM: an antithetic gradient estimator for binary latent variables, eq. 7 (and, at the same
// time, Yin, Ho, Yan, Qian & Zhou 2020, Probabilistic best subset selection via gradient-based optimization: U2G).
// b = [u > 1 - p], b~ = [u < p] for one uniform u: the pair is drawn from its three possible outcomes.
// Target: expected loss. Bias: none. Cost: 2 rows a pair; 1 + T where choices feed later ones.
// Departures: where choices feed later ones, every choice's pair is evaluated given the first member's earlier choices.
#include <algorithm>

#include "core/estimator/coupling/antithetic_bits.hpp"
#include "core/estimator/coupling/coupled_estimator.hpp"

namespace hardgrad::estimators::disarm {
namespace {

using Config = SamplesAndCredit<2, 2>;

template <class T>
class DisArm final : public CoupledEstimator<T> {
 public:
  DisArm(const Config& config, const Structure&, Key) : CoupledEstimator<T>(config.samples / 2, 2, 0, config.credit) {}

 private:
  bool by_columns() const override { return true; }
  void draw_columns(std::span<const double> p, const std::vector<std::span<int>>& option, Randomness& random,
                    Draw where) const override {
    antithetic_bits(p, random, where, option[0], option[1]);
  }
  void gradient_of_columns(std::span<const double> p, const std::vector<std::span<const int>>& option,
                           const std::vector<std::span<const double>>& f, std::span<double> logits) const override {
    for (std::size_t d = 0; d < option[0].size(); ++d) {
      const double larger = std::max(p[2 * d], p[2 * d + 1]);  // sig(|phi|)
      logits[2 * d + 1] = (f[0][d] - f[1][d]) * (option[0][d] - option[1][d]) * larger / 2;
      logits[2 * d] = -logits[2 * d + 1];
    }
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "disarm",
    .summary = "antithetic pairs of bits, their common uniform number integrated out",
    .paper = "Dong, Mnih & Tucker 2020, DisARM, eq. 7",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K; K / 2 (1 + T) if sequential",
    .parameters = declared<Config>(),
    .needs = {need::bits},
    .promises = {promise::unshifted(), promise::variance(1.827458116)},
    .why_unsupported = needs_pairs,
};
HARDGRAD_ESTIMATOR(DisArm, entry)

}  // namespace hardgrad::estimators::disarm
