// A learned baseline C: a function of the network's state when it asks.
#pragma once

#include <string>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/choice/structure.hpp"
#include "core/estimator/state.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

/// C(state) of a network with one layer of tanh units; the state is detached. Parameters: NAME.{hidden,out}.{weight,bias}.
template <class T>
class LearnedBaseline {
 public:
  LearnedBaseline() = default;
  LearnedBaseline(ParameterSet<T>& set, const std::string& name, const Structure& structure, std::size_t units, Key init)
      : hidden_(set, name + ".hidden", structure.state_width(), units, init),
        out_(set, name + ".out", units, std::max(1, structure.most_columns()), init) {}

  /// [R, columns] C at the rows of a step's choice; columns: 1, or D if columns have separate costs.
  Var<T> at(const typename Episode<T>::Step& step, std::size_t columns) const {
    const auto state =
        gather_rows(state_of(step.question, hidden_.weight->value.shape()[1]), std::span<const int>(step.choice.rows->parent));
    const auto value = out_(tanh(hidden_(state)));
    return columns < value.cols() ? slice_columns(value, 0, columns) : value;
  }

 private:
  Linear<T> hidden_, out_;
};

}  // namespace hardgrad
