// The mean of estimators through relaxed weights of two options, by integration over the density of the noise.
#pragma once

#include <cmath>

#include "core/estimator/promises.hpp"

namespace hardgrad {

/// dw / dz of the relaxed weight w = sigmoid(z / temperature).
inline double relaxed_slope(double z, double temperature) {
  const double w = 1 / (1 + std::exp(-z / temperature));
  return w * (1 - w) / temperature;
}

/// [2] mean of the gradient at the logits through w = sigmoid(z / temperature), z = phi + logistic noise. The derivative of f
/// is taken at w, or, if `hard`, at the option that z selects. Empty for other numbers of options.
inline SmallChoice::Vector relaxed_mean(double temperature, const SmallChoice& at, bool hard) {
  if (at.logits.size() != 2) return {};
  constexpr double far = INFINITY;
  const auto through = [&](double z) {
    const double w = 1 / (1 + std::exp(-z / temperature));
    const auto slope = at.slope(hard ? at.one_hot(z > 0) : SmallChoice::Vector{1 - w, w});
    return (slope[1] - slope[0]) * w * (1 - w) / temperature;
  };
  const double phi = at.logits[1] - at.logits[0];
  const double g = over_logistic(phi, -far, 0, temperature, through) + over_logistic(phi, 0, far, temperature, through);
  return {-g, g};
}

}  // namespace hardgrad
