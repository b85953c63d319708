// Quadrature over one standard draw of an estimate with jumps: the rule is split at the jumps.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/random/gauss_rules.hpp"

namespace hardgrad::measurement {

/// The range of a standard draw; the probability outside it is 1e-17.
struct Reach {
  double from, to;
};
Reach reach_of(Standard noise);

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
