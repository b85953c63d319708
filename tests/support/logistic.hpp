// Softmax, and integrals over logistic noise, computed independently of the library.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

namespace hardgrad::testing {

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline std::vector<double> softmax(std::vector<double> x) {
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v);
  for (double& v : x) v /= sum;
  return x;
}

/// E[h(z)] over z = phi + logistic noise between two ends, by the trapezoid rule in z.
inline double over_logistic(double phi, double from, double to, const std::function<double(double)>& h) {
  const int steps = 200000;
  double sum = 0;
  for (int i = 0; i <= steps; ++i) {
    const double z = from + (to - from) * i / steps, x = sigmoid(z - phi);
    sum += (i == 0 || i == steps ? 0.5 : 1) * h(z) * x * (1 - x);
  }
  return sum * (to - from) / steps;
}
/// dw / dz of the relaxed bit w = sigmoid(z / temperature).
inline double bump(double z, double temperature) {
  const double w = sigmoid(z / temperature);
  return w * (1 - w) / temperature;
}

}  // namespace hardgrad::testing
