// Antithetic pairs of the bits of a question.
#pragma once

#include <cmath>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/random/column_draws.hpp"

namespace hardgrad {

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

/// DisARM's gradient at the logits [D, 2] of the pairs of D columns with probabilities p [D, 2], from their options b, b~ and
/// losses f: 1/2 (f(b) - f(b~)) (b - b~) max(p) at the logit of 1, and its negative at that of 0.
void disarm_gradient(std::span<const double> p, std::span<const int> b, std::span<const int> other_b, std::span<const double> f,
                     std::span<const double> other_f, std::span<double> logits);

}  // namespace hardgrad
