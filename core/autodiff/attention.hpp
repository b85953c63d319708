// Attention: scores of a query against its own example's items, and mixtures of them. Items of example b are rows
// b L .. b L + L - 1 of a matrix [B L, D]; row r of the queries belongs to example[r] (non-decreasing).
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// e[r, i] = query_r . key_{example r, i}: query [R, D], keys [B L, D] -> [R, L].
template <class T> Var<T> dot_scores(Var<T> query, Var<T> keys, std::span<const int> example, std::size_t items);
/// e[r, i] = v . tanh(query_r + key_{example r, i}): v [1, D] -> [R, L]. The tanh is recomputed in the backward pass.
template <class T>
Var<T> additive_scores(Var<T> query, Var<T> keys, Var<T> v, std::span<const int> example, std::size_t items);
/// z[r] = sum_i weights[r, i] values_{example r, i}: weights [R, L], values [B L, D] -> [R, D].
template <class T> Var<T> mix(Var<T> weights, Var<T> values, std::span<const int> example);

}  // namespace hardgrad
