// An antithetic pair of bits: b = [u > 1 - p] and b~ = [u < p] for one uniform number u.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "core/random/randomness.hpp"

namespace hardgrad {

/// Draws the pair by its three possible outcomes, without u: it matters only through them. Both probabilities are given, that
/// of a bit that is nearly certain being no better than rounding for that of its opposite.
inline std::array<int, 2> antithetic_bits(double of_zero, double of_one, Randomness& random, Draw where) {
  const double differ = std::min(of_zero, of_one), outcomes[] = {std::abs(of_one - of_zero), differ, differ};
  const int outcome = random.categorical(outcomes, where), same = of_one > of_zero;
  if (outcome == 0) return {same, same};
  return {outcome == 1, outcome == 2};
}

}  // namespace hardgrad
