// A loss that Python works out: one call for all rows of a run.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/choice/choice.hpp"

namespace hardgrad::python {

/// Calls `loss(choice, example)`, an adapter of the package: choice are options [R, D] or, if the loss takes weights, weights
/// [R, D, S]; example [R] says whose rows they are. It returns the losses [R], and None or a function from a cotangent [R] to
/// the derivative [R, D, S] in the weights. Made and destroyed with the GIL, called without it.
template <class T>
class CalledLoss {
 public:
  /// `estimator`: its name, for refusals.
  CalledLoss(pybind11::object loss, bool takes_weights, int columns, int options, std::string estimator)
      : loss_(std::move(loss)),
        takes_weights_(takes_weights),
        columns_(columns),
        options_(options),
        estimator_(std::move(estimator)) {}
  CalledLoss(const CalledLoss&) = delete;

  Var<T> operator()(Tape<T>& tape, const Choice<T>& choice, std::span<const int> example);
  /// From now on nothing goes back into the weights: somebody else sees to that.
  void cut() { cut_ = true; }

 private:
  /// On the way back: the derivative in the weights, of a run that is still on its tape.
  void pull(Tape<T>& tape, std::size_t run, Var<T> loss, Var<T> weights) const;

  pybind11::object loss_;
  bool takes_weights_, cut_ = false;
  int columns_, options_;
  std::string estimator_;
  std::vector<std::pair<std::uint32_t, pybind11::object>> runs_;  // the losses' ids on the tape, and their derivatives
};

/// UsageError of an estimator that hands weights to a loss that takes options.
[[noreturn]] void refuse_weights(const std::string& estimator);

extern template class CalledLoss<float>;
extern template class CalledLoss<double>;

}  // namespace hardgrad::python
