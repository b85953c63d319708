#include "core/estimator/coupling/dirichlet_swaps.hpp"

#include <fmt/format.h>

#include <cmath>

namespace hardgrad {

// Stick breaking: pi_i is the remaining length times a Beta(1, S - 1 - i) number. With two options the actions depend on one
// number u and flip at u = p_0 and u = p_1. With more options, the flips also depend on the other numbers.
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
    if (swapped(i) * p[best] < swapped(best) * p[i]) best = i;  // compares pi_i / p_i without dividing by p = 0
  return static_cast<int>(best);
}

}  // namespace hardgrad
