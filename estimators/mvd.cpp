// mvd: measure-valued derivative of bits: both values of a choice, everything else being equal.
//
//   g_phi = p (1 - p) (f(1, rest) - f(0, rest)),   rest ~ the other choices' distributions       per choice
//
// Mohamed, Rosca, Figurnov & Mnih 2020, Monte Carlo gradient estimation in machine learning, sec. 6; Pflug 1996,
// Optimization of stochastic models. A measure-valued derivative is a constant times the difference of two distributions;
// of Bernoulli(p) in p: the point mass at 1 minus that at 0, and dp/dphi = p (1 - p).
// Target: expected loss. Bias: none. Cost: 2 rows a choice where a choice has its own cost, else 1 + T rows a sample: each
// choice needs a flip of its own, because the flipped value is no draw.
// Departures: one of the two values is the base path's. The flipped row shares the later choices of the base path where
// its flip does not change their distribution (common random numbers, sec. 7); otherwise it draws its own.
#include "core/estimator/coupling/coupled_estimator.hpp"

namespace hardgrad {
namespace {

template <class T>
class Mvd final : public CoupledEstimator<T> {
 public:
  Mvd(const Settings& settings, const Structure&, Key)
      : CoupledEstimator<T>(settings.integer("samples"), 2, 0, Credit::reward_to_go) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    coupling.option[0] = random.categorical(coupling.p, where);
    coupling.option[1] = 1 - coupling.option[0];
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    const double sign = coupling.option[0] - coupling.option[1];
    logits[1] = coupling.p[0] * coupling.p[1] * sign * (f[0] - f[1]);
    logits[0] = -logits[1];
  }
  bool all_lawful() const override { return false; }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "mvd",
    .summary = "measure-valued derivative: both values of a bit, the rest being equal",
    .paper = "Mohamed et al. 2020, Monte Carlo gradient estimation in machine learning, sec. 6",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "2 per choice; 1 + T if choices share a cost",
    .parameters = {samples_parameter()},
    .needs = {need::bits},
};
HARDGRAD_ESTIMATOR(Mvd, entry)

}  // namespace hardgrad
