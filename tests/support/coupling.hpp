// For tests of coupled samples: couplings defined by two functions (right and wrong ones), and fixed noise.
#pragma once

#include <functional>
#include <map>

#include "core/estimator/coupling/coupled_estimator.hpp"
#include "experiments/support/parallel.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing {

/// A coupling defined by two functions.
class FunctionCoupling final : public CoupledEstimator<double> {
 public:
  using Drawing = std::function<void(Coupling&, Randomness&, Draw)>;
  using Gradient = std::function<void(const Coupling&, std::span<const double>, std::span<double>)>;
  FunctionCoupling(int members, Drawing drawing, Gradient gradient, bool lawful = true)
      : CoupledEstimator(1, members, 4, Credit::whole),
        drawing_(std::move(drawing)),
        gradient_(std::move(gradient)),
        lawful_(lawful) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override { drawing_(coupling, random, where); }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    gradient_(coupling, f, logits);
  }
  bool all_lawful() const override { return lawful_; }
  Drawing drawing_;
  Gradient gradient_;
  bool lawful_;
};

/// Fixed noise: every uniform number is `u`, every categorical draw is `outcome`.
struct Told final : Randomness {
  double u = 0.5;
  int outcome = 0;
  int categorical(std::span<const double>, Draw) override { return outcome; }
  double uniform(Draw, const Pieces&) override { return u; }
};

/// The largest |z| over all parameters: the mean of `draws` estimates against the exact gradient.
inline double z_of(const Estimator<double>& estimator, const Model<double>& model, const Batch& batch, int draws) {
  const auto truth = measurement::exact_gradient(estimator.target(), model, batch, 1e6);
  std::vector<std::vector<double>> each(draws);
  parallel_for(draws, [&](int m) {
    KeyedRandomness random(Key(1234) / static_cast<std::uint64_t>(m));
    each[m] = gradient_of<double>(estimator, model, batch, random);
  });
  double worst = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    double sum = 0, squares = 0;
    for (const auto& g : each) {
      sum += g[i] - truth[i];
      squares += (g[i] - truth[i]) * (g[i] - truth[i]);
    }
    const double mean = sum / draws, variance = squares / draws - mean * mean;
    if (variance > 1e-24)
      worst = std::max(worst, std::abs(mean) / std::sqrt(variance / draws));
    else if (std::abs(mean) > 1e-10)
      return INFINITY;
  }
  return worst;
}

/// The batch; if the noise has many outcomes, only its example of length two.
inline Batch affordable(const Batch& batch, bool many) { return many ? batch.select({1}) : batch; }

}  // namespace hardgrad::testing
