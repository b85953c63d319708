// The first k of draws without replacement, each by the softmax of the options left, without their order: p(S) is the sum over the
// k! orders of S (Plackett-Luce; Yellott 1977; Kool, van Hoof & Welling 2020, Ancestral Gumbel-top-k sampling, eq. 8).
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// log p of the subsets picked [R' k] of the rows parent [R'] of x [R, S] -> [R', 1]; -1 is no option. Options of a row are its
/// first `options[r]` columns whose logit is above -inf. Exact, in O(2^k k + S) for each subset; k is at most
/// kernels::PlackettLuce::most_picks.
template <class T>
Var<T> plackett_luce_log_probability(Var<T> x, std::span<const int> options, std::span<const int> parent,
                                     std::span<const int> picked);

}  // namespace hardgrad
