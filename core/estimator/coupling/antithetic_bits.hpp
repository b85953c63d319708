// An antithetic pair of bits: b = [u > 1 - p] and b~ = [u < p] for one uniform number u.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// Draws the pair from its three possible outcomes instead of drawing u: both are the likelier bit, or exactly one of the two
/// is 1. Both probabilities are passed: where a bit is nearly certain, 1 - p would be all rounding error.
struct AntitheticBits {
  double of_zero, of_one;

  std::array<double, 3> law() const {
    const double differ = std::min(of_zero, of_one);
    return {std::abs(of_one - of_zero), differ, differ};
  }
  std::array<int, 2> bits(int outcome) const {
    const int same = of_one > of_zero;
    return {outcome == 0 ? same : outcome == 1, outcome == 0 ? same : outcome == 2};
  }
};

inline std::array<int, 2> antithetic_bits(double of_zero, double of_one, Randomness& random, Draw where) {
  const AntitheticBits pair{of_zero, of_one};
  return pair.bits(random.categorical(pair.law(), where));
}

/// The same for D adjacent columns, starting at where.column: p [D, 2] -> first and second [D].
inline void antithetic_bits(std::span<const double> p, Randomness& random, Draw where, std::span<int> first,
                            std::span<int> second) {
  const std::size_t D = first.size();
  std::vector<double> outcomes(3 * D);
  const auto pair = [&](std::size_t d) { return AntitheticBits{p[2 * d], p[2 * d + 1]}; };
  for (std::size_t d = 0; d < D; ++d) std::ranges::copy(pair(d).law(), &outcomes[3 * d]);
  random.categorical(outcomes, 3, std::vector<int>(D, 3), where, first);
  for (std::size_t d = 0; d < D; ++d) {
    const auto [bit, other] = pair(d).bits(first[d]);
    first[d] = bit;
    second[d] = other;
  }
}

/// For handlers: the options of pairs [N D], one pair for each of `rows`, drawn from the question's distribution.
struct BitPairs {
  std::vector<int> first, second;
};
template <class T>
BitPairs draw_pairs(const Question<T>& question, const Rows& rows, Randomness& random, const std::vector<std::uint32_t>& id) {
  const auto& options = question.categories().options();
  const auto log_p = question.categories().log_p().value();
  const auto D = static_cast<std::size_t>(question.site.columns);
  BitPairs pairs{std::vector<int>(rows.size() * D), std::vector<int>(rows.size() * D)};
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t d = 0; d < D; ++d) {
      const std::size_t choice = rows.parent[r] * D + d;
      if (options[choice] == 1) continue;
      const auto pair =
          antithetic_bits(std::exp(static_cast<double>(log_p(choice, 0))), std::exp(static_cast<double>(log_p(choice, 1))),
                          random, Noise{random, id, question.step}.at(rows, r, d));
      pairs.first[r * D + d] = pair[0];
      pairs.second[r * D + d] = pair[1];
    }
  return pairs;
}

}  // namespace hardgrad
