// Divergences D of a policy p from the reference policy r at a drawn word, with m = log p - log r there (Schulman 2020,
// Approximating KL divergence).
#pragma once

#include <cmath>
#include <string>

namespace hardgrad {

/// kind: none; k1 = m; k2 = m^2 / 2; k3 = exp(-m) - 1 + m; exact = KL(p || r), which is not of a word.
struct PolicyDivergence {
  std::string kind;

  bool any() const { return kind != "none"; }
  bool of_words() const { return any() && kind != "exact"; }
  double operator()(double m) const { return kind == "k1" ? m : kind == "k2" ? m * m / 2 : std::expm1(-m) + m; }
  /// Its derivative with respect to log p.
  double slope(double m) const { return kind == "k1" ? 1 : kind == "k2" ? m : -std::expm1(-m); }
  /// True if D is too large for a number, although exp(l) D need not be.
  bool overflows(double m) const { return kind == "k3" && m < -700; }
  /// exp(l) D, for such m.
  static double weighted(double l, double m) { return std::exp(l - m) + std::exp(l) * (m - 1); }
  /// D plus its derivative: the derivative of p D over p. In k3 the exponentials, which may overflow, cancel.
  double weighted_slope(double m) const { return kind == "k3" ? m : (*this)(m) + slope(m); }
};

}  // namespace hardgrad
