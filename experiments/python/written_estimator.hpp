// An estimator written in Python: a function from an example's samples and their losses to the gradient at the logits.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "core/estimator/estimator.hpp"

namespace hardgrad::python {

/// K samples per example. At each step of a run the function is called as function(probabilities [N, D, S], options [N, D],
/// losses [N], derivatives [N, D, S] or None, K). N = E K samples, with those of an example side by side. It returns each
/// sample's gradient at the logits [N, D, S]; the estimate is their mean over an example's samples. The path gradient within
/// the loss is added.
template <class T>
class WrittenEstimator : public Estimator<T> {
 public:
  /// `derivatives`: the function receives those of each loss in the weights, at the sampled choices.
  WrittenEstimator(std::shared_ptr<pybind11::object> function, int samples, bool derivatives)
      : function_(std::move(function)), samples_(samples), derivatives_(derivatives) {}
  /// The function may depend on the order of the samples, so every order is visited.
  bool exchangeable() const override { return false; }

 protected:
  Estimate<T> estimate(const Problem<T>& problem) const override;

 private:
  std::shared_ptr<pybind11::object> function_;
  int samples_;
  bool derivatives_;
};

/// A Python object that may be released without the GIL.
std::shared_ptr<pybind11::object> kept(pybind11::object object);

extern template class WrittenEstimator<float>;
extern template class WrittenEstimator<double>;

}  // namespace hardgrad::python
