// The loss of a classifier: a linear layer, softmax and cross-entropy in one.
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
/// What the losses' cotangents g [R] will be up to one common factor, as far as it is known before the losses are.
struct ExpectedCotangents {
  std::span<const double> weight{};  ///< [R] w; empty: unknown
  /// [R] non-decreasing: the sum of w in r's group is shared out as g[r] ~ w[r] exp(-loss[r]). Empty: g = w.
  std::span<const int> group{};
};
/// Softmax cross-entropy of the logits x W' + b, fused: x [R, I], W [V, I], b [1, V] or empty, label [R] in [0, V) or
/// -1. Logits are worked off in chunks of rows. Where cotangents are expected, gradients are formed at once and no logits are
/// kept. Other cotangents give the right gradient too, at the price of a second pass.
template <class T>
Classified<T> linear_cross_entropy(Var<T> x, Var<T> weight, Var<T> bias, std::span<const int> label,
                                   ExpectedCotangents expected = {});

}  // namespace hardgrad
