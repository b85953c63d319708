// arm: augment-REINFORCE-merge: antithetic pairs of bits, weighted by the uniform number that made them.
//
//   g_phi = (f(b~) - f(b)) (u - 1/2),   b = [u < sig(phi)],  b~ = [u > sig(-phi)]      per pair and choice
//
// Yin & Zhou 2019, ARM: augment-REINFORCE-merge gradient for stochastic binary networks, Theorem 1:
// one u for each bit, and all bits flipped together.
// Target: expected loss. Bias: none. Cost: 2 rows a pair; 1 + T where choices feed later ones.
// Departures: where choices feed later ones, every choice's pair is evaluated given the first member's choices before it.
#include "core/estimator/coupling/coupled_estimator.hpp"

namespace hardgrad {
namespace {

template <class T>
class Arm final : public CoupledEstimator<T> {
 public:
  Arm(const Settings& settings, const Structure&, Key)
      : CoupledEstimator<T>(settings.integer("samples") / 2, 2, 1, credit_of(settings)) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    const double p = coupling.p[1], flips[] = {p, 1 - p};
    const double u = random.uniform(where, {.breaks = flips, .polynomial = true});
    coupling.option[0] = u < p;
    coupling.option[1] = u > 1 - p;
    coupling.kept[0] = u;
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    logits[1] = (f[1] - f[0]) * (coupling.kept[0] - 0.5);
    logits[0] = -logits[1];
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "arm",
    .summary = "antithetic pairs of bits, weighted by the uniform number that made them",
    .paper = "Yin & Zhou 2019, ARM: augment-REINFORCE-merge gradient, Theorem 1",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "2; 1 + T if sequential",
    .parameters = {samples_parameter(2, 2), credit_parameter()},
    .needs = {need::bits},
    .unsupported = needs_pairs,
};
HARDGRAD_ESTIMATOR(Arm, entry)

}  // namespace hardgrad
