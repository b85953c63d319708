// Hard samples with the derivative of each one's loss in the weights of its choices, for control variates made of it.
#pragma once

#include "core/estimator/choices.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// K samples an example; sample n = b K + k. The options enter the model as weights, so that they can be differentiated.
template <class T>
class DifferentiatedSamples {
 public:
  DifferentiatedSamples(const Problem<T>& problem, int samples);
  Sampled<T>& run() { return *run_; }
  const Choices<T>& choices() const { return *choices_; }
  const std::shared_ptr<const ChoiceLayout>& layout() const { return choices_->layout(); }

  /// df/dz of each sample in the weights of each of its choices, at what it chose.
  const AtLogits& slope() const { return slope_; }
  /// What choices are credited with.
  PerChoice returns(Credit credit) const { return run_->returns(credit, layout()); }
  /// Path term of the samples, and g at the logits of their choices, averaged over the samples.
  Var<T> surrogate(const AtLogits& g);
  /// Mean over examples of <a, b> of the estimates a / K and b / K. Samples meet at the logits they share: not in rows of
  /// their own, where choices feed later ones.
  double product(const AtLogits& a, const AtLogits& b) const;

 private:
  int samples_;
  std::unique_ptr<Sampled<T>> run_;
  std::unique_ptr<Choices<T>> choices_;
  AtLogits slope_;
};

extern template class DifferentiatedSamples<float>;
extern template class DifferentiatedSamples<double>;

}  // namespace hardgrad
