// Normalised distributions over a row's options. The options of row r are its first `options[r]` columns. The others have
// probability exactly 0 and log probability -inf, and do not take part in gradients.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// log softmax of x [R, S] over each row's options -> [R, S].
template <class T>
Var<T> log_softmax(Var<T> x, std::span<const int> options);
/// exp of a matrix of log probabilities; -inf gives an exact 0 without gradient.
template <class T>
Var<T> probabilities(Var<T> log_p);
/// Entropy in nats of each row of log_p [R, S] -> [R, 1]; 0 log 0 = 0.
template <class T>
Var<T> entropy(Var<T> log_p);
/// KL(q || p) in nats of each row -> [R, 1].
template <class T>
Var<T> kl_divergence(Var<T> log_q, Var<T> log_p);
/// Mean of log q - log p under given weights: weights [R', S], log_q and log_p [R, S], parent [R'] the row of log_q and log_p
/// -> [R', 1] sum_j w_j (log q_j - log p_j).
template <class T>
Var<T> log_ratio(Var<T> weights, Var<T> log_q, Var<T> log_p, std::span<const int> parent);

// Sparsemax: the Euclidean projection of a row's logits onto the probability simplex (Martins & Astudillo 2016, From
// softmax to sparsemax, eq. 2 and Algorithm 1). Unlike softmax it gives most options exactly 0.

/// The tau for which max(x_i - tau, 0) sums to 1 over the n options. An option has weight if x_i > tau.
template <class T>
double sparsemax_threshold(const T* x, std::size_t n);
/// max(x - tau(x), 0) over each row's options -> [R, S]; exactly 0 beyond them.
template <class T>
Var<T> sparsemax(Var<T> x, std::span<const int> options);

}  // namespace hardgrad
