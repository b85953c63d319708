// Two distributions of subsets of exactly k of a row's options: conditional Poisson and Plackett-Luce.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"
#include "core/support/views.hpp"

namespace hardgrad {

// p(S) = prod_{i in S} exp(x_i) / Z (conditional Poisson; Ahmed et al. 2023, SIMPLE, sec. 3). Exact, in O(S k) per row. k is
// picks[r] of row r. Options of a row are its first `options[r]` columns whose logit is above -inf; if they are fewer than k,
// all are picked. UsageError if a row has none.

/// log Z of x [R, S] -> [R, 1].
template <class T>
Var<T> subset_normaliser(Var<T> x, std::span<const int> options, SubsetSizes subset_size);
/// Probability that each option is in the subset -> [R, S]; a row's sum to k.
template <class T>
Var<T> subset_marginals(Var<T> x, std::span<const int> options, SubsetSizes subset_size);
/// Entropy in nats -> [R, 1].
template <class T>
Var<T> subset_entropy(Var<T> x, std::span<const int> options, SubsetSizes subset_size);
/// log p of the subsets picked [R' m] of the rows parent [R'] of x -> [R', 1], m the largest k; -1 is no option.
template <class T>
Var<T> subset_log_probability(Var<T> x, std::span<const int> options, SubsetSizes subset_size, std::span<const int> parent,
                              std::span<const int> picked);

// The first k of draws without replacement, each by the softmax of the options left, without their order: p(S) is the sum over the
// k! orders of S (Plackett-Luce; Yellott 1977; Kool, van Hoof & Welling 2020, Ancestral Gumbel-top-k sampling, eq. 8).

/// log p of the subsets picked [R' k] of the rows parent [R'] of x [R, S] -> [R', 1]; -1 is no option. Options of a row are its
/// first `options[r]` columns whose logit is above -inf. Exact, in O(2^k k + S) for each subset; k is at most
/// kernels::PlackettLuce::most_picks.
template <class T>
Var<T> plackett_luce_log_probability(Var<T> x, std::span<const int> options, std::span<const int> parent,
                                     std::span<const int> picked);

}  // namespace hardgrad
