// Quadrature over one number with a uniform or a logistic distribution, piece by piece.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/random/randomness.hpp"

namespace hardgrad::measurement {

/// Nodes, with the weights of the rule and of the two coarser ones in it, which say how good it is: each has a step twice as
/// long. Weights sum to 1.
struct Quadrature {
  static constexpr int rules = 3;
  std::vector<double> points;
  std::array<std::vector<double>, rules> weights;
};

/// Nodes on (0, 1). Between breaks, and kinks besides: Gauss-Legendre of 6 nodes where the integrand is a polynomial (exact up
/// to degree 11: the square of a degree of 5, so that all three rules are it), else tanh-sinh (Takahasi & Mori 1974), which
/// bears singular ends like those of logit(u), with a step of 2^-(5 + level).
Quadrature uniform_quadrature(const Pieces& pieces, std::span<const double> kinks, int level);

/// Nodes on the real line under the logistic density, by tanh-sinh in the probability below the number, between the edge and
/// kinks.
Quadrature logistic_quadrature(double edge, std::span<const double> kinks, int level);

/// What the finest of three rules with halved steps is off by, from their distances: coarsest to middle, middle to finest.
/// Where the integrand is analytic each halving gains more than the one before, and what is left is far less than
/// the last distance, which is what is said: at a kink a single step may gain much by chance. Where little is gained, at a
/// kink, it is both distances; where nothing, infinite: the integral may be, unless both are rounding of numbers of size
/// `scale`.
double quadrature_error(double coarse, double fine, double scale);

/// What a Gauss rule of n nodes is off by, from its distance to that of 3/4 n, and from there to that of n / 2. Of an analytic
/// integrand each gains much more than the one before. At a jump along a diagonal of a product of rules the error falls with
/// the root of n alone, unevenly: it is some ten times the distance.
double gauss_error(double coarse, double fine);

}  // namespace hardgrad::measurement
