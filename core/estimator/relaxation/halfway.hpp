// The midpoint of a choice's probabilities and the drawn option, at which second-order estimators take the derivative.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/choice/relaxed.hpp"

namespace hardgrad {

/// log((p_T + z) / 2) [R, S] for every choice's options, p_T the softmax at a temperature; 0 where there is no choice. Computed
/// in logarithms, so that probabilities that underflow keep a finite log.
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
