#include <cmath>
#include <stdexcept>

#include "core/autodiff/reduce.hpp"
#include "experiments/verification/promises.hpp"

namespace hardgrad::verification {
namespace {

/// An estimator of one entry of the gradient of the inner estimator's own loss; the entry is multiplied by the model's first
/// parameter.
class OfOwnLoss final : public Estimator<double> {
 public:
  OfOwnLoss(const Estimator<double>& inner, std::size_t which) : inner_(inner), which_(which) {}
  bool exchangeable() const override { return inner_.exchangeable(); }

 private:
  Estimate<double> estimate(const Problem<double>& p) const override {
    auto estimate = inner_.draw({.tape = p.tape, .model = p.model, .batch = p.batch, .random = p.random, .learning = true});
    if (!estimate.own_loss) throw std::runtime_error("own_loss is not set although own parameters are learned");
    std::vector<double> g(inner_.own_parameters().size());
    p.tape.backward(estimate.own_loss);
    p.tape.add_gradient(inner_.own_parameters(), std::span<double>(g));
    estimate.surrogate = sum(p.tape.parameter(*p.model.parameters().begin()), g[which_]);
    return estimate;
  }
  const Estimator<double>& inner_;
  std::size_t which_;
};

}  // namespace

Finding descends_square(const Trial& trial) {
  auto& estimator = *trial.estimator;
  perturb_state(estimator);
  // NotExact if these moments, two for each parameter, would take minutes: noise of two columns that is integrated over.
  measurement::exact_moments(estimator, *trial.model, one_example(), trial.truth.of_example, 2e4);
  const auto square = [&] {
    const auto m = trial.moments();
    double sum = m.trace;
    for (double g : m.mean) sum += g * g;
    return sum;
  };
  const auto mean_of_own = [&](const Estimator<double>& of, std::size_t which) {
    const std::vector<std::vector<double>> around = {std::vector<double>(trial.truth.gradient.size())};
    return measurement::exact_moments(OfOwnLoss(of, which), *trial.model, one_example(), around, trial_outcome_cap).mean[0];
  };
  std::size_t which = 0;
  std::vector<double> means, wanted;
  for (auto& parameter : estimator.own_parameters())
    for (auto& value : parameter.value) {
      const double at = value, h = 1e-4;
      value = at + h;
      const double above = square();
      value = at - h;
      wanted.push_back((above - square()) / (2 * h));
      value = at;
      means.push_back(mean_of_own(estimator, which++));
    }
  const double size = measurement::largest(wanted);
  if (size == 0) return {"no parameter is learned", ""};
  double off = 0;  // largest relative error of a derivative, within the accuracy of differences
  for (std::size_t i = 0; i < which; ++i)
    off = std::max(off, std::abs(means[i] - wanted[i]) / (std::abs(wanted[i]) + 1e-4 * size));
  // Samples that are copies of one another learn by the mean of their gradients.
  if (trial.model->structure().most_columns() == 1 && trial.settings().integer("samples") == 1) {
    const auto two = make_estimator<double>(trial.spec.with("samples", "2"), trial.model->structure(), Key(1));
    perturb_state(*two);
    if (two->copies() == 2) off = std::max(off, std::abs(mean_of_own(*two, 0) - means[0]) / size);
  }
  return within(off, 1e-3, fmt::format("{} derivatives", which));
}

}  // namespace hardgrad::verification
