// The loss of bits: cross-entropy of Bernoulli log odds and observed bits.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// -log p(y) of independent bits with log odds l, summed over a row: sum_c log(1 + exp l[r, c]) - y[index[r], c] l[r, c], in
/// nats. l [R, C]; y [N, C] in [0, 1], constant; index [R] rows of y -> [R, 1].
template <class T>
Var<T> binary_cross_entropy(Var<T> l, Var<T> y, std::span<const int> index);

}  // namespace hardgrad
