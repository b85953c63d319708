#include "core/estimator/coupling/dirichlet_swaps.hpp"

#include <fmt/format.h>

#include <cmath>

namespace hardgrad {

// Broken off a stick: pi_i is a share of Beta(1, S - 1 - i) of what is left. With two options the actions depend on one
// number u and flip where u is p_0 or p_1; with more, where they flip depends on the other numbers too.
void draw_dirichlet(std::span<const double> p, std::span<double> pi, Randomness& random, Draw where) {
  const bool pair = p.size() == 2;
  const Pieces pieces{.breaks = pair ? p : std::span<const double>{}, .polynomial = pair, .jumps = !pair};
  double left = 1;
  for (std::size_t i = 0; i + 1 < p.size(); ++i, ++where.index) {
    const double rest = std::log(random.uniform(where, pieces)) / static_cast<double>(p.size() - 1 - i);
    pi[i] = -left * std::expm1(rest);
    left *= std::exp(rest);
  }
  pi[p.size() - 1] = left;
}

int swapped_action(std::span<const double> p, std::span<const double> pi, std::size_t c, std::size_t j) {
  const auto swapped = [&](std::size_t i) { return pi[i == c ? j : i == j ? c : i]; };
  std::size_t best = 0;
  for (std::size_t i = 1; i < p.size(); ++i)
    if (swapped(i) * p[best] < swapped(best) * p[i]) best = i;  // pi_i / p_i, with no division by a p of 0
  return static_cast<int>(best);
}

}  // namespace hardgrad
