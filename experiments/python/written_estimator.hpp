// An estimator that is written in Python: a function from an example's samples and their losses to the gradient at the logits.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "core/estimator/estimator.hpp"

namespace hardgrad::python {

/// K samples an example. At each step of a run the function is called as function(probabilities [N, D, S], options [N, D],
/// losses [N], derivatives [N, D, S] or None, K), N = E K samples, those of an example side by side; it returns each sample's
/// gradient at the logits [N, D, S], whose mean over an example's samples is the estimate. The path term of what is inside the
/// loss is added.
template <class T>
class WrittenEstimator final : public Estimator<T> {
 public:
  /// With `derivatives`: of each loss in the weights, at what was chosen.
  WrittenEstimator(std::shared_ptr<pybind11::object> function, int samples, bool derivatives)
      : function_(std::move(function)), samples_(samples), derivatives_(derivatives) {}
  /// Nothing is known of the function: every order of the samples is visited.
  bool exchangeable() const override { return false; }

 protected:
  Estimate<T> estimate(const Problem<T>& problem) const override;

 private:
  std::shared_ptr<pybind11::object> function_;
  int samples_;
  bool derivatives_;
};

/// A Python object that may be let go of without the GIL.
std::shared_ptr<pybind11::object> kept(pybind11::object object);

extern template class WrittenEstimator<float>;
extern template class WrittenEstimator<double>;

}  // namespace hardgrad::python
