// An antithetic pair of bits: b = [u > 1 - p] and b~ = [u < p] for one uniform number u.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "core/random/randomness.hpp"

namespace hardgrad {

/// Draws the pair by its three possible outcomes, without u: it matters only through them.
inline std::array<int, 2> antithetic_bits(double p, Randomness& random, Draw where) {
  const double differ = std::min(p, 1 - p), outcomes[] = {std::abs(1 - 2 * p), differ, differ};
  const int outcome = random.categorical(outcomes, where), same = p > 0.5;
  if (outcome == 0) return {same, same};
  return {outcome == 1, outcome == 2};
}

}  // namespace hardgrad
