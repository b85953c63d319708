// Pathwise estimators: every choice is answered with weights that carry a derivative, and the loss is differentiated.
#pragma once

#include "core/choice/relaxed.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// g = 1/K sum_k grad f(weights_k). The estimator says how the weights come from the logits.
template <class T>
class RelaxationEstimator : public Estimator<T> {
 public:
  int copies() const final { return samples_; }
  Estimate<T> estimate(const Problem<T>& problem) const final {
    const int samples = problem.one_copy ? 1 : samples_;
    RelaxedChooser<T> chooser(samples, problem.random, problem.batch.id,
                              [this](const Relaxing<T>& asked) { return relax(asked); });
    Sampled<T> run(problem, samples, chooser);
    auto surrogate = run.path();
    const double loss = run.mean_loss();
    return {.surrogate = surrogate, .episode = run.release(), .loss = loss};
  }

 protected:
  explicit RelaxationEstimator(const Settings& settings) : samples_(settings.integer("samples")) {}
  virtual Relaxed<T> relax(const Relaxing<T>& asked) const = 0;

 private:
  int samples_;
};

inline ParameterInfo temperature_parameter(double fallback) {
  return ParameterInfo::real("temperature", fallback, 0, 1e6, "of the softmax that stands in for the choice").above();
}

}  // namespace hardgrad
