// The gradient of one scalar with respect to a set of parameters.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// into [set.size()] = d scalar / d parameters, in the set's order. Afterwards only
/// gradients of parameters outside the set can be read from the tape.
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
