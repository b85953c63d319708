// log Gamma, and what is counted by it.
#pragma once

#include <cmath>

namespace hardgrad {

/// log Gamma(x), x > 0. (std::lgamma writes a global besides, the sign, for which threads would race.)
inline double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

/// How many multisets of so many samples there are.
inline double multisets(double outcomes, double samples) {
  return std::round(std::exp(log_gamma(outcomes + samples) - log_gamma(samples + 1) - log_gamma(outcomes)));
}

}  // namespace hardgrad
