// The loss of a classifier: linear layer, softmax and cross-entropy in one operation.
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
/// The expected cotangents g [R] of the losses, up to one common factor, as far as they are known before the losses.
struct ExpectedCotangents {
  std::span<const double> weight{};  ///< [R] w; empty: unknown
  /// [R] non-decreasing: within the group of r, the sum of w is divided in proportion to w[r] exp(-loss[r]). Empty: g = w.
  std::span<const int> group{};
};
/// Fused softmax cross-entropy of the logits x W' + b: x [R, I], W [V, I], b [1, V] or empty, label [R] in [0, V) or -1. Logits
/// are computed in chunks of rows. If cotangents are expected, gradients are computed at once, and no logits are kept. Other
/// cotangents also give the right gradient, but take a second pass.
template <class T>
Classified<T> linear_cross_entropy(Var<T> x, Var<T> weight, Var<T> bias, std::span<const int> label,
                                   ExpectedCotangents expected = {});

}  // namespace hardgrad
