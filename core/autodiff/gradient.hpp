// The gradient of one number in a set of parameters.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// into [set.size()] = d scalar / d parameters, in the set's order. Of the tape's other gradients only those of other
/// parameters can be read afterwards.
template <class T, class U>
void differentiate(Var<T> scalar, const ParameterSet<T>& set, std::vector<U>& into) {
  if constexpr (std::is_same_v<T, U>) {
    scalar.tape->backward_to_leaves(scalar, set, into);
  } else {
    scalar.tape->backward_to_leaves(scalar);
    std::fill(into.begin(), into.end(), U{0});
    scalar.tape->add_gradient(set, std::span<U>(into));
  }
}

}  // namespace hardgrad
