// Sparsemax: the Euclidean projection of a row's logits onto the probability simplex (Martins & Astudillo 2016, From
// softmax to sparsemax, eq. 2 and Algorithm 1). Unlike softmax it gives most options exactly 0.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// The tau for which max(x_i - tau, 0) sums to 1 over the n options. An option has weight if x_i > tau.
template <class T>
double sparsemax_threshold(const T* x, std::size_t n);
/// max(x - tau(x), 0) over each row's options -> [R, S]; exactly 0 beyond them.
template <class T>
Var<T> sparsemax(Var<T> x, std::span<const int> options);

}  // namespace hardgrad
