// Standard continuous noise, and quadrature over it.
#pragma once

#include <vector>

namespace hardgrad {

/// Continuous distributions without parameters.
enum class Standard {
  normal,          ///< exp(-z^2 / 2) / sqrt(2 pi)
  weibull,         ///< z exp(-z^2 / 2), z > 0: Weibull of shape 2 and scale sqrt(2)
  double_maxwell,  ///< z^2 exp(-z^2 / 2) / sqrt(2 pi): double-sided Maxwell
  uniform          ///< 1 on (0, 1)
};

/// The u-quantile of the standard normal distribution, u in (0, 1).
double standard_normal_quantile(double u);

/// The normalised density at z.
double standard_density(Standard noise, double z);

struct GaussRule {
  std::vector<double> points;   ///< ascending
  std::vector<double> weights;  ///< sum to 1
};

/// The Gauss rule of n points (1 to 64). It gives the mean of every polynomial of degree up to 2n - 1, to about 1e-13. For
/// `normal` it is Gauss-Hermite. Thread-safe.
const GaussRule& gauss_rule(Standard noise, int n);

}  // namespace hardgrad
