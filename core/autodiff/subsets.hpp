// The distribution of subsets of exactly k of a row's options: p(S) = prod_{i in S} exp(x_i) / Z (conditional Poisson; Ahmed et
// al. 2023, SIMPLE, sec. 3). Exact, in O(S k) per row. Options of a row are its first `options[r]` columns whose logit is above
// -inf; if they are fewer than k, all are picked. UsageError if a row has none.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// log Z of x [R, S] -> [R, 1].
template <class T>
Var<T> subset_normaliser(Var<T> x, std::span<const int> options, int picks);
/// Probability that each option is in the subset -> [R, S]; a row's sum to k.
template <class T>
Var<T> subset_marginals(Var<T> x, std::span<const int> options, int picks);
/// Entropy in nats -> [R, 1].
template <class T>
Var<T> subset_entropy(Var<T> x, std::span<const int> options, int picks);
/// log p of the subsets picked [R' k] of the rows parent [R'] of x -> [R', 1]; -1 is no option.
template <class T>
Var<T> subset_log_probability(Var<T> x, std::span<const int> options, int picks, std::span<const int> parent,
                              std::span<const int> picked);

}  // namespace hardgrad
