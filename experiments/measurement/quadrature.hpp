// Quadrature over one continuous draw: in stretches between breaks, and split at the jumps of an estimate.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "core/random/gauss_rules.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad::measurement {

// A stretch: an interval of the values of a continuous draw. A point in it is given by the share of its probability below the
// point.

class Stretch {
 public:
  /// A part of (0, 1), under the uniform density.
  static Stretch uniform(double from, double to);
  /// A part of the real line, under the logistic density; the ends may be infinite. Both tails avoid a difference from 1, so
  /// ends at +-700 are as accurate as those at +-1.
  static Stretch logistic(double from, double to);

  double mass() const { return mass_; }
  /// The powers of e by which the probability may fall within the stretch; an integrand may vary near either end.
  double depth() const { return depth_; }
  /// The number that divides the stretch's probability into shares `below` and `above`, whose sum is 1.
  double at(double below, double above) const;

 private:
  bool logistic_ = false, mirrored_ = false;  // mirrored so that it lies below zero, or most of it does
  double mass_ = 0, depth_ = 0;
  double first_ = 0, rest_ = 0, log_last_ = 0;  // probability below the stretch, above it, and below its end
};

/// Stretches between breaks in (0, 1), which may come in any order.
std::vector<Stretch> uniform_stretches(std::span<const double> breaks);
/// Stretches between the edge and other breaks. Near a far edge an integrand varies over lengths of about 1, so the 40 next to
/// it form a separate stretch.
std::vector<Stretch> logistic_stretches(double edge, std::span<const double> breaks);

// Piecewise quadrature over one number with a uniform or a logistic distribution.

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

// Quadrature over one standard draw of an estimate with jumps: the rule is split at the jumps.

/// The range of a standard draw; the probability outside it is 1e-17.
struct Support {
  double from, to;
};
Support support_of(Standard noise);

/// Piecewise Gauss-Legendre rule under the distribution's density. The reach has `pieces` equal parts, split further at
/// `breaks`, with six nodes each. Weights sum to 1. If the integrand is analytic except at the breaks, the error falls with the
/// twelfth power of the number of pieces.
GaussRule pieced_rule(Standard noise, int pieces, std::span<const double> breaks = {});

/// The jumps of f: R -> R^P within the reach: detected on an even grid, then located by bisection. If two jumps are nearer than
/// the grid's step, one may be missed.
std::vector<double> jumps_of(const std::function<std::span<const double>(double)>& f, Standard noise);

/// Approximate number of calls of f by `jumps_of` if there are a few jumps.
inline constexpr double runs_of_jumps = 200;

}  // namespace hardgrad::measurement
