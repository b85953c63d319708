// The point between a choice's probabilities and the option drawn, at which estimators of second order take their derivative.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/choice/relaxed.hpp"

namespace hardgrad {

/// log((p_T + z) / 2) [R, S] of every cell's options, p_T the softmax at a temperature; 0 where there is no choice. Logarithms
/// throughout: a probability that is too small for a number still has one.
template <class T>
std::vector<double> halfway(const Relaxing<T>& asked, const std::vector<int>& option, double temperature = 1) {
  auto at = asked.log_p();
  for (std::size_t r = 0; r < asked.size(); ++r) {
    if (asked.count[r] == 1) continue;
    double* log_p = &at[r * asked.width()];
    if (temperature != 1) {
      double most = -INFINITY, sum = 0;
      for (int i = 0; i < asked.count[r]; ++i) most = std::max(most, log_p[i] /= temperature);
      for (int i = 0; i < asked.count[r]; ++i) sum += std::exp(log_p[i] - most);
      for (int i = 0; i < asked.count[r]; ++i) log_p[i] -= most + std::log(sum);
    }
    for (int i = 0; i < asked.count[r]; ++i)
      log_p[i] = i == option[r] ? std::log1p(std::expm1(log_p[i]) / 2) : log_p[i] - std::log(2.0);
  }
  return at;
}

}  // namespace hardgrad
