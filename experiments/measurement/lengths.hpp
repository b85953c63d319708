// Lengths of gradients and cosines between them. Squares neither underflow nor overflow, however small the gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace hardgrad::measurement {

/// The largest absolute value; 0 if empty.
inline double largest(std::span<const double> x) {
  double most = 0;
  for (double v : x) most = std::max(most, std::abs(v));
  return most;
}

/// |x|.
inline double length_of(std::span<const double> x) {
  const double most = largest(x);
  if (!(most > 0)) return 0;
  double squares = 0;
  for (double v : x) squares += (v / most) * (v / most);
  return most * std::sqrt(squares);
}

/// |a - b|.
inline double distance_between(std::span<const double> a, std::span<const double> b) {
  std::vector<double> difference(a.begin(), a.end());
  for (std::size_t i = 0; i < b.size(); ++i) difference[i] -= b[i];
  return length_of(difference);
}

/// a . b / (|a| |b|), in [-1, 1]; NaN if a or b is zero.
inline double cosine_between(std::span<const double> a, std::span<const double> b) {
  const double most_a = largest(a), most_b = largest(b);
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

/// An even e for which x / 2^e is near 1, if x is so far from it that its fourth powers may leave the range of numbers; else 0.
inline int extreme_exponent(double x) {
  constexpr int harmless = 100;
  if (!(x > 0) || !std::isfinite(x)) return 0;
  const int exponent = std::ilogb(x);
  return std::abs(exponent) > harmless ? exponent / 2 * 2 : 0;
}

}  // namespace hardgrad::measurement
