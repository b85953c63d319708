// log Gamma, and numbers of multisets.
#pragma once

#include <algorithm>
#include <cmath>

namespace hardgrad {

/// log Gamma(x), x > 0. Thread-safe, unlike std::lgamma, which writes the sign to a global.
inline double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

/// The number of multisets of `samples` samples: the binomial coefficient (outcomes + samples - 1) over (samples).
inline double multisets(double outcomes, double samples) {
  const double all = outcomes + samples - 1, chosen = std::min(samples, outcomes - 1);
  if (chosen > 1e4) return std::round(std::exp(log_gamma(outcomes + samples) - log_gamma(samples + 1) - log_gamma(outcomes)));
  double count = 1;  // a product, because differences of log Gamma of large numbers cancel
  for (double i = 1; i <= chosen; ++i) count *= (all - chosen + i) / i;
  return std::round(count);
}

}  // namespace hardgrad
