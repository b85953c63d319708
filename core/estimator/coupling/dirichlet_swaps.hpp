// Categories from Dirichlet noise, and the pseudo actions obtained by swapping two of its coordinates.
//
// z = argmin_i pi_i / p_i has the law p if pi ~ Dirichlet(1, ..., 1). Swapping coordinates c and j keeps the law of pi, so
//    z^{c <-> j} has the law p, too.
// Yin, Yue & Zhou 2019, ARSM: augment-REINFORCE-swap-merge estimator.
#pragma once

#include <span>

#include "core/estimator/coupling/coupled_estimator.hpp"

namespace hardgrad {

/// pi [S] ~ Dirichlet(1, ..., 1) for a choice with probabilities p [S]. Uses S - 1 indices from that
/// of `where` on.
void draw_dirichlet(std::span<const double> p, std::span<double> pi, Randomness& random, Draw where);
/// z^{c <-> j}; c = j is the true action z.
int swapped_action(std::span<const double> p, std::span<const double> pi, std::size_t c, std::size_t j);

/// Largest number of options for which the swaps are affordable.
inline constexpr int most_swapped_options = 64;
inline constexpr Need few_enough_to_swap =
    need::options(most_swapped_options, "their swaps make up to S (S - 1) / 2 rows each");

}  // namespace hardgrad
