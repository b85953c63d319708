// The loss of bits: linear layer, logistic function and cross-entropy in one operation.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// -log p(y) of independent bits with log odds l = x W' + b, summed over a row: sum_c log(1 + exp l[r, c]) - y[index[r], c]
/// l[r, c], in nats. x [R, I]; W [C, I]; b [1, C] or empty; y [N, C] in [0, 1], constant; index [R] rows of y -> [R, 1].
template <class T>
Var<T> linear_binary_cross_entropy(Var<T> x, Var<T> weight, Var<T> bias, Var<T> y, std::span<const int> index);

}  // namespace hardgrad
