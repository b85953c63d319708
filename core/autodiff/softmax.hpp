// Normalised distributions over a row's options. The options of row r are its first `options[r]` columns. The others have
// probability exactly 0 and log probability -inf, and do not take part in gradients.
#pragma once

#include <cmath>
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

// Entmax: p_i = max((alpha - 1) x_i - tau, 0)^(1 / (alpha - 1)), with the tau for which p sums to 1. Unlike softmax, its limit
// at alpha = 1, it gives most options exactly 0. Peters, Niculae & Martins 2019, Sparse sequence-to-sequence models; sparsemax is
// alpha = 2: Martins & Astudillo 2016, From softmax to sparsemax, eq. 2.

/// Nearer to 1, where tau is large, (alpha - 1) x would be lost beside it.
inline constexpr double least_entmax_alpha = 1 + 1e-6;
/// The tau of n options; alpha from the least one to 2.
template <class T>
double entmax_threshold(const T* x, std::size_t n, double alpha);
/// p of an option.
inline double entmax_weight(double x, double tau, double alpha) {
  const double above = (alpha - 1) * x - tau;
  return above <= 0 ? 0 : alpha == 2 ? above : std::pow(above, 1 / (alpha - 1));  // NaN stays visible
}
/// p of each row's options -> [R, S]; exactly 0 beyond them.
template <class T>
Var<T> entmax(Var<T> x, std::span<const int> options, double alpha);

}  // namespace hardgrad
