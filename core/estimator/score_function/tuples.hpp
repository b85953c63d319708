// The mean of an estimate from several samples of one choice, by summing over all tuples; used to check formulas.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "core/estimator/promises.hpp"

namespace hardgrad {

/// [S] mean of g(z_1..z_K) over independent z_k of the behaviour policy; S^K terms.
inline SmallChoice::Vector mean_over_tuples(const SmallChoice& at, int samples,
                                            const std::function<SmallChoice::Vector(const std::vector<std::size_t>&)>& g) {
  const auto q = at.q();
  const std::size_t S = q.size();
  SmallChoice::Vector sum(0.0, S);
  std::vector<std::size_t> z(samples);
  for (std::size_t code = 0, all = static_cast<std::size_t>(std::lround(std::pow(S, samples))); code < all; ++code) {
    double weight = 1;
    for (std::size_t k = 0, rest = code; k < z.size(); ++k, rest /= S) weight *= q[z[k] = rest % S];
    sum += weight * g(z);
  }
  return sum;
}

}  // namespace hardgrad
