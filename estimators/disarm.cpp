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
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::disarm {
namespace {

using Config = SamplesAndCredit<2, 2>;

template <class T>
class DisArm final : public CoupledEstimator<T> {
 public:
  DisArm(const Config& config, const Structure&, Key) : CoupledEstimator<T>(config.samples / 2, 2, 0, config.credit) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    std::ranges::copy(antithetic_bits(coupling.p[0], coupling.p[1], random, where), coupling.option.begin());
  }
  bool by_columns() const override { return true; }
  void draw_columns(std::span<const T> log_p, const std::vector<std::span<int>>& option, Randomness& random,
                    Draw where) const override {
    antithetic_bits(log_p, random, where, option[0], option[1]);
  }
  void gradient_of_columns(std::span<const double> p, const std::vector<std::span<const int>>& option,
                           const std::vector<std::span<const double>>& f, std::span<double> logits) const override {
    disarm_gradient(p, option[0], option[1], f[0], f[1], logits);
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
    .closed_form = [](const Config&) { return ClosedForm::disarm; },
};
HARDGRAD_ESTIMATOR(DisArm, entry)

}  // namespace hardgrad::estimators::disarm
