// The cosine between two gradients, which is one however small they are.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace hardgrad {

/// a . b / (|a| |b|), in [-1, 1]; NaN if one of them is zero. Squares neither underflow nor overflow.
inline double cosine_between(std::span<const double> a, std::span<const double> b) {
  double most_a = 0, most_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most_a = std::max(most_a, std::abs(a[i]));
    most_b = std::max(most_b, std::abs(b[i]));
  }
  if (!(most_a > 0 && most_b > 0)) return std::numeric_limits<double>::quiet_NaN();
  double product = 0, squares_a = 0, squares_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i] / most_a, y = b[i] / most_b;
    product += x * y;
    squares_a += x * x;
    squares_b += y * y;
  }
  return std::clamp(product / std::sqrt(squares_a * squares_b), -1.0, 1.0);
}

}  // namespace hardgrad
