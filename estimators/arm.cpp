// arm: augment-REINFORCE-merge: antithetic pairs of bits, weighted by the uniform number that generated them.
//
//   g_phi = (f(b~) - f(b)) (u - 1/2),   b = [u < sig(phi)],  b~ = [u > sig(-phi)]      per pair and choice
//
// Yin & Zhou 2019, ARM: augment-REINFORCE-merge gradient for stochastic binary networks, Theorem 1:
// one u for each bit, and all bits flipped together.
// Target: expected loss. Bias: none. Cost: 2 rows a pair; 1 + T where choices feed later ones.
// Departures: the pair is drawn from its three possible outcomes, and u given the pair. Where choices feed later ones, every
// choice's pair is evaluated given the first member's earlier choices.
#include <algorithm>

#include "core/estimator/coupling/antithetic_bits.hpp"
#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::arm {
namespace {

using Config = SamplesAndCredit<2, 2>;

template <class T>
class Arm final : public CoupledEstimator<T> {
 public:
  Arm(const Config& config, const Structure&, Key) : CoupledEstimator<T>(config.samples / 2, 2, 1, config.credit) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    const auto bits = antithetic_bits(coupling.p[0], coupling.p[1], random, where);
    std::copy(bits.begin(), bits.end(), coupling.option.begin());
    ++where.index;
    coupling.kept[0] = centred_number(bits, coupling.p, random, where);
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    logits[1] = (f[1] - f[0]) * coupling.kept[0];
    logits[0] = -logits[1];
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "arm",
    .summary = "antithetic pairs of bits, weighted by the uniform number that generated them",
    .paper = "Yin & Zhou 2019, ARM: augment-REINFORCE-merge gradient, Theorem 1",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K; K / 2 (1 + T) if sequential",
    .parameters = declared<Config>(),
    .needs = {need::bits},
    .promises = {promise::unshifted(), promise::same_moments("arsm", "samples=2")},
    .why_unsupported = needs_pairs,
    .closed_form = [](const Config&) { return ClosedForm::arm; },
};
HARDGRAD_ESTIMATOR(Arm, entry)

}  // namespace hardgrad::estimators::arm
