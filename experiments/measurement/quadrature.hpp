// Piecewise quadrature over one number with a uniform or a logistic distribution.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/random/randomness.hpp"

namespace hardgrad::measurement {

/// Nodes, with the weights of a rule and of the two coarser rules it contains, each with a step twice as long. The coarser
/// rules estimate the error. Weights sum to 1.
struct Quadrature {
  static constexpr int rules = 3;
  std::vector<double> points;
  std::array<std::vector<double>, rules> weights;
};

/// Nodes on (0, 1), between breaks and kinks. For a polynomial integrand: Gauss-Legendre of 6 nodes, exact up to degree 11 (the
/// square of a polynomial of degree 5), and all three rules are the same. Otherwise: tanh-sinh (Takahasi & Mori 1974) with a
/// step of 2^-(5 + level), which tolerates singular ends like those of logit(u).
Quadrature uniform_quadrature(const Pieces& pieces, std::span<const double> kinks, int level);

/// Nodes on the real line under the logistic density, between the edge and kinks, by tanh-sinh in the probability below the
/// number.
Quadrature logistic_quadrature(double edge, std::span<const double> kinks, int level);

/// Error of the finest of three rules with halved steps, from their distances: coarsest to middle, middle to finest. For an
/// analytic integrand each halving gains more than the one before. The true error is then far less than the last distance,
/// which is returned: at a kink a single step may gain much by chance. If a halving gains little (a kink), the sum of both
/// distances is returned. If it gains nothing, the result is infinite, as the integral may be, unless both distances are
/// rounding of numbers of size `scale`.
double quadrature_error(double coarse, double fine, double scale);

/// Error of a Gauss rule of n nodes, from its distance to the rule of 3/4 n nodes, and the distance from there to the rule of n
/// / 2. For an analytic integrand each rule gains much more than the one before. At a jump along a diagonal of a product of
/// rules, the error falls unevenly, with the root of n only: it is about ten times the distance.
double gauss_error(double coarse, double fine);

}  // namespace hardgrad::measurement
