// A loss computed by Python: one call for all rows of a run.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/choice/choice.hpp"
#include "experiments/python/module.hpp"

namespace hardgrad::python {

/// Calls `loss(choice, example, differentiable)`, an adapter of the package. choice: options [R, D] ([R, D, picks] of subsets) or,
/// where the estimator relaxes, weights [R, D, S]; example [R]: the example of each row. It returns the losses [R], and None or a
/// function from a cotangent [R] to the derivative [R, D, S] in the weights. Constructed and destroyed with the GIL, called
/// without it, by any number of threads.
template <class T>
class CalledLoss {
 public:
  /// `takes_weights`: else relaxed choices are refused. `subset_size`: as in GivenLogits. `estimator`: its name, for error
  /// messages.
  CalledLoss(pybind11::object loss, bool takes_weights, int columns, int options, int subset_size, std::string estimator)
      : loss_(std::move(loss)),
        takes_weights_(takes_weights),
        columns_(columns),
        options_(options),
        subset_size_(subset_size),
        estimator_(std::move(estimator)) {}
  CalledLoss(const CalledLoss&) = delete;

  Var<T> operator()(Tape<T>& tape, const Choice<T>& choice, std::span<const int> example);
  /// Whether it was called with weights. Not beside a call.
  bool relaxed() const { return !runs_.empty(); }
  /// From now on no gradient flows into the weights; the caller computes that part.
  void cut() { cut_ = true; }

  // The parts of a call.

  /// UsageError for choices that are weights, if it takes options.
  void require(const Choice<T>& choice) const;
  /// Rows of one choice; `first` is the position of example 0 in the batch.
  struct Rows {
    const Choice<T>* choice;
    std::span<const int> example;
    int first = 0;

    std::size_t size() const { return example.size(); }
  };
  struct Losses {
    Numbers<T> value;  ///< [R]
    pybind11::object derivative;
  };
  /// The losses of all these rows, in one call: all hard or all relaxed. With the GIL. NotFinite if a loss is not finite.
  Losses call(std::span<const Rows> all, bool differentiable) const;
  /// [R, D, S] of a derivative that `call` has returned. With the GIL. UsageError if that is None.
  Numbers<T> slopes(const pybind11::object& derivative, const Numbers<T>& cotangent) const;
  /// D S
  std::size_t weights_of_row() const { return static_cast<std::size_t>(columns_) * static_cast<std::size_t>(options_); }

 private:
  /// In the backward pass: adds the derivative in the weights, for a run that is still on its tape.
  void pull(Tape<T>& tape, Var<T> loss, Var<T> weights) const;

  pybind11::object loss_;
  bool takes_weights_, cut_ = false;
  int columns_, options_, subset_size_;
  std::string estimator_;
  // For each tape the losses on it by their ids, in order, with their derivatives. Guarded by the GIL.
  std::map<const Tape<T>*, std::vector<std::pair<std::uint32_t, pybind11::object>>> runs_;
};

/// UsageError for an estimator that passes weights to a loss of options.
[[noreturn]] void refuse_weights(const std::string& estimator);

extern template class CalledLoss<float>;
extern template class CalledLoss<double>;

}  // namespace hardgrad::python
