// Losses in one operation: softmax and cross-entropy of a classifier, with or without the linear layer before them, and the
// linear layer, logistic function and cross-entropy of bits.
#pragma once

#include <span>
#include <vector>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

template <class T>
struct Classified {
  Var<T> loss;             ///< [R, 1] -log softmax(logits)[label] in nats; 0 where label is -1
  std::vector<int> label;  ///< [R] the most probable class
};
/// Softmax cross-entropy of logits [R, V], label [R] in [0, V) or -1.
template <class T>
Classified<T> cross_entropy(Var<T> logits, std::span<const int> label);

/// The expected cotangents g [R] of the losses, up to one common factor, as far as they are known before the losses.
struct ExpectedCotangents {
  std::span<const double> weight{};  ///< [R] w; empty: unknown
  /// [R] non-decreasing: within the group of r, the sum of w is divided in proportion to w[r] exp(-loss[r]). Empty: g = w.
  std::span<const int> group{};
};
/// The same of the logits x W' + b: x [R, I], W [V, I], b [1, V] or empty, label [R] in [0, V) or -1. Logits
/// are computed in chunks of rows. If cotangents are expected, gradients are computed at once, and no logits are kept. Other
/// cotangents also give the right gradient, but take a second pass.
template <class T>
Classified<T> linear_cross_entropy(Var<T> x, Var<T> weight, Var<T> bias, std::span<const int> label,
                                   ExpectedCotangents expected = {});

/// -log p(y) of independent bits with log odds l [R, C], summed over a row: sum_c log(1 + exp l[r, c]) - y[index[r], c] l[r, c],
/// in nats. y [N, C] in [0, 1], constant; index [R] rows of y -> [R, 1].
template <class T>
Var<T> binary_cross_entropy(Var<T> odds, Var<T> y, std::span<const int> index);
/// The same of l = x W' + b: x [R, I]; W [C, I]; b [1, C] or empty.
template <class T>
Var<T> linear_binary_cross_entropy(Var<T> x, Var<T> weight, Var<T> bias, Var<T> y, std::span<const int> index);

}  // namespace hardgrad
