// Pathwise estimators: every choice is answered with differentiable weights, and the loss is differentiated through them.
#pragma once

#include <span>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/choice/relaxed.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// g = 1/K sum_k grad f(weights_k). A derived class defines the weights as a function of the logits.
template <class T>
class RelaxationEstimator : public Estimator<T> {
 public:
  int copies() const final { return samples_; }
  int inner_copies() const final { return inner_; }
  Estimate<T> estimate(const Problem<T>& problem) const final {
    const int samples = problem.one_copy ? 1 : samples_;
    const int inner = problem.inner_copies > 0 ? problem.inner_copies : rao_samples_;
    RelaxedHandler<T> handler(
        samples, problem.random, problem.batch.id, [&](const Relaxing<T>& asked) { return relax(asked); }, inner);
    return path_estimate(problem, samples, handler);
  }

 protected:
  explicit RelaxationEstimator(int samples) : samples_(samples) {}
  /// Averages a term over Relaxing::rao_samples draws of the noise given the choice. The gradient is linear in this average unless later
  /// choices depend on earlier ones: their Jacobians are multiplied.
  RelaxationEstimator(int samples, int rao_samples, const Structure& structure)
      : samples_(samples), rao_samples_(rao_samples), inner_(structure.independent() ? rao_samples_ : 1) {}
  virtual Relaxed<T> relax(const Relaxing<T>& asked) const = 0;

 private:
  int samples_, rao_samples_ = 1, inner_ = 1;
};

/// [R, S] the sum of `samples` relaxed choices, each with new noise given the option. Draws use the indices from 1 on, `most`
/// per sample, so that they do not depend on the batch. `of`: as in Relaxing::gumbels_given.
template <class T>
Var<T> sum_of_softmax_given(const Relaxing<T>& asked, const std::vector<int>& option, double temperature, int samples,
                            std::uint32_t most, std::span<const double> of = {}) {
  Var<T> total;
  for (int m = 0; m < samples; ++m) {
    auto soft = asked.softmax(asked.gumbels_given(option, 1 + m * most, of), temperature);
    total = total ? add(total, soft) : soft;
  }
  return total;
}

inline void temperature_field(Fields& field, double& temperature) {
  field.temperature(temperature, "temperature", "of the softmax that replaces the choice");
}
inline void rao_samples_field(Fields& field, int& rao_samples) {
  field(rao_samples, "rao_samples", 1, 1e6, "draws of the noise given each choice");
}
struct RelaxationConfig {
  int samples = 1;
  double temperature = 0.5;
  void declare(Fields& field) {
    samples_field(field, samples);
    temperature_field(field, temperature);
  }
};
struct RaoConfig : RelaxationConfig {
  int rao_samples = 10;
  void declare(Fields& field) {
    RelaxationConfig::declare(field);
    rao_samples_field(field, rao_samples);
  }
};

}  // namespace hardgrad
