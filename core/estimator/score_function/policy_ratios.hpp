// Importance weights of sampled choices whose policy p differs from the behaviour policy q that drew them: ratios of their
// probabilities, in logarithms, and bounds on the ratios.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/error.hpp"

namespace hardgrad {

/// Values [T][R] for each question t and sample r; 0 where the sample makes no choice.
using PerQuestion = std::vector<std::vector<double>>;

/// The logarithms of the weights of all choices, from log p - log q of each. With l_t = log p(z_t) - log q(z_t) and n choices:
///   none       0
///   token      l_t                   prefix      l_1 + .. + l_t
///   sequence   l_1 + .. + l_T        geometric   (l_1 + .. + l_T) / n
inline PerQuestion log_weights(std::string_view ratio, PerQuestion l, const std::vector<double>& n) {
  if (ratio == "token") return l;
  for (std::size_t r = 0; r < n.size(); ++r) {
    double sum = 0;
    for (auto& at : l) at[r] = sum += at[r];
    if (ratio == "prefix") continue;
    for (auto& at : l) at[r] = ratio == "none" ? 0 : ratio == "geometric" ? sum / n[r] : sum;
  }
  return l;
}

/// factor x w, where w has this logarithm up to a bound; 0 times an overflow is 0. Error if it is no number T.
template <class T>
double weighed(double factor, double w, double log_w) {
  if (factor == 0) return 0;
  const double product = factor * w;
  if (std::abs(product) <= static_cast<double>(std::numeric_limits<T>::max())) return product;
  throw Error(1, fmt::format("the network gives a sample e^{:.0f} times the probability that its behaviour policy gave it, "
                             "which overflows: take a nearer behaviour policy (a smaller drift, a later checkpoint)",
                             log_w));
}

/// Bounds on a weight w > 0, given as its logarithm.
///   none      w
///   clip      w, or 0 where the objective min(w A, clip(w, low, high) A) is flat: w > high and A > 0, w < low and A < 0,
///             and for A < 0 also w > dual
///   truncate  clip(w, low, high), a constant factor of the score
///   mask      w, or 0 outside [low, high]
/// A is the advantage in rewards.
struct RatioBound {
  std::string kind;
  double low, high, dual;

  double operator()(double log_w, double advantage) const {
    const double w = std::exp(log_w);
    if (kind == "truncate") return w < low ? low : w > high ? high : w;
    const bool below = w<low, above = w> high;
    if (kind == "mask") return below || above ? 0 : w;
    if (kind == "clip" && (advantage > 0 ? above : below || w > dual)) return 0;
    return w;
  }
};

}  // namespace hardgrad
