// Hard samples with the derivative of each sample's loss in the weights of its choices, for control variates.
#pragma once

#include "core/estimator/choices.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// K samples per example; sample n = b K + k. The options enter the model as weights, so that the loss can be differentiated in
/// them.
template <class T>
class DifferentiatedSamples {
 public:
  DifferentiatedSamples(const Problem<T>& problem, int samples);
  /// The same with hard answers of another handler whose rows are (b, k). The model sees the options' weights times `scale`.
  DifferentiatedSamples(const Problem<T>& problem, int samples, Handler<T>& hard, double scale = 1);
  Sampled<T>& run() { return *run_; }
  const Choices<T>& choices() const { return *choices_; }
  const std::shared_ptr<const ChoiceLayout>& layout() const { return choices_->layout(); }

  /// df/dz of each sample in the weights of each of its choices, at the (scaled) weights.
  const AtLogits& slope() const { return slope_; }
  /// The return of each choice.
  PerChoice returns(Credit credit) const { return run_->returns(credit, layout()); }
  /// The path term of the samples plus g at the logits of their choices, averaged over the samples.
  Var<T> surrogate(const AtLogits& g);
  /// Mean over the examples of <a, b> for the estimates a / K and b / K. Samples that share logits are summed there first.
  /// Where choices feed later ones, each sample has its own rows, and nothing is shared.
  double product(const AtLogits& a, const AtLogits& b) const;

 private:
  void run(const Problem<T>& problem, Handler<T>& hard, double scale);
  int samples_;
  std::unique_ptr<Sampled<T>> run_;
  std::unique_ptr<Choices<T>> choices_;
  AtLogits slope_;
};

extern template class DifferentiatedSamples<float>;
extern template class DifferentiatedSamples<double>;

}  // namespace hardgrad
