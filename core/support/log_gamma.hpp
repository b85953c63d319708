// log Gamma, and what is counted by it.
#pragma once

#include <algorithm>
#include <cmath>

namespace hardgrad {

/// log Gamma(x), x > 0. (std::lgamma writes a global besides, the sign, for which threads would race.)
inline double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

/// How many multisets of so many samples there are: (outcomes + samples - 1) over (samples).
inline double multisets(double outcomes, double samples) {
  const double all = outcomes + samples - 1, chosen = std::min(samples, outcomes - 1);
  if (chosen > 1e4) return std::round(std::exp(log_gamma(outcomes + samples) - log_gamma(samples + 1) - log_gamma(outcomes)));
  double count = 1;  // log Gamma of large numbers cancels
  for (double i = 1; i <= chosen; ++i) count *= (all - chosen + i) / i;
  return std::round(count);
}

}  // namespace hardgrad
