// An antithetic pair of bits: b = [u > 1 - p] and b~ = [u < p] for one uniform number u.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/choice/episode.hpp"
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

/// The same of D columns side by side, from where.column on: p [D, 2] -> first and second [D].
inline void antithetic_bits(std::span<const double> p, Randomness& random, Draw where, std::span<int> first,
                            std::span<int> second) {
  const std::size_t D = first.size();
  std::vector<double> outcomes(3 * D);
  for (std::size_t d = 0; d < D; ++d) {
    outcomes[3 * d] = std::abs(p[2 * d + 1] - p[2 * d]);
    outcomes[3 * d + 1] = outcomes[3 * d + 2] = std::min(p[2 * d], p[2 * d + 1]);
  }
  random.categorical(outcomes, 3, std::vector<int>(D, 3), where, first);
  for (std::size_t d = 0; d < D; ++d) {
    const int outcome = first[d], same = p[2 * d + 1] > p[2 * d];
    first[d] = outcome == 0 ? same : outcome == 1;
    second[d] = outcome == 0 ? same : outcome == 2;
  }
}

/// For choosers: the options of pairs [N D], one for each of `rows`, whose cells continue those of the question.
struct BitPairs {
  std::vector<int> first, second;
};
template <class T>
BitPairs draw_pairs(const Question<T>& question, const Rows& rows, Randomness& random, const std::vector<std::uint32_t>& id) {
  const auto log_p = question.log_p.value();
  const auto D = static_cast<std::size_t>(question.site.columns);
  BitPairs pairs{std::vector<int>(rows.size() * D), std::vector<int>(rows.size() * D)};
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t d = 0; d < D; ++d) {
      const std::size_t cell = rows.parent[r] * D + d;
      if (question.site.options[cell] == 1) continue;
      const auto pair =
          antithetic_bits(std::exp(static_cast<double>(log_p(cell, 0))), std::exp(static_cast<double>(log_p(cell, 1))), random,
                          Noise{random, id, question.step}.at(rows, r, d));
      pairs.first[r * D + d] = pair[0];
      pairs.second[r * D + d] = pair[1];
    }
  return pairs;
}

}  // namespace hardgrad
